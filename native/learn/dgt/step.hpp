// DGT: dense gradient trees, the step. Compiled for each instruction set. NumPy reference: tests/reference/dgt.py.
//
// Karthikeyan, Jain, Natarajan, Jain. Learning accurate decision trees with bandit feedback via
// quantized gradient descent. TMLR 2022.
//
// The forward pass is a hard tree. The backward pass replaces the outer step of Eq. (4) by a
// softmax over the path sums and the inner sign by the straight-through estimator 1[|a| <= 1]
// (Algorithm 2).
//
//   paper            here
//   a = W x + b      score  (m, tile)     one row per node; children of i are 2i + 1 and 2i + 2
//   sign(a)          +1 for a >= 0        Eq. (3)
//   theta            theta  (leaves, k)   leaves from left to right
//   l'(f)            slope  (k, tile)     loss by prediction, weight and 1/batch included
//   v / z            mean   (tile,)       softmax mean of slope . theta_l over all leaves
//
// The step computes Algorithm 2 in another way (learn/dgt.py lists the differences). With decisions
// of +-mu every subtree of one height has the same partition function (2 cosh mu)^height, whatever
// the signs. So the softmax over the leaves is exactly a product of node probabilities, 1/2 (1 + s
// tanh mu) to the right with s the sign, and the gradient follows from one upward and one downward
// pass over the nodes: O(2^h) per sample, no exponential, no path matrix. mu is 1 (the paper) or
// the mean of |a| (the authors' code).
//
// The product form of Eq. (2) is the same recursion with probabilities of 0 and 1. With a softmax
// after the product (C.3.1), the leaf reached has e / (e + leaves - 1) and every other leaf
// 1 / (e + leaves - 1). Only the nodes on the path have a gradient, that of the sum form with
// mu = 1/2 times the mean of these two. Annealed routing, which is soft in the forward pass too, is
// in soft_step.hpp.
#pragma once

#include "core/gemm.hpp"
#include "core/loss.hpp"
#include "learn/dgt/tile.hpp"

namespace hardwood::HARDWOOD_ISA {

inline constexpr float kTanh1 = 0.76159415595576488812f;
inline constexpr float kTanhHalf = 0.46211715726000975850f;
inline constexpr float kE = 2.71828182845904523536f;

HARDWOOD_INLINE float signed_by(float a, float bend) {
  return a >= 0 ? bend : -bend;
}

// Mean of a node from the means of its two sides: 1/2 ((R + L) + s tanh(mu) (R - L)).
HARDWOOD_INLINE float mix(float left, float right, float signed_bend) {
  return 0.5f * ((right + left) + signed_bend * (right - left));
}

// Algorithm 2, line 13, for one node: the probability of the node times the difference between its
// sides, by the straight-through estimator. Sum: p_r (R - mean) - p_l (L - mean) with p_r, p_l =
// 1/2 (1 +- s tanh mu). Product: 1/2 (R - L), half because a step is half a sign.
template <Path kPath>
HARDWOOD_INLINE float score_gradient(float a, float left, float right, float mean,
                                     float probability, float bend) {
  float difference = 0.5f * (right - left);
  if constexpr (kPath != Path::kProduct)
    difference += signed_by(a, bend) * (0.5f * (right + left) - mean);
  return __builtin_fabsf(a) <= 1.0f ? probability * difference : 0.0f;
}

// Sum of f(i) over a multiple of 16 samples, in sixteen running sums for every vector width.
template <class Of>
HARDWOOD_INLINE float lane_sum(int n, Of&& of) {
  float lane[16] = {}, sum = 0;
  for (int i = 0; i < n; i += 16)
    for (int l = 0; l < 16; ++l) lane[l] += of(i + l);
  for (int l = 0; l < 16; ++l) sum += lane[l];
  return sum;
}

// tanh(mu), the effect of a decision of +-mu in the softmax. 1 for the product forms.
inline float bend_of(const DgtShape& shape, const DgtForm& form, const DgtTile& t) {
  if (form.path != Path::kSum) return 1.0f;
  if (form.quantizer == Quantizer::kSign) return kTanh1;
  double sum = 0;
  for (int node = 0; node < shape.n_nodes(); ++node) {
    const float* a = t.score + static_cast<std::ptrdiff_t>(node) * t.tile;
    sum += lane_sum(t.tile, [&](int i) { return i < t.n ? __builtin_fabsf(a[i]) : 0.0f; });
  }
  return __builtin_tanhf(static_cast<float>(sum / (static_cast<double>(t.n) * shape.n_nodes())));
}

// Scores of all nodes, a = W x + b.
inline void node_scores(const DgtShape& shape, const Parameters<float>& p, DgtTile& t) {
  const int m = shape.n_nodes(), d = shape.n_columns;
  const std::ptrdiff_t stride = padded(d);
  transpose({t.X, t.tile, d, stride}, {t.XT, d, t.tile, t.tile});
  gemm({p.W, m, d, stride}, {t.XT, d, t.tile, t.tile}, {t.score, m, t.tile, t.tile},
       Start::kRowBias, p.b);
}

// Hard routing by the scores, Eq. (3): the leaf is the arg max over leaves of the path sums.
inline void descend(const DgtShape& shape, DgtTile& t) {
  for (int i = 0; i < t.tile; ++i) t.leaf[i] = 0;
  for (int level = 0; level < shape.height; ++level)
    for (int i = 0; i < t.tile; ++i) {
      const std::int32_t node = t.leaf[i];
      t.leaf[i] = 2 * node + 1 + (t.score[static_cast<std::ptrdiff_t>(node) * t.tile + i] >= 0);
    }
  for (int i = 0; i < t.tile; ++i) t.leaf[i] -= shape.n_nodes();
}

// theta_l at the leaf reached, and with linear leaves + A_l x.
inline void predict_leaves(const DgtShape& shape, const Parameters<float>& p, DgtTile& t) {
  const int k = shape.n_outputs, stride = padded(shape.n_columns);
  for (int o = 0; o < k; ++o) {
    float* f = t.prediction + static_cast<std::ptrdiff_t>(o) * t.tile;
    for (int i = 0; i < t.tile; ++i) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(t.leaf[i]) * k + o;
      f[i] = p.leaves[at];
      if (!shape.has_linear_leaves) continue;
      const float *A = p.A + at * stride, *x = t.X + static_cast<std::ptrdiff_t>(i) * stride;
      float sum = 0;
      for (int c = 0; c < shape.n_columns; ++c) sum += A[c] * x[c];
      f[i] += sum;
    }
  }
}

// Gradient by theta and A: at the arg-max leaf only (Algorithm 2, line 5).
inline void accumulate_leaves(const DgtShape& shape, const DgtTile& t, const Parameters<float>& g) {
  const int k = shape.n_outputs, stride = padded(shape.n_columns);
  for (int i = 0; i < t.tile; ++i)
    for (int o = 0; o < k; ++o) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(t.leaf[i]) * k + o;
      const float slope = t.slope[static_cast<std::ptrdiff_t>(o) * t.tile + i];
      g.leaves[at] += slope;
      if (!shape.has_linear_leaves) continue;
      const float* x = t.X + static_cast<std::ptrdiff_t>(i) * stride;
      float* A = g.A + at * stride;
      for (int c = 0; c < shape.n_columns; ++c) A[c] += slope * x[c];
    }
}

// t.leaf_value = slope . theta_l(x) for every leaf.
inline void value_leaves(const DgtShape& shape, const Parameters<float>& p, DgtTile& t) {
  const int k = shape.n_outputs, leaves = shape.n_leaves();
  const std::ptrdiff_t n = t.tile, stride = padded(shape.n_columns);
  gemm({p.leaves, leaves, k, k}, {t.slope, k, t.tile, n}, {t.leaf_value, leaves, t.tile, n},
       Start::kZero);
  if (!shape.has_linear_leaves) return;
  for (int o = 0; o < k; ++o) {
    gemm({p.A + o * stride, leaves, shape.n_columns, k * stride},
         {t.XT, shape.n_columns, t.tile, n}, {t.leaf_score, leaves, t.tile, n}, Start::kZero);
    const float* __restrict slope = t.slope + o * n;
    for (int leaf = 0; leaf < leaves; ++leaf) {
      float* __restrict value = t.leaf_value + leaf * n;
      const float* __restrict score = t.leaf_score + leaf * n;
      for (int i = 0; i < n; ++i) value[i] += slope[i] * score[i];
    }
  }
}

// With one output, slope . theta_l = slope * theta_l, and the slope is applied in the downward
// pass. A leaf is then one number for the whole tile, and no (leaves, tile) array is needed.
template <bool kOneOutput>
HARDWOOD_INLINE float leaf_at(const float* theta, const float* values, int i) {
  return kOneOutput ? theta[0] : values[i];
}

// Upward: t.below = softmax mean under every node, t.mean that of the root.
template <bool kOneOutput>
inline void upward(const DgtShape& shape, const float* theta, DgtTile& t, float bend) {
  const std::ptrdiff_t n = t.tile;
  const int first = shape.n_leaves() / 2 - 1;  // first node of the last level
  for (int node = shape.n_nodes() - 1; node >= 0; --node) {
    const float* __restrict a = t.score + node * n;
    float* __restrict out = t.below + node * n;
    if (node >= first) {
      const int left = 2 * (node - first);
      const float *tl = theta + left, *tr = tl + 1, *vl = t.leaf_value + left * n, *vr = vl + n;
      for (int i = 0; i < n; ++i)
        out[i] = mix(leaf_at<kOneOutput>(tl, vl, i), leaf_at<kOneOutput>(tr, vr, i),
                     signed_by(a[i], bend));
    } else {
      const float *vl = t.below + (2 * node + 1) * n, *vr = vl + n;
      for (int i = 0; i < n; ++i) out[i] = mix(vl[i], vr[i], signed_by(a[i], bend));
    }
  }
  for (int i = 0; i < n; ++i) t.mean[i] = t.below[i];
}

// The softmax after the product: t.mean, the value of the leaf reached, becomes the softmax mean.
template <bool kOneOutput>
inline void average_leaves(const DgtShape& shape, const float* theta, DgtTile& t) {
  const std::ptrdiff_t n = t.tile;
  const float other = 1.0f / (kE + static_cast<float>(shape.n_leaves() - 1));
  for (int i = 0; i < n; ++i) t.mean[i] *= (kE - 1.0f) * other;
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf) {
    const float* value = t.leaf_value + leaf * n;
    for (int i = 0; i < n; ++i) t.mean[i] += other * leaf_at<kOneOutput>(theta + leaf, value, i);
  }
}

// Downward: each score is replaced by its gradient; t.below of a visited node becomes its
// probability, times the weight of the product's softmax.
template <Path kPath, bool kOneOutput>
inline void downward(const DgtShape& shape, const float* theta, DgtTile& t, float bend) {
  const std::ptrdiff_t n = t.tile;
  const int first = shape.n_leaves() / 2 - 1;
  constexpr bool kSoftmaxed = kPath == Path::kProductSoftmax;
  const float leaves = static_cast<float>(shape.n_leaves());
  const float weight = kSoftmaxed ? 0.5f * (kE + 1.0f) / (kE + leaves - 1.0f) : 1.0f;
  const float pull = kSoftmaxed ? kTanhHalf : bend;
  for (int i = 0; i < n; ++i) t.below[i] = kOneOutput ? weight * t.slope[i] : weight;
  const float* __restrict mean = t.mean;
  for (int node = 0; node < first; ++node) {
    float* __restrict a = t.score + node * n;
    float* __restrict vl = t.below + (2 * node + 1) * n;
    float* __restrict vr = vl + n;
    const float* __restrict probability = t.below + node * n;
    for (int i = 0; i < n; ++i) {
      const float p = probability[i], to_right = p * (0.5f + 0.5f * signed_by(a[i], bend));
      a[i] = score_gradient<kPath>(a[i], vl[i], vr[i], mean[i], p, pull);
      vr[i] = to_right;
      vl[i] = p - to_right;
    }
  }
  for (int node = first; node < shape.n_nodes(); ++node) {
    float* __restrict a = t.score + node * n;
    const float* __restrict probability = t.below + node * n;
    const int left = 2 * (node - first);
    const float *tl = theta + left, *tr = tl + 1, *vl = t.leaf_value + left * n, *vr = vl + n;
    for (int i = 0; i < n; ++i)
      a[i] = score_gradient<kPath>(a[i], leaf_at<kOneOutput>(tl, vl, i),
                                   leaf_at<kOneOutput>(tr, vr, i), mean[i], probability[i], pull);
  }
}

template <bool kOneOutput>
inline void up_and_down(const DgtShape& shape, const DgtForm& form, const float* theta,
                        DgtTile& t) {
  const float bend = bend_of(shape, form, t);
  upward<kOneOutput>(shape, theta, t, bend);
  if (form.path == Path::kSum) return downward<Path::kSum, kOneOutput>(shape, theta, t, bend);
  if (form.path == Path::kProduct)
    return downward<Path::kProduct, kOneOutput>(shape, theta, t, bend);
  average_leaves<kOneOutput>(shape, theta, t);
  downward<Path::kProductSoftmax, kOneOutput>(shape, theta, t, bend);
}

// Replaces scores by their gradients.
inline void backward_scores(const DgtShape& shape, const DgtForm& form, const Parameters<float>& p,
                            DgtTile& t) {
  if (shape.n_outputs == 1 && !shape.has_linear_leaves)
    return up_and_down<true>(shape, form, p.leaves, t);
  value_leaves(shape, p, t);
  up_and_down<false>(shape, form, p.leaves, t);
}

// Gradients by W and b from the gradients by the scores. Overwrites that of W if `first`.
inline void accumulate_splits(const DgtShape& shape, const DgtTile& t, bool first,
                              const Parameters<float>& gradient) {
  const int m = shape.n_nodes(), d = shape.n_columns;
  const std::ptrdiff_t stride = padded(d);
  gemm({t.score, m, t.tile, t.tile}, {t.X, t.tile, d, stride}, {gradient.W, m, d, stride},
       first ? Start::kZero : Start::kAccumulate);
  for (int node = 0; node < m; ++node) {
    const float* a = t.score + static_cast<std::ptrdiff_t>(node) * t.tile;
    gradient.b[node] += lane_sum(t.tile, [&](int i) { return a[i]; });
  }
}

}  // namespace hardwood::HARDWOOD_ISA
