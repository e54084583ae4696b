// Alternating optimization of trees, for rows. Compiled for each instruction set.
//
// Carreira-Perpinan, Tavallali. Alternating Optimization of Decision Trees, with Application to
// Learning Sparse Oblique Trees. NeurIPS 2018.
//
// NumPy reference: tests/reference/tao.py. What other code calls is sweep.hpp.
#pragma once

#include "learn/non_greedy/step.hpp"
#include "learn/tao/tile.hpp"

namespace hardwood::HARDWOOD_ISA {

// w x of some rows, rounded as in routing, so that a threshold between two scores separates them in
// routing too.
inline void score_rows(const float* w, const TaoRows& rows, const std::int32_t* which, int n,
                       float* out) {
  const float zero = 0;
  LearnedTree split;
  split.W = w;
  split.b = &zero;
  split.stride = rows.stride;
  for (int i = 0; i < n; ++i) out[i] = split_score(split, 0, rows.X + which[i] * rows.stride);
}

// The loss of a row at a linear leaf; `f` has space for 2 k floats.
inline float linear_leaf_loss(const LearnedTree& tree, const TaoLeaves& leaves, std::int32_t leaf,
                              const float* x, const float* y, float* f) {
  const int k = leaves.losses.n_outputs;
  LearnedTree scored;
  scored.stride = tree.stride;
  scored.W = leaves.A + static_cast<std::ptrdiff_t>(leaf) * k * tree.stride;
  scored.b = tree.theta + static_cast<std::ptrdiff_t>(leaf) * k;
  for (int o = 0; o < k; ++o) f[o] = split_score(scored, o, x);
  if (has_class_target(leaves.losses.loss)) {
    class_losses(leaves.losses.loss, k, f, f + k);
    return f[k + static_cast<int>(y[0])];
  }
  scored.theta = f;
  return leaf_loss(scored, leaves.losses, 0, y);
}

// Losses of some rows if they started at a node and followed the tree from there.
inline void losses_below(const LearnedTree& tree, const TaoLeaves& leaves, std::int32_t node,
                         const TaoRows& rows, const std::int32_t* which, int n, float* scratch,
                         float* out) {
  for (int i = 0; i < n; ++i) {
    const float* x = rows.X + which[i] * rows.stride;
    const float* y = rows.target + static_cast<std::ptrdiff_t>(which[i]) * rows.n_targets;
    const std::int32_t leaf = natural_leaf(tree, node, x);
    out[i] = leaves.A ? linear_leaf_loss(tree, leaves, leaf, x, y, scratch)
                      : leaf_loss(tree, leaves.losses, leaf, y);
  }
}

// Number of rows scored together, so that their dot products hide each other's latency.
inline constexpr int kTogether = 8;

template <int R>
HARDWOOD_INLINE void dots(const float* X, std::ptrdiff_t stride, const float* w, float* out) {
  Vector<kLanes> sum[R] = {};
  for (std::ptrdiff_t j = 0; j < stride; j += kLanes) {
    const Vector<kLanes> v = load<kLanes>(w + j);
    for (int r = 0; r < R; ++r) sum[r] += v * load<kLanes>(X + r * stride + j);
  }
  for (int r = 0; r < R; ++r) {
    float total = 0;
    for (int l = 0; l < kLanes; ++l) total += sum[r][l];
    out[r] = total;
  }
}

template <int R>
HARDWOOD_INLINE void add_rows(const float* X, std::ptrdiff_t stride, const float* factor,
                              float* g) {
  for (std::ptrdiff_t j = 0; j < stride; j += kLanes) {
    Vector<kLanes> v = load<kLanes>(g + j);
    for (int r = 0; r < R; ++r) v += factor[r] * load<kLanes>(X + r * stride + j);
    store<kLanes>(g + j, v);
  }
}

// log(1 + e) for e in [0, 1], to 1e-7: 2 artanh(e / (2 + e)), without a branch.
HARDWOOD_INLINE float log_1_plus(float e) {
  const float z = e / (2.0f + e), q = z * z;
  float p = 1.0f / 13.0f;
  p = p * q + 1.0f / 11.0f;
  p = p * q + 1.0f / 9.0f;
  p = p * q + 1.0f / 7.0f;
  p = p * q + 1.0f / 5.0f;
  p = p * q + 1.0f / 3.0f;
  return 2.0f * z * (p * q + 1.0f);
}

// Replaces scores f of R rows by the derivatives of weight log(1 + exp(-sign f)); adds the values.
template <int R>
HARDWOOD_INLINE void logistic_slopes(const float* sign, const float* weight, float* f,
                                     double& value, double& slope) {
  float values[R];
  for (int r = 0; r < R; ++r) {
    const float m = sign[r] * f[r], e = exponential(-__builtin_fabsf(m)), s = 1.0f / (1.0f + e);
    values[r] = weight[r] * (log_1_plus(e) + (m < 0 ? -m : 0.0f));
    f[r] = -weight[r] * sign[r] * (m < 0 ? s : e * s);
  }
  for (int r = 0; r < R; ++r) {
    value += values[r];
    slope += f[r];
  }
}

template <int R>
HARDWOOD_INLINE void logistic_step(const LogisticRows& rows, int i, const float* w, float b,
                                   float* g, double& value, double& slope) {
  const float* X = rows.X + i * rows.stride;
  float f[R];
  dots<R>(X, rows.stride, w, f);
  for (int r = 0; r < R; ++r) f[r] += b;
  logistic_slopes<R>(rows.sign + i, rows.weight + i, f, value, slope);
  add_rows<R>(X, rows.stride, f, g);
}

// Sum of weight log(1 + exp(-sign (w x + b))) over the rows. Writes its gradient, (stride,) by w, and
// by b. Rows are read once.
inline double logistic_pass(const LogisticRows& rows, const float* w, float b, float* g,
                            double* slope) {
  for (std::ptrdiff_t j = 0; j < rows.stride; ++j) g[j] = 0;
  double value = 0;
  *slope = 0;
  int i = 0;
  for (; i + kTogether <= rows.n; i += kTogether)
    logistic_step<kTogether>(rows, i, w, b, g, value, *slope);
  for (; i < rows.n; ++i) logistic_step<1>(rows, i, w, b, g, value, *slope);
  return value;
}

}  // namespace hardwood::HARDWOOD_ISA
