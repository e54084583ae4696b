// The splits of a policy tree, with any number of branches each, packed for the engine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hardwood {

// The score of the first child is 0. Each other child has a row of weights relative to it, because
// only differences between siblings matter. Two branches are one hyperplane, as in Splits.
struct PolicyNode {
  std::int32_t first_child = 0;  // place of its children in PolicySplits::child
  std::int32_t n_children = 0;   // 0 for a leaf
  std::int32_t first_row = 0;    // weights of its second child; those of the others follow
  std::int32_t leaf = -1;        // its number among the leaves
  int exponent = 0;              // scores are in units of 2^exponent
};

struct PolicySplits {
  int n_nodes = 0;
  int n_leaves = 0;
  int n_values = 0;                     // numeric values of an encoded row
  std::ptrdiff_t stride = 0;            // of a row of weights, and least of a row's values
  const PolicyNode* nodes = nullptr;    // (n_nodes,), parents before their children
  const std::int32_t* child = nullptr;  // (n_nodes - 1,), siblings side by side
  const float* weights = nullptr;       // (rows, stride), padding zero
  const float* bias = nullptr;          // (rows,)
  int n_indicators = 0;
  const float* indicators = nullptr;  // (rows, n_indicators): what an indicator adds when on
};

}  // namespace hardwood
