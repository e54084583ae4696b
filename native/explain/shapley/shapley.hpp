// Interventional Shapley values of a hard oblique model for the rows of a table.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "explain/shapley/group.hpp"

namespace hardwood {

struct ShapleyOptions {
  int n_orders = 2;             // per background row, each walked there and back
  std::int64_t most_cases = 0;  // per background row in the mean, to enumerate; 0: always sample
  std::uint64_t seed = 0;
  int n_threads = 1;
};

// Where the answers go; zero before.
struct ShapleyAnswers {
  double* values;     // (rows, features, outputs)
  double* variances;  // likewise, of the values; 0 where enumerated
  bool* is_exact;     // (rows,), true before
  int n_outputs;
};

// Explains all groups together. A row is enumerated for the groups where that takes few cases, and
// sampled for the others. Which orders are drawn depends on the seed alone, so that the answer for a
// row depends neither on other rows nor on the threads. Ends early where `stop` is set.
void shapley(const std::vector<Group>& groups, const FeatureMap& map, std::ptrdiff_t stride,
             const FeatureRows& rows, const FeatureRows& background, const ShapleyOptions& options,
             const std::atomic<bool>& stop, const ShapleyAnswers& answers);

}  // namespace hardwood
