// The tree, the rows and the options of a non-greedy step; the maths is in step.hpp.
#pragma once

#include <cstdint>

#include "core/matrix.hpp"
#include "core/objective.hpp"

namespace hardwood {

// The leaves of loss-augmented inference: all of them, one by one or by branch and bound, or those
// that a row reaches by changing at most one decision.
enum class Inference { kExhaustive, kExact, kFast };

// A tree of any topology. Splits are numbered before their children; a child >= 0 is a split, leaf j
// is ~j. Leaves are numbered from left to right.
struct LearnedTree {
  int n_splits = 0;                          // m
  int n_outputs = 0;                         // k
  std::ptrdiff_t stride = 0;                 // floats per row of W and of X, a multiple of 8
  const float* W = nullptr;                  // (m, stride)
  const float* b = nullptr;                  // (m,)
  const float* theta = nullptr;              // (m + 1, k)
  const std::int32_t* children = nullptr;    // (m, 2)
  const std::int32_t* parent = nullptr;      // (2m + 1,) of splits, then of leaves: 2 split + side
  const std::int32_t* depth = nullptr;       // (2m + 1,) likewise
  const std::int32_t* first_leaf = nullptr;  // (m,) the leftmost leaf below each split

  HARDWOOD_INLINE int place(std::int32_t node) const { return node >= 0 ? node : n_splits + ~node; }
};

// Tables of the losses of leaves and subtrees, for any target.
struct LeafLosses {
  Loss loss = Loss::kSquared;
  float parameter = 0;
  int n_outputs = 0;
  // Cross-entropy: (m + 1, k) the loss of each leaf for each class. Else null: computed from theta.
  const float* table = nullptr;
  // For the leaves below each split. Cross-entropy: (m, k) the largest loss for each class.
  // Otherwise (m, 2, k): the smallest and the largest theta. Null if no bound is needed.
  const float* bounds = nullptr;
};

// A decision in which g and h differ: d bound / d w_split = factor x.
struct SplitMove {
  std::int32_t split = 0;
  float factor = 0;  // g_i - h_i, 2 or -2
};

struct AugmentedRow {
  std::int32_t natural = 0;   // leaf f(sgn(W x))
  std::int32_t assigned = 0;  // leaf a(x); natural unless it is fixed
  std::int32_t chosen = 0;    // leaf f(g)
  float loss = 0;             // of the natural leaf
  float bound = 0;            // on it: Eq. (7), (13) or (14)
  int n_moves = 0;
  std::int64_t n_scored = 0;  // splits that were scored
};

// The working memory of a search for one row.
struct SearchMemory {
  float* score = nullptr;        // (m,) of splits that were met
  std::int32_t* node = nullptr;  // (2 depth + 2,) a stack
  float* violation = nullptr;    // (2 depth + 2,)
};

// Options of the step of a split.
struct SplitStep {
  float learning_rate = 0;
  float momentum = 0;
  float l1 = 0;
};

// One split and its velocity.
struct MovingSplit {
  float* w = nullptr;         // (stride,)
  float* velocity = nullptr;  // (stride,)
  float* b = nullptr;
  float* bias_velocity = nullptr;
};

}  // namespace hardwood
