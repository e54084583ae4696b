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

  std::size_t size() const { return s_.outcomes.size(); }
  std::uint64_t n_added() const { return s_.n_added; }
  const float* context(std::size_t i) const { return s_.contexts.data() + i * n_columns_; }
  const Seen& outcome(std::size_t i) const { return s_.outcomes[i]; }

  void add(const float* x, const Seen& outcome, Random& random) {
    const std::uint64_t before = s_.n_added++;
    if (size() < capacity_) {
      s_.contexts.insert(s_.contexts.end(), x, x + n_columns_);
      s_.outcomes.push_back(outcome);
      return;
    }
    const std::uint64_t place = keeps_newest_ ? before % capacity_ : random.below(s_.n_added);
    if (place >= capacity_) return;
    std::copy_n(x, n_columns_,
                s_.contexts.begin() + static_cast<std::ptrdiff_t>(place) * n_columns_);
    s_.outcomes[place] = outcome;
  }

  void clear() {
    s_.contexts.clear();
    s_.outcomes.clear();
  }

  struct State {
    std::uint64_t n_added = 0;
    std::vector<float> contexts;
    std::vector<Seen> outcomes;  // as many as there are contexts, not more than there is room for
  };
  const State& state() const { return s_; }
  void set_state(State state) { s_ = std::move(state); }

 private:
  int n_columns_;
  std::size_t capacity_;
  bool keeps_newest_;
  State s_;
};

}  // namespace hardwood
