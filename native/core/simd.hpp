// Vectors of the widest registers this translation unit may use, by the compilers' vector
// extension.
//
// The kernels are compiled once per instruction set (see kernels.cpp); everything in here lives in
// a namespace of that set, and nothing here may call a standard-library template: such a function
// would be emitted with this unit's instructions and could be the copy the linker keeps for all.
#pragma once

#include <cstdint>

#ifdef __AVX__
#include <immintrin.h>
#endif

#include "core/matrix.hpp"

namespace hardwood::HARDWOOD_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

template <int N>
struct VectorOf {
  typedef float type __attribute__((vector_size(4 * N), aligned(4), may_alias));
};
template <int N>
using Vector = typename VectorOf<N>::type;

template <int N>
HARDWOOD_INLINE Vector<N> load(const float* p) {
  return *reinterpret_cast<const Vector<N>*>(p);
}
template <int N>
HARDWOOD_INLINE void store(float* p, Vector<N> v) {
  *reinterpret_cast<Vector<N>*>(p) = v;
}
template <int N>
HARDWOOD_INLINE Vector<N> broadcast(float value) {
  return value - Vector<N>{};
}

// The first `count` floats at p, zeros after them; nothing beyond is touched. 0 <= count <= 8.
HARDWOOD_INLINE Vector<8> load_first(const float* p, int count) {
#if defined(__AVX__)
  alignas(32) static constexpr std::int32_t kMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                          0,  0,  0,  0,  0,  0,  0,  0};
  return _mm256_maskload_ps(
      p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMasks + 8 - count)));
#else
  Vector<8> v{};
  for (int i = 0; i < count; ++i) v[i] = p[i];
  return v;
#endif
}

// Bit l is set where lane l is >= 0 (not where it is NaN).
HARDWOOD_INLINE unsigned non_negative(Vector<8> v) {
#if defined(__AVX__)
  return static_cast<unsigned>(
      _mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_GE_OQ)));
#else
  unsigned mask = 0;
  for (int l = 0; l < 8; ++l) mask |= static_cast<unsigned>(v[l] >= 0) << l;
  return mask;
#endif
}

// a . b of rows that are padded with zeros to n floats, whole vectors of eight: in 32 running sums,
// whatever the width of the registers.
HARDWOOD_INLINE float padded_dot(const float* a, const float* b, std::ptrdiff_t n) {
  Vector<8> sums[4] = {};
  std::ptrdiff_t j = 0;
  for (; j + 32 <= n; j += 32)
    for (int s = 0; s < 4; ++s) sums[s] += load<8>(a + j + 8 * s) * load<8>(b + j + 8 * s);
  for (; j < n; j += 8) sums[0] += load<8>(a + j) * load<8>(b + j);
  const Vector<8> sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

template <class T>
HARDWOOD_INLINE T min_of(T a, T b) {
  return a < b ? a : b;
}
template <class T>
HARDWOOD_INLINE T max_of(T a, T b) {
  return a > b ? a : b;
}

}  // namespace hardwood::HARDWOOD_ISA
