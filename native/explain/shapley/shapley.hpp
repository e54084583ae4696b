// Interventional Shapley values of a hard oblique model for the rows of a table.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "explain/shapley/group.hpp"

namespace hardwood {

struct ShapleyOptions {
  int n_orders = 2;             // per background row, each walked there and back
  std::int64_t most_cases = 0;  // average per background row, to enumerate; 0: always sample
  std::uint64_t seed = 0;
  int n_threads = 1;
};

// The results; zero before.
struct ShapleyAnswers {
  double* values;     // (rows, features, outputs)
  double* variances;  // likewise, of the values; 0 where enumerated
  bool* is_exact;     // (rows,), true before
  int n_outputs;
};

// Explains all groups together. A row is enumerated for the groups with few cases, and sampled for
// the others. The sampled orders depend only on the seed, so the result of a row depends neither on
// other rows nor on the number of threads. Ends early if `stop` is set.
void shapley(const std::vector<Group>& groups, const FeatureMap& map, std::ptrdiff_t stride,
             const FeatureRows& rows, const FeatureRows& background, const ShapleyOptions& options,
             const std::atomic<bool>& stop, const ShapleyAnswers& answers);

}  // namespace hardwood
