#include "online/served_tree.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/kernels.hpp"

namespace hardwood {

namespace {

// Children of a perfect tree in heap order.
std::vector<std::int32_t> heap_children(std::int32_t n_splits) {
  std::vector<std::int32_t> children;
  for (std::int32_t child = 1; child <= 2 * n_splits; ++child)
    children.push_back(child < n_splits ? child : ~(child - n_splits));
  return children;
}

}  // namespace

ServedTree::ServedTree(const DgtShape& shape, const ColumnOrder& order)
    : n_columns_(shape.n_columns),
      n_splits_(shape.n_nodes()),
      n_outputs_(shape.n_outputs),
      order_(order),
      deviation_(shape.n_columns, 1.0) {
  is_in_order_ = order_.column.empty();
  if (is_in_order_) {
    order_.column.resize(n_columns_);
    std::iota(order_.column.begin(), order_.column.end(), 0);
    order_.n_values = n_columns_;
  }
  const int n_indicators = n_columns_ - order_.n_values;
  stride_ = padded(std::max(order_.n_values, 1));
  weights_ = Buffer<float>(n_splits_ * stride_);
  indicators_ = Buffer<float>(static_cast<std::size_t>(n_splits_) * n_indicators);
  leaves_ = Buffer<float>(static_cast<std::size_t>(shape.n_leaves()) * n_outputs_);
  values_ = Buffer<float>(stride_);
  active_.resize(n_indicators);
  RouteNodes built = route_nodes(heap_children(n_splits_), stride_);
  nodes_ = std::move(built.nodes);
  splits_ = {n_splits_,       built.depth,   built.is_perfect, order_.n_values,
             weights_.data(), nodes_.data(), n_indicators,     indicators_.data()};
}

const float* ServedTree::weight(int split, int place) const {
  const int q = place - order_.n_values;
  return q < 0 ? weights_.data() + split * stride_ + place
               : indicators_.data() + static_cast<std::ptrdiff_t>(split) * splits_.n_indicators + q;
}

// w . (x - center) factor + b = (w factor) . x + (b - (w factor) . center).
void ServedTree::pack(const Parameters<float>& p, const ColumnScale& scale) {
  constexpr int kSums = 8;  // running sums, which the compiler keeps in vectors
  const float *factor = scale.factor.data(), *center = scale.center.data();
  for (int i = 0; i < n_splits_; ++i) {
    const float* w = p.W + static_cast<std::ptrdiff_t>(i) * padded(n_columns_);
    std::array<double, kSums> shift{};
    const auto fold = [&](int n, float* to, auto&& column) {
      const auto one = [&](int j, int sum) {
        const int c = column(j);
        to[j] = w[c] * factor[c];
        shift[sum] += static_cast<double>(to[j]) * center[c];
      };
      int j = 0;
      for (; j + kSums <= n; j += kSums)
        for (int s = 0; s < kSums; ++s) one(j + s, s);
      for (; j < n; ++j) one(j, 0);
    };
    const auto nth = [&](int first) {
      return [&, first](int j) { return order_.column[first + j]; };
    };
    float* to = weights_.data() + i * stride_;
    if (is_in_order_)  // no lookups, so that the compiler uses vectors
      fold(n_columns_, to, [](int j) { return j; });
    else
      fold(order_.n_values, to, nth(0));
    fold(splits_.n_indicators,
         indicators_.data() + static_cast<std::ptrdiff_t>(i) * splits_.n_indicators,
         nth(order_.n_values));
    nodes_[i].bias = static_cast<float>(p.b[i] - std::accumulate(shift.begin(), shift.end(), 0.0));
  }
  std::copy_n(p.leaves, leaves_.size(), leaves_.begin());
  for (int c = 0; c < n_columns_; ++c)
    deviation_[c] = scale.factor[c] > 0 ? 1.0 / static_cast<double>(scale.factor[c]) : 1.0;
}

int ServedTree::leaf_of(const float* x) {
  const std::int32_t* column = order_.column.data();
  for (int j = 0; j < order_.n_values; ++j) {
    const float value = x[column[j]];
    values_[j] = value == value ? value : 0.0f;
  }
  std::int32_t n_active = 0, leaf = 0;
  for (int q = 0; q < splits_.n_indicators; ++q)
    if (x[column[order_.n_values + q]] != 0) active_[n_active++] = q;
  kernels().route_encoded(splits_, {values_.data(), stride_, active_.data(), &n_active}, 0, 1,
                          &leaf);
  return leaf;
}

std::vector<double> ServedTree::weights() const {
  std::vector<double> all(static_cast<std::size_t>(n_splits_) * n_columns_);
  for (int i = 0; i < n_splits_; ++i)
    for (int place = 0; place < n_columns_; ++place)
      all[static_cast<std::size_t>(i) * n_columns_ + order_.column[place]] = *weight(i, place);
  return all;
}

std::vector<double> ServedTree::bias() const {
  std::vector<double> all;
  for (int i = 0; i < n_splits_; ++i) all.push_back(nodes_[i].bias);
  return all;
}

}  // namespace hardwood
