// DGT as a layer of a network: the hard tree's predictions, and Algorithm 2 for a given derivative
// of the loss, including the gradient by the input.
#pragma once

#include <cstdint>

#include "learn/dgt/tile.hpp"

namespace hardwood {

// A tree in the caller's layout: rows without padding.
struct DgtLayer {
  DgtShape shape;
  const float* W = nullptr;      // (m, d)
  const float* b = nullptr;      // (m,)
  const float* theta = nullptr;  // (leaves, k)
};

struct DgtLayerGradient {
  float* X = nullptr;      // (n, d), or null if not needed
  float* W = nullptr;      // (m, d)
  float* b = nullptr;      // (m,)
  float* theta = nullptr;  // (leaves, k)
};

// Predictions (n, k) and leaves (n,) of the rows X (n, d), by the routing of all trees.
void dgt_layer_forward(const DgtLayer& layer, std::int64_t n, const float* X, int n_threads,
                       float* prediction, std::int32_t* leaf);

// Gradients of a loss whose derivative by the predictions is slope (n, k). A leaf receives the
// slopes of the samples that reached it in the forward pass, as given by `leaf`. The result does
// not depend on the number of threads.
void dgt_layer_backward(const DgtLayer& layer, std::int64_t n, const float* X,
                        const std::int32_t* leaf, const float* slope, int n_threads,
                        const DgtLayerGradient& gradient);

}  // namespace hardwood
