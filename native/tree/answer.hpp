// The outputs of linear leaves: link(score), where the score is
//
//   values[l] + sum of A_l (x - center) over numbers + sum of A_l over the indicators that are 1.
//
// Sums are in float64 and in one fixed order for each row, so an output does not depend on the
// other rows. (A value x - center has 24 bits: the error of a score is at most 6e-8 times the sum
// of the absolute values of its terms.)
#pragma once

#include "core/simd.hpp"
#include "table/encoding.hpp"
#include "tree/leaves.hpp"

namespace hardwood::HARDWOOD_ISA {

typedef double Doubles __attribute__((vector_size(32), aligned(8), may_alias));

HARDWOOD_INLINE Doubles widened(const float* x) {
  return __builtin_convertvector(load<4>(x), Doubles);
}

HARDWOOD_INLINE double dot(const double* w, const float* x, std::ptrdiff_t n) {
  Doubles even{}, odd{};
  for (std::ptrdiff_t j = 0; j < n; j += 8) {
    even += *reinterpret_cast<const Doubles*>(w + j) * widened(x + j);
    odd += *reinterpret_cast<const Doubles*>(w + j + 4) * widened(x + j + 4);
  }
  const Doubles sum = even + odd;
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

// Four dot products that read x once.
HARDWOOD_INLINE Doubles dot_4(const double* w, std::ptrdiff_t stride, const float* x,
                              std::ptrdiff_t n) {
  Doubles sum[4] = {};
  for (std::ptrdiff_t j = 0; j < n; j += 4) {
    const Doubles values = widened(x + j);
    for (int o = 0; o < 4; ++o)
      sum[o] += *reinterpret_cast<const Doubles*>(w + o * stride + j) * values;
  }
  const auto pairs = [](Doubles a, Doubles b) {  // a0 + a1, b0 + b1, a2 + a3, b2 + b3
    return __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
  };
  const Doubles first = pairs(sum[0], sum[1]), second = pairs(sum[2], sum[3]);
  return __builtin_shufflevector(first, second, 0, 1, 4, 5) +
         __builtin_shufflevector(first, second, 2, 3, 6, 7);
}

inline void leaf_scores(const LinearLeaves& leaves, std::int32_t leaf, const float* x,
                        const std::int32_t* active, const std::int32_t* active_end, double* out) {
  const std::ptrdiff_t k = leaves.n_outputs, first = leaf * k, stride = leaves.stride;
  const double* w = leaves.weights + first * stride;
  std::ptrdiff_t o = 0;
  for (; o + 4 <= k; o += 4)
    *reinterpret_cast<Doubles*>(out + o) = dot_4(w + o * stride, stride, x, stride);
  for (; o < k; ++o) out[o] = dot(w + o * stride, x, stride);
  for (o = 0; o < k; ++o) {
    const double* on = leaves.indicators + (first + o) * leaves.n_indicators;
    out[o] += leaves.values[first + o];
    for (const std::int32_t* i = active; i != active_end; ++i) out[o] += on[*i];
  }
}

inline double logistic(double score) {
  // The exponent is never positive, so nothing overflows.
  const double e = __builtin_exp(score < 0 ? score : -score);
  return (score < 0 ? e : 1.0) / (1.0 + e);
}

inline void softmax(int n, double* scores) {
  double largest = scores[0], total = 0.0;
  for (int o = 1; o < n; ++o) largest = max_of(largest, scores[o]);
  for (int o = 0; o < n; ++o) total += scores[o] = __builtin_exp(scores[o] - largest);
  for (int o = 0; o < n; ++o) scores[o] /= total;
}

inline void apply_link(Link link, int n, double* scores) {
  switch (link) {
    case Link::kIdentity:
      return;
    case Link::kExp:
      for (int o = 0; o < n; ++o) scores[o] = __builtin_exp(scores[o]);
      return;
    case Link::kSoftmax:
      return softmax(n, scores);
    case Link::kLogistic:
      for (int o = 0; o < n; ++o) scores[o] = logistic(scores[o]);
  }
}

// Links n rows of scores (n, n_outputs), in place.
inline void link_rows(Link link, std::int64_t n, int n_outputs, double* scores) {
  for (std::int64_t i = 0; i < n; ++i) apply_link(link, n_outputs, scores + i * n_outputs);
}

// Outputs (n, n_outputs) of n encoded rows at their leaves. If active_end is null, no row has an
// indicator that is 1.
inline void answer(const LinearLeaves& leaves, const EncodedRows& rows, int n,
                   const std::int32_t* leaf, double* out) {
  const std::int32_t* begin = rows.active;
  for (int i = 0; i < n; ++i, out += leaves.n_outputs) {
    const std::int32_t* end = rows.active_end ? rows.active + rows.active_end[i] : begin;
    leaf_scores(leaves, leaf[i], rows.values + i * rows.stride, begin, end, out);
    apply_link(leaves.link, leaves.n_outputs, out);
    begin = end;
  }
}

}  // namespace hardwood::HARDWOOD_ISA
