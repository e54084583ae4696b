// Zeroed storage aligned to a cache line, so that rows padded to 16 floats load without splits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "core/matrix.hpp"

namespace hardwood {

template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size)
      : data_(static_cast<T*>(::operator new[](bytes(size), kAlignment))), size_(size) {
    std::fill_n(data_.get(), size, T{});
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  static std::size_t bytes(std::size_t size) {
    if (size > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return size * sizeof(T);
  }
  struct Free {
    void operator()(T* p) const { ::operator delete[](p, kAlignment); }
  };
  std::unique_ptr<T[], Free> data_;
  std::size_t size_ = 0;
};

}  // namespace hardwood
