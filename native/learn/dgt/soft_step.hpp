// DGT with annealed routing: every decision is a sigmoid that sharpens while the tree is learned, the
// prediction is the mean over all leaves, and gradients are exact (Sec. 3.3, Table 7 (c)). With the
// product form this is PAT, the paper's probabilistic annealed tree. NumPy reference: tests/reference/dgt.py.
//
//   product  q_l = prod over the path of sigma(s a) or sigma(-s a)                      Eq. (2)
//            or the softmax over the leaves of s times this product              C.3.1
//   sum      q = softmax over the leaves of s sum_i S(i, l) u_i,  u = 2 sigma(s a) - 1    Eq. (4)
//
// Without that softmax, both are products of probabilities along the path: that of going right at a node is sigma(s a),
// or sigma(2 s u + log Z_R - log Z_L) with Z the partition functions of the two sides. The
// sharpness s applies to the softmax too; otherwise the prediction would remain a mean over leaves
// for every s.
#pragma once

#include "learn/dgt/step.hpp"

namespace hardwood::HARDWOOD_ISA {

HARDWOOD_INLINE float log_sum_exp(float x, float y) {
  const float larger = max_of(x, y);
  return larger + __builtin_log1pf(exponential(min_of(x, y) - larger));
}

// t.to_right of every node; t.below holds log Z on the way.
inline void route_softly(const DgtShape& shape, const DgtForm& form, DgtTile& t) {
  const std::ptrdiff_t n = t.tile;
  const float s = form.sharpness;
  const int first = shape.n_leaves() / 2 - 1;
  for (int node = shape.n_nodes() - 1; node >= 0; --node) {
    const float* a = t.score + node * n;
    float *right = t.to_right + node * n, *log_z = t.below + node * n;
    const float *zl = t.below + (2 * node + 1) * n, *zr = zl + n;
    for (int i = 0; i < n; ++i) {
      if (form.path != Path::kSum) {
        right[i] = sigmoid(s * a[i]);
        continue;
      }
      const float z = s * (2.0f * sigmoid(s * a[i]) - 1.0f);
      const float left_sum = (node >= first ? 0.0f : zl[i]) - z;
      const float right_sum = (node >= first ? 0.0f : zr[i]) + z;
      right[i] = sigmoid(right_sum - left_sum);
      log_z[i] = log_sum_exp(left_sum, right_sum);
    }
  }
}

// t.leaf_score = q_l: probabilities multiplied along each path, level by level.
inline void leaf_probabilities(const DgtShape& shape, DgtTile& t) {
  const std::ptrdiff_t n = t.tile;
  const int first = shape.n_leaves() / 2 - 1;
  for (int i = 0; i < n; ++i) t.below[i] = 1.0f;
  for (int node = 0; node < shape.n_nodes(); ++node) {
    const float *p = t.below + node * n, *right = t.to_right + node * n;
    float* left_child =
        node < first ? t.below + (2 * node + 1) * n : t.leaf_score + 2 * (node - first) * n;
    float* right_child = left_child + n;
    for (int i = 0; i < n; ++i) {
      right_child[i] = p[i] * right[i];
      left_child[i] = p[i] * (1.0f - right[i]);  // not p - p right, which loses small values
    }
  }
}

// t.leaf_score = softmax over the leaves of s t.leaf_score.
inline void softmax_of_leaves(const DgtShape& shape, float s, DgtTile& t) {
  const std::ptrdiff_t n = t.tile;
  float* __restrict largest = t.mean, * __restrict sum = t.below;
  for (int i = 0; i < n; ++i) largest[i] = sum[i] = 0.0f;
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf)
    for (int i = 0; i < n; ++i) largest[i] = max_of(largest[i], t.leaf_score[leaf * n + i]);
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf) {
    float* __restrict q = t.leaf_score + leaf * n;
    for (int i = 0; i < n; ++i) sum[i] += q[i] = exponential(s * (q[i] - largest[i]));
  }
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf)
    for (int i = 0; i < n; ++i) t.leaf_score[leaf * n + i] /= sum[i];
}

// f = sum_l q_l theta_l.
inline void predict_softly(const DgtShape& shape, const DgtForm& form, const Parameters<float>& p,
                           DgtTile& t) {
  route_softly(shape, form, t);
  leaf_probabilities(shape, t);
  if (form.path == Path::kProductSoftmax) softmax_of_leaves(shape, form.sharpness, t);
  gemm_transposed({p.leaves, shape.n_leaves(), shape.n_outputs, shape.n_outputs},
                  {t.leaf_score, shape.n_leaves(), t.tile, t.tile},
                  {t.prediction, shape.n_outputs, t.tile, t.tile}, Start::kZero);
}

// Gradient by theta: each leaf is pulled by its share (leaves, tile) in the prediction.
inline void accumulate_shared_leaves(const DgtShape& shape, const DgtTile& t, const float* share,
                                     float* d_theta) {
  const std::ptrdiff_t n = t.tile;
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf)
    for (int o = 0; o < shape.n_outputs; ++o) {
      const float *q = share + leaf * n, *slope = t.slope + o * n;
      d_theta[leaf * shape.n_outputs + o] +=
          lane_sum(t.tile, [&](int i) { return q[i] * slope[i]; });
    }
}

// The softmax after the product: t.leaf_value becomes the derivative by the leaf's product,
// s q_l (u_l - mean) for u_l = slope . theta_l.
inline void slope_of_softmax(const DgtShape& shape, float s, DgtTile& t) {
  const std::ptrdiff_t n = t.tile;
  for (int i = 0; i < n; ++i) t.mean[i] = 0.0f;
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf)
    for (int i = 0; i < n; ++i)
      t.mean[i] += t.leaf_score[leaf * n + i] * t.leaf_value[leaf * n + i];
  for (int leaf = 0; leaf < shape.n_leaves(); ++leaf)
    for (int i = 0; i < n; ++i)
      t.leaf_value[leaf * n + i] =
          s * t.leaf_score[leaf * n + i] * (t.leaf_value[leaf * n + i] - t.mean[i]);
}

// Replaces scores by their gradients: the probability of the node times the difference of its sides
// times the derivative of the decision.
inline void backward_scores_softly(const DgtShape& shape, const DgtForm& form,
                                   const Parameters<float>& p, DgtTile& t) {
  const std::ptrdiff_t n = t.tile;
  const float s = form.sharpness;
  const int first = shape.n_leaves() / 2 - 1;
  value_leaves(shape, p, t);
  if (form.path == Path::kProductSoftmax) slope_of_softmax(shape, s, t);
  const auto side = [&](int node) {
    return node < first ? t.below + (2 * node + 1) * n : t.leaf_value + 2 * (node - first) * n;
  };
  for (int node = shape.n_nodes() - 1; node >= 0; --node) {
    const float *vl = side(node), *vr = vl + n, *right = t.to_right + node * n;
    float* out = t.below + node * n;
    for (int i = 0; i < n; ++i) out[i] = vl[i] + right[i] * (vr[i] - vl[i]);
  }
  for (int i = 0; i < n; ++i) {
    t.mean[i] = t.below[i];
    t.below[i] = 1.0f;
  }
  for (int node = 0; node < shape.n_nodes(); ++node) {
    float *a = t.score + node * n, *vl = side(node), *vr = vl + n;
    const float *right = t.to_right + node * n, *probability = t.below + node * n;
    for (int i = 0; i < n; ++i) {
      const float sigma = sigmoid(s * a[i]), mean = t.mean[i], q = right[i], P = probability[i];
      const float slope = s * sigma * (1.0f - sigma);
      a[i] = form.path != Path::kSum
                 ? P * slope * (vr[i] - vl[i])
                 : P * 2.0f * s * slope * (q * (vr[i] - mean) - (1.0f - q) * (vl[i] - mean));
      vr[i] = P * q;
      vl[i] = P * (1.0f - q);
    }
  }
}

// Predictions of a tile from the scores, not from the router, so that they match the gradient of
// the same step.
inline void dgt_predict(const DgtShape& shape, const DgtForm& form, const Parameters<float>& p,
                        DgtTile& t) {
  node_scores(shape, p, t);
  if (form.routing == Routing::kAnnealed) return predict_softly(shape, form, p, t);
  descend(shape, t);
  predict_leaves(shape, p, t);
}

// Loss and gradients of one tile, added to `gradient` (W's overwritten when `first`).
// `slope_given`: t.slope was filled by the caller, for losses that live outside the engine.
inline double dgt_tile(const DgtShape& shape, const DgtForm& form, const Parameters<float>& p,
                       DgtTile& t, Loss loss, float parameter, float factor, bool slope_given,
                       bool first, const Parameters<float>& gradient) {
  dgt_predict(shape, form, p, t);
  double total = 0;
  if (!slope_given)
    total = loss_and_gradient(loss, parameter,
                              {shape.n_outputs, t.tile, t.prediction, t.target, t.weight, t.slope},
                              factor);
  if (form.routing == Routing::kAnnealed) {
    accumulate_shared_leaves(shape, t, t.leaf_score, gradient.leaves);
    backward_scores_softly(shape, form, p, t);
  } else {
    accumulate_leaves(shape, t, gradient);
    backward_scores(shape, form, p, t);
  }
  accumulate_splits(shape, t, first, gradient);
  return total;
}

}  // namespace hardwood::HARDWOOD_ISA
