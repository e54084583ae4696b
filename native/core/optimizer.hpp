// One step of an optimizer over a stretch of parameters, compiled for each instruction set.
//
// Order: clip the data's gradient, add the L2 term, move, then shrink by the proximal step of the
// L1 term, whose threshold is l1 times the coordinate's own step size; so weights reach exactly
// zero.
#pragma once

#include "core/objective.hpp"
#include "core/simd.hpp"

namespace hardwood::HARDWOOD_ISA {

HARDWOOD_INLINE float soft_threshold(float w, float threshold) {
  const float shrunk = __builtin_fabsf(w) - threshold;
  return shrunk > 0 ? __builtin_copysignf(shrunk, w) : 0.0f;
}

// Sixteen parameters without a gradient do not change. Skipping them saves the square roots and
// divisions, which take most of the time of this step.
inline bool rest(const float* __restrict g) {
  std::uint32_t bits = 0;
  for (int l = 0; l < 16; ++l) bits |= __builtin_bit_cast(std::uint32_t, g[l]);
  return (bits & 0x7fffffffu) == 0;
}

// v = alpha v + (1 - alpha) g^2;  buf = mu buf + g / (sqrt(v) + eps);  w -= lr buf
template <bool kMomentum>
inline void rmsprop(std::size_t n, float* __restrict w, const float* __restrict g,
                    float* __restrict v, float* __restrict buf, const StepOptions& o) {
  const float alpha = o.decay, share = 1.0f - o.decay, lr = o.learning_rate;
  const auto step = [&](std::size_t at) {
    const float gradient = o.gradient_factor * g[at] + o.l2 * w[at];
    v[at] = alpha * v[at] + share * gradient * gradient;
    const float root = __builtin_sqrtf(v[at]) + o.epsilon;
    float move = gradient / root;
    if constexpr (kMomentum) move = buf[at] = o.momentum * buf[at] + move;
    w[at] -= lr * move;
  };
  const bool may_rest = !kMomentum && o.l2 == 0;
  const std::size_t whole = n / 16 * 16;
  for (std::size_t first = 0; first < whole; first += 16) {
    if (may_rest && rest(g + first))
      for (int l = 0; l < 16; ++l) v[first + l] *= alpha;
    else
      for (int l = 0; l < 16; ++l) step(first + l);
  }
  for (std::size_t i = whole; i < n; ++i) step(i);
  if (o.l1 > 0)
    for (std::size_t i = 0; i < n; ++i)
      w[i] = soft_threshold(w[i], o.l1 * lr / (__builtin_sqrtf(v[i]) + o.epsilon));
}

// m = beta_1 m + (1 - beta_1) g;  v = beta_2 v + (1 - beta_2) g^2;  w -= lr m^ / (sqrt(v^) + eps)
inline void adam(std::size_t n, float* __restrict w, const float* __restrict g, float* __restrict v,
                 float* __restrict m, const StepOptions& o) {
  // Divides by the corrections once, not for every weight: divisions take most of the time of this
  // loop.
  const float rest = 1.0f - o.momentum, rest_of_squares = 1.0f - o.decay;
  const float length = o.learning_rate / o.first_correction, growth = 1.0f / o.second_correction;
  for (std::size_t i = 0; i < n; ++i) {
    const float gradient = o.gradient_factor * g[i] + o.l2 * w[i];
    m[i] = o.momentum * m[i] + rest * gradient;
    v[i] = o.decay * v[i] + rest_of_squares * gradient * gradient;
    w[i] -= length * m[i] / (__builtin_sqrtf(v[i] * growth) + o.epsilon);
  }
  if (o.l1 > 0)
    for (std::size_t i = 0; i < n; ++i)
      w[i] = soft_threshold(w[i],
                            o.l1 * o.learning_rate / (__builtin_sqrtf(v[i] * growth) + o.epsilon));
}

// buf = mu buf + g;  w -= lr buf
inline void sgd(std::size_t n, float* __restrict w, const float* __restrict g,
                float* __restrict buf, const StepOptions& o) {
  for (std::size_t i = 0; i < n; ++i) {
    buf[i] = o.momentum * buf[i] + (o.gradient_factor * g[i] + o.l2 * w[i]);
    w[i] -= o.learning_rate * buf[i];
  }
  if (o.l1 > 0)
    for (std::size_t i = 0; i < n; ++i) w[i] = soft_threshold(w[i], o.l1 * o.learning_rate);
}

inline void optimize(std::size_t n, float* w, const float* g, float* v, float* buf,
                     const StepOptions& o) {
  switch (o.optimizer) {
    case Optimizer::kSgd:
      return sgd(n, w, g, buf, o);
    case Optimizer::kRmsprop:
      return o.momentum > 0 ? rmsprop<true>(n, w, g, v, buf, o)
                            : rmsprop<false>(n, w, g, v, buf, o);
    case Optimizer::kAdam:
      return adam(n, w, g, v, buf, o);
  }
}

// Sum of squares in sixteen running sums, whatever the width of the vectors.
inline double squared_norm(std::size_t n, const float* g) {
  float lane[16] = {};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int l = 0; l < 16; ++l) lane[l] += g[i + l] * g[i + l];
  double sum = 0;
  for (; i < n; ++i) sum += static_cast<double>(g[i]) * g[i];
  for (int l = 0; l < 16; ++l) sum += lane[l];
  return sum;
}

}  // namespace hardwood::HARDWOOD_ISA
