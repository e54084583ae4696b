// How a raw row becomes numbers for a tree. Learning and prediction use the same code, so both see
// the same values.
//
// Numeric feature:      value = (x - center) / scale, 0 where missing (NaN).
// Categorical feature:  one 0/1 indicator per level; a code outside [0, n_levels) is missing.
// Missing entries:      set the feature's missing indicator, one more 0/1 column, if it has one.
//
// Inside the engine the numeric values come first, because they are dense and use vector code. Then
// come all indicators, as a list of those that are 1, because few are in any row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hardwood {

struct Encoding {
  int n_features = 0;
  int n_numeric = 0;
  int n_indicators = 0;
  bool all_numeric = false;  // feature j is numeric value j
  bool fits_float =
      false;  // centers and scales are float32: a float32 row can be encoded in float32
  bool is_unscaled = false;                       // every scale is 1
  const std::int32_t* numeric_feature = nullptr;  // (n_numeric,)  which feature
  const double* center = nullptr;                 // (n_numeric,)
  const double* inverse_scale = nullptr;       // (n_numeric,)  a power of two: the product is exact
  const float* center_float = nullptr;         // (padded(n_numeric),), zero beyond
  const float* inverse_scale_float = nullptr;  // likewise
  const std::int32_t* first_level =
      nullptr;  // (n_features,) first indicator of a categorical feature, -1 numeric
  const std::int32_t* n_levels = nullptr;  // (n_features,)
  const std::int32_t* flag = nullptr;      // (n_features,) indicator of a missing entry, -1 none
};

// A raw table: dense rows of float or double, or compressed sparse rows of them.
struct Source {
  enum class Kind { kFloat, kDouble, kFloatSparse, kDoubleSparse };
  Kind kind = Kind::kFloat;
  const void* values = nullptr;
  std::int64_t n_rows = 0;
  int n_features = 0;
  const std::int32_t* indices = nullptr;  // sparse only
  const std::int64_t* indptr = nullptr;   // sparse only
};

// The first infinite entry met; feature < 0 when none.
struct BadEntry {
  std::int64_t row = -1;
  std::int32_t feature = -1;
};

// Encoded rows: values (rows x stride, padding zero) and, per row, the indicators that are on.
struct EncodedRows {
  float* values = nullptr;
  std::ptrdiff_t stride = 0;
  std::int32_t* active = nullptr;      // room for n_features entries a row
  std::int32_t* active_end = nullptr;  // (rows,) end of each row's list; the first starts at 0
};

}  // namespace hardwood
