// What `fit` needs from a method: how to make its learners from the options of a call.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "bind/learn/option_reader.hpp"
#include "learn/loop/training.hpp"

namespace hardwood {

// Trees that are learned side by side: restarts, or members of a forest.
struct Runs {
  int first = 0;
  int n = 1;
  std::optional<std::int64_t> n_draws;  // of a bootstrap sample for each; none: all rows, once
  std::uint64_t seed = 0;
  int n_threads = 1;

  // One run alone has the threads for its batches.
  int threads_of_each() const { return n == 1 ? n_threads : 1; }
};

// A call of `fit`; methods make their learners from it during the call.
struct FitCall {
  std::span<const std::int32_t> column_of;  // the schema's column of each of the engine's
  const Problem& problem;
  const TrainingOptions& training;
  const Runs& runs;
};

struct Method {
  std::function<std::unique_ptr<Learner>(int i)> new_learner;  // of the i-th run
  int n_trees = 0;  // of an ensemble, whose arrays begin with this dimension; 0: it is one tree
};

// Throws std::invalid_argument for sizes that do not fit, and for targets and weights of training or
// validation rows that no learner can read.
void check(const Problem& problem);

// Reads the options of the method of this name; those of the loop have been read.
Method method_named(const std::string& name, const FitCall& call, OptionReader& options);

}  // namespace hardwood
