// Rows that change feature by feature: the scores of all splits, and the leaves that follow.
#pragma once

#include "tree/route.hpp"

namespace hardwood::HARDWOOD_ISA {

// scores[r] += change[r] column, for n rows of `size` scores; size is a multiple of 16.
inline void change_scores(const float* column, std::ptrdiff_t size, int n, const float* change,
                          float* scores) {
  for (int r = 0; r < n; ++r, scores += size) {
    if (change[r] == 0) continue;
    for (std::ptrdiff_t i = 0; i < size; i += 16)
      store<16>(scores + i, load<16>(scores + i) + change[r] * load<16>(column + i));
  }
}

// The leaves of kRows rows by their scores, and whether they are sure: whether every score on the way
// is larger than its split's slack. (One that is not a number is not.)
template <int kRows, bool kPerfect>
HARDWOOD_INLINE void leaves_of(const Splits& tree, const float* slack, const float* scores,
                               std::ptrdiff_t size, std::int32_t* leaves, bool* is_sure) {
  std::int32_t at[kRows] = {};
  for (int r = 0; r < kRows; ++r) is_sure[r] = true;
  const std::int32_t last = tree.n_splits - 1;
  for (int level = 0; level < tree.depth; ++level)
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      // Of a leaf, which leads to itself, any score will do.
      const std::int32_t split = kPerfect ? at[r] : min_of(at[r], last);
      const float score = scores[r * size + split];
      is_sure[r] &= (__builtin_fabsf(score) > slack[split]) | (!kPerfect && at[r] > last);
      at[r] = tree.nodes[at[r]].child[score >= 0];
    }
  for (int r = 0; r < kRows; ++r) leaves[r] = at[r] - tree.n_splits;
}

// The leaves of n rows. Lists those that are not sure; returns how many.
inline int leaves_by_scores(const Splits& tree, const float* slack, const float* scores,
                            std::ptrdiff_t size, int n, std::int32_t* leaves,
                            std::int32_t* doubtful) {
  constexpr int kTogether = 4;
  int n_doubtful = 0;
  const auto find = [&]<int kRows>(int first) __attribute__((always_inline)) {
    bool is_sure[kRows];
    const float* from = scores + first * size;
    tree.is_perfect ? leaves_of<kRows, true>(tree, slack, from, size, leaves + first, is_sure)
                    : leaves_of<kRows, false>(tree, slack, from, size, leaves + first, is_sure);
    for (int r = 0; r < kRows; ++r) {
      doubtful[n_doubtful] = first + r;
      n_doubtful += !is_sure[r];
    }
  };
  int r = 0;
  for (; r + kTogether <= n; r += kTogether) find.template operator()<kTogether>(r);
  for (; r < n; ++r) find.template operator()<1>(r);
  return n_doubtful;
}

// The routing's own decision at one split.
inline bool goes_right(const Splits& tree, std::int32_t split, const float* x,
                       const std::int32_t* active, const std::int32_t* active_end) {
  const RouteNode& node = tree.nodes[split];
  float score = fold1(score_8<0>(node.bias, weights_of(tree, node), x, tree.n_values));
  if (active != active_end) score += indicator_sum(tree, split, active, active_end);
  return score >= 0;
}

}  // namespace hardwood::HARDWOOD_ISA
