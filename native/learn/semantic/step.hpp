// Trees that learn by semantic logits, the step. Compiled for each instruction set. NumPy reference:
// tests/reference/semantic.py.
//
// Panda, Genest, Easwaran, Suganthan. Vanilla Gradient Descent for Oblique Decision Trees. ECAI 2024.
// The same. Approximation-Free Differentiable Oblique Decision Trees. arXiv 2605.07837, 2026.
//
//   a = W x + b                                     score        (m, tile)
//   z_l = - sum of the decisions violated on the    logit        (leaves, tile)
//         path to leaf l, each max(0, -s a)
//   score of a class: the largest of its leaves     class_score  (classes, tile)
//
// The leaf that the hard tree reaches violates nothing: its score is 0, and all others are at most 0.
// So the largest score is that of the hard tree, and descent on a softmax of scores trains the tree
// itself. Scores come from one sweep down the tree (a child inherits its parent's score, less what
// the row pays to go there), and gradients from one sweep up: O(2^h) per sample beside the two matrix
// products.
#pragma once

#include "learn/dgt/soft_step.hpp"
#include "learn/semantic/tile.hpp"

namespace hardwood::HARDWOOD_ISA {

// The row of the left child of a split, among the splits or, on the last level, among the leaves;
// the right child's row is the next.
HARDWOOD_INLINE float* left_child(const DgtShape& shape, const SemanticTile& t, int node) {
  const int first = shape.n_leaves() / 2 - 1;  // first split of the last level
  const std::ptrdiff_t n = t.tile;
  return node < first ? t.below + (2 * node + 1) * n : t.logit + 2 * (node - first) * n;
}

// t.logit = z; t.below = the same of every split on the way.
inline void score_leaves(const DgtShape& shape, SemanticTile& t) {
  const std::ptrdiff_t n = t.tile;
  for (int i = 0; i < n; ++i) t.below[i] = 0.0f;
  for (int node = 0; node < shape.n_nodes(); ++node) {
    const float* __restrict a = t.score + node * n;
    const float* __restrict z = t.below + node * n;
    float* __restrict left = left_child(shape, t, node);
    float* __restrict right = left + n;
    for (int i = 0; i < n; ++i) {
      left[i] = z[i] - max_of(a[i], 0.0f);
      right[i] = z[i] + min_of(a[i], 0.0f);
    }
  }
}

// Replaces scores by their gradients, from those of the leaves in t.logit; t.below becomes the sum
// of these below each split. A row that goes right pays a for every leaf on the left, one that goes
// left pays -a for every leaf on the right.
inline void return_to_scores(const DgtShape& shape, SemanticTile& t) {
  const std::ptrdiff_t n = t.tile;
  for (int node = shape.n_nodes() - 1; node >= 0; --node) {
    float* __restrict a = t.score + node * n;
    float* __restrict sum = t.below + node * n;
    const float* __restrict left = left_child(shape, t, node);
    const float* __restrict right = left + n;
    for (int i = 0; i < n; ++i) {
      a[i] = a[i] >= 0 ? -left[i] : right[i];
      sum[i] = left[i] + right[i];
    }
  }
}

// --- leaves that are dealt to classes ---

// t.class_score = the largest score of the class's leaves; t.prediction likewise, or the difference
// of two.
inline void predict_classes(const DgtShape& shape, const std::int32_t* classes, SemanticTile& t) {
  const std::ptrdiff_t n = t.tile;
  for (std::ptrdiff_t i = 0; i < n_class_scores(shape) * n; ++i)
    t.class_score[i] = -__builtin_inff();
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf) {
    const float* __restrict z = t.logit + leaf * n;
    float* __restrict best = t.class_score + classes[leaf] * n;
    for (int i = 0; i < n; ++i) best[i] = max_of(best[i], z[i]);
  }
  const bool is_difference = shape.n_outputs == 1;
  const float* first = t.class_score;
  for (std::ptrdiff_t i = 0; i < shape.n_outputs * n; ++i)
    t.prediction[i] = is_difference ? first[n + i] - first[i] : first[i];
}

// t.logit = the gradient by the scores of leaves: the slope of the class at its best leaf, else 0.
// Of equal leaves the last wins, as the hard tree goes right at 0.
inline void return_to_winners(const DgtShape& shape, const std::int32_t* classes, SemanticTile& t) {
  const std::ptrdiff_t n = t.tile;
  const bool is_difference = shape.n_outputs == 1;
  for (int leaf = shape.n_leaves() - 1; leaf >= 0; --leaf) {
    const float sign = is_difference && classes[leaf] == 0 ? -1.0f : 1.0f;
    const float* __restrict slope = t.slope + (is_difference ? 0 : classes[leaf]) * n;
    float* __restrict best = t.class_score + classes[leaf] * n;
    float* __restrict z = t.logit + leaf * n;
    for (int i = 0; i < n; ++i) {
      const bool wins = z[i] == best[i];
      z[i] = wins ? sign * slope[i] : 0.0f;
      best[i] = wins ? __builtin_inff() : best[i];  // the class has its winner
    }
  }
}

// --- leaves that learn their values ---

// Best leaves in the mixture whose gradient stands for that of the hard prediction.
inline constexpr int kPulled = 2;

// t.mean = the smallest score among the n_mixed largest different ones of a row.
inline void find_cut(const DgtShape& shape, int n_mixed, SemanticTile& t) {
  const std::ptrdiff_t n = t.tile;
  float* __restrict cut = t.mean;
  float* __restrict next = t.below;           // the largest score below the cut
  for (int i = 0; i < n; ++i) cut[i] = 0.0f;  // the largest score of all is 0
  for (int taken = 1; taken < n_mixed; ++taken) {
    for (int i = 0; i < n; ++i) next[i] = -__builtin_inff();
    for (int leaf = 0; leaf < shape.n_leaves(); ++leaf) {
      const float* __restrict z = t.logit + leaf * n;
      for (int i = 0; i < n; ++i) next[i] = z[i] < cut[i] && z[i] > next[i] ? z[i] : next[i];
    }
    for (int i = 0; i < n; ++i) cut[i] = next[i];
  }
}

// t.logit = the leaves' shares: the softmax over the best leaves.
inline void share_leaves(const DgtShape& shape, int n_mixed, SemanticTile& t) {
  const std::ptrdiff_t n = t.tile;
  const bool is_cut = n_mixed < shape.n_leaves();
  if (is_cut) find_cut(shape, n_mixed, t);
  const float* __restrict cut = t.mean;
  float* __restrict total = t.below;
  for (int i = 0; i < n; ++i) total[i] = 0.0f;
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf) {
    float* __restrict z = t.logit + leaf * n;
    for (int i = 0; i < n; ++i) {
      const float e = exponential(z[i]);  // z <= 0, and 0 for one of them
      z[i] = !is_cut || z[i] >= cut[i] ? e : 0.0f;
      total[i] += z[i];
    }
  }
  for (int i = 0; i < n; ++i) total[i] = 1.0f / total[i];
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf) {
    float* __restrict z = t.logit + leaf * n;
    for (int i = 0; i < n; ++i) z[i] *= total[i];
  }
}

// t.leaf_score = A_l x of one output, for every leaf.
inline void linear_parts(const DgtShape& shape, const Parameters<float>& p, int output,
                         SemanticTile& t) {
  const int leaves = shape.n_leaves(), d = shape.n_columns;
  const std::ptrdiff_t stride = padded(d);
  gemm({p.A + output * stride, leaves, d, shape.n_outputs * stride}, {t.XT, d, t.tile, t.tile},
       {t.leaf_score, leaves, t.tile, t.tile}, Start::kZero);
}

// The values of the leaves, mixed by their shares in t.logit.
inline void predict_mixture(const DgtShape& shape, const Parameters<float>& p, SemanticTile& t) {
  const int leaves = shape.n_leaves(), k = shape.n_outputs;
  const std::ptrdiff_t n = t.tile;
  gemm_transposed({p.leaves, leaves, k, k}, {t.logit, leaves, t.tile, n},
                  {t.prediction, k, t.tile, n}, Start::kZero);
  for (int o = 0; o < k && shape.has_linear_leaves; ++o) {
    linear_parts(shape, p, o, t);
    float* __restrict f = t.prediction + o * n;
    for (int leaf = 0; leaf < leaves; ++leaf) {
      const float* __restrict share = t.logit + leaf * n;
      const float* __restrict part = t.leaf_score + leaf * n;
      for (int i = 0; i < n; ++i) f[i] += share[i] * part[i];
    }
  }
}

// Gradient by theta and A: each leaf is pulled by its share.
inline void accumulate_mixture(const DgtShape& shape, SemanticTile& t, const Parameters<float>& g) {
  const int leaves = shape.n_leaves(), d = shape.n_columns, k = shape.n_outputs;
  const std::ptrdiff_t n = t.tile, stride = padded(d);
  accumulate_shared_leaves(shape, t, t.logit, g.leaves);
  for (int o = 0; o < k && shape.has_linear_leaves; ++o) {
    const float* __restrict slope = t.slope + o * n;
    for (int leaf = 0; leaf < leaves; ++leaf) {
      const float* __restrict share = t.logit + leaf * n;
      float* __restrict pull = t.leaf_score + leaf * n;
      for (int i = 0; i < n; ++i) pull[i] = share[i] * slope[i];
    }
    gemm({t.leaf_score, leaves, t.tile, n}, {t.X, t.tile, d, stride},
         {g.A + o * stride, leaves, d, k * stride}, Start::kAccumulate);
  }
}

// t.logit = the gradient by the scores of leaves, from their shares: q_l (u_l - sum q u), with
// u_l = slope . theta_l(x) in t.leaf_value.
inline void return_to_shares(const DgtShape& shape, SemanticTile& t) {
  const std::ptrdiff_t n = t.tile;
  float* __restrict mean = t.mean;
  for (int i = 0; i < n; ++i) mean[i] = 0.0f;
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf) {
    const float* __restrict q = t.logit + leaf * n;
    const float* __restrict u = t.leaf_value + leaf * n;
    for (int i = 0; i < n; ++i) mean[i] += q[i] * u[i];
  }
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf) {
    float* __restrict q = t.logit + leaf * n;
    const float* __restrict u = t.leaf_value + leaf * n;
    for (int i = 0; i < n; ++i) q[i] *= u[i] - mean[i];
  }
}

// --- a tile ---

// Predictions of a tile, by the scores of the same step.
inline void semantic_predict(const DgtShape& shape, const SemanticLeaves& leaves,
                             const Parameters<float>& p, SemanticTile& t) {
  node_scores(shape, p, t);
  if (leaves.classes) {
    score_leaves(shape, t);
    predict_classes(shape, leaves.classes, t);
  } else if (leaves.n_mixed == 1) {
    descend(shape, t);
    predict_leaves(shape, p, t);
  } else {
    score_leaves(shape, t);
    share_leaves(shape, leaves.n_mixed, t);
    predict_mixture(shape, p, t);
  }
}

// From slopes to the gradient by the scores of leaves in t.logit, and to that of learned leaves.
inline void return_to_leaves(const DgtShape& shape, const SemanticLeaves& leaves,
                             const Parameters<float>& p, SemanticTile& t,
                             const Parameters<float>& gradient) {
  if (leaves.classes) return return_to_winners(shape, leaves.classes, t);
  if (leaves.n_mixed == 1) {
    accumulate_leaves(shape, t, gradient);
    score_leaves(shape, t);
    share_leaves(shape, kPulled, t);
  } else {
    accumulate_mixture(shape, t, gradient);
  }
  value_leaves(shape, p, t);
  return_to_shares(shape, t);
}

// Loss and gradients of one tile, added to `gradient` (W's overwritten when `first`).
// `slope_given`: t.slope was filled by the caller, for losses that live outside the engine.
inline double semantic_tile(const DgtShape& shape, const SemanticLeaves& leaves,
                            const Parameters<float>& p, SemanticTile& t, Loss loss, float parameter,
                            float factor, bool slope_given, bool first,
                            const Parameters<float>& gradient) {
  semantic_predict(shape, leaves, p, t);
  double total = 0;
  if (!slope_given)
    total = loss_and_gradient(loss, parameter,
                              {shape.n_outputs, t.tile, t.prediction, t.target, t.weight, t.slope},
                              factor);
  return_to_leaves(shape, leaves, p, t, gradient);
  return_to_scores(shape, t);
  accumulate_splits(shape, t, first, gradient);
  return total;
}

}  // namespace hardwood::HARDWOOD_ISA
