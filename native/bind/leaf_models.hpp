// The linear models of a tree's leaves, packed, as Python holds them.
#pragma once

#include <algorithm>
#include <string_view>

#include "bind/encoder.hpp"
#include "tree/leaves.hpp"

namespace hardwood {

inline Link link_of(std::string_view name) {
  constexpr std::string_view kNames[] = {"identity", "exp", "softmax", "logistic"};
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  require(found != std::end(kNames), "link must be identity, exp, softmax or logistic");
  return static_cast<Link>(found - std::begin(kNames));
}

class LeafModels {
 public:
  // values (L, k) and weights (L, k, columns) in the schema's raw units.
  LeafModels(nb::object encoder_object, Array2<double> values, Array<double, 3> weights,
             std::string_view link)
      : encoder_object_(std::move(encoder_object)),
        encoder_(nb::cast<const Encoder&>(encoder_object_)),
        values_(values.size()) {
    require(weights.shape(0) == values.shape(0) && weights.shape(1) == values.shape(1),
            "values and leaf weights differ");
    require(static_cast<int>(weights.shape(2)) == encoder_.n_columns(),
            "leaf weights do not match the schema's columns");
    std::copy_n(values.data(), values.size(), values_.data());
    const Encoding encoding = encoder_.unscaled();
    leaves_.n_leaves = static_cast<int>(values.shape(0));
    leaves_.n_outputs = static_cast<int>(values.shape(1));
    leaves_.n_indicators = encoding.n_indicators;
    leaves_.stride = padded(std::max(encoding.n_numeric, 1));
    leaves_.link = link_of(link);
    pack(weights, encoding.n_numeric);
  }

  const Encoder& encoder() const { return encoder_; }
  const LinearLeaves& leaves() const { return leaves_; }

 private:
  void pack(const Array<double, 3>& weights, int n_numeric) {
    const std::size_t rows = weights.shape(0) * weights.shape(1), columns = weights.shape(2);
    const std::size_t stride = leaves_.stride, indicators = leaves_.n_indicators;
    weights_ = Buffer<double>(rows * stride);
    indicators_ = Buffer<double>(rows * indicators);
    for (std::size_t row = 0; row < rows; ++row) {
      const double* w = weights.data() + row * columns;
      for (int j = 0; j < n_numeric; ++j)
        weights_[row * stride + j] = w[encoder_.column_of()[j]] * encoder_.weight_factor(j);
      for (std::size_t q = 0; q < indicators; ++q)
        indicators_[row * indicators + q] = w[encoder_.column_of()[n_numeric + q]];
    }
    leaves_.values = values_.data();
    leaves_.weights = weights_.data();
    leaves_.indicators = indicators_.data();
  }

  nb::object encoder_object_;  // keeps the encoder alive
  const Encoder& encoder_;
  Buffer<double> values_, weights_, indicators_;
  LinearLeaves leaves_;
};

}  // namespace hardwood
