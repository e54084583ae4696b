// The linear models of a tree's leaves, packed, as Python holds them.
#pragma once

#include <algorithm>
#include <string_view>

#include "bind/model/packed_rows.hpp"
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
  LeafModels(const Encoder& encoder, Array2<double> values, Array<double, 3> weights,
             std::string_view link)
      : encoder_(encoder), values_(values.size()) {
    require(weights.shape(0) == values.shape(0) && weights.shape(1) == values.shape(1),
            "values and leaf weights differ");
    require(weights.shape(2) == encoder_.columns(),
            "leaf weights do not match the schema's columns");
    std::copy_n(values.data(), values.size(), values_.data());
    const Encoding encoding = encoder_.unscaled();
    require(values.size() > 0, "a tree has leaves, and at least one output");
    leaves_.n_leaves = checked_size("values", values.shape(0));
    leaves_.n_outputs =
        checked_range("n_outputs", checked_size("values", values.shape(1)), 1, kMany);
    leaves_.n_indicators = encoding.n_indicators;
    leaves_.link = link_of(link);
    rows_ = PackedRows<double>(encoder_, weights.data(), values.size());
    leaves_.stride = rows_.stride;
    leaves_.values = values_.data();
    leaves_.weights = rows_.weights.data();
    leaves_.indicators = rows_.indicators.data();
  }

  const Encoder& encoder() const { return encoder_; }
  const LinearLeaves& leaves() const { return leaves_; }

 private:
  const Encoder& encoder_;  // kept alive by the binding
  Buffer<double> values_;
  PackedRows<double> rows_;
  LinearLeaves leaves_;
};

}  // namespace hardwood
