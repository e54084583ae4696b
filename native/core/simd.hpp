// Vectors of the widest registers this translation unit may use, by the compilers' vector extension.
//
// The kernels are compiled once per instruction set (see kernels.cpp); everything in here lives in a
// namespace of that set, and nothing here may call a standard-library template: such a function would be
// emitted with this unit's instructions and could be the copy the linker keeps for all.
#pragma once

#include <cstdint>

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

template <class T>
HARDWOOD_INLINE T min_of(T a, T b) {
  return a < b ? a : b;
}
template <class T>
HARDWOOD_INLINE T max_of(T a, T b) {
  return a > b ? a : b;
}

}  // namespace hardwood::HARDWOOD_ISA
