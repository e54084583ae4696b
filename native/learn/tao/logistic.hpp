// Logistic regression with an L1 penalty over weighted rows, by OWL-QN.
//
// Andrew, Gao. Scalable Training of L1-Regularized Log-Linear Models. ICML 2007.
//
//     min_{w, b}  sum_i c_i log(1 + exp(-s_i (w x_i + b)))  +  l1 |w|_1  +  l2 / 2 |w|^2
//
// Rows are float32; sums over chunks of rows are float64. Chunks do not depend on the number of
// threads, and neither does the solution.
#pragma once

#include <atomic>
#include <vector>

#include "learn/tao/tile.hpp"

namespace hardwood {

struct LogisticOptions {
  double l1 = 0;
  double l2 = 0;
  int max_passes = 50;      // over the rows
  double tolerance = 1e-4;  // ends where a step gains less than this part of the objective
  int n_threads = 1;
};

struct LogisticSolution {
  std::vector<float> w;  // (d,)
  float b = 0;
  double objective = 0;
  double start_objective = 0;
  int passes = 0;
};

// Uses `d` columns of the rows; starts from w (d,) and b.
LogisticSolution solve_logistic(const LogisticRows& rows, int d, const LogisticOptions& options,
                                std::vector<float> w, float b, const std::atomic<bool>& stop);

}  // namespace hardwood
