// Routing: the one rule of every tree here. Go right when w.x + b >= 0.
//
// Eight rows go down together, so that eight independent chains of loads and multiply-adds are in flight and no
// branch depends on the data. A dot product is always sixteen running sums folded in one fixed order, for a row
// alone as for a row in a block: the leaf of a row does not depend on its neighbours.
#pragma once

#include "table/encode.hpp"
#include "tree/splits.hpp"

namespace hardwood::HARDWOOD_ISA {

inline constexpr int kRowsTogether = 8;
inline constexpr int kParts = 16 / kLanes;

struct Sums16 {
  Vector<kLanes> part[kParts];
};

HARDWOOD_INLINE Sums16 dot16(const float* w, const float* x, int n) {
  Sums16 sums{};
  for (int k = 0; k < n; k += 16)
    for (int p = 0; p < kParts; ++p)
      sums.part[p] += load<kLanes>(w + k + p * kLanes) * load<kLanes>(x + k + p * kLanes);
  return sums;
}

// Lane l + lane l + 8. One overload per number of registers that sixteen sums take.
HARDWOOD_INLINE Vector<8> fold8(const Vector<16> (&sums)[1]) {
  return __builtin_shufflevector(sums[0], sums[0], 0, 1, 2, 3, 4, 5, 6, 7) +
         __builtin_shufflevector(sums[0], sums[0], 8, 9, 10, 11, 12, 13, 14, 15);
}
HARDWOOD_INLINE Vector<8> fold8(const Vector<8> (&sums)[2]) { return sums[0] + sums[1]; }
HARDWOOD_INLINE Vector<8> fold8(const Vector<4> (&sums)[4]) {
  return __builtin_shufflevector(sums[0] + sums[2], sums[1] + sums[3], 0, 1, 2, 3, 4, 5, 6, 7);
}

HARDWOOD_INLINE float fold1(Vector<8> v) {
  const float a = v[0] + v[4], b = v[1] + v[5], c = v[2] + v[6], d = v[3] + v[7];
  return (a + c) + (b + d);
}

HARDWOOD_INLINE Vector<8> fold_pair4(Vector<8> a, Vector<8> b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
         __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}
HARDWOOD_INLINE Vector<8> fold_pair2(Vector<8> a, Vector<8> b) {
  return __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) +
         __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}
HARDWOOD_INLINE Vector<8> fold_pair1(Vector<8> a, Vector<8> b) {
  return __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14) +
         __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
}

// Eight folded sums, one per row, in the order of fold1. The pairing below undoes the shuffles' permutation.
HARDWOOD_INLINE Vector<8> fold1_of_8(const Vector<8> (&v)[8]) {
  const auto s04 = fold_pair4(v[0], v[4]), s15 = fold_pair4(v[1], v[5]);
  const auto s26 = fold_pair4(v[2], v[6]), s37 = fold_pair4(v[3], v[7]);
  return fold_pair1(fold_pair2(s04, s15), fold_pair2(s26, s37));
}

HARDWOOD_INLINE float indicator_sum(const Splits& tree, int split, const std::int32_t* begin,
                                    const std::int32_t* end) {
  const float* terms = tree.indicators + static_cast<std::ptrdiff_t>(split) * tree.n_indicators;
  float sum = 0.0f;
  for (const std::int32_t* i = begin; i != end; ++i) sum += terms[*i];
  return sum;
}

inline std::int32_t route_one(const Splits& tree, const float* x, const std::int32_t* active,
                              const std::int32_t* active_end) {
  std::int32_t node = tree.n_splits ? 0 : ~0;
  while (node >= 0) {
    float score = fold1(fold8(dot16(tree.weights + node * tree.stride, x, tree.n_values).part)) + tree.bias[node];
    if (active != active_end) score += indicator_sum(tree, node, active, active_end);
    node = tree.children[2 * node + (score >= 0)];
  }
  return ~node;
}

// Leaves of eight encoded rows, which start at `rows.values`; `any_active`: some indicator is on in some row.
HARDWOOD_INLINE void route_eight(const Splits& tree, const EncodedRows& rows, bool any_active,
                                 std::int32_t* leaves) {
  std::int32_t node[kRowsTogether] = {};
  bool descending = true;
  while (descending) {
    Vector<8> partial[kRowsTogether];
    float score[kRowsTogether];
    for (int r = 0; r < kRowsTogether; ++r) {
      // A row that has arrived keeps multiplying by the root's weights; the result is not used.
      const std::ptrdiff_t split = node[r] < 0 ? 0 : node[r];
      partial[r] = fold8(dot16(tree.weights + split * tree.stride, rows.values + r * rows.stride, tree.n_values).part);
    }
    store<8>(score, fold1_of_8(partial));
    int still = 0;
    for (int r = 0; r < kRowsTogether; ++r) {
      const std::int32_t split = node[r] < 0 ? 0 : node[r];
      float s = score[r] + tree.bias[split];
      if (any_active) {
        const std::int32_t begin = r ? rows.active_end[r - 1] : 0;
        s += indicator_sum(tree, split, rows.active + begin, rows.active + rows.active_end[r]);
      }
      const std::int32_t next = tree.children[2 * split + (s >= 0)];
      node[r] = node[r] < 0 ? node[r] : next;
      still |= ~node[r];
    }
    descending = still < 0;
  }
  for (int r = 0; r < kRowsTogether; ++r) leaves[r] = ~node[r];
}

// Leaves of n rows encoded already.
inline void route_encoded(const Splits& tree, const EncodedRows& rows, int n, std::int32_t* leaves) {
  int i = 0;
  if (tree.n_splits && tree.n_indicators == 0)
    for (; i + kRowsTogether <= n; i += kRowsTogether)
      route_eight(tree, {rows.values + i * rows.stride, rows.stride, nullptr, nullptr}, false, leaves + i);
  for (; i < n; ++i) {
    const bool listed = tree.n_indicators > 0;
    const std::int32_t begin = listed && i ? rows.active_end[i - 1] : 0;
    const std::int32_t end = listed ? rows.active_end[i] : 0;
    leaves[i] = route_one(tree, rows.values + i * rows.stride, rows.active + begin, rows.active + end);
  }
}

// Leaves of the rows [first, last) of a raw table. `scratch` holds kRowsTogether encoded rows.
inline void route(const Encoding& encoding, const Splits& tree, const Source& source, std::int64_t first,
                  std::int64_t last, const EncodedRows& scratch, std::int32_t* leaves, BadEntry& bad) {
  for (std::int64_t row = first; row < last; row += kRowsTogether) {
    const int n = static_cast<int>(min_of<std::int64_t>(kRowsTogether, last - row));
    encode_rows(encoding, source, nullptr, row, n, scratch, bad);
    if (n == kRowsTogether && tree.n_splits)
      route_eight(tree, scratch, scratch.active_end[n - 1] > 0, leaves + (row - first));
    else
      route_encoded(tree, scratch, n, leaves + (row - first));
  }
}

}  // namespace hardwood::HARDWOOD_ISA
