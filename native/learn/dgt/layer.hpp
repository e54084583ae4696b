// DGT as a layer of a network: the hard tree's predictions, and Algorithm 2 for slopes that come
// from outside, down to the gradient by the input.
#pragma once

#include <cstdint>

#include "learn/dgt/tile.hpp"

namespace hardwood {

// A tree as its owner has it: rows without padding.
struct DgtLayer {
  DgtShape shape;
  const float* W = nullptr;      // (m, d)
  const float* b = nullptr;      // (m,)
  const float* theta = nullptr;  // (leaves, k)
};

struct DgtLayerGradient {
  float* X = nullptr;      // (n, d), or null where nobody asks
  float* W = nullptr;      // (m, d)
  float* b = nullptr;      // (m,)
  float* theta = nullptr;  // (leaves, k)
};

// prediction (n, k) and leaf (n,) of the rows X (n, d), by the router that all trees share.
void dgt_layer_forward(const DgtLayer& layer, std::int64_t n, const float* X, int n_threads,
                       float* prediction, std::int32_t* leaf);

// Gradients of a loss whose derivative by the predictions is slope (n, k). Leaves receive the slopes
// of the samples that `leaf` says have reached them: what the forward pass found, not what another
// order of summation might. The result does not depend on the number of threads.
void dgt_layer_backward(const DgtLayer& layer, std::int64_t n, const float* X,
                        const std::int32_t* leaf, const float* slope, int n_threads,
                        const DgtLayerGradient& gradient);

}  // namespace hardwood
