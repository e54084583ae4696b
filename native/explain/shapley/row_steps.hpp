// Rows that change feature by feature, on their paths in a tree. A row that has changed sides is
// routed again; if the score is too near to 0 to decide, the router's own score decides.
#pragma once

#include "explain/shapley/paths.hpp"
#include "tree/route.hpp"

namespace hardwood::HARDWOOD_ISA {

HARDWOOD_INLINE float score_of(const Splits& tree, std::int32_t split, const float* x,
                               const std::int32_t* active, const std::int32_t* active_end) {
  const RouteNode& node = tree.nodes[split];
  const float score = fold1(score_8<0>(node.bias, weights_of(tree, node), x, tree.n_values));
  return active == active_end ? score : score + indicator_sum(tree, split, active, active_end);
}

// The router's own decision at one split.
inline bool goes_right(const Splits& tree, std::int32_t split, const float* x,
                       const std::int32_t* active, const std::int32_t* active_end) {
  return score_of(tree, split, x, active, active_end) >= 0;
}

HARDWOOD_INLINE Vector<8> size_of(Vector<8> v) {
  return v >= 0 ? v : -v;  // not a number stays so
}

// Adds `change` times the weights of eight splits to their scores. Returns as bits which of them
// certainly keep their sides.
HARDWOOD_INLINE unsigned change_eight(const float* weights, const std::int32_t* nodes, float change,
                                      float slack, float* scores) {
  const Vector<8> w = {weights[nodes[0]], weights[nodes[1]], weights[nodes[2]], weights[nodes[3]],
                       weights[nodes[4]], weights[nodes[5]], weights[nodes[6]], weights[nodes[7]]};
  const Vector<8> before = load<8>(scores), after = before + change * w;
  store<8>(scores, after);
  return ~(non_negative(before) ^ non_negative(after)) & non_negative(size_of(after) - slack);
}

// Adds row r to the list if a split of its path may have changed sides; returns the length of the
// list. For paths of at most eight levels there is no branch, because it would be unpredictable.
template <bool kShort>
HARDWOOD_INLINE int list_changed(const float* weights, const Paths& paths, int r, float change,
                                 Doubt* listed, int n_listed) {
  const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(r) * paths.n_levels;
  int level = paths.n_levels;
  for (int l = 0; l < (kShort ? 1 : paths.n_levels); l += kLevelStep) {
    const unsigned same = change_eight(weights, paths.nodes + first + l, change, paths.slack,
                                       paths.scores + first + l);
    const int here = l + __builtin_ctz(~same | 0x100);
    if (kShort)
      level = here;
    else if (level == paths.n_levels && (same & 0xff) != 0xff)
      level = here;
  }
  listed[n_listed] = {r, level};
  return n_listed + (level < paths.n_levels);
}

// Changes one value of n rows by `change`; weights (splits,) are those of that value. Lists the rows
// that may have changed sides at a split of their paths; returns how many.
inline int change_value(const float* weights, const Paths& of_rows, int n, const float* change,
                        Doubt* listed) {
  const Paths paths = of_rows;  // a copy, which the scores written cannot be part of
  int n_listed = 0;
  if (paths.n_levels == kLevelStep) {
    for (int r = 0; r < n; ++r)
      n_listed = list_changed<true>(weights, paths, r, change[r], listed, n_listed);
    return n_listed;
  }
  for (int r = 0; r < n; ++r)
    n_listed = list_changed<false>(weights, paths, r, change[r], listed, n_listed);
  return n_listed;
}

// A row on its way down.
struct Mover {
  std::int32_t row, level, node;
};

HARDWOOD_INLINE void put(const Paths& paths, std::ptrdiff_t at, std::int32_t split, float score) {
  paths.nodes[at] = split;
  paths.scores[at] = score;
}

// Ends a path with a leaf.
HARDWOOD_INLINE void end_path(const Splits& tree, const Paths& paths, const Mover& mover) {
  const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(mover.row) * paths.n_levels;
  for (int l = mover.level; l < paths.n_levels; ++l) {
    paths.nodes[first + l] = 0;
    paths.scores[first + l] = __builtin_inff();
  }
  paths.n_splits[mover.row] = mover.level;
  paths.leaf[mover.row] = mover.node - tree.n_splits;
}

// The node from which a doubtful row continues: below the split if its side is certain, otherwise
// at the split. (If numbers overflow, the end of a path can be doubtful too: its last split is
// scored again.)
HARDWOOD_INLINE Mover mover_of(const Splits& tree, const Paths& paths, Doubt doubt) {
  const std::int32_t last = max_of(paths.n_splits[doubt.row] - 1, 0);
  const std::int32_t level = min_of(doubt.level, last);
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(doubt.row) * paths.n_levels + level;
  const float score = paths.scores[at];
  const std::int32_t node = paths.nodes[at];
  const bool is_sure = __builtin_fabsf(score) - paths.slack >= 0 && level == doubt.level;
  if (node >= tree.n_splits || !is_sure) return {doubt.row, level, node};
  return {doubt.row, level + 1, tree.nodes[node].child[score >= 0]};
}

// Sorts moving rows by level, the highest first, so that rows that go down together arrive
// together. Ends the paths of rows that have arrived; returns the number of others.
inline int sorted_movers(const Splits& tree, const Paths& paths, int n, const Doubt* doubts,
                         Mover* sorted) {
  constexpr int kBuckets = 16;
  Mover movers[kMostMoving];
  int first[kBuckets + 1] = {}, n_movers = 0;
  for (int i = 0; i < n; ++i) {
    const Mover mover = mover_of(tree, paths, doubts[i]);
    if (mover.node >= tree.n_splits) {
      end_path(tree, paths, mover);
      continue;
    }
    movers[n_movers++] = mover;
    ++first[min_of(mover.level, kBuckets - 1) + 1];
  }
  for (int b = 1; b < kBuckets; ++b) first[b] += first[b - 1];
  for (int i = 0; i < n_movers; ++i)
    sorted[first[min_of(movers[i].level, kBuckets - 1)]++] = movers[i];
  return n_movers;
}

// Moves up to kRowsTogether rows down to their leaves. If there are fewer, the first one goes down
// several times.
template <int kVectors>
HARDWOOD_INLINE void descend_together(const Splits& tree, const Paths& paths, const float* values,
                                      std::ptrdiff_t stride, int n, const Mover* movers) {
  Nodes node;
  const float* x[kRowsTogether];
  std::ptrdiff_t at[kRowsTogether];
  for (int r = 0; r < kRowsTogether; ++r) {
    const Mover& mover = movers[r < n ? r : 0];
    node[r] = mover.node;
    x[r] = values + mover.row * stride;
    at[r] = static_cast<std::ptrdiff_t>(mover.row) * paths.n_levels + mover.level;
  }
  while (!all_arrived(tree, node)) {
    Vector<8> sums[kRowsTogether];
#pragma GCC unroll 8
    for (int r = 0; r < kRowsTogether; ++r) {
      const RouteNode& split = tree.nodes[node[r]];
      sums[r] = score_8<kVectors>(split.bias, weights_of(tree, split), x[r], tree.n_values);
    }
    const Vector<8> scores = fold1_of_8(sums);
#pragma GCC unroll 8
    for (int r = 0; r < kRowsTogether; ++r) {
      if (node[r] >= tree.n_splits) continue;
      put(paths, at[r]++, node[r], scores[r]);
    }
    follow(tree.nodes, scores, node);
  }
  for (int r = 0; r < n; ++r) {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(movers[r].row) * paths.n_levels;
    end_path(tree, paths, {movers[r].row, static_cast<std::int32_t>(at[r] - first), node[r]});
  }
}

// Moves n listed rows without indicators that are 1 down the tree, from where their sides may have
// changed. values (rows, stride).
inline void follow_rows(const Splits& splits, const Paths& of_rows, const float* values,
                        std::ptrdiff_t stride, int n, const Doubt* doubts) {
  const Splits tree = splits;  // copies, which the paths written cannot be part of
  const Paths paths = of_rows;
  Mover movers[kMostMoving];
  n = sorted_movers(tree, paths, n, doubts, movers);
  with_vectors((tree.n_values + 7) / 8, [&]<int kVectors>() {
    for (int first = 0; first < n; first += kRowsTogether)
      descend_together<kVectors>(tree, paths, values, stride, min_of(n - first, kRowsTogether),
                                 movers + first);
  });
}

// The same for one row, with a list of indicators.
inline void follow_row(const Splits& tree, const Paths& paths, const float* x,
                       const std::int32_t* active, const std::int32_t* active_end, Doubt doubt) {
  Mover mover = mover_of(tree, paths, doubt);
  for (; mover.node < tree.n_splits; ++mover.level) {
    const float score = score_of(tree, mover.node, x, active, active_end);
    put(paths, static_cast<std::ptrdiff_t>(mover.row) * paths.n_levels + mover.level, mover.node,
        score);
    mover.node = tree.nodes[mover.node].child[score >= 0];
  }
  end_path(tree, paths, mover);
}

}  // namespace hardwood::HARDWOOD_ISA
