// Greedy trees: every node gets the split that is best for its own rows.
//
// Breiman, Friedman, Olshen, Stone. Classification and regression trees. 1984. (axis)
// Murthy, Kasif, Salzberg. A system for induction of oblique decision trees. JAIR 1994. (OC1)
// Norouzi, Collins, Fleet, Kohli. CO2 forest. arXiv:1506.06155, 2015. (CO2)
//
// A tree grows level by level. Splits are tried independently and compared in a fixed order, so the
// tree does not depend on the number of threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "learn/loop/training.hpp"

namespace hardwood {

// How splits are searched.
enum class Search { kAxis, kRandom, kOc1, kCo2 };

// The impurity that a split should lower: of classes (one label per row), several binary labels, or
// numbers.
enum class Measure { kClassEntropy, kClassGini, kLabelEntropy, kLabelGini, kVariance };

inline bool has_classes(Measure measure) {
  return measure == Measure::kClassEntropy || measure == Measure::kClassGini;
}

struct Co2Options {
  std::vector<float> nu;  // largest squared norms of a split's weights and bias, to be tried
  float learning_rate = 0.3f;
  float momentum = 0.9f;
  int batch_size = 128;
  int max_epochs = 100;
  int max_steps = 10000;  // this many batches, and at least one epoch
};

struct GreedyOptions {
  Search search = Search::kAxis;
  Measure measure = Measure::kClassEntropy;
  int max_depth = 6;
  double min_samples_split = 2;         // by count; up to 2: no limit
  double min_samples_leaf = 1;          // by count; up to 1: no limit
  double min_weight_fraction_leaf = 0;  // of the weight of all rows
  double min_impurity_decrease = 0;     // of the whole tree's mean impurity
  int n_candidates = 64;                // random: directions tried at a node
  int n_split_restarts = 5;             // OC1: starts, the first of which is the best axis split
  int n_jumps = 5;                      // OC1: random directions tried if no coordinate helps
  int n_coordinates = 50;               // OC1: coordinates tried in a pass
  int max_sweeps = 10;                  // OC1: passes per start
  Co2Options co2;
};

struct SplitTerm {
  int column = 0;  // in the engine's order
  float weight = 0;
};

struct GreedySplit {
  std::vector<SplitTerm> terms;
  float bias = 0;
};

struct GreedyTree {
  std::vector<GreedySplit> splits;                    // level by level
  std::vector<std::array<std::int32_t, 2>> children;  // a split, or leaf l as -1 - l
  std::vector<std::int32_t> leaf;                     // of each training row, in their order
  int n_leaves = 0;
  bool interrupted = false;  // the nodes that were not split yet are leaves
};

// Grows a tree on the training rows. `count` (n,) is what each row counts for min_samples_*.
GreedyTree grow_greedy(const Problem& problem, const double* count, const GreedyOptions& options,
                       std::uint64_t seed, int n_threads, const std::atomic<bool>& stop);

}  // namespace hardwood
