// Losses over a tile of samples: value, and gradient by the prediction. Compiled for each
// instruction set.
//
// Arrays are output-major, (k, stride) with the samples side by side, so that loops run over
// samples. Losses of several outputs are means over the outputs. The gradient of a sample is
// multiplied by its entry of `factor` (weight over batch size), the value summed with `weight`.
// NumPy reference: tests/reference/losses.py.
#pragma once

#include "core/objective.hpp"
#include "core/simd.hpp"

namespace hardwood::HARDWOOD_ISA {

// e^x with a relative error of 1e-7; |x| is clipped at 87. It has no branch, so it vectorizes.
HARDWOOD_INLINE float exponential(float x) {
  x = x > 87.0f ? 87.0f : x < -87.0f ? -87.0f : x;
  const float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float n = (x * 1.44269504f + shift) - shift;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  return p * __builtin_bit_cast(float, (static_cast<std::int32_t>(n) + 127) << 23);
}

// `of(f, y)` gives {value, derivative} of one output.
struct ValueAndSlope {
  float value, slope;
};

HARDWOOD_INLINE float sigmoid(float x) {
  return 1.0f / (1.0f + exponential(-x));
}

template <class Of>
inline double elementwise_loss(const LossTile& t, float factor, Of&& of) {
  const float share = 1.0f / static_cast<float>(t.n_outputs);
  double total = 0;
  for (int k = 0; k < t.n_outputs; ++k) {
    const float* __restrict f = t.prediction + k * t.stride;
    const float* __restrict y = t.target + k * t.stride;
    float* __restrict g = t.gradient + k * t.stride;
    float lane[16] = {};
    for (int i = 0; i < t.stride; i += 16)
      for (int l = 0; l < 16; ++l) {
        const ValueAndSlope of_one = of(f[i + l], y[i + l]);
        lane[l] += t.weight[i + l] * of_one.value;
        g[i + l] = factor * share * t.weight[i + l] * of_one.slope;
      }
    for (int l = 0; l < 16; ++l) total += lane[l];
  }
  return total * share;
}

inline double cross_entropy(const LossTile& t, float factor) {
  double total = 0;
  for (int i = 0; i < t.stride; i += 16) {
    float top[16], sum[16] = {}, at_target[16] = {};
    for (int l = 0; l < 16; ++l) top[l] = t.prediction[i + l];
    for (int k = 1; k < t.n_outputs; ++k)
      for (int l = 0; l < 16; ++l) top[l] = max_of(top[l], t.prediction[k * t.stride + i + l]);
    const float* y = t.target + i;
    for (int k = 0; k < t.n_outputs; ++k) {
      const float* f = t.prediction + k * t.stride + i;
      float* g = t.gradient + k * t.stride + i;
      for (int l = 0; l < 16; ++l) {
        const float e = exponential(f[l] - top[l]);
        sum[l] += e;
        g[l] = e;
        at_target[l] = y[l] == static_cast<float>(k) ? f[l] : at_target[l];
      }
    }
    const float* w = t.weight + i;
    float scale[16];
    for (int l = 0; l < 16; ++l) scale[l] = factor * w[l];
    for (int k = 0; k < t.n_outputs; ++k) {
      float* g = t.gradient + k * t.stride + i;
      for (int l = 0; l < 16; ++l)
        g[l] = scale[l] * (g[l] / sum[l] - (y[l] == static_cast<float>(k) ? 1.0f : 0.0f));
    }
    for (int l = 0; l < 16; ++l)
      if (w[l] != 0) total += w[l] * (top[l] + __builtin_logf(sum[l]) - at_target[l]);
  }
  return total;
}

// Losses of classes coded as 1 and -1: `of(f, code)` of one class, summed over the classes.
HARDWOOD_INLINE ValueAndSlope hinge(float f, float code) {
  const float short_by = 1.0f - code * f;
  return short_by > 0 ? ValueAndSlope{short_by, -code} : ValueAndSlope{0.0f, 0.0f};
}
HARDWOOD_INLINE ValueAndSlope squared_code(float f, float code) {
  return {(f - code) * (f - code), 2.0f * (f - code)};
}

template <class Of>
inline double coded_loss(const LossTile& t, float factor, Of&& of) {
  double total = 0;
  for (int k = 0; k < t.n_outputs; ++k) {
    const float* f = t.prediction + k * t.stride;
    float* g = t.gradient + k * t.stride;
    float lane[16] = {};
    for (int i = 0; i < t.stride; i += 16)
      for (int l = 0; l < 16; ++l) {
        const float code = t.target[i + l] == static_cast<float>(k) ? 1.0f : -1.0f;
        const ValueAndSlope of_one = of(f[i + l], code);
        lane[l] += t.weight[i + l] * of_one.value;
        g[i + l] = factor * t.weight[i + l] * of_one.slope;
      }
    for (int l = 0; l < 16; ++l) total += lane[l];
  }
  return total;
}

// Losses of the action taken: the other outputs have no gradient.
template <class Of>
inline double action_loss(const LossTile& t, float factor, Of&& of) {
  for (std::ptrdiff_t i = 0; i < t.n_outputs * t.stride; ++i) t.gradient[i] = 0.0f;
  double total = 0;
  for (std::ptrdiff_t i = 0; i < t.stride; ++i) {
    if (t.weight[i] == 0) continue;
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(t.target[i]) * t.stride + i;
    const ValueAndSlope of_one = of(t.prediction[at], t.target[t.stride + i]);
    total += static_cast<double>(t.weight[i]) * of_one.value;
    t.gradient[at] = factor * t.weight[i] * of_one.slope;
  }
  return total;
}

// Calls then(of) with the loss of one output, of(f, y) -> ValueAndSlope; all of these are convex in f.
template <class Then>
HARDWOOD_INLINE double with_elementwise(Loss loss, float parameter, Then&& then) {
  switch (loss) {
    case Loss::kSquared:
      return then(
          [](float f, float y) -> ValueAndSlope { return {(f - y) * (f - y), 2.0f * (f - y)}; });
    case Loss::kAbsolute:
      return then([](float f, float y) -> ValueAndSlope {
        return {__builtin_fabsf(f - y), f > y ? 1.0f : f < y ? -1.0f : 0.0f};
      });
    case Loss::kHuber:
      return then([delta = parameter](float f, float y) -> ValueAndSlope {
        const float r = f - y, size = __builtin_fabsf(r),
                    slope = r > delta    ? delta
                            : r < -delta ? -delta
                                         : r;
        return {size <= delta ? 0.5f * r * r : delta * (size - 0.5f * delta), slope};
      });
    case Loss::kQuantile:
      return then([level = parameter](float f, float y) -> ValueAndSlope {
        const float r = f - y;
        return {r < 0 ? -level * r : (1.0f - level) * r, r < 0   ? -level
                                                         : r > 0 ? 1.0f - level
                                                                 : 0.0f};
      });
    case Loss::kPoisson:
      return then([](float f, float y) -> ValueAndSlope {
        const float mean = exponential(f);
        return {mean - y * f, mean - y};
      });
    case Loss::kLogistic:
      return then([](float f, float y) -> ValueAndSlope {
        const float e = exponential(-__builtin_fabsf(f));
        const float probability = (f >= 0 ? 1.0f : e) / (1.0f + e);
        return {__builtin_logf(1.0f + e) + (f > 0 ? f : 0.0f) - y * f, probability - y};
      });
    case Loss::kCrossEntropy:
    case Loss::kHinge:
    case Loss::kSquaredCodes:
    case Loss::kActionSquared:
    case Loss::kActionSigmoid:
    case Loss::kCustom:
      break;
  }
  return 0.0;
}

// Weighted sum of the losses; gradients multiplied by `factor`. Samples beyond n must have weight
// zero.
inline double loss_and_gradient(Loss loss, float parameter, const LossTile& t, float factor) {
  switch (loss) {
    case Loss::kCrossEntropy:
      return cross_entropy(t, factor);
    case Loss::kHinge:
      return coded_loss(t, factor, [](float f, float code) { return hinge(f, code); });
    case Loss::kSquaredCodes:
      return coded_loss(t, factor, [](float f, float code) { return squared_code(f, code); });
    case Loss::kActionSquared:
      return action_loss(t, factor, [](float f, float r) -> ValueAndSlope {
        return {(f - r) * (f - r), 2.0f * (f - r)};
      });
    case Loss::kActionSigmoid:  // DGT's Eq. (8), with the loss 1 - r
      return action_loss(t, factor, [](float f, float r) -> ValueAndSlope {
        const float s = sigmoid(f);
        return {(s - r) * (s - r), 2.0f * (s - r) * s * (1.0f - s)};
      });
    default:
      return with_elementwise(loss, parameter,
                              [&](auto&& of) { return elementwise_loss(t, factor, of); });
  }
}

}  // namespace hardwood::HARDWOOD_ISA
