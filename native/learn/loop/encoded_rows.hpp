// All rows of a problem encoded at once, for learners that use them repeatedly.
#pragma once

#include <algorithm>
#include <span>

#include "core/buffer.hpp"
#include "core/kernels.hpp"
#include "core/threads.hpp"
#include "table/encoding.hpp"

namespace hardwood {

// Encodes some rows of a table, (n, stride) zeroed: numeric values, then indicators as 0 and 1.
inline void encode_dense(const Encoding& e, const Source& source, const std::int64_t* rows, int n,
                         std::ptrdiff_t stride, float* out) {
  Buffer<std::int32_t> active(static_cast<std::size_t>(n) * e.n_features), active_end(n);
  BadEntry bad;  // the table was checked for infinities when it was read
  kernels().encode_rows(e, source, rows, 0, n, {out, stride, active.data(), active_end.data()},
                        bad);
  for (int i = 0; i < n; ++i)
    for (int a = i ? active_end[i - 1] : 0; a < active_end[i]; ++a)
      out[i * stride + e.n_numeric + active[a]] = 1.0f;
}

// Encodes rows into a new buffer (n, stride).
inline Buffer<float> encode_all(const Encoding& e, const Source& source,
                                std::span<const std::int64_t> rows, std::ptrdiff_t stride,
                                int n_threads) {
  constexpr int kAtOnce = 256;
  const int n = static_cast<int>(rows.size());
  Buffer<float> out(static_cast<std::size_t>(n) * stride);
  parallel_for((n + kAtOnce - 1) / kAtOnce, n_threads, [&](int chunk) {
    const int first = chunk * kAtOnce;
    encode_dense(e, source, rows.data() + first, std::min(kAtOnce, n - first), stride,
                 out.data() + first * stride);
  });
  return out;
}

}  // namespace hardwood
