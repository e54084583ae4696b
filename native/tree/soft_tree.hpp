// Shapes, parameters and working memory of soft trees; the maths is in soft.hpp and learn/tel/step.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/matrix.hpp"

namespace hardwood {

// From a score t to the probability of going right. The smooth steps (Eq. 4 of TEL, and the one of
// degree 5) are 0 or 1 beyond -+gamma/2, the logistic function is neither anywhere.
enum class Activation { kSmoothStep, kSmoothStep5, kLogistic };

struct SoftShape {
  int n_trees = 0;
  int depth = 0;
  int n_columns = 0;                                                // d
  int n_outputs = 0;                                                // k
  HARDWOOD_INLINE int n_nodes() const { return (1 << depth) - 1; }  // of one tree
  HARDWOOD_INLINE int n_leaves() const { return 1 << depth; }
};

// Perfect trees in heap order whose outputs are added up. Leaves have their own type: outputs of a
// model are float64 whatever the type of its scores.
template <class Real, class Value = Real>
struct SoftTrees {
  SoftShape shape;
  Activation activation = Activation::kSmoothStep;
  Real gamma = 1;
  const Real* W = nullptr;    // (trees * nodes, stride), zeros beyond d
  std::ptrdiff_t stride = 0;  // a multiple of 8
  const Real* b = nullptr;    // (trees * nodes,)
  const Value* O = nullptr;   // (trees * leaves, k)
};

// Number of entries that may be written behind the end of a list.
inline constexpr int kRoomBehind = 8;

// The samples at one node and their values there; arrays have the capacity of a tile plus
// kRoomBehind.
template <class Real>
struct SoftLevel {
  std::int32_t* sample = nullptr;
  Real* p = nullptr;         // probability of reaching the node
  Real* score = nullptr;     // t = w.x + b, then the gradient by it
  Real* to_left = nullptr;   // 1 - S(t)
  Real* to_right = nullptr;  // S(t)
  Real* slope = nullptr;     // S'(t)
  Real* left_value = nullptr;
  Real* value = nullptr;  // derivative of the loss by p
};

// Subtrees that most samples of a tile pass through: one matrix product computes their scores. The
// tops of all trees form one block. Another block begins at a deeper node that most samples reach.
inline constexpr int kTopHeight = 3;
inline constexpr int kInnerHeight = 7;
inline constexpr int kInnerNodes = (1 << kInnerHeight) - 1;
inline constexpr int kDeepestSoftTree = 20;

// A last level that would remain alone is included.
HARDWOOD_INLINE constexpr int top_height(int depth) {
  return depth <= kTopHeight + 1 ? depth : kTopHeight;
}

// Inner blocks that are open at a time.
HARDWOOD_INLINE constexpr int most_inner_blocks(int depth) {
  return (depth - top_height(depth) + kInnerHeight - 1) / kInnerHeight;
}

struct SoftBlock {
  float* score = nullptr;  // (nodes, capacity), then the gradients by them
  float* W = nullptr;      // (nodes, stride)
  float* b = nullptr;      // (nodes,)
};

// Scores in the order in which they were computed, as far as there is space: the backward pass
// reads them instead of computing them again. There is space for kRoomBehind more behind its
// capacity.
template <class Real>
struct ScoreTape {
  Real* data = nullptr;
  std::size_t capacity = 0;
  std::size_t used = 0;
};

// Samples that pass through all trees. Has space for `capacity` samples, a multiple of 16.
template <class Real, class Value = Real>
struct SoftTile {
  int capacity = 0;
  int n = 0;
  const Real* X = nullptr;            // (n, stride), rows as those of W
  const float* XT = nullptr;          // (d, capacity), or null: no matrix products
  SoftLevel<Real>* levels = nullptr;  // depth + 1 of them
  SoftBlock top;                      // of all trees, where there is XT
  SoftBlock* inner = nullptr;
  ScoreTape<Real> tape;
  Value* out = nullptr;                    // (n, k), added to
  std::int32_t* leaves_reached = nullptr;  // (n, trees), or null
  const double* weight = nullptr;          // (n,), or null
  double* leaf_weight = nullptr;           // (trees, leaves), where there is weight; added to
  std::int64_t n_reached = 0;              // leaves reached by all samples, added to
};

// The gradient of a tile; everything is added to it.
template <class Real>
struct SoftGradient {
  const Real* slope = nullptr;  // (n, k), of the loss by the answers
  Real* W = nullptr;            // as the parameters
  Real* b = nullptr;
  Real* O = nullptr;
  Real* X = nullptr;  // (n, stride), or null
};

}  // namespace hardwood
