// Losses of leaves as loss-augmented inference asks for them: of one leaf, and bounds on those of
// all leaves of a subtree. Compiled for each instruction set.
//
// Cross-entropy has a table of losses, leaf by class, and of their maxima below each split. Losses
// of one output each are convex, so that over an interval of theta they are largest at its ends:
// subtrees keep the smallest and the largest theta of each output.
#pragma once

#include "core/loss.hpp"
#include "learn/non_greedy_tile.hpp"

namespace hardwood::HARDWOOD_ISA {

// What rounding may add to a loss between the ends of an interval, in parts of the loss.
inline constexpr float kBoundSlack = 1e-5f;

HARDWOOD_INLINE float leaf_loss(const LearnedTree& tree, const LeafLosses& losses,
                                std::int32_t leaf, const float* y) {
  const int k = losses.n_outputs;
  if (losses.table)
    return losses.table[static_cast<std::ptrdiff_t>(leaf) * k + static_cast<int>(y[0])];
  const float* theta = tree.theta + static_cast<std::ptrdiff_t>(leaf) * k;
  return static_cast<float>(with_elementwise(losses.loss, losses.parameter, [&](auto&& of) {
    float total = 0;
    for (int o = 0; o < k; ++o) total += of(theta[o], y[o]).value;
    return static_cast<double>(total / static_cast<float>(k));
  }));
}

// At least the loss of every leaf below a node; of a leaf, its loss.
HARDWOOD_INLINE float loss_bound(const LearnedTree& tree, const LeafLosses& losses,
                                 std::int32_t node, const float* y) {
  if (node < 0) return leaf_loss(tree, losses, ~node, y);
  const int k = losses.n_outputs;
  if (losses.table)
    return losses.bounds[static_cast<std::ptrdiff_t>(node) * k + static_cast<int>(y[0])];
  const float *low = losses.bounds + static_cast<std::ptrdiff_t>(node) * 2 * k, *high = low + k;
  return static_cast<float>(with_elementwise(losses.loss, losses.parameter, [&](auto&& of) {
    float total = 0, size = 0;
    for (int o = 0; o < k; ++o) {
      const float largest = max_of(of(low[o], y[o]).value, of(high[o], y[o]).value);
      total += largest;
      size += __builtin_fabsf(largest);
    }
    return static_cast<double>((total + kBoundSlack * size) / static_cast<float>(k));
  }));
}

// Adds factor times the derivative of a leaf's loss by its theta.
inline void add_leaf_slope(const LearnedTree& tree, const LeafLosses& losses, std::int32_t leaf,
                           const float* y, float factor, float* slope) {
  const int k = losses.n_outputs;
  if (losses.table) {
    const float* of_class = losses.table + static_cast<std::ptrdiff_t>(leaf) * k;
    for (int c = 0; c < k; ++c) slope[c] += factor * exponential(-of_class[c]);  // p_c
    slope[static_cast<int>(y[0])] -= factor;
    return;
  }
  const float* theta = tree.theta + static_cast<std::ptrdiff_t>(leaf) * k;
  const float share = factor / static_cast<float>(k);
  with_elementwise(losses.loss, losses.parameter, [&](auto&& of) {
    for (int o = 0; o < k; ++o) slope[o] += share * of(theta[o], y[o]).slope;
    return 0.0;
  });
}

// Cross-entropy of one leaf for every class, Eq. (2).
inline void class_losses(int k, const float* theta, float* out) {
  float top = theta[0], sum = 0;
  for (int c = 1; c < k; ++c) top = max_of(top, theta[c]);
  for (int c = 0; c < k; ++c) sum += exponential(theta[c] - top);
  const float log_sum = top + __builtin_logf(sum);
  for (int c = 0; c < k; ++c) out[c] = log_sum - theta[c];
}

}  // namespace hardwood::HARDWOOD_ISA
