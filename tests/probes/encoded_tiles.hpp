// Rows that are encoded already, and trees over their columns, as learners take them.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "bind/bind.hpp"
#include "learn/loop/training.hpp"

namespace hardwood {

using NewArray = nb::ndarray<nb::numpy, float>;

// n rows of d floats, from one stride to another.
inline void copy_rows(std::size_t n, std::size_t d, const float* from, std::size_t from_stride,
                      float* to, std::size_t to_stride) {
  for (std::size_t i = 0; i < n; ++i) std::copy_n(from + i * from_stride, d, to + i * to_stride);
}

inline NewArray new_rows(const std::vector<std::size_t>& shape, std::size_t n, const float* from) {
  return new_array<float>(shape, [&](float* to) {
    copy_rows(n, shape.back(), from, padded(static_cast<int>(shape.back())), to, shape.back());
  });
}

// X (n, d), target (n, t) and weight (n,).
class EncodedTiles {
 public:
  EncodedTiles(const Array2<float>& X, const Array2<float>& target, const Array1<float>& weight,
               int capacity)
      : n_(X.shape(0)),
        d_(static_cast<int>(X.shape(1))),
        capacity_(std::max(capacity, 1)),
        X_(size() * capacity_ * padded(d_)),
        target_(size() * capacity_ * target.shape(1)),
        weight_(size() * capacity_),
        rows_(n_) {
    const std::size_t t = target.shape(1);
    copy_rows(n_, d_, X.data(), d_, X_.data(), padded(d_));
    std::iota(rows_.begin(), rows_.end(), 0);
    for (std::size_t i = 0; i < n_; ++i) {
      float* of_tile = target_.data() + i / capacity_ * capacity_ * t + i % capacity_;
      for (std::size_t o = 0; o < t; ++o) of_tile[o * capacity_] = target.data()[i * t + o];
      weight_[i] = weight.data()[i];
    }
  }

  std::size_t size() const { return (n_ + capacity_ - 1) / capacity_; }
  SampleTile operator[](std::size_t i) {
    const std::size_t first = i * capacity_, n = std::min<std::size_t>(capacity_, n_ - first),
                      stride = padded(d_), t = target_.size() / (size() * capacity_);
    return {capacity_,
            static_cast<int>(n),
            {X_.data() + first * stride, capacity_, d_, static_cast<std::ptrdiff_t>(stride)},
            target_.data() + first * t,
            weight_.data() + first,
            std::span(rows_).subspan(first, n),
            i == 0};
  }

 private:
  std::size_t n_;
  int d_, capacity_;
  Buffer<float> X_, target_, weight_;
  std::vector<std::int64_t> rows_;
};

// A tree, and weights (leaves, k, d) of linear leaves.
inline Buffer<float> parameters_of(const Layout& layout, const Array2<float>& W,
                                   const Array1<float>& b, const Array2<float>& leaves,
                                   const std::optional<Array<float, 3>>& leaf_weights) {
  const std::size_t d = layout.n_columns, stride = padded(layout.n_columns);
  require(W.shape(0) == layout.n_splits && W.shape(1) == d && b.size() == layout.n_splits &&
              leaves.size() == layout.n_values() &&
              leaf_weights.has_value() == layout.has_leaf_weights &&
              (!leaf_weights || leaf_weights->size() == layout.n_values() * d),
          "sizes differ");
  Buffer<float> parameters(layout.n_parameters());
  const Parameters<float> p = layout.view(parameters.data());
  copy_rows(layout.n_splits, d, W.data(), d, p.W, stride);
  if (leaf_weights) copy_rows(layout.n_values(), d, leaf_weights->data(), d, p.A, stride);
  std::copy_n(b.data(), b.size(), p.b);
  std::copy_n(leaves.data(), leaves.size(), p.leaves);
  return parameters;
}

// What parameters_of takes, or the gradient by it.
inline std::tuple<NewArray, NewArray, NewArray, std::optional<NewArray>> arrays_of(
    const Layout& layout, const float* parameters) {
  const std::size_t d = layout.n_columns, k = layout.n_outputs;
  const Parameters<const float> p = layout.view(parameters);
  std::optional<NewArray> leaf_weights;
  if (p.A) leaf_weights = new_rows({layout.n_leaves, k, d}, layout.n_values(), p.A);
  return {new_rows({layout.n_splits, d}, layout.n_splits, p.W),
          new_array<float>({layout.n_splits},
                           [&](float* to) { std::copy_n(p.b, layout.n_splits, to); }),
          new_array<float>({layout.n_leaves, k},
                           [&](float* to) { std::copy_n(p.leaves, layout.n_values(), to); }),
          leaf_weights};
}

}  // namespace hardwood
