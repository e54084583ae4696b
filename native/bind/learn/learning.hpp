// Shared by the bindings of all learners: rows, and columns in the order of the schema and of the
// engine.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <tuple>

#include "bind/interruptible.hpp"
#include "bind/model/table_arrays.hpp"
#include "bind/options.hpp"
#include "core/threads.hpp"
#include "learn/loop/training.hpp"

namespace hardwood {

inline std::span<const std::int64_t> checked_rows(const Array1<std::int64_t>& rows,
                                                  std::int64_t n) {
  require_indices("a row index", rows, n);
  return {rows.data(), rows.size()};
}

// Weights (rows, columns) from the schema's order of columns to the engine's, whose rows are padded.
inline void take_columns(const Encoder& encoder, std::size_t rows, const float* from, float* to) {
  const std::size_t d = encoder.n_columns(), stride = padded(static_cast<int>(d));
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t c = 0; c < d; ++c) to[i * stride + c] = from[i * d + encoder.column_of()[c]];
}

inline void give_columns(const Encoder& encoder, std::size_t rows, const float* from, float* to) {
  const std::size_t d = encoder.n_columns(), stride = padded(static_cast<int>(d));
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t c = 0; c < d; ++c) to[i * d + encoder.column_of()[c]] = from[i * stride + c];
}

// The feature of each of the engine's columns, from the features of the schema's columns.
inline std::vector<std::int32_t> features_of(const Encoder& encoder,
                                             const std::vector<std::int32_t>& given) {
  require(given.size() == encoder.columns(), "feature_of_column must have an entry per column");
  require_indices("feature_of_column", given, encoder.encoding().n_features);
  std::vector<std::int32_t> features(given.size());
  for (std::size_t c = 0; c < given.size(); ++c) features[c] = given[encoder.column_of()[c]];
  return features;
}

}  // namespace hardwood
