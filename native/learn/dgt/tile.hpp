// Shapes, forms, parameters and working memory of a DGT step; the maths is in step.hpp.
#pragma once

#include <cstdint>

#include "core/matrix.hpp"
#include "learn/loop/layout.hpp"

namespace hardwood {

struct DgtShape {
  int height = 0;
  int n_columns = 0;  // d, encoded columns
  int n_outputs = 0;  // k
  bool has_linear_leaves = false;
  HARDWOOD_INLINE int n_nodes() const { return (1 << height) - 1; }
  HARDWOOD_INLINE int n_leaves() const { return 1 << height; }
};

// Eq. (4), Eq. (2), and Eq. (2) with a softmax over the leaves (C.3.1).
enum class Path { kSum, kProduct, kProductSoftmax };
enum class Quantizer { kSign, kScaled };       // +-1, or +-mean |a| as in the authors' code
enum class Routing { kQuantized, kAnnealed };  // Sec. 3.3: straight-through, or a sharpened sigmoid

// The design choices of Table 7.
struct DgtForm {
  Path path = Path::kSum;
  Quantizer quantizer = Quantizer::kSign;
  Routing routing = Routing::kQuantized;
  float sharpness = 1;  // s of sigma_s(a) = 1 / (1 + exp(-s a)), for annealed routing
};

// Working memory of one tile; `tile` is a multiple of 16.
struct DgtTile {
  int tile = 0;
  int n = 0;                    // samples there are; the rest has no weight
  float* X = nullptr;           // (tile, padded(d)) encoded samples
  float* XT = nullptr;          // (d, tile)
  float* target = nullptr;      // (t, tile)
  float* weight = nullptr;      // (tile,)  zero beyond the samples there are
  float* score = nullptr;       // (m, tile), overwritten by its gradient
  float* below = nullptr;       // (m, tile)  upward: mean of slope . theta below a node;
                                // downward: its probability
  float* leaf_value = nullptr;  // (leaves, tile) slope . theta_l
  float* leaf_score = nullptr;  // (leaves, tile) annealed: probability of each leaf; linear leaves:
                                // A_l x of one output
  float* to_right = nullptr;    // (m, tile) annealed: probability of the right child
  float* mean = nullptr;        // (tile,)
  float* prediction = nullptr;  // (k, tile)
  float* slope = nullptr;       // (k, tile)
  std::int32_t* leaf = nullptr;  // (tile,)
};

}  // namespace hardwood
