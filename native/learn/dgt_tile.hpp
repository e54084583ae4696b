// Shapes, parameters and working memory of a DGT step; the maths is in dgt.hpp.
#pragma once

#include <cstdint>

#include "core/matrix.hpp"

namespace hardwood {

struct DgtShape {
  int height = 0;
  int n_columns = 0;  // d, encoded columns
  int n_outputs = 0;  // k
  HARDWOOD_INLINE int n_nodes() const { return (1 << height) - 1; }
  HARDWOOD_INLINE int n_leaves() const { return 1 << height; }
};

struct DgtParameters {
  float* W = nullptr;      // (m, padded(d))
  float* b = nullptr;      // (m,)
  float* theta = nullptr;  // (leaves, k)
};

// Working memory of one tile; `tile` is a multiple of 16.
struct DgtTile {
  int tile = 0;
  float* X = nullptr;            // (tile, padded(d)) encoded samples
  float* XT = nullptr;           // (d, tile)
  float* target = nullptr;       // (t, tile)
  float* weight = nullptr;       // (tile,)  zero beyond the samples there are
  float* score = nullptr;        // (m, tile), overwritten by its gradient
  float* below = nullptr;        // (m, tile)  upward: softmax mean of slope . theta below a node;
                                 // downward: its probability
  float* leaf_value = nullptr;   // (leaves, tile) slope . theta_l
  float* mean = nullptr;         // (tile,)
  float* prediction = nullptr;   // (k, tile)
  float* slope = nullptr;        // (k, tile)
  std::int32_t* leaf = nullptr;  // (tile,)
};

}  // namespace hardwood
