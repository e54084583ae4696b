// Losses of leaves as loss-augmented inference asks for them: of one leaf, and bounds on those of
// all leaves of a subtree. Compiled for each instruction set.
//
// Losses of classes have a table, leaf by class, and of their maxima below each split. Losses
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

// Calls then(of) with a loss of coded classes, of(f, code).
template <class Then>
HARDWOOD_INLINE void with_code_loss(Loss loss, Then&& then) {
  if (loss == Loss::kHinge)
    then([](float f, float code) { return hinge(f, code); });
  else
    then([](float f, float code) { return squared_code(f, code); });
}

// Loss of one leaf for every class; cross-entropy: Eq. (2) of the non-greedy paper.
inline void class_losses(Loss loss, int k, const float* __restrict theta, float* __restrict out) {
  if (loss != Loss::kCrossEntropy) {
    with_code_loss(loss, [&](auto&& of) {
      float total = 0;  // as if no class were the row's own
      for (int c = 0; c < k; ++c) total += of(theta[c], -1.0f).value;
      for (int c = 0; c < k; ++c)
        out[c] = total + (of(theta[c], 1.0f).value - of(theta[c], -1.0f).value);
    });
    return;
  }
  float top = theta[0], sum = 0;
  for (int c = 1; c < k; ++c) top = max_of(top, theta[c]);
  for (int c = 0; c < k; ++c) out[c] = exponential(theta[c] - top);  // vectorises, unlike the sum
  for (int c = 0; c < k; ++c) sum += out[c];
  const float log_sum = top + __builtin_logf(sum);
  for (int c = 0; c < k; ++c) out[c] = log_sum - theta[c];
}

// Adds the derivative of a leaf's losses by its theta, those of class c `mass[c]` times. `losses` is
// what class_losses made of theta.
inline void add_class_slopes(Loss loss, int k, const float* __restrict theta,
                             const float* __restrict losses, const float* __restrict mass,
                             float* __restrict slope) {
  float total = 0;
  for (int c = 0; c < k; ++c) total += mass[c];
  if (loss == Loss::kCrossEntropy) {
    for (int c = 0; c < k; ++c) slope[c] += total * exponential(-losses[c]) - mass[c];  // p_c
    return;
  }
  with_code_loss(loss, [&](auto&& of) {
    for (int c = 0; c < k; ++c)
      slope[c] +=
          mass[c] * of(theta[c], 1.0f).slope + (total - mass[c]) * of(theta[c], -1.0f).slope;
  });
}

// Adds factor times the derivative of a leaf's loss by its theta.
inline void add_leaf_slope(const LearnedTree& tree, const LeafLosses& losses, std::int32_t leaf,
                           const float* y, float factor, float* slope) {
  const int k = losses.n_outputs;
  const float* theta = tree.theta + static_cast<std::ptrdiff_t>(leaf) * k;
  if (losses.table && losses.loss != Loss::kCrossEntropy) {
    with_code_loss(losses.loss, [&](auto&& of) {
      for (int c = 0; c < k; ++c)
        slope[c] += factor * of(theta[c], c == static_cast<int>(y[0]) ? 1.0f : -1.0f).slope;
    });
    return;
  }
  if (losses.table) {
    const float* of_class = losses.table + static_cast<std::ptrdiff_t>(leaf) * k;
    for (int c = 0; c < k; ++c) slope[c] += factor * exponential(-of_class[c]);  // p_c
    slope[static_cast<int>(y[0])] -= factor;
    return;
  }
  const float share = factor / static_cast<float>(k);
  with_elementwise(losses.loss, losses.parameter, [&](auto&& of) {
    for (int o = 0; o < k; ++o) slope[o] += share * of(theta[o], y[o]).slope;
    return 0.0;
  });
}

}  // namespace hardwood::HARDWOOD_ISA
