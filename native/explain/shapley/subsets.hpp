// Shapley values by enumeration of all sets of features, for trees that weigh most features in most
// splits.
//
// The sets are the leaves of a tree of decisions, with one feature per level, whose branches are
// visited in the order of a Gray code: from set to set one feature changes. The contribution of a
// set to its features and to the others is passed up as in explain/shapley/path_enumeration.hpp, so
// that a set costs O(k).
#pragma once

#include <atomic>

#include "explain/shapley/perturbed_rows.hpp"

namespace hardwood {

// Memory and methods of one thread, for rows that change side by side.
class Subsets {
 public:
  // rows: at most kMostMoving. The rest as for PerturbedRows.
  Subsets(const Game& game, const std::vector<FeatureRow>& rows, const std::vector<float>& largest,
          const std::atomic<bool>& stop);

  // Adds the Shapley values against a background row, (rows, players, outputs). Takes time for
  // 2^players sets; ends early if `stop` is set.
  void add(const FeatureRow& z, double* values);

 private:
  void decide(std::size_t player, double n_x);
  void decide_as(std::size_t player, bool is_x, double n_x);
  void end(double n_x);
  double* sums_at(std::size_t level) { return sums_.data() + level * 2 * size_; }

  PerturbedRows rows_;
  const std::atomic<bool>& stop_;
  std::size_t size_;  // rows times outputs
  double* values_ = nullptr;
  std::vector<char> is_x_;        // (players,)
  std::vector<double> g_;         // (players + 1,) p! q! / (p + q)! for all sizes p of sets
  std::vector<double> at_start_;  // (rows, outputs) answers to z, from which others are counted
  std::vector<double> sums_;      // (players + 1, 2, rows, outputs): of v g / p, of v g / q
};

}  // namespace hardwood
