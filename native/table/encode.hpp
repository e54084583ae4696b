// Encoding of rows (see encoding.hpp), compiled for each instruction set.
#pragma once

#include "core/simd.hpp"
#include "table/encoding.hpp"

namespace hardwood::HARDWOOD_ISA {

// Finite values beyond the range of a float become the largest float.
inline constexpr float kLargestValue = 3.40282346638528859812e+38f;

HARDWOOD_INLINE float clamped(double value) {
  constexpr double kLargest = kLargestValue;
  return static_cast<float>(value > kLargest ? kLargest : value < -kLargest ? -kLargest : value);
}

// Values of a whole numeric row; true when one is NaN or beyond the bound, and the row needs the
// careful path.
HARDWOOD_INLINE bool encode_dense(const Encoding& e, const double* x, float* out) {
  int suspicious = 0;
  for (int j = 0; j < e.n_numeric; ++j) {
    const double value = (x[j] - e.center[j]) * e.inverse_scale[j];
    out[j] = static_cast<float>(value);
    suspicious |= !(__builtin_fabs(value) <= static_cast<double>(kLargestValue));
  }
  return suspicious != 0;
}

// Zeros, but NaN where a value is NaN or infinite.
HARDWOOD_INLINE Vector<8> doubt_of(Vector<8> values) {
  return values * 0.0f;
}

HARDWOOD_INLINE bool any_nan(Vector<8> v) {
  const float a = v[0] + v[4], b = v[1] + v[5], c = v[2] + v[6], d = v[3] + v[7],
              sum = (a + c) + (b + d);
  return sum != sum;
}

// Values k, ..., k + 7 of a row of n floats, centered; zero beyond the row's end.
HARDWOOD_INLINE Vector<8> centered_8(const float* x, const float* center, int k, int n) {
  return (k + 8 <= n ? load<8>(x + k) : load_first(x + k, n - k)) - load<8>(center + k);
}

HARDWOOD_INLINE bool encode_dense(const Encoding& e, const float* x, float* out) {
  Vector<8> doubt{};
  for (int k = 0; k < e.n_numeric; k += 8) {
    const Vector<8> values =
        centered_8(x, e.center_float, k, e.n_numeric) * load<8>(e.inverse_scale_float + k);
    store<8>(out + k, values);
    doubt += doubt_of(values);
  }
  return any_nan(doubt);
}

template <class T>
inline void encode_numeric(const Encoding& e, int j, T x, float* out, std::int32_t*& active,
                           std::int64_t row, BadEntry& bad) {
  const int feature = e.numeric_feature[j];
  if (x != x) {
    out[j] = 0.0f;
    if (e.flag[feature] >= 0) *active++ = e.flag[feature];
    return;
  }
  if (__builtin_isinf(x) && bad.feature < 0) bad = {row, feature};
  out[j] = clamped((static_cast<double>(x) - e.center[j]) * e.inverse_scale[j]);
}

template <class T>
inline void encode_categorical(const Encoding& e, int feature, T code, std::int32_t*& active) {
  const bool known = code >= 0 && code < static_cast<T>(e.n_levels[feature]);
  const int indicator = known ? e.first_level[feature] + static_cast<int>(code) : e.flag[feature];
  if (indicator >= 0) *active++ = indicator;
}

template <class T>
inline void encode_mixed_row(const Encoding& e, const T* x, float* out, std::int32_t*& active,
                             std::int64_t row, BadEntry& bad) {
  for (int j = 0; j < e.n_numeric; ++j)
    encode_numeric(e, j, x[e.numeric_feature[j]], out, active, row, bad);
  for (int f = 0; f < e.n_features; ++f)
    if (e.first_level[f] >= 0) encode_categorical(e, f, x[f], active);
}

template <class T>
inline void encode_dense_row(const Encoding& e, const T* x, float* out, std::int32_t*& active,
                             std::int64_t row, BadEntry& bad) {
  const bool plain = e.all_numeric && (sizeof(T) == sizeof(double) || e.fits_float);
  if (plain && !encode_dense(e, x, out)) return;
  encode_mixed_row(e, x, out, active, row, bad);
}

// An entry that a sparse row does not store is a zero, not a missing value.
template <class T>
inline void encode_sparse_row(const Encoding& e, const Source& source, std::int64_t row, float* out,
                              std::int32_t*& active, BadEntry& bad) {
  for (int j = 0; j < e.n_numeric; ++j) out[j] = clamped(-e.center[j] * e.inverse_scale[j]);
  const T* values = static_cast<const T*>(source.values);
  for (std::int64_t i = source.indptr[row]; i < source.indptr[row + 1]; ++i)
    encode_numeric(e, source.indices[i], values[i], out, active, row, bad);
}

inline void encode_row(const Encoding& e, const Source& source, std::int64_t row, float* out,
                       std::int32_t*& active, BadEntry& bad) {
  const std::int64_t start = row * source.n_features;
  switch (source.kind) {
    case Source::Kind::kFloat:
      return encode_dense_row(e, static_cast<const float*>(source.values) + start, out, active, row,
                              bad);
    case Source::Kind::kDouble:
      return encode_dense_row(e, static_cast<const double*>(source.values) + start, out, active,
                              row, bad);
    case Source::Kind::kFloatSparse:
      return encode_sparse_row<float>(e, source, row, out, active, bad);
    case Source::Kind::kDoubleSparse:
      return encode_sparse_row<double>(e, source, row, out, active, bad);
  }
}

// Encodes n rows, given by `rows` or, if that is null, starting at `first`.
inline void encode_rows(const Encoding& e, const Source& source, const std::int64_t* rows,
                        std::int64_t first, int n, const EncodedRows& out, BadEntry& bad) {
  std::int32_t* active = out.active;
  for (int i = 0; i < n; ++i) {
    encode_row(e, source, rows ? rows[i] : first + i, out.values + i * out.stride, active, bad);
    out.active_end[i] = static_cast<std::int32_t>(active - out.active);
  }
}

}  // namespace hardwood::HARDWOOD_ISA
