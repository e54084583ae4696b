// Scores and the greedy path of policy trees, compiled for each instruction set.
//
// Dot products are those of route.hpp, so a tree with two branches per split sends every row to the
// leaf of the oblique tree with the same hyperplanes.
#pragma once

#include "tree/policy_splits.hpp"
#include "tree/route.hpp"

namespace hardwood::HARDWOOD_ISA {

HARDWOOD_INLINE float policy_score(const PolicySplits& tree, std::ptrdiff_t row, const float* x,
                                   const std::int32_t* active, const std::int32_t* active_end) {
  const float* w = tree.weights + row * tree.stride;
  float score = fold1(score_8<0>(tree.bias[row], w, x, tree.n_values));
  if (active != active_end) {
    const float* on = tree.indicators + row * tree.n_indicators;
    float sum = 0.0f;
    for (const std::int32_t* i = active; i != active_end; ++i) sum += on[*i];
    score += sum;
  }
  return score;
}

// Scores of the children of a node relative to the first child, whose score is 0.
inline void policy_scores(const PolicySplits& tree, std::int32_t at, const float* x,
                          const std::int32_t* active, const std::int32_t* active_end, float* out) {
  const PolicyNode& node = tree.nodes[at];
  out[0] = 0.0f;
  for (int j = 1; j < node.n_children; ++j)
    out[j] = policy_score(tree, node.first_row + j - 1, x, active, active_end);
}

// The leaf at the end of the greedy path: at each node, the child with the largest score, the last
// of equals. NaN is never the largest.
inline std::int32_t greedy_leaf(const PolicySplits& tree, const float* x,
                                const std::int32_t* active, const std::int32_t* active_end) {
  const PolicyNode* node = tree.nodes;
  while (node->n_children > 0) {
    float best = 0.0f;
    int taken = 0;
    for (int j = 1; j < node->n_children; ++j) {
      const float score = policy_score(tree, node->first_row + j - 1, x, active, active_end);
      if (score >= best) {
        best = score;
        taken = j;
      }
    }
    node = tree.nodes + tree.child[node->first_child + taken];
  }
  return node->leaf;
}

inline void greedy_leaves(const PolicySplits& tree, const EncodedRows& rows, int n,
                          std::int32_t* leaves) {
  const std::int32_t* begin = rows.active;
  for (int i = 0; i < n; ++i) {
    const std::int32_t* end = rows.active + rows.active_end[i];
    leaves[i] = greedy_leaf(tree, rows.values + i * rows.stride, begin, end);
    begin = end;
  }
}

}  // namespace hardwood::HARDWOOD_ISA
