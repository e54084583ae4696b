// Latent trees as a layer of a network: traversals z and activities a of a batch (Eq. 3), and the
// gradient through both (Section 3.2). In float32 and float64. NumPy reference: tests/reference/latent.py.
#pragma once

#include <cstdint>

#include "learn/latent/pruning.hpp"

namespace hardwood {

// A batch of n rows. Either the scores of the splits of a perfect tree, (n, 2^depth - 1) in heap
// order, which determine the q of every node (Eq. 1); or q itself, (n, 2^(depth + 1) - 1).
template <class Real>
struct LatentBatch {
  std::int64_t n = 0;
  int depth = 0;
  const Real* rows = nullptr;
  bool is_q = false;

  int n_splits() const { return (1 << depth) - 1; }
  int n_nodes() const { return 2 * n_splits() + 1; }
  int n_inputs() const { return is_q ? n_nodes() : n_splits(); }
  const Real* row(std::int64_t i) const { return rows + i * n_inputs(); }
};

// Solves for the activities; lambda >= 0, where 0 prunes nothing. Ignores rows with NaN.
template <class Real>
Pruning latent_pruning(const LatentBatch<Real>& batch, double lambda);

// z_it = q_it + 1/2 clipped to [0, a_t] (Proposition 1), for any activities; a row with NaN gives
// NaN.
template <class Real>
void latent_traversal(const LatentBatch<Real>& batch, const Real* activity, int n_threads, Real* z);

// Converts gradients by z (n, nodes) and by the activities (nodes,) of `pruning`, here as Real, to
// gradients by the entries of the batch.
template <class Real>
void latent_backward(const LatentBatch<Real>& batch, const Real* activity,
                     const std::int32_t* group, const double* curvature, const Real* slope_z,
                     const Real* slope_activity, int n_threads, Real* slope);

#define HARDWOOD_LATENT_LAYER(prefix, Real)                                                        \
  prefix template Pruning latent_pruning(const LatentBatch<Real>&, double);                        \
  prefix template void latent_traversal(const LatentBatch<Real>&, const Real*, int, Real*);        \
  prefix template void latent_backward(const LatentBatch<Real>&, const Real*, const std::int32_t*, \
                                       const double*, const Real*, const Real*, int, Real*);
HARDWOOD_LATENT_LAYER(extern, float)
HARDWOOD_LATENT_LAYER(extern, double)

}  // namespace hardwood
