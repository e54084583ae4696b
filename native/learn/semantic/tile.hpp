// Leaves and working memory of a step by semantic logits; the maths is in step.hpp.
#pragma once

#include <cstdint>

#include "learn/dgt/tile.hpp"

namespace hardwood {

// What leaves stand for: each for one class, or for values that they learn.
struct SemanticLeaves {
  const std::int32_t* classes = nullptr;  // (leaves,) or null: they learn values
  // Learned values: how many of the best leaves a prediction mixes. 1: the hard tree's leaf, with
  // the gradient of a mixture of the best two (straight-through).
  int n_mixed = 1;
};

// Two classes with one output have two scores, whose difference is the output.
inline int n_class_scores(const DgtShape& shape) {
  return shape.n_outputs == 1 ? 2 : shape.n_outputs;
}

// The tile of DGT, and what semantic logits need more.
struct SemanticTile : DgtTile {
  float* logit = nullptr;        // (leaves, tile) scores of leaves, then their shares or gradients
  float* class_score = nullptr;  // (classes, tile)
};

}  // namespace hardwood
