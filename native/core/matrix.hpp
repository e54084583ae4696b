// Row-major matrix views. A view owns nothing and is passed by value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hardwood {

#define HARDWOOD_INLINE [[gnu::always_inline]] inline

constexpr int rounded_up(int n, int step) {
  return (n + step - 1) / step * step;
}

// Rows are padded to whole vectors of eight floats, so that a vector load never leaves its row.
constexpr int padded(int n) {
  return rounded_up(n, 8);
}

// Arrays with samples side by side are padded to this many samples, on every instruction set.
inline constexpr int kTileStep = 16;

template <class T>
struct Matrix {
  T* data = nullptr;
  int rows = 0;
  int cols = 0;
  std::ptrdiff_t stride = 0;  // elements from one row to the next

  HARDWOOD_INLINE T* row(std::ptrdiff_t i) const { return data + i * stride; }
  HARDWOOD_INLINE operator Matrix<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data, rows, cols, stride};
  }
};

}  // namespace hardwood
