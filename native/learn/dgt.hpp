// DGT: dense gradient trees, the step. Compiled for each instruction set. Twin: reference/dgt.py.
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
// The step computes what Algorithm 2 says, by another way (learn/dgt.py lists what differs around
// it). With signs of +-1 every subtree of one height has the same partition function
// (2 cosh 1)^height, whatever the signs. So the softmax over the leaves is exactly a product of node
// probabilities, 1/2 (1 + s tanh 1) to the right with s the sign, and the gradient follows from one
// upward and one downward pass over the nodes: O(2^h) per sample, no exponential, no path matrix.
#pragma once

#include "core/gemm.hpp"
#include "core/loss.hpp"
#include "learn/dgt_tile.hpp"

namespace hardwood::HARDWOOD_ISA {

inline constexpr float kTanh1 = 0.76159415595576488812f;

HARDWOOD_INLINE float signed_tanh1(float a) {
  return a >= 0 ? kTanh1 : -kTanh1;
}

// Softmax mean over a node from the means of its two sides: 1/2 ((R + L) + s tanh(1) (R - L)).
HARDWOOD_INLINE float mix(float left, float right, float signed_tanh) {
  return 0.5f * ((right + left) + signed_tanh * (right - left));
}

// Algorithm 2, line 13, for one node: probability of the node times the difference its sign makes,
// by the straight-through estimator. p_r (R - mean) - p_l (L - mean) with p_r, p_l = 1/2 (1 +- s
// tanh 1).
HARDWOOD_INLINE float score_gradient(float a, float left, float right, float mean,
                                     float probability) {
  const float st = signed_tanh1(a);
  const float difference = 0.5f * (right - left) + st * (0.5f * (right + left) - mean);
  return __builtin_fabsf(a) <= 1.0f ? probability * difference : 0.0f;
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

inline void predict_leaves(const DgtShape& shape, const float* theta, DgtTile& t) {
  for (int k = 0; k < shape.n_outputs; ++k) {
    float* f = t.prediction + static_cast<std::ptrdiff_t>(k) * t.tile;
    for (int i = 0; i < t.tile; ++i)
      f[i] = theta[static_cast<std::ptrdiff_t>(t.leaf[i]) * shape.n_outputs + k];
  }
}

// Gradient by theta: at the arg-max leaf only (Algorithm 2, line 5).
inline void accumulate_theta(const DgtShape& shape, const DgtTile& t, float* d_theta) {
  const int k = shape.n_outputs;
  for (int i = 0; i < t.tile; ++i)
    for (int o = 0; o < k; ++o)
      d_theta[static_cast<std::ptrdiff_t>(t.leaf[i]) * k + o] +=
          t.slope[static_cast<std::ptrdiff_t>(o) * t.tile + i];
}

// Where one output makes slope . theta_l = slope * theta_l, the slope can wait until the downward
// pass: a leaf is then one number for the whole tile, and (leaves, tile) values are never formed.
template <bool kOneOutput>
HARDWOOD_INLINE float leaf_at(const float* theta, const float* values, int i) {
  return kOneOutput ? theta[0] : values[i];
}

// Upward: t.below = softmax mean under every node, t.mean that of the root.
template <bool kOneOutput>
inline void upward(const DgtShape& shape, const float* theta, DgtTile& t) {
  const std::ptrdiff_t n = t.tile;
  const int first = shape.n_leaves() / 2 - 1;  // first node of the last level
  for (int node = shape.n_nodes() - 1; node >= 0; --node) {
    const float* __restrict a = t.score + node * n;
    float* __restrict out = t.below + node * n;
    if (node >= first) {
      const int left = 2 * (node - first);
      const float *tl = theta + left, *tr = tl + 1, *vl = t.leaf_value + left * n, *vr = vl + n;
      for (int i = 0; i < n; ++i)
        out[i] =
            mix(leaf_at<kOneOutput>(tl, vl, i), leaf_at<kOneOutput>(tr, vr, i), signed_tanh1(a[i]));
    } else {
      const float *vl = t.below + (2 * node + 1) * n, *vr = vl + n;
      for (int i = 0; i < n; ++i) out[i] = mix(vl[i], vr[i], signed_tanh1(a[i]));
    }
  }
  for (int i = 0; i < n; ++i) t.mean[i] = t.below[i];
}

// Downward: each score is replaced by its gradient; t.below of a visited node becomes its
// probability.
template <bool kOneOutput>
inline void downward(const DgtShape& shape, const float* theta, DgtTile& t) {
  const std::ptrdiff_t n = t.tile;
  const int first = shape.n_leaves() / 2 - 1;
  for (int i = 0; i < n; ++i) t.below[i] = kOneOutput ? t.slope[i] : 1.0f;
  const float* __restrict mean = t.mean;
  for (int node = 0; node < first; ++node) {
    float* __restrict a = t.score + node * n;
    float* __restrict vl = t.below + (2 * node + 1) * n;
    float* __restrict vr = vl + n;
    const float* __restrict probability = t.below + node * n;
    for (int i = 0; i < n; ++i) {
      const float p = probability[i], to_right = p * (0.5f + 0.5f * signed_tanh1(a[i]));
      a[i] = score_gradient(a[i], vl[i], vr[i], mean[i], p);
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
      a[i] = score_gradient(a[i], leaf_at<kOneOutput>(tl, vl, i), leaf_at<kOneOutput>(tr, vr, i),
                            mean[i], probability[i]);
  }
}

inline void backward_scores(const DgtShape& shape, const float* theta, DgtTile& t) {
  if (shape.n_outputs == 1) {
    upward<true>(shape, theta, t);
    downward<true>(shape, theta, t);
    return;
  }
  gemm({theta, shape.n_leaves(), shape.n_outputs, shape.n_outputs},
       {t.slope, shape.n_outputs, t.tile, t.tile}, {t.leaf_value, shape.n_leaves(), t.tile, t.tile},
       Start::kZero);
  upward<false>(shape, theta, t);
  downward<false>(shape, theta, t);
}

// Loss and gradients of one tile, added to `gradient` (W's overwritten when `first`).
// `slope_given`: t.slope was filled by the caller, for losses that live outside the engine.
inline double dgt_tile(const DgtShape& shape, const DgtParameters& p, DgtTile& t, Loss loss,
                       float parameter, float factor, bool slope_given, bool first,
                       const DgtParameters& gradient) {
  const int m = shape.n_nodes(), d = shape.n_columns;
  const std::ptrdiff_t stride = padded(d);
  transpose({t.X, t.tile, d, stride}, {t.XT, d, t.tile, t.tile});
  gemm({p.W, m, d, stride}, {t.XT, d, t.tile, t.tile}, {t.score, m, t.tile, t.tile},
       Start::kRowBias, p.b);
  descend(shape, t);
  double total = 0;
  if (!slope_given) {
    predict_leaves(shape, p.theta, t);
    total = loss_and_gradient(loss, parameter,
                              {shape.n_outputs, t.tile, t.prediction, t.target, t.weight, t.slope},
                              factor);
  }
  accumulate_theta(shape, t, gradient.theta);
  backward_scores(shape, p.theta, t);
  gemm({t.score, m, t.tile, t.tile}, {t.X, t.tile, d, stride}, {gradient.W, m, d, stride},
       first ? Start::kZero : Start::kAccumulate);
  for (int node = 0; node < m; ++node) {
    const float* a = t.score + static_cast<std::ptrdiff_t>(node) * t.tile;
    float lane[16] = {}, sum = 0;
    for (int i = 0; i < t.tile; i += 16)
      for (int l = 0; l < 16; ++l) lane[l] += a[i + l];
    for (int l = 0; l < 16; ++l) sum += lane[l];
    gradient.b[node] += sum;
  }
  return total;
}

}  // namespace hardwood::HARDWOOD_ISA
