// A replay buffer of bounded size: a uniform sample of all rounds (Vitter. Random sampling with a
// reservoir. ACM TOMS 1985, algorithm R), or the most recent ones, for an environment that changes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/random.hpp"

namespace hardwood {

// The outcome of one round, without its context.
struct Outcome {
  std::int32_t action = 0;
  double reward = 0;
  double propensity = 1;
  float weight = 1;  // of its loss
};

// `Stored`: what is stored of a round besides its context.
template <class Stored>
class ReplayBuffer {
 public:
  ReplayBuffer(int n_columns, std::size_t capacity, bool keeps_recent)
      : n_columns_(n_columns), capacity_(capacity), keeps_recent_(keeps_recent) {}

  std::size_t size() const { return s_.outcomes.size(); }
  std::uint64_t n_added() const { return s_.n_added; }
  const float* context(std::size_t i) const { return s_.contexts.data() + i * n_columns_; }
  const Stored& outcome(std::size_t i) const { return s_.outcomes[i]; }

  void add(const float* x, const Stored& outcome, Random& random) {
    const std::uint64_t before = s_.n_added++;
    if (size() < capacity_) {
      s_.contexts.insert(s_.contexts.end(), x, x + n_columns_);
      s_.outcomes.push_back(outcome);
      return;
    }
    const std::uint64_t place = keeps_recent_ ? before % capacity_ : random.below(s_.n_added);
    if (place >= capacity_) return;
    std::copy_n(x, n_columns_,
                s_.contexts.begin() + static_cast<std::ptrdiff_t>(place) * n_columns_);
    s_.outcomes[place] = outcome;
  }

  void clear() {
    s_.contexts.clear();
    s_.outcomes.clear();
  }

  // Starts again, as if none had been added.
  void forget() { s_ = {}; }

  struct State {
    std::uint64_t n_added = 0;
    std::vector<float> contexts;
    std::vector<Stored> outcomes;  // one per context, at most `capacity`
  };
  const State& state() const { return s_; }
  void set_state(State state) { s_ = std::move(state); }

 private:
  int n_columns_;
  std::size_t capacity_;
  bool keeps_recent_;
  State s_;
};

}  // namespace hardwood
