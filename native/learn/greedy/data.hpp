// The training rows of greedy learners: columns as ranks for exact thresholds, and rows for oblique
// splits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/buffer.hpp"
#include "learn/loop/training.hpp"

namespace hardwood {

// Sorts by the upper 32 bits, of which `n_bytes` are used. Keeps the order of equal keys if the
// lower 32 bits increase.
inline void sort_by_upper_half(std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& spare,
                               int n_bytes) {
  if (keys.size() < 128) return std::sort(keys.begin(), keys.end());
  spare.resize(keys.size());
  for (int byte = 0; byte < n_bytes; ++byte) {
    const int shift = 32 + 8 * byte;
    std::uint32_t start[257] = {};
    for (const std::uint64_t key : keys) ++start[(key >> shift & 255) + 1];
    bool all_alike = false;
    for (int b = 1; b <= 256; ++b) {
      all_alike |= start[b] == keys.size();
      start[b] += start[b - 1];
    }
    if (all_alike) continue;
    for (const std::uint64_t key : keys) spare[start[key >> shift & 255]++] = key;
    keys.swap(spare);
  }
}

// Bits with the order of the floats; NaN is not allowed.
inline std::uint32_t ordered_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0f);  // -0 becomes 0
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

inline float from_ordered_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits & 0x80000000u ? bits & 0x7FFFFFFFu : ~bits);
}

// One encoded column: the rank of each row's value among the distinct ones.
class RankedColumn {
 public:
  std::vector<float> values;  // distinct, ascending
  int flag = -1;              // the missing indicator of this column

  // The rank of missing entries, after all others.
  std::uint32_t missing() const { return static_cast<std::uint32_t>(values.size()); }
  std::uint32_t rank(std::size_t row) const { return wide_.empty() ? narrow_[row] : wide_[row]; }
  // Calls use(array of ranks), of whichever type they are.
  template <class Use>
  decltype(auto) with_ranks(Use&& use) const {
    return wide_.empty() ? use(narrow_.data()) : use(wide_.data());
  }

  void rank_all(const std::vector<float>& column, const std::vector<bool>* is_missing);

 private:
  std::vector<std::uint16_t> narrow_;
  std::vector<std::uint32_t> wide_;  // only if 16 bits are too few
};

class GreedyData {
 public:
  // `with_rows`: also keeps the encoded rows, for oblique splits.
  GreedyData(const Problem& problem, bool with_rows, int n_threads);

  int n_rows() const { return n_rows_; }
  int n_columns() const { return static_cast<int>(columns_.size()); }
  const RankedColumn& column(int c) const { return columns_[c]; }
  const float* row(std::size_t i) const { return rows_.data() + i * stride_; }
  std::ptrdiff_t stride() const { return stride_; }

 private:
  void rank_columns(const Problem& problem, const Buffer<float>& rows, int n_threads);

  int n_rows_;
  std::ptrdiff_t stride_;
  std::vector<RankedColumn> columns_;
  Buffer<float> rows_;
};

}  // namespace hardwood
