// A bounded memory of rounds: a uniform sample of all that were ever added (Vitter. Random sampling
// with a reservoir. ACM TOMS 1985, algorithm R), or the newest ones, for a world that changes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/random.hpp"

namespace hardwood {

// What was seen of one round, beside its context.
struct Outcome {
  std::int32_t action = 0;
  double reward = 0;
  double propensity = 1;
};

// `Seen`: what is kept of a round beside its context.
template <class Seen>
class Reservoir {
 public:
  Reservoir(int n_columns, std::size_t capacity, bool keeps_newest)
      : n_columns_(n_columns), capacity_(capacity), keeps_newest_(keeps_newest) {}

  std::size_t size() const { return outcomes_.size(); }
  std::uint64_t n_added() const { return n_added_; }
  const float* context(std::size_t i) const { return contexts_.data() + i * n_columns_; }
  const Seen& outcome(std::size_t i) const { return outcomes_[i]; }

  void add(const float* x, const Seen& outcome, Random& random) {
    const std::uint64_t before = n_added_++;
    if (size() < capacity_) {
      contexts_.insert(contexts_.end(), x, x + n_columns_);
      outcomes_.push_back(outcome);
      return;
    }
    const std::uint64_t place = keeps_newest_ ? before % capacity_ : random.below(n_added_);
    if (place >= capacity_) return;
    std::copy_n(x, n_columns_, contexts_.begin() + static_cast<std::ptrdiff_t>(place) * n_columns_);
    outcomes_[place] = outcome;
  }

  void clear() {
    contexts_.clear();
    outcomes_.clear();
  }

  // What was saved: as many outcomes as there are contexts, not more than there is room for.
  void set_state(std::uint64_t n_added, std::vector<float> contexts, std::vector<Seen> outcomes) {
    n_added_ = n_added;
    contexts_ = std::move(contexts);
    outcomes_ = std::move(outcomes);
  }

 private:
  int n_columns_;
  std::size_t capacity_;
  bool keeps_newest_;
  std::uint64_t n_added_ = 0;
  std::vector<float> contexts_;
  std::vector<Seen> outcomes_;
};

}  // namespace hardwood
