// Encoded rows by the features of the table, and rows that have some features from one row and the
// rest from another.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/buffer.hpp"
#include "core/kernels.hpp"

namespace hardwood {

// The positions of the features of a table in encoded rows.
struct FeatureMap {
  explicit FeatureMap(const Encoding& encoding)
      : n_features(encoding.n_features),
        column(encoding.n_features, -1),
        feature_of(encoding.n_indicators, -1) {
    for (int j = 0; j < encoding.n_numeric; ++j) {
      const int feature = encoding.numeric_feature[j];
      column[feature] = j;
      if (encoding.flag[feature] >= 0) listed.push_back(feature);
    }
    for (int f = 0; f < n_features; ++f) {
      if (encoding.first_level[f] >= 0) {
        listed.push_back(f);
        for (int level = 0; level < encoding.n_levels[f]; ++level)
          feature_of[encoding.first_level[f] + level] = f;
      }
      if (encoding.flag[f] >= 0) feature_of[encoding.flag[f]] = f;
    }
  }

  int n_features;
  std::vector<std::int32_t> column;      // (n_features,) the numeric value of a feature, -1 none
  std::vector<std::int32_t> feature_of;  // (n_indicators,)
  // Features that can turn an indicator on, in the order in which an encoded row lists them.
  std::vector<std::int32_t> listed;
};

// One encoded row. At most one indicator of a feature is 1.
struct FeatureRow {
  const float* values = nullptr;
  const std::int32_t* on = nullptr;  // (n_features,) the indicator that is on, -1 none
};

// A table of encoded rows.
class FeatureRows {
 public:
  FeatureRows(const Encoding& encoding, const FeatureMap& map, std::ptrdiff_t stride,
              const Source& source, BadEntry& bad)
      : n_(source.n_rows),
        stride_(stride),
        n_features_(map.n_features),
        values_(static_cast<std::size_t>(n_) * stride),
        on_(static_cast<std::size_t>(n_) * map.n_features, -1) {
    std::vector<std::int32_t> active(std::max(map.n_features, 1));
    for (std::int64_t i = 0; i < n_ && bad.feature < 0; ++i) {
      std::int32_t end = 0;
      kernels().encode_rows(encoding, source, nullptr, i, 1,
                            {values_.data() + i * stride_, stride_, active.data(), &end}, bad);
      for (std::int32_t a = 0; a < end; ++a)
        on_[i * n_features_ + map.feature_of[active[a]]] = active[a];
    }
  }

  std::int64_t size() const { return n_; }
  FeatureRow operator[](std::int64_t i) const {
    return {values_.data() + i * stride_, on_.data() + i * n_features_};
  }

 private:
  std::int64_t n_;
  std::ptrdiff_t stride_;
  std::int64_t n_features_;
  Buffer<float> values_;
  std::vector<std::int32_t> on_;
};

// A row that takes features from other rows, one at a time. The caller owns its values.
class MixedRow {
 public:
  MixedRow(const FeatureMap& map, float* values, std::ptrdiff_t stride)
      : map_(map), values_(values), stride_(stride), on_(map.n_features), active_(map.n_features) {}

  void start(const FeatureRow& row) {
    std::copy_n(row.values, stride_, values_);
    std::copy_n(row.on, on_.size(), on_.data());
    is_listed_ = false;
  }

  void take(int feature, const FeatureRow& from) {
    const std::int32_t column = map_.column[feature];
    if (column >= 0) values_[column] = from.values[column];
    is_listed_ &= on_[feature] == from.on[feature];
    on_[feature] = from.on[feature];
  }

  EncodedRows encoded() {
    if (!is_listed_) {
      n_active_ = 0;
      for (const std::int32_t feature : map_.listed)
        if (on_[feature] >= 0) active_[n_active_++] = on_[feature];
      is_listed_ = true;
    }
    return {values_, stride_, active_.data(), &n_active_};
  }

 private:
  const FeatureMap& map_;
  float* values_;
  std::ptrdiff_t stride_;
  std::vector<std::int32_t> on_, active_;
  std::int32_t n_active_ = 0;
  bool is_listed_ = false;
};

}  // namespace hardwood
