// Losses of leaves for loss-augmented inference: of one leaf, and bounds for all leaves of a
// subtree. Compiled for each instruction set.
//
// Losses of classes have a table, leaf by class, and of their maxima below each split. Losses of a
// single output are convex, so over an interval of theta they are largest at its ends: subtrees
// store the smallest and the largest theta of each output.
#pragma once

#include "core/loss.hpp"
#include "learn/non_greedy/tile.hpp"

namespace hardwood::HARDWOOD_ISA {

// Bound on the relative rounding error of a loss between the ends of an interval.
inline constexpr float kBoundSlack = 1e-5f;

HARDWOOD_INLINE float leaf_loss(const LearnedTree& tree, const LeafLosses& losses,
                                std::int32_t leaf, const float* y) {
  const int k = losses.n_outputs;
  if (losses.table)
    return losses.table[static_cast<std::ptrdiff_t>(leaf) * k + static_cast<int>(y[0])];
  const float* theta = tree.theta + static_cast<std::ptrdiff_t>(leaf) * k;
  return static_cast<float>(with_elementwise(losses.loss, losses.parameter, [&](auto&& of) {
    float total = 0;
    for (int o = 0; o < k; ++o) total += of(theta[o], y[o]).value;
    return static_cast<double>(total / static_cast<float>(k));
  }));
}

// An upper bound on the loss of every leaf below a node; for a leaf, its loss.
HARDWOOD_INLINE float loss_bound(const LearnedTree& tree, const LeafLosses& losses,
                                 std::int32_t node, const float* y) {
  if (node < 0) return leaf_loss(tree, losses, ~node, y);
  const int k = losses.n_outputs;
  if (losses.table)
    return losses.bounds[static_cast<std::ptrdiff_t>(node) * k + static_cast<int>(y[0])];
  const float *low = losses.bounds + static_cast<std::ptrdiff_t>(node) * 2 * k, *high = low + k;
  return static_cast<float>(with_elementwise(losses.loss, losses.parameter, [&](auto&& of) {
    float total = 0, size = 0;
    for (int o = 0; o < k; ++o) {
      const float largest = max_of(of(low[o], y[o]).value, of(high[o], y[o]).value);
      total += largest;
      size += __builtin_fabsf(largest);
    }
    return static_cast<double>((total + kBoundSlack * size) / static_cast<float>(k));
  }));
}

// --- sixteen numbers at a time, written out, because compilers handle the rest as scalars ---

typedef Vector<16> Sixteen;
typedef std::int32_t WholeSixteen __attribute__((vector_size(64), aligned(4), may_alias));

// `exponential` of sixteen numbers.
HARDWOOD_INLINE Sixteen exponential(Sixteen x) {
  const Sixteen most = broadcast<16>(87.0f);
  x = x > most ? most : x;
  x = x < -most ? -most : x;
  const Sixteen n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const Sixteen r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Sixteen p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  return p * reinterpret_cast<Sixteen>((__builtin_convertvector(n, WholeSixteen) + 127) << 23);
}

// The first `count` numbers at p, all sixteen where there are more, and `other` after them.
HARDWOOD_INLINE Sixteen some_of(const float* p, int count, float other) {
#if defined(__AVX512F__)
  const unsigned mask = count >= 16 ? 0xffffu : count <= 0 ? 0u : (1u << count) - 1;
  return _mm512_mask_loadu_ps(_mm512_set1_ps(other), static_cast<__mmask16>(mask), p);
#else
  if (count >= 16) return load<16>(p);
  float part[16];
  for (int l = 0; l < 16; ++l) part[l] = l < count ? p[l] : other;
  return load<16>(part);
#endif
}

// Writes the first `count` lanes, or all.
HARDWOOD_INLINE void put_some(float* p, int count, Sixteen v) {
#if defined(__AVX512F__)
  const unsigned mask = count >= 16 ? 0xffffu : (1u << count) - 1;
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>(mask), v);
#else
  if (count >= 16) return store<16>(p, v);
  for (int l = 0; l < count; ++l) p[l] = v[l];
#endif
}

// All lanes by `of` of two, in pairs.
template <class Of>
HARDWOOD_INLINE float folded(Sixteen v, Of&& of) {
  float part[16];
  store<16>(part, v);
  const Vector<8> eight = of(load<8>(part), load<8>(part + 8));
  store<8>(part, eight);
  const Vector<4> four = of(load<4>(part), load<4>(part + 4));
  return of(of(four[0], four[2]), of(four[1], four[3]));
}

// Calls then(of) with a loss of coded classes, of(f, code).
template <class Then>
HARDWOOD_INLINE void with_code_loss(Loss loss, Then&& then) {
  if (loss == Loss::kHinge)
    then([](float f, float code) { return hinge(f, code); });
  else
    then([](float f, float code) { return squared_code(f, code); });
}

// Loss of one leaf for every class; cross-entropy: Eq. (2) of the non-greedy paper.
inline void class_losses(Loss loss, int k, const float* __restrict theta, float* __restrict out) {
  if (loss != Loss::kCrossEntropy) {
    with_code_loss(loss, [&](auto&& of) {
      float total = 0;  // as if no class were the row's own
      for (int c = 0; c < k; ++c) total += of(theta[c], -1.0f).value;
      for (int c = 0; c < k; ++c)
        out[c] = total + (of(theta[c], 1.0f).value - of(theta[c], -1.0f).value);
    });
    return;
  }
  Sixteen tops = broadcast<16>(theta[0]), sums{};
  for (int c = 0; c < k; c += 16) {
    const Sixteen f = some_of(theta + c, k - c, theta[0]);
    tops = f > tops ? f : tops;
  }
  const float top = folded(tops, [](auto x, auto y) { return x > y ? x : y; });
  for (int c = 0; c < k; c += 16)  // beyond k: so small that it does not change a sum of 1 or more
    sums += exponential(some_of(theta + c, k - c, top - 100.0f) - top);
  const float log_sum = top + __builtin_logf(folded(sums, [](auto x, auto y) { return x + y; }));
  for (int c = 0; c < k; c += 16) put_some(out + c, k - c, log_sum - some_of(theta + c, k - c, 0));
}

// Adds the derivative of a leaf's losses by its theta, those of class c `mass[c]` times. `losses` is
// what class_losses made of theta.
inline void add_class_slopes(Loss loss, int k, const float* __restrict theta,
                             const float* __restrict losses, const float* __restrict mass,
                             float* __restrict slope) {
  Sixteen totals{};
  for (int c = 0; c < k; c += 16) totals += some_of(mass + c, k - c, 0);
  const float total = folded(totals, [](auto x, auto y) { return x + y; });
  if (loss == Loss::kCrossEntropy) {
    for (int c = 0; c < k; c += 16) {
      const Sixteen p = exponential(-some_of(losses + c, k - c, 0));
      put_some(slope + c, k - c,
               some_of(slope + c, k - c, 0) + (total * p - some_of(mass + c, k - c, 0)));
    }
    return;
  }
  with_code_loss(loss, [&](auto&& of) {
    for (int c = 0; c < k; ++c)
      slope[c] +=
          mass[c] * of(theta[c], 1.0f).slope + (total - mass[c]) * of(theta[c], -1.0f).slope;
  });
}

// Adds factor times the derivative of a leaf's loss by its theta.
inline void add_leaf_slope(const LearnedTree& tree, const LeafLosses& losses, std::int32_t leaf,
                           const float* y, float factor, float* slope) {
  const int k = losses.n_outputs;
  const float* theta = tree.theta + static_cast<std::ptrdiff_t>(leaf) * k;
  if (losses.table && losses.loss != Loss::kCrossEntropy) {
    with_code_loss(losses.loss, [&](auto&& of) {
      for (int c = 0; c < k; ++c)
        slope[c] += factor * of(theta[c], c == static_cast<int>(y[0]) ? 1.0f : -1.0f).slope;
    });
    return;
  }
  if (losses.table) {
    const float* of_class = losses.table + static_cast<std::ptrdiff_t>(leaf) * k;
    for (int c = 0; c < k; ++c) slope[c] += factor * exponential(-of_class[c]);  // p_c
    slope[static_cast<int>(y[0])] -= factor;
    return;
  }
  const float share = factor / static_cast<float>(k);
  with_elementwise(losses.loss, losses.parameter, [&](auto&& of) {
    for (int o = 0; o < k; ++o) slope[o] += share * of(theta[o], y[o]).slope;
    return 0.0;
  });
}

}  // namespace hardwood::HARDWOOD_ISA
