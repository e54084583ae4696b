// The rows and leaves of an alternating sweep, and the rows of one logistic pass; the maths is in
// step.hpp.
#pragma once

#include <cstdint>

#include "core/matrix.hpp"
#include "learn/non_greedy/tile.hpp"

namespace hardwood {

// Encoded rows with targets and weights.
struct TaoRows {
  int n = 0;
  std::ptrdiff_t stride = 0;      // floats per row of X, a multiple of 8
  const float* X = nullptr;       // (n, stride)
  const float* target = nullptr;  // (n, n_targets)
  int n_targets = 1;
  const float* weight = nullptr;  // (n,)
};

// Leaves of a tree for computing losses.
struct TaoLeaves {
  LeafLosses losses;         // has a table if targets are classes and leaves are constant
  const float* A = nullptr;  // (m + 1, k, stride) of linear leaves, else null
};

// Rows of a weighted two-class problem, side by side.
struct LogisticRows {
  int n = 0;
  std::ptrdiff_t stride = 0;      // a multiple of 16
  const float* X = nullptr;       // (n, stride)
  const float* sign = nullptr;    // (n,) 1 or -1
  const float* weight = nullptr;  // (n,)
};

}  // namespace hardwood
