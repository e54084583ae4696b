// Routing, the rule of every tree: go right if w.x + b >= 0.
//
// Eight rows go down together, so that independent chains of loads and multiply-adds are in flight
// and no branch depends on the data. A dot product always has sixteen running sums, folded in one
// fixed order, for a single row as for a row in a block: the leaf of a row does not depend on the
// other rows.
#pragma once

#include "table/encode.hpp"
#include "tree/splits.hpp"

namespace hardwood::HARDWOOD_ISA {

// Eight rows fill the registers of a fold. (Two interleaved groups are faster if the table is in
// the cache, but slower if it is in memory, as large tables are: benchmarks/speed/inference.py.)
inline constexpr int kRowsTogether = 8;
using Nodes = std::int32_t[kRowsTogether];

// Sixteen running sums: value j of a row goes to sum j mod 16.
struct Sums {
  Vector<8> even{};  // values 0..7, 16..23, ...
  Vector<8> odd{};   // values 8..15, 24..31, ...
};

// The bias starts the first sum.
HARDWOOD_INLINE Sums start_sums(float bias) {
  return {Vector<8>{bias}, Vector<8>{}};
}

HARDWOOD_INLINE void add_product(Sums& sums, int vector, const float* w, Vector<8> x) {
  (vector % 2 ? sums.odd : sums.even) += load<8>(w + 8 * vector) * x;
}

// bias + w.x, not yet folded. kVectors: vectors of eight values per row if known at compile time,
// otherwise 0.
template <int kVectors>
HARDWOOD_INLINE Vector<8> score_8(float bias, const float* w, const float* x, int n) {
  Sums sums = start_sums(bias);
  if constexpr (kVectors > 0) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) add_product(sums, v, w, load<8>(x + 8 * v));
  } else {
    int v = 0;
    for (; 8 * v + 8 < n; v += 2) {
      add_product(sums, 0, w + 8 * v, load<8>(x + 8 * v));
      add_product(sums, 1, w + 8 * v, load<8>(x + 8 * v + 8));
    }
    if (8 * v < n) add_product(sums, 0, w + 8 * v, load<8>(x + 8 * v));
  }
  return sums.even + sums.odd;
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

// Eight folded sums, one per row, in the order of fold1. The pairing below undoes the shuffles'
// permutation.
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

HARDWOOD_INLINE const float* weights_of(const Splits& tree, const RouteNode& node) {
  return tree.weights + std::size_t{node.weights_vector} * 8;
}

inline std::int32_t route_one(const Splits& tree, const float* x, const std::int32_t* active,
                              const std::int32_t* active_end) {
  std::int32_t at = 0;
  while (at < tree.n_splits) {
    const RouteNode& node = tree.nodes[at];
    float score = fold1(score_8<0>(node.bias, weights_of(tree, node), x, tree.n_values));
    if (active != active_end) score += indicator_sum(tree, at, active, active_end);
    at = node.child[score >= 0];
  }
  return at - tree.n_splits;
}

HARDWOOD_INLINE bool all_arrived(const Splits& tree, const Nodes& node) {
  std::int32_t lowest = node[0];
  for (int r = 1; r < kRowsTogether; ++r) lowest = min_of(lowest, node[r]);
  return lowest >= tree.n_splits;
}

HARDWOOD_INLINE void write_leaves(const Splits& tree, const Nodes& node, std::int32_t* leaves) {
  for (int r = 0; r < kRowsTogether; ++r) leaves[r] = node[r] - tree.n_splits;
}

// One step down for eight rows, given their scores.
HARDWOOD_INLINE void follow(const RouteNode* nodes, Vector<8> scores, Nodes& node) {
  const unsigned right = non_negative(scores);
#pragma GCC unroll 8
  for (int r = 0; r < kRowsTogether; ++r) node[r] = nodes[node[r]].child[right >> r & 1];
}

HARDWOOD_INLINE void add_indicators(const Splits& tree, const EncodedRows& rows, const Nodes& node,
                                    Vector<8>& scores) {
  for (int r = 0; r < kRowsTogether; ++r) {
    const std::int32_t begin = r ? rows.active_end[r - 1] : 0, end = rows.active_end[r];
    if (node[r] < tree.n_splits && begin != end)
      scores[r] += indicator_sum(tree, node[r], rows.active + begin, rows.active + end);
  }
}

// Scores of kRowsTogether encoded rows at their nodes, without indicators.
template <int kVectors>
HARDWOOD_INLINE Vector<8> scores_at(const Splits& tree, const float* values, std::ptrdiff_t stride,
                                    const Nodes& node) {
  Vector<8> sums[kRowsTogether];
#pragma GCC unroll 8
  for (int r = 0; r < kRowsTogether; ++r) {
    const RouteNode& at = tree.nodes[node[r]];
    sums[r] = score_8<kVectors>(at.bias, weights_of(tree, at), values + r * stride, tree.n_values);
  }
  return fold1_of_8(sums);
}

// kRowsTogether encoded rows down the tree, from level `level` to their leaves.
template <int kVectors, bool kIndicators>
HARDWOOD_INLINE void descend(const Splits& tree, const EncodedRows& rows, int level, Nodes& node) {
  const std::ptrdiff_t stride = kVectors ? 8 * kVectors : rows.stride;
  for (; level < tree.depth; ++level) {
    if (!tree.is_perfect && all_arrived(tree, node)) return;
    Vector<8> scores = scores_at<kVectors>(tree, rows.values, stride, node);
    if constexpr (kIndicators) add_indicators(tree, rows, node, scores);
    follow(tree.nodes, scores, node);
  }
}

// The scores of the root cost little while the values of a row are in registers during encoding,
// and so do those of its children if rows are long. (For short rows, two children cost more than
// the one that is reached.)
constexpr int top_nodes(int n_vectors) {
  return 1 <= n_vectors && n_vectors <= 3 ? 1 : 3;
}
inline constexpr int kRowsPerPass = 4;

// The first nodes of a tree, which score every row.
template <int kTop>
struct TopNodes {
  const RouteNode* node[kTop];
  const float* weights[kTop];

  HARDWOOD_INLINE explicit TopNodes(const Splits& tree) {
    for (int t = 0; t < kTop; ++t) {
      node[t] = t == 0 ? tree.nodes : &tree.nodes[tree.nodes[0].child[t - 1]];
      weights[t] = weights_of(tree, *node[t]);
    }
  }
};

// Scores four rows at the top nodes, not yet folded. value_of(r, v): vector v of row r.
template <int kTop, class ValueOf>
HARDWOOD_INLINE void score_four(const TopNodes<kTop>& top, int n_vectors, ValueOf&& value_of,
                                Vector<8> (&sums)[kTop][kRowsTogether], int first) {
  for (int parity = 0; parity < 2; ++parity) {  // first the even sums, then the odd ones
    Vector<8> sum[kTop][kRowsPerPass];
    for (int t = 0; t < kTop; ++t)
      for (int r = 0; r < kRowsPerPass; ++r)
        sum[t][r] = parity ? Vector<8>{} : Vector<8>{top.node[t]->bias};
#pragma GCC unroll 8
    for (int v = parity; v < n_vectors; v += 2) {
      Vector<8> w[kTop];
      for (int t = 0; t < kTop; ++t) w[t] = load<8>(top.weights[t] + 8 * v);
      for (int r = 0; r < kRowsPerPass; ++r) {
        const Vector<8> value = value_of(r, v);
        for (int t = 0; t < kTop; ++t) sum[t][r] += w[t] * value;
      }
    }
    for (int t = 0; t < kTop; ++t)
      for (int r = 0; r < kRowsPerPass; ++r)
        sums[t][first + r] = parity ? sums[t][first + r] + sum[t][r] : sum[t][r];
  }
}

// Moves rows down by the scores of the top nodes; returns the level they reach.
template <int kTop>
HARDWOOD_INLINE int follow_top(const Splits& tree, Vector<8> at_root,
                               const Vector<8> (&sums)[kTop][kRowsTogether], Nodes& node) {
  follow(tree.nodes, at_root, node);
  if constexpr (kTop == 3) {
    const Vector<8> left = fold1_of_8(sums[1]), right = fold1_of_8(sums[2]);
    follow(tree.nodes, at_root >= 0 ? right : left, node);
  }
  return kTop == 3 ? 2 : 1;
}

// Encodes kRowsTogether rows and, if that costs little, moves them down the first levels. Returns
// their level, or -1 if a row has missing or huge values and needs the careful path.
template <int kVectors>
HARDWOOD_INLINE int start_rows(const Encoding& e, const Splits& tree, const float* x,
                               const EncodedRows& rows, Nodes& node) {
  constexpr int kTop = top_nodes(kVectors);
  const int n = e.n_numeric, n_vectors = kVectors ? kVectors : (n + 7) / 8;
  const TopNodes<kTop> top(tree);
  Vector<8> sums[kTop][kRowsTogether];
  for (int first = 0; first < kRowsTogether; first += kRowsPerPass) {
    const float* from = x + static_cast<std::ptrdiff_t>(first) * n;
    float* to = rows.values + first * rows.stride;
    const auto encoded = [&](int r, int v) __attribute__((always_inline)) {
      // All vectors but the last are whole, which the compiler cannot know.
      const Vector<8> value = centered_8(from + static_cast<std::ptrdiff_t>(r) * n, e.center_float,
                                         8 * v, v + 1 < n_vectors ? 8 * v + 8 : n);
      store<8>(to + r * rows.stride + 8 * v, value);
      return value;
    };
    score_four(top, n_vectors, encoded, sums, first);
  }
  const Vector<8> at_root = fold1_of_8(sums[0]);
  // A NaN or infinite value makes the score NaN or infinite, even if its weight is zero.
  if (any_nan(doubt_of(at_root))) return -1;
  return follow_top(tree, at_root, sums, node);
}

template <int kVectors>
HARDWOOD_INLINE int start_rows(const Encoding& e, const Splits&, const double* x,
                               const EncodedRows& rows, Nodes&) {
  bool suspicious = false;
  for (int r = 0; r < kRowsTogether; ++r, x += e.n_numeric)
    suspicious |= encode_dense(e, x, rows.values + r * rows.stride);
  return suspicious ? -1 : 0;
}

// The fast path: dense rows of numbers. Blocks with missing or huge entries take `careful`.
template <int kVectors, class T, class Careful>
inline void route_dense(const Encoding& e, const Splits& tree, const Source& source,
                        std::int64_t first, std::int64_t n_blocks, const EncodedRows& scratch,
                        std::int32_t* leaves, Careful&& careful) {
  const T* x = static_cast<const T*>(source.values) + first * e.n_features;
  const std::ptrdiff_t step = static_cast<std::ptrdiff_t>(kRowsTogether) * e.n_features;
  for (std::int64_t block = 0; block < n_blocks; ++block, x += step, leaves += kRowsTogether) {
    // The hardware prefetcher pauses while rows go down the tree.
    for (std::ptrdiff_t ahead = 0; ahead < step; ahead += 64 / static_cast<int>(sizeof(T)))
      __builtin_prefetch(x + 2 * step + ahead);
    Nodes node = {};
    const int level = start_rows<kVectors>(e, tree, x, scratch, node);
    if (level < 0) {
      careful(first + block * kRowsTogether, leaves);
      continue;
    }
    descend<kVectors, false>(tree, scratch, level, node);
    write_leaves(tree, node, leaves);
  }
}

// Leaves of n encoded rows without indicators that are 1.
inline void route_plain(const Splits& tree, const EncodedRows& rows, int n, std::int32_t* leaves) {
  int i = 0;
  if (tree.n_splits > 0)
    for (; i + kRowsTogether <= n; i += kRowsTogether) {
      Nodes node = {};
      descend<0, false>(tree, {rows.values + i * rows.stride, rows.stride, nullptr, nullptr}, 0,
                        node);
      write_leaves(tree, node, leaves + i);
    }
  for (; i < n; ++i) leaves[i] = route_one(tree, rows.values + i * rows.stride, nullptr, nullptr);
}

// The same with indicators, for up to kRowsTogether rows.
inline void route_listed(const Splits& tree, const EncodedRows& rows, int n, std::int32_t* leaves) {
  if (n == kRowsTogether && tree.n_splits > 0) {
    Nodes node = {};
    descend<0, true>(tree, rows, 0, node);
    write_leaves(tree, node, leaves);
    return;
  }
  for (int i = 0; i < n; ++i) {
    const std::int32_t begin = i ? rows.active_end[i - 1] : 0;
    leaves[i] = route_one(tree, rows.values + i * rows.stride, rows.active + begin,
                          rows.active + rows.active_end[i]);
  }
}

// Calls function.operator()<kVectors>() with the number of vectors of eight per row, 0 if above
// eight.
template <class Function>
inline void with_vectors(int n_vectors, Function&& function) {
  const auto try_one = [&]<int kVectors>() {
    return n_vectors == kVectors && (function.template operator()<kVectors>(), true);
  };
  const bool done = try_one.template operator()<1>() || try_one.template operator()<2>() ||
                    try_one.template operator()<3>() || try_one.template operator()<4>() ||
                    try_one.template operator()<5>() || try_one.template operator()<6>() ||
                    try_one.template operator()<7>() || try_one.template operator()<8>();
  if (!done) function.template operator()<0>();
}

// Moves kRowsTogether encoded rows without indicators that are 1 down the first levels. All rows
// meet the same weights there, so two children cost less than gathering the one that is reached.
template <int kVectors>
HARDWOOD_INLINE int start_encoded(const Splits& tree, const EncodedRows& rows, Nodes& node) {
  constexpr int kTop = 3;
  const int n_vectors = kVectors ? kVectors : (tree.n_values + 7) / 8;
  const std::ptrdiff_t stride = kVectors ? 8 * kVectors : rows.stride;
  const TopNodes<kTop> top(tree);
  Vector<8> sums[kTop][kRowsTogether];
  for (int first = 0; first < kRowsTogether; first += kRowsPerPass) {
    const float* from = rows.values + first * stride;
    const auto value = [&](int r, int v) __attribute__((always_inline)) {
      return load<8>(from + r * stride + 8 * v);
    };
    score_four(top, n_vectors, value, sums, first);
  }
  return follow_top(tree, fold1_of_8(sums[0]), sums, node);
}

// Number of groups of encoded rows that go down in turns. Short rows mostly wait for the next node,
// and other groups can use that time. (Long rows need it for arithmetic:
// benchmarks/speed/forest_inference.py.)
constexpr int groups_in_turns(int n_vectors) {
  return 1 <= n_vectors && n_vectors <= 3 ? 3 : 1;
}

template <int kVectors>
HARDWOOD_INLINE void descend_in_turns(const Splits& tree, const EncodedRows& rows,
                                      std::int32_t* leaves) {
  constexpr int kGroups = groups_in_turns(kVectors);
  constexpr std::ptrdiff_t kStride = 8 * kVectors;
  Nodes node[kGroups] = {};
  for (int level = 0; level < tree.depth; ++level) {
    bool arrived = !tree.is_perfect;
    for (int g = 0; g < kGroups && arrived; ++g) arrived = all_arrived(tree, node[g]);
    if (arrived) break;
    for (int g = 0; g < kGroups; ++g) {
      const float* values = rows.values + g * kRowsTogether * kStride;
      follow(tree.nodes, scores_at<kVectors>(tree, values, kStride, node[g]), node[g]);
    }
  }
  for (int g = 0; g < kGroups; ++g) write_leaves(tree, node[g], leaves + g * kRowsTogether);
}

// One group of encoded rows, with or without indicators.
template <int kVectors>
HARDWOOD_INLINE void descend_alone(const Splits& tree, const EncodedRows& rows,
                                   std::int32_t* leaves) {
  Nodes node = {};
  if (rows.active_end[kRowsTogether - 1] > 0)
    descend<kVectors, true>(tree, rows, 0, node);
  else
    descend<kVectors, false>(tree, rows, start_encoded<kVectors>(tree, rows, node), node);
  write_leaves(tree, node, leaves);
}

HARDWOOD_INLINE bool has_indicators(const EncodedRows& rows, int n_groups) {
  std::int32_t n_on = 0;
  for (int g = 1; g <= n_groups; ++g) n_on |= rows.active_end[g * kRowsTogether - 1];
  return n_on != 0;
}

// Group g of encoded rows, with its own list of indicators.
HARDWOOD_INLINE EncodedRows group_of(const EncodedRows& rows, std::ptrdiff_t listed, int g) {
  const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(g) * kRowsTogether;
  return {rows.values + first * rows.stride, rows.stride, rows.active + g * listed,
          rows.active_end + first};
}

// Prefetches the rows after these groups: the hardware prefetcher pauses while rows go down.
HARDWOOD_INLINE void prefetch_after(const EncodedRows& rows, int n_groups) {
  const std::ptrdiff_t step = n_groups * kRowsTogether * rows.stride;
  for (std::ptrdiff_t ahead = step; ahead < 2 * step; ahead += 16)
    __builtin_prefetch(rows.values + ahead);
}

// Whole groups of rows.
template <int kVectors>
inline void route_groups(const Splits& tree, const EncodedRows& rows, std::ptrdiff_t listed,
                         int n_groups, std::int32_t* leaves) {
  constexpr int kGroups = groups_in_turns(kVectors);
  for (int g = 0; g < n_groups;) {
    const EncodedRows here = group_of(rows, listed, g);
    std::int32_t* leaves_here = leaves + g * kRowsTogether;
    prefetch_after(here, kGroups);
    if (kGroups > 1 && g + kGroups <= n_groups && !has_indicators(here, kGroups)) {
      descend_in_turns<kVectors>(tree, here, leaves_here);
      g += kGroups;
    } else {
      descend_alone<kVectors>(tree, here, leaves_here);
      g += 1;
    }
  }
}

// Leaves of n encoded rows, in groups of kRowsTogether: each group has its own list of indicators,
// `listed` entries after the list of the previous group.
inline void route_encoded(const Splits& splits, const EncodedRows& rows, std::ptrdiff_t listed,
                          int n, std::int32_t* leaves) {
  const Splits tree = splits;  // a copy, which cannot alias the leaves
  const int n_whole = tree.n_splits > 0 ? n / kRowsTogether : 0;
  with_vectors((tree.n_values + 7) / 8, [&]<int kVectors>() {
    route_groups<kVectors>(tree, rows, listed, n_whole, leaves);
  });
  for (int g = n_whole; g * kRowsTogether < n; ++g) {
    const int first = g * kRowsTogether;
    route_listed(tree, group_of(rows, listed, g), min_of(kRowsTogether, n - first), leaves + first);
  }
}

// Leaves of the rows [first, last) of a raw table. `scratch` holds kRowsTogether encoded rows.
inline void route(const Encoding& e, const Splits& tree, const Source& source, std::int64_t first,
                  std::int64_t last, const EncodedRows& scratch, std::int32_t* leaves,
                  BadEntry& bad) {
  const auto careful = [&](std::int64_t row, int n, std::int32_t* out) {
    encode_rows(e, source, nullptr, row, n, scratch, bad);
    const bool any_active = scratch.active_end[n - 1] > 0;
    any_active ? route_listed(tree, scratch, n, out) : route_plain(tree, scratch, n, out);
  };
  const auto careful_block = [&](std::int64_t row, std::int32_t* out) {
    careful(row, kRowsTogether, out);
  };
  const std::int64_t n_blocks = (last - first) / kRowsTogether;
  const bool floats = source.kind == Source::Kind::kFloat && e.fits_float && e.is_unscaled;
  const bool doubles = source.kind == Source::Kind::kDouble;
  std::int64_t row = first;
  if (e.all_numeric && tree.n_splits > 0 && n_blocks > 0 && (floats || doubles)) {
    with_vectors((e.n_numeric + 7) / 8, [&]<int kVectors>() {
      floats ? route_dense<kVectors, float>(e, tree, source, first, n_blocks, scratch, leaves,
                                            careful_block)
             : route_dense<kVectors, double>(e, tree, source, first, n_blocks, scratch, leaves,
                                             careful_block);
    });
    row += n_blocks * kRowsTogether;
  }
  for (; row < last; row += kRowsTogether)
    careful(row, static_cast<int>(min_of<std::int64_t>(kRowsTogether, last - row)),
            leaves + (row - first));
}

}  // namespace hardwood::HARDWOOD_ISA
