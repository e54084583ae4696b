// A soft ensemble's scores for raw tables: blocks of rows are encoded and walk through all trees.
//
// The scores of a row depend on that row alone: the scores of splits are computed from lists
// (soft.hpp), and the leaves are added up in float64 in the order of trees and leaves.
#pragma once

#include <algorithm>
#include <vector>

#include "core/buffer.hpp"
#include "tree/blocks.hpp"
#include "tree/soft_memory.hpp"

namespace hardwood {

// Columns are the encoding's: numeric values, then indicators. The splits are divided by gamma.
struct Ensemble {
  Encoding encoding;
  SoftTrees<float, double> trees;
  const float* limit = nullptr;  // (n_numeric,): no value is further from 0
};

// Routes the rows of a table through an ensemble.
class SoftRows {
 public:
  SoftRows(const Ensemble& ensemble, int n_rows)
      : ensemble_(ensemble),
        memory_(ensemble.trees.shape, ensemble.trees.stride, rounded_up(n_rows, kTileStep),
                SoftPurpose::kAnswer),
        values_(static_cast<std::size_t>(n_rows) * ensemble.trees.stride),
        active_(std::max(ensemble.encoding.n_features, 1)) {}

  void encode(const Source& source, std::int64_t first, int n, BadEntry& bad) {
    SoftTile<float, double>& tile = memory_.tile;
    tile.n = n;
    tile.X = values_.data();
    for (int i = 0; i < n; ++i) encode_row(source, first + i, values_.data() + i * stride(), bad);
  }

  // With weights (n,), adds to leaf_weight (trees, leaves).
  void weigh(const double* weight, double* leaf_weight) {
    memory_.tile.weight = weight;
    memory_.tile.leaf_weight = leaf_weight;
  }

  // Adds to out (n, k) and, if given, to leaves_reached (n, trees).
  void walk(double* out, std::int32_t* leaves_reached) {
    memory_.tile.out = out;
    memory_.tile.leaves_reached = leaves_reached;
    kernels().soft_answer(ensemble_.trees, memory_.tile);
  }

 private:
  std::ptrdiff_t stride() const { return ensemble_.trees.stride; }

  void encode_row(const Source& source, std::int64_t row, float* values, BadEntry& bad) {
    const Encoding& e = ensemble_.encoding;
    std::int32_t n_active = 0;
    kernels().encode_rows(e, source, nullptr, row, 1, {values, stride(), active_.data(), &n_active},
                          bad);
    for (int j = 0; j < e.n_numeric; ++j)
      values[j] = std::clamp(values[j], -ensemble_.limit[j], ensemble_.limit[j]);
    std::fill_n(values + e.n_numeric, e.n_indicators, 0.0f);
    for (int a = 0; a < n_active; ++a) values[e.n_numeric + active_[a]] = 1.0f;
  }

  const Ensemble& ensemble_;
  SoftMemory<float, double> memory_;
  Buffer<float> values_;  // (rows, stride)
  Buffer<std::int32_t> active_;
};

// Calls task(rows, first, n) for all blocks of encoded rows; returns the first bad entry.
template <class Task>
BadEntry in_blocks(const Ensemble& ensemble, const Source& source, int n_threads, Task&& task) {
  n_threads = std::max(n_threads, 1);
  const int rows =
      block_rows(ensemble.trees.stride, ensemble.trees.shape.n_nodes(), source.n_rows, n_threads);
  return in_blocks(
      rows, source.n_rows, n_threads, [&] { return SoftRows(ensemble, rows); },
      [&](SoftRows& block, std::int64_t first, int n, BadEntry& bad) {
        block.encode(source, first, n, bad);
        if (bad.feature < 0) task(block, first, n);
      });
}

// Adds to the scores (n_rows, k).
inline BadEntry soft_scores(const Ensemble& ensemble, const Source& source, int n_threads,
                            double* out) {
  return in_blocks(ensemble, source, n_threads, [&](SoftRows& block, std::int64_t first, int) {
    block.walk(out + first * ensemble.trees.shape.n_outputs, nullptr);
  });
}

// Number of leaves reached (n_rows, trees), zero before. With the logistic function every leaf is
// reached, even if its probability underflows.
inline BadEntry soft_leaves(const Ensemble& ensemble, const Source& source, int n_threads,
                            std::int32_t* out) {
  const SoftShape& shape = ensemble.trees.shape;
  return in_blocks(ensemble, source, n_threads, [&](SoftRows& block, std::int64_t first, int n) {
    std::int32_t* reached = out + first * shape.n_trees;
    if (ensemble.trees.activation == Activation::kLogistic) {
      std::fill_n(reached, static_cast<std::ptrdiff_t>(n) * shape.n_trees, shape.n_leaves());
      return;
    }
    std::vector<double> scores(static_cast<std::size_t>(n) * shape.n_outputs);
    block.walk(scores.data(), reached);
  });
}

// Adds the weight that reaches each leaf, (trees, leaves): the weights (n_rows,) of rows times
// their probabilities. One thread adds in the order of rows, so that the sum does not depend on the
// number of threads.
inline BadEntry soft_leaf_weights(const Ensemble& ensemble, const Source& source,
                                  const double* weight, double* out) {
  std::vector<double> scores;
  return in_blocks(ensemble, source, 1, [&](SoftRows& block, std::int64_t first, int n) {
    scores.assign(static_cast<std::size_t>(n) * ensemble.trees.shape.n_outputs, 0.0);
    block.weigh(weight + first, out);
    block.walk(scores.data(), nullptr);
  });
}

}  // namespace hardwood
