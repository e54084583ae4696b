// Shapley values by antithetic permutation sampling.
//
// A walk goes from a background row z to the row x, changing one feature after the other, and back
// in the same order, which visits the sets of the reversed order. What the answer gains in a step is
// credited to its feature; every walk adds up to f(x) - f(z).
#pragma once

#include <atomic>

#include "explain/moving_rows.hpp"

namespace hardwood {

// Memory and methods of one thread, for rows that walk side by side.
class Walks {
 public:
  Walks(MovingRows& rows, const std::atomic<bool>& stop);

  // Adds the Shapley values against the background row where the rows have started, (rows, players,
  // outputs), and the estimated variances of these. orders: (n_orders, players), permutations of the
  // players. Ends early where `stop` is set.
  void add(std::span<const std::int32_t> orders, double* values, double* variances);

 private:
  void walk(std::span<const std::int32_t> order);
  void credit(std::int32_t player, double sign);

  MovingRows& rows_;
  const std::atomic<bool>& stop_;
  std::vector<double> gain_, first_, sum_, squares_;  // (rows, players, outputs)
};

}  // namespace hardwood
