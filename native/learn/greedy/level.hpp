// One level of a growing tree: its nodes, their rows side by side, and their splits.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "learn/greedy/data.hpp"
#include "learn/greedy/impurity.hpp"

namespace hardwood {

// Rows first, ..., last - 1 of the level; which node of the tree it is does not matter here.
struct LevelNode {
  int first = 0, last = 0;
  std::uint64_t number = 0;    // in the whole tree, by which random numbers are drawn
  std::vector<double> totals;  // sums of its rows
  double count = 0;

  int size() const { return last - first; }
};

struct Level {
  const GreedyData& data;
  const GreedyOptions& options;
  std::vector<std::int32_t> row;  // (n,) row of the data
  RowTargets targets;             // in the same order
  std::uint64_t seed = 0;
  int n_threads = 1;
  const std::atomic<bool>& stop;

  double least_weight = 0;  // of a leaf

  // Whether both sides of a split have enough rows.
  bool allows(const Sides& sides, const LevelNode& node) const {
    const double count = sides.left_count(), weight = sides.left_weight(),
                 least = options.min_samples_leaf;
    return (least <= 1 || (count >= least && node.count - count >= least)) &&
           weight >= least_weight && node.totals[0] - weight >= least_weight;
  }
};

inline constexpr double kNoWorth = -std::numeric_limits<double>::infinity();

// A split on one column: right from `threshold` on.
struct AxisSplit {
  double worth = kNoWorth;
  int column = -1;
  std::uint32_t rank = 0;  // of the first value on the right
  float threshold = 0;
  int missing_side = -1;  // 0 left, 1 right, -1 where no entry was missing

  bool found() const { return column >= 0; }
};

GreedySplit split_of(const GreedyData& data, const AxisSplit& axis);

bool goes_right(const GreedyData& data, const AxisSplit& axis, std::int32_t row);

// A hyperplane: right where weights . x + bias >= 0.
struct ObliqueSplit {
  double worth = kNoWorth;
  std::vector<float> weights;  // (columns,)
  float bias = 0;

  bool found() const { return !weights.empty(); }
};

// For each node the best split on one column; the first of equally good ones. Sets `varies` (nodes,
// columns), if not null, to 1 for columns that are not constant there.
std::vector<AxisSplit> search_axis(const Level& level, std::span<const LevelNode> nodes,
                                   std::vector<std::uint8_t>* varies = nullptr);

// The best of n_candidates random directions, each with its best threshold.
std::vector<ObliqueSplit> search_random(const Level& level, std::span<const LevelNode> nodes);

// OC1, started from the axis splits; no split if it did not find a better one.
std::vector<ObliqueSplit> search_oc1(const Level& level, std::span<const LevelNode> nodes,
                                     std::span<const AxisSplit> axis,
                                     const std::vector<std::uint8_t>& varies);

// CO2, likewise.
std::vector<ObliqueSplit> search_co2(const Level& level, const Problem& problem,
                                     std::span<const LevelNode> nodes,
                                     std::span<const AxisSplit> axis);

// The best split along a direction, of norm 1 and in floats; none if the direction is zero.
ObliqueSplit along(const Level& level, const LevelNode& node, const std::vector<double>& direction);

// Scores of a node's rows: weights . x for each of n_directions (multiple of 8) columns of B
// (columns, n_directions), to out (n_directions, size).
void project(const Level& level, const LevelNode& node, const float* B, int n_directions,
             float* out);

// Weights (columns,) . x of a node's rows.
void project_one(const Level& level, const LevelNode& node, const float* weights, float* out);

// Finds the best threshold along given scores of a node's rows.
class ThresholdSearch {
 public:
  ThresholdSearch(const Level& level, const LevelNode& node)
      : level_(level), node_(node), sides_(level.targets) {}
  struct Best {
    double worth = kNoWorth;
    float threshold = 0;
  };
  Best search(const float* scores);

 private:
  const Level& level_;
  const LevelNode& node_;
  Sides sides_;
  std::vector<std::uint64_t> keys_, spare_;
};

// A number t with low < t <= high, in the middle if there is one.
inline float between(float low, float high) {
  const auto middle = static_cast<float>(0.5 * low + 0.5 * high);
  return middle > low && middle <= high ? middle : high;
}

}  // namespace hardwood
