// What arguments from Python must be. Every binding checks with these before the engine reads a
// value, so that a wrong call raises ValueError, and the same mistake is refused in the same words.
//
// Arrays must not be written to while a call reads them: checks come first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace hardwood {

inline constexpr int kMostThreads = 1024;  // as in hardwood.parameters
inline constexpr int kMany = 1 << 24;      // splits, columns, outputs or runs

// The message is made only when it is needed: these checks stand in loops over all entries.
inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

template <class T>
std::string shown(T value) {
  if constexpr (std::is_integral_v<T>) return std::to_string(value);
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", static_cast<double>(value));
  return text;
}

// A number in [low, high]; NaN is in no range.
template <class T>
T checked_range(const char* name, T value, std::type_identity_t<T> low,
                std::type_identity_t<T> high) {
  if (value >= low && value <= high) return value;
  throw std::invalid_argument(std::string(name) + " must lie between " + shown(low) + " and " +
                              shown(high) + ", got " + shown(value));
}

inline int checked_threads(int n_threads) {
  return checked_range("n_threads", n_threads, 1, kMostThreads);
}

// The size of an array's dimension, where the engine counts with 31 bits.
inline int checked_size(const char* name, std::size_t size) {
  constexpr std::size_t kMost =
      std::numeric_limits<std::int32_t>::max() - 4096;  // room to round up
  if (size <= kMost) return static_cast<int>(size);
  throw std::invalid_argument(std::string(name) + " has " + shown(size) + " entries, at most " +
                              shown(kMost) + " are possible");
}

// The number of entries of an array of this shape.
inline std::size_t checked_product(std::span<const std::size_t> shape) {
  std::size_t product = 1;
  for (const std::size_t n : shape)
    if (__builtin_mul_overflow(product, n, &product)) throw std::bad_array_new_length();
  return product;
}

template <class A>
auto entries(const A& array) {
  return std::span(array.data(), array.size());
}

// For what is checked once and read later, when the caller may have written to the array.
template <class A>
auto copied(const A& array) {
  using T = std::remove_const_t<std::remove_pointer_t<decltype(array.data())>>;
  return std::vector<T>(array.data(), array.data() + array.size());
}

template <class A>
void require_finite_entries(const char* name, const A& array) {
  for (const auto value : entries(array))
    if (!std::isfinite(value))
      throw std::invalid_argument(std::string(name) + " must be finite, found " + shown(value));
}

// NaN is a missing entry.
template <class A>
void require_no_infinity(const char* name, const A& array) {
  for (const auto value : entries(array))
    if (std::isinf(value)) throw std::invalid_argument(std::string(name) + " must not be infinite");
}

template <class A>
void require_positive(const char* name, const A& array) {
  for (const auto value : entries(array))
    if (!(value > 0 && std::isfinite(value)))
      throw std::invalid_argument(std::string(name) + " must be positive and finite, found " +
                                  shown(value));
}

template <class A>
void require_not_negative(const char* name, const A& array) {
  for (const auto value : entries(array))
    if (!(value >= 0 && std::isfinite(value)))
      throw std::invalid_argument(std::string(name) + " must be finite and not negative, found " +
                                  shown(value));
}

// Indices in [0, n).
template <class A>
void require_indices(const char* name, const A& array, std::int64_t n) {
  for (const auto index : entries(array))
    if (index < 0 || static_cast<std::int64_t>(index) >= n)
      throw std::invalid_argument(std::string(name) + " must lie between 0 and " + shown(n - 1) +
                                  ", found " + shown(index));
}

// Class indices, as the floats that targets are.
inline void require_class(float y, int n_classes) {
  require(y >= 0 && y < static_cast<float>(n_classes), "a class index is out of range");
}

}  // namespace hardwood
