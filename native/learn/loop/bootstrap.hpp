// Bootstrap samples: how often each row is drawn, with replacement, for one tree of a forest.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/random.hpp"

namespace hardwood {

// A stream that no training run uses: runs number their epochs up from zero.
inline constexpr std::uint32_t kBootstrapStream = 0xFFFFFFFFu;

// Incomplete if `stop` is set meanwhile.
inline std::vector<std::uint32_t> bootstrap_counts(std::size_t n_rows, std::size_t n_draws,
                                                   std::uint64_t seed, int member,
                                                   const std::atomic<bool>* stop = nullptr) {
  constexpr std::size_t kLook = 1 << 16;  // draws between looks at `stop`
  Random random(seed, static_cast<std::uint64_t>(member) << 32 | kBootstrapStream);
  std::vector<std::uint32_t> counts(n_rows);
  for (std::size_t i = 0; i < n_draws; ++i) {
    ++counts[random.below(n_rows)];
    if (stop && i % kLook == 0 && *stop) break;
  }
  return counts;
}

}  // namespace hardwood
