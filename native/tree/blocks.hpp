// Blocks of rows: each is encoded once and goes through all trees while it is in cache.
#pragma once

#include <algorithm>
#include <vector>

#include "core/kernels.hpp"
#include "core/threads.hpp"

namespace hardwood {

// Rows per block: what a second-level cache holds; more if trees are large, because every block
// reads every tree once; fewer if a thread would otherwise have none. stride: floats from one
// encoded row to the next; n_splits: of the largest tree.
inline int block_rows(std::ptrdiff_t stride, int n_splits, std::int64_t n_rows, int n_threads) {
  constexpr std::int64_t kFloats = 1 << 17, kMostFloats = 1 << 20, kRowsPerSplit = 16;
  constexpr std::int64_t kFewestRows = 8, kFewestPerThread = 64;
  const std::int64_t in_cache = std::min<std::int64_t>(kFloats / stride, 2048);
  const std::int64_t for_splits =
      std::min<std::int64_t>(kRowsPerSplit * n_splits, kMostFloats / stride);
  const std::int64_t wanted = std::max({in_cache, for_splits, kFewestRows});
  const std::int64_t share = std::max((n_rows + n_threads - 1) / n_threads, kFewestPerThread);
  return static_cast<int>(std::min({wanted, share, n_rows}));
}

// Calls task(block, first, n, bad) for all blocks of `rows` rows; returns the first bad entry.
// make_block() allocates the memory of a block, which is reused for the following blocks.
template <class MakeBlock, class Task>
BadEntry in_blocks(int rows, std::int64_t n_rows, int n_threads, MakeBlock&& make_block,
                   Task&& task) {
  const std::int64_t n_blocks = rows ? (n_rows + rows - 1) / rows : 0;
  // A few tasks per thread, so that no thread waits long for the last task; each has memory for a
  // block.
  const std::int64_t n_tasks = std::min<std::int64_t>(n_blocks, 8 * std::int64_t{n_threads});
  std::vector<BadEntry> bad(n_tasks);
  parallel_for(static_cast<int>(n_tasks), n_threads, [&](int t) {
    auto block = make_block();
    for (std::int64_t b = t * n_blocks / n_tasks; b < (t + 1) * n_blocks / n_tasks; ++b) {
      const std::int64_t first = b * rows;
      task(block, first, static_cast<int>(std::min<std::int64_t>(rows, n_rows - first)), bad[t]);
      if (bad[t].feature >= 0) return;
    }
  });
  const auto found =
      std::find_if(bad.begin(), bad.end(), [](const BadEntry& b) { return b.feature >= 0; });
  return found == bad.end() ? BadEntry{} : *found;
}

}  // namespace hardwood
