// The splits of a hard oblique tree, packed for routing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hardwood {

// A node for routing. Leaves are nodes too, numbered after the splits. Both children of a leaf are
// the leaf itself, so rows that have arrived need no branch.
struct RouteNode {
  float bias = 0;
  std::int32_t child[2] = {0, 0};  // left, right
  std::uint32_t weights_vector =
      0;  // its row of weights, in vectors of eight floats; the root's for a leaf
};

struct Splits {
  int n_splits = 0;
  int depth = 0;                     // splits on the longest path
  bool is_perfect = false;           // every path has `depth` splits
  int n_values = 0;                  // numeric values of an encoded row
  const float* weights = nullptr;    // (n_splits, stride), padding zero
  const RouteNode* nodes = nullptr;  // (n_splits + leaves,)
  int n_indicators = 0;
  const float* indicators = nullptr;  // (n_splits, n_indicators): what an indicator adds when on
};

}  // namespace hardwood
