// The encoding of a table, owned.
#pragma once

#include <vector>

#include "bind/bind.hpp"
#include "table/encoding.hpp"

namespace hardwood {

class Encoder {
 public:
  Encoder(Array1<std::uint8_t> kinds, Array1<std::int32_t> first_column,
          Array1<std::int32_t> n_levels, Array1<std::int32_t> flag_column, Array1<double> center,
          Array1<double> scale, int n_columns);
  Encoder(const Encoder&) = delete;

  const Encoding& encoding() const { return encoding_; }
  int n_columns() const { return static_cast<int>(column_of_.size()); }
  std::size_t columns() const { return column_of_.size(); }
  // The schema's column of the engine's c-th column (numeric values, then indicators).
  const std::vector<std::int32_t>& column_of() const { return column_of_; }
  // The same without division by the scales, which go into the weights. Scales are powers of two,
  // so scores are bit for bit the same. A scale so large or small that float32 weights would
  // overflow is not moved.
  Encoding unscaled() const { return scales_are_moderate_ ? unscaled_ : encoding_; }
  double scale(int j) const { return scale_[j]; }  // of the j-th numeric value
  // The factor of a numeric value's raw weight for rows encoded by unscaled().
  double weight_factor(int j) const { return scales_are_moderate_ ? 1.0 : scale_[j]; }

 private:
  std::vector<std::int32_t> numeric_feature_, first_level_, n_levels_, flag_, column_of_;
  std::vector<double> center_, scale_, inverse_scale_;
  std::vector<float> center_float_, inverse_scale_float_;
  std::vector<double> ones_;
  std::vector<float> ones_float_;
  bool scales_are_moderate_ = true;
  Encoding encoding_, unscaled_;
};

void require_width(std::size_t found, const Encoding& expected);

[[noreturn]] void throw_infinity(const BadEntry& bad);

}  // namespace hardwood
