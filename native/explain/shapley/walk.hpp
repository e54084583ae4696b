// Shapley values by antithetic permutation sampling.
//
// A walk goes from a background row z to the row x, changing one feature after the other, and
// another one from x to z in the same order, which visits the sets of the reversed order. The gain
// of the output in a step is credited to its feature, and so is the loss on the way back; every
// walk adds up to f(x) - f(z).
#pragma once

#include <atomic>

#include "explain/shapley/perturbed_rows.hpp"

namespace hardwood {

// Memory and methods of one thread, for rows that walk side by side.
class Walks {
 public:
  // rows: at most kMostMoving / 2. The rest as for PerturbedRows.
  Walks(const Game& game, const std::vector<FeatureRow>& rows, const std::vector<float>& largest,
        const std::atomic<bool>& stop);

  // Adds the Shapley values against a background row, (rows, players, outputs), and the estimated
  // variances of these. orders: (n_orders, players), permutations of the players. Ends early if
  // `stop` is set.
  void add(const FeatureRow& z, std::span<const std::int32_t> orders, double* values,
           double* variances);

 private:
  void walk(std::span<const std::int32_t> order);
  void credit(std::int32_t player);

  std::size_t n_;            // rows
  PerturbedRows perturbed_;  // those that go to x, then those that go to z
  const std::atomic<bool>& stop_;
  std::vector<double> gain_, first_, sum_, squares_;  // (rows, players, outputs)
};

}  // namespace hardwood
