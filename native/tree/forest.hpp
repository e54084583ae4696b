// The output of a forest: the mean of the outputs of its trees, the fraction of their votes, or
// their sum.
//
// A block of rows is encoded once and goes through all trees while it is in the cache. The outputs
// of trees are added up in float64 in the order of trees, whichever thread has the block.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "tree/blocks.hpp"

namespace hardwood {

// What a tree adds: its output, a vote for its most probable class, or a vote for each label whose
// probability is at least 1/2.
enum class Vote { kNone, kClass, kLabels };

inline void vote(Vote how, int n, double* answer) {
  if (how == Vote::kClass) {
    const auto chosen = std::max_element(answer, answer + n) - answer;
    std::fill_n(answer, n, 0.0);
    answer[chosen] = 1.0;
  } else if (how == Vote::kLabels) {
    for (int o = 0; o < n; ++o) answer[o] = answer[o] >= 0.5;
  }
}

// One tree of a forest. Its leaves are linear if `linear` is given; otherwise they are `values`
// (leaves, n_outputs), which are already votes if the forest votes.
struct ForestTree {
  const Splits* splits = nullptr;
  const double* values = nullptr;
  const LinearLeaves* linear = nullptr;
};

struct Forest {
  Encoding encoding;
  std::ptrdiff_t stride = 0;  // floats from one encoded row to the next
  int n_outputs = 0;
  Vote vote = Vote::kNone;
  bool is_sum = false;  // of the answers; otherwise their mean
  std::vector<ForestTree> trees;
};

// Encoded rows in groups of kRouteRows; each group has its own list of the indicators that are 1.
class EncodedBlock {
 public:
  EncodedBlock(const Forest& forest, int n_rows)
      : listed_(forest.encoding.n_indicators ? kRouteRows * forest.encoding.n_features : 0),
        stride_(forest.stride),
        values_(static_cast<std::size_t>(n_rows) * stride_),
        active_(static_cast<std::size_t>(n_groups(n_rows)) * listed_),
        active_end_(n_rows) {}

  void encode(const Encoding& encoding, const Source& source, std::int64_t first, int n,
              BadEntry& bad) {
    for (int i = 0; i < n; i += kRouteRows)
      kernels().encode_rows(encoding, source, nullptr, first + i, std::min(kRouteRows, n - i),
                            group(i), bad);
  }

  // The group that starts with row i.
  EncodedRows group(int i) {
    return {values_.data() + i * stride_, stride_, active_.data() + i / kRouteRows * listed_,
            active_end_.data() + i};
  }

  void route(const Splits& splits, int n, std::int32_t* leaves) {
    kernels().route_encoded(splits, group(0), listed_, n, leaves);
  }

 private:
  static int n_groups(int n_rows) { return (n_rows + kRouteRows - 1) / kRouteRows; }

  std::ptrdiff_t listed_, stride_;
  Buffer<float> values_;
  Buffer<std::int32_t> active_, active_end_;
};

// Calls task(block, first, n, bad) for all blocks of rows; returns the first bad entry.
template <class Task>
BadEntry in_blocks(const Forest& forest, std::int64_t n_rows, int n_threads, Task&& task) {
  n_threads = std::max(n_threads, 1);
  int n_splits = 0;
  for (const ForestTree& tree : forest.trees) n_splits = std::max(n_splits, tree.splits->n_splits);
  const int rows = rounded_up(block_rows(forest.stride, n_splits, n_rows, n_threads), kRouteRows);
  return in_blocks(rows, n_rows, n_threads, [&] { return EncodedBlock(forest, rows); }, task);
}

// Adds the values of the leaves that n rows reached to their sums (n, k). kOutputs: k where known at
// compile time, 0 where not.
template <int kOutputs>
void add_leaf_values(const double* values, int n_outputs, std::span<const std::int32_t> leaves,
                     double* sums) {
  const int k = kOutputs ? kOutputs : n_outputs;
  for (const std::int32_t leaf : leaves) {
    const double* value = values + static_cast<std::ptrdiff_t>(leaf) * k;
    for (int o = 0; o < k; ++o) sums[o] += value[o];
    sums += k;
  }
}

inline void add_leaf_values(const double* values, int k, std::span<const std::int32_t> leaves,
                            double* sums) {
  switch (k) {
    case 1:
      return add_leaf_values<1>(values, k, leaves, sums);
    case 2:
      return add_leaf_values<2>(values, k, leaves, sums);
    case 3:
      return add_leaf_values<3>(values, k, leaves, sums);
    default:
      return add_leaf_values<0>(values, k, leaves, sums);
  }
}

inline void add_linear_answers(const Forest& forest, const LinearLeaves& linear,
                               EncodedBlock& block, std::span<const std::int32_t> leaves,
                               std::span<double> answers, double* sums) {
  const int n = static_cast<int>(leaves.size()), k = forest.n_outputs;
  for (int i = 0; i < n; i += kRouteRows) {
    const int n_here = std::min(kRouteRows, n - i);
    kernels().answer(linear, block.group(i), n_here, leaves.data() + i, answers.data());
    for (int r = 0; r < n_here; ++r, sums += k) {
      double* answer = answers.data() + static_cast<std::ptrdiff_t>(r) * k;
      vote(forest.vote, k, answer);
      for (int o = 0; o < k; ++o) sums[o] += answer[o];
    }
  }
}

// Means or sums (n, k) over the trees for n rows of a block. `sums` are zero before.
inline void answer_block(const Forest& forest, EncodedBlock& block, std::span<std::int32_t> leaves,
                         std::span<double> answers, double* sums) {
  const int n = static_cast<int>(leaves.size()), k = forest.n_outputs;
  for (const ForestTree& tree : forest.trees) {
    block.route(*tree.splits, n, leaves.data());
    if (tree.linear)
      add_linear_answers(forest, *tree.linear, block, leaves, answers, sums);
    else
      add_leaf_values(tree.values, k, leaves, sums);
  }
  if (forest.is_sum) return;
  const double n_trees = static_cast<double>(forest.trees.size());
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(n) * k; ++i) sums[i] /= n_trees;
}

// Answers (n_rows, k), zero before, for a table.
inline BadEntry answer_rows(const Forest& forest, const Source& source, int n_threads,
                            double* out) {
  return in_blocks(
      forest, source.n_rows, n_threads,
      [&](EncodedBlock& block, std::int64_t first, int n, BadEntry& bad) {
        block.encode(forest.encoding, source, first, n, bad);
        std::vector<std::int32_t> leaves(n);
        std::vector<double> answers(static_cast<std::size_t>(kRouteRows) * forest.n_outputs);
        answer_block(forest, block, leaves, answers, out + first * forest.n_outputs);
      });
}

// Leaves (n_rows, trees) for a table.
inline BadEntry leaves_of_rows(const Forest& forest, const Source& source, int n_threads,
                               std::int32_t* out) {
  const std::ptrdiff_t n_trees = static_cast<std::ptrdiff_t>(forest.trees.size());
  return in_blocks(forest, source.n_rows, n_threads,
                   [&](EncodedBlock& block, std::int64_t first, int n, BadEntry& bad) {
                     block.encode(forest.encoding, source, first, n, bad);
                     std::vector<std::int32_t> leaves(n);
                     for (std::ptrdiff_t t = 0; t < n_trees; ++t) {
                       block.route(*forest.trees[t].splits, n, leaves.data());
                       for (int i = 0; i < n; ++i) out[(first + i) * n_trees + t] = leaves[i];
                     }
                   });
}

}  // namespace hardwood
