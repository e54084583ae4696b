// Row-major matrix views and aligned storage. A view owns nothing and is passed by value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hardwood {

#define HARDWOOD_INLINE [[gnu::always_inline]] inline

// Rows are padded to this many floats, so that a vector load never leaves its row.
inline constexpr int kRowPadding = 16;

constexpr int padded(int n) { return (n + kRowPadding - 1) / kRowPadding * kRowPadding; }

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
