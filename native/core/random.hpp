// A counter-based random generator: Philox4x32-10.
//
// Salmon, Moraes, Dror, Shaw. Parallel random numbers: as easy as 1, 2, 3. SC 2011.
//
// The n-th number of a stream is a pure function of (seed, stream, n): no state is shared, so the
// result of a computation does not depend on how it is spread over threads.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>

namespace hardwood {

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        stream_(stream) {}

  static std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                             std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * counter[0];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * counter[2];
      counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0],
                 static_cast<std::uint32_t>(p1),
                 static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1],
                 static_cast<std::uint32_t>(p0)};
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    return counter;
  }

  std::uint32_t bits() {
    if (used_ == 4) {
      block_ =
          philox({static_cast<std::uint32_t>(counter_), static_cast<std::uint32_t>(counter_ >> 32),
                  static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                 key_);
      ++counter_;
      used_ = 0;
    }
    return block_[used_++];
  }

  // Uniform in [0, 1), with float's 24 bits.
  float uniform() { return static_cast<float>(bits() >> 8) * 0x1p-24f; }

  float uniform(float low, float high) { return low + (high - low) * uniform(); }

  // Normal, of mean 0 and deviation 1: Box and Muller's transform, two numbers at a time.
  float normal() {
    if (has_other_) {
      has_other_ = false;
      return other_;
    }
    const float radius = std::sqrt(-2.0f * std::log(1.0f - uniform()));
    const float angle = 2.0f * std::numbers::pi_v<float> * uniform();
    other_ = radius * std::sin(angle);
    has_other_ = true;
    return radius * std::cos(angle);
  }

  // Uniform in {0, ..., n - 1}, n >= 1. The multiply-shift bias is below n / 2^64.
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t high = bits();
    const std::uint64_t word = high << 32 | bits();
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(word) * n >> 64);
  }

  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t stream_;
  std::uint64_t counter_ = 0;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
  float other_ = 0;
  bool has_other_ = false;
};

}  // namespace hardwood
