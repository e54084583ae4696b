// The tree that an online learner decides by, packed as an exported tree is packed for prediction.
//
// Splits are learned for standardized columns. Here the means and standard deviations of the
// columns are folded into weights and biases, so that a split applies to encoded columns, and the
// kernel of prediction routes a row. A decision therefore adds the same numbers in the same order
// as the exported tree, and both find the same leaf, bit for bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "learn/dgt/learner.hpp"
#include "online/column_moments.hpp"
#include "tree/nodes.hpp"

namespace hardwood {

// The order in which prediction adds up the columns: numeric values first, then 0/1 indicators as
// the encoder lists them. Empty if all columns are numeric values.
struct ColumnOrder {
  std::vector<std::int32_t> column;
  int n_values = 0;
};

class ServedTree {
 public:
  ServedTree(const DgtShape& shape, const ColumnOrder& order);

  // Packs splits for standardized columns, and the leaves.
  void pack(const Parameters<float>& p, const ColumnScale& scale);

  // Leaf of an encoded row (c,), where NaN is a missing number. Uses scratch memory: one thread.
  int leaf_of(const float* x);
  const float* leaf(int number) const {
    return leaves_.data() + static_cast<std::size_t>(number) * n_outputs_;
  }

  // The packed tree by columns: weights (m, c), biases (m,), leaves (m + 1, k), deviations (c,),
  // 1 for a column that has not varied.
  std::vector<double> weights() const;
  std::vector<double> bias() const;
  std::span<const float> leaves() const { return {leaves_.data(), leaves_.size()}; }
  const std::vector<double>& deviation() const { return deviation_; }

  std::uint64_t version = 0;  // rounds that it was learned from

 private:
  const float* weight(int split, int place) const;

  int n_columns_, n_splits_, n_outputs_;
  ColumnOrder order_;
  bool is_in_order_;       // all columns are values, in their own order
  std::ptrdiff_t stride_;  // of a split's weights
  Buffer<float> weights_, indicators_, leaves_;
  std::vector<RouteNode> nodes_;
  std::vector<double> deviation_;
  Splits splits_;
  Buffer<float> values_;  // scratch: an encoded row
  std::vector<std::int32_t> active_;
};

}  // namespace hardwood
