// What users of the DGT kernels need: the size of a tile, its memory, and the children of a perfect
// tree.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/buffer.hpp"
#include "learn/dgt/tile.hpp"

namespace hardwood {

// Scores and means of a tile are (nodes, tile) arrays that three passes read. They fit into the
// second-level cache (see benchmarks/speed/dgt_step.py).
inline int dgt_tile_capacity(const DgtShape& shape, int n_samples) {
  constexpr int kLargest = 128, kOfDeepTrees = 64, kDeep = 9;
  return std::min(shape.height >= kDeep ? kOfDeepTrees : kLargest,
                  rounded_up(n_samples, kTileStep));
}

// Children in heap order, left and right of each node; leaf l is ~l.
inline std::vector<std::int32_t> perfect_children(const DgtShape& shape) {
  std::vector<std::int32_t> children;
  for (int child = 1; child <= 2 * shape.n_nodes(); ++child)
    children.push_back(child < shape.n_nodes() ? child : ~(child - shape.n_nodes()));
  return children;
}

// The working memory of a tile; the caller sets the pointers to samples, targets and weights.
class DgtTileMemory {
 public:
  DgtTileMemory(const DgtShape& shape, bool is_soft, int capacity) {
    const std::size_t n = capacity, d = shape.n_columns, m = shape.n_nodes(), k = shape.n_outputs,
                      leaves = shape.n_leaves();
    const bool linear = shape.has_linear_leaves;
    const std::size_t values = k > 1 || linear || is_soft ? leaves * n : 0,
                      scores = linear || is_soft ? leaves * n : 0, rights = is_soft ? m * n : 0;
    memory_ = Buffer<float>(n * (d + 2 * m + 2 * k + 1) + values + scores + rights);
    leaf_.resize(n);
    float* next = memory_.data();
    const auto take = [&](std::size_t size) { return std::exchange(next, next + size); };
    tile.tile = capacity;
    tile.XT = take(d * n);
    tile.score = take(m * n);
    tile.below = take(m * n);
    tile.leaf_value = take(values);
    tile.leaf_score = take(scores);
    tile.to_right = take(rights);
    tile.mean = take(n);
    tile.prediction = take(k * n);
    tile.slope = take(k * n);
    tile.leaf = leaf_.data();
  }
  DgtTileMemory(DgtTileMemory&&) =
      default;  // vectors and buffers move without moving their entries

  DgtTile tile;

  // Slopes (n, k) of the samples there are, from row-major to output-major; zero beyond them.
  void take_slopes(int n_outputs, int n, const float* slope) {
    for (int o = 0; o < n_outputs; ++o)
      for (int i = 0; i < tile.tile; ++i)
        tile.slope[static_cast<std::ptrdiff_t>(o) * tile.tile + i] =
            i < n ? slope[static_cast<std::ptrdiff_t>(i) * n_outputs + o] : 0.0f;
  }

 private:
  Buffer<float> memory_;
  std::vector<std::int32_t> leaf_;
};

}  // namespace hardwood
