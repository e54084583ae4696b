// Rows of weights, converted from the schema's columns in raw units to encoded rows.
#pragma once

#include <algorithm>

#include "bind/model/encoder.hpp"

namespace hardwood {

template <class T>
struct PackedRows {
  PackedRows() = default;
  // weights (n, columns): of the numeric values, then of the indicators.
  PackedRows(const Encoder& encoder, const double* from, std::size_t n) {
    const Encoding e = encoder.unscaled();
    const std::size_t columns = encoder.n_columns(), n_indicators = e.n_indicators;
    stride = padded(std::max(e.n_numeric, 1));
    weights = Buffer<T>(n * stride);
    indicators = Buffer<T>(n * n_indicators);
    for (std::size_t row = 0; row < n; ++row) {
      const double* w = from + row * columns;
      for (int j = 0; j < e.n_numeric; ++j)
        weights[row * stride + j] =
            static_cast<T>(w[encoder.column_of()[j]] * encoder.weight_factor(j));
      for (std::size_t q = 0; q < n_indicators; ++q)
        indicators[row * n_indicators + q] =
            static_cast<T>(w[encoder.column_of()[e.n_numeric + q]]);
    }
  }

  std::ptrdiff_t stride = 0;  // of a row's numeric values; padding is zero
  Buffer<T> weights;          // (n, stride)
  Buffer<T> indicators;       // (n, n_indicators)
};

}  // namespace hardwood
