// The paths in a tree of rows that change feature by feature.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hardwood {

// Levels come in steps of this many.
inline constexpr int kLevelStep = 8;
// Maximum number of rows that move together.
inline constexpr int kMostMoving = 256;

// The paths of several rows in one tree, n_levels entries a row. A level below the end of a path
// holds the root and an infinite score.
struct Paths {
  int n_levels = 0;
  std::int32_t* nodes = nullptr;
  float* scores = nullptr;
  std::int32_t* n_splits = nullptr;  // (rows,)
  std::int32_t* leaf = nullptr;      // (rows,)
  float slack = 0;                   // what rounding errors may have added to a score
};

// A row that may have changed sides, at this level of its path first.
struct Doubt {
  std::int32_t row, level;
};

}  // namespace hardwood
