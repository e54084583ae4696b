// One sweep of alternating optimization: every split of a tree is improved, given all others.
//
// A node only chooses a side, and this matters only for rows whose losses differ between the two
// sides. So a node is a two-class problem over those rows, weighted by the difference (the reduced
// problem, Theorem 3.2 of the paper). Nodes of one depth have no rows in common, so they are solved
// independently, and the result does not depend on the number of threads.
//
// A split is replaced if the reduced loss falls, or if it stays equal and the logistic loss falls.
// So the loss of the tree never rises, and equally good splits move away from the rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "learn/non_greedy/learner.hpp"
#include "learn/tao/tile.hpp"

namespace hardwood {

struct TaoOptions {
  std::vector<double> l1;  // strengths to try at every node, from the strongest
  double l2 = 0;
  double l0 = 0;                     // of a weight that is not zero, as a loss summed over rows
  int logistic_passes = 50;          // of one logistic regression over its rows
  double logistic_tolerance = 1e-4;  // of its objective
  int max_features = 0;              // that a split may weigh; 0: any number
  bool from_the_root = false;        // else the deepest nodes come first
  std::span<const std::int32_t> feature_of_column;  // (n_columns,)
};

struct TaoParameters {
  float* W = nullptr;            // (m, stride), changed
  float* b = nullptr;            // (m,), changed
  const float* theta = nullptr;  // (m + 1, k)
};

struct TaoSweepResult {
  int n_changed = 0;        // splits that lowered the objective
  double gain = 0;          // decrease of the objective, summed over rows
  std::int64_t passes = 0;  // of logistic regressions, rows counted: sum of passes times rows
};

// A tree, its leaves and its rows for a sweep. They must outlive it.
struct TaoView {
  LearnedTree tree;
  const TaoRows& rows;
  const TaoLeaves& leaves;
};

TaoView view_of(const TreeTopology& topology, const TaoRows& rows, const TaoLeaves& leaves,
                const TaoParameters& parameters);

// The rows at a node whose loss depends on the side.
struct ReducedProblem {
  std::vector<std::int32_t> rows;
  std::vector<float> sign;   // 1: the right side has the smaller loss, else -1
  std::vector<double> cost;  // of going to the other side
  double weight = 0;         // of the rows
  double total_cost = 0;
};

ReducedProblem reduced_problem(const TaoView& view, std::int32_t node,
                               std::span<const std::int32_t> rows_at_node, int n_threads);

// A threshold on scores: rows with at least the threshold go right.
struct Threshold {
  float at = 0;
  double loss = 0;  // reduced
  double gap = 0;   // between the scores next to it; 0 where all rows are on one side
};

// The threshold with the smallest reduced loss; among equals, the one in the widest gap. Scores are
// finite.
Threshold best_threshold(std::span<const float> score, const ReducedProblem& problem);

TaoSweepResult sweep_splits(const TreeTopology& topology, int n_columns, const TaoRows& rows,
                            const TaoLeaves& leaves, const TaoParameters& parameters,
                            const TaoOptions& options, int n_threads,
                            const std::atomic<bool>& stop);

// The leaf of every row.
std::vector<std::int32_t> leaves_of(const TreeTopology& topology, const TaoRows& rows,
                                    const float* W, const float* b, int n_threads);

}  // namespace hardwood
