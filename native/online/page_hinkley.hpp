// Detects that the mean of a stream of numbers has fallen: Page. Continuous inspection schemes.
// Biometrika 1954, as river.drift.PageHinkley with mode "down" and alpha 1. A smaller alpha forgets the
// sum but not its maximum, which gives false alarms without end.
// NumPy reference: tests/reference/reward_network.py.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hardwood {

class PageHinkley {
 public:
  // A fall by less than `tolerated` is not counted; the sum of what lies below must exceed
  // `threshold`.
  struct Options {
    double tolerated = 0.05, threshold = 50;
    std::uint64_t n_least = 30;
  };

  explicit PageHinkley(const Options& options) : options_(options) {}

  // Returns whether the mean has fallen, and then starts again.
  bool add(double value) {
    ++s_.count;
    s_.mean += (value - s_.mean) / static_cast<double>(s_.count);
    s_.sum += value - s_.mean + options_.tolerated;
    s_.highest = s_.count == 1 ? s_.sum : std::max(s_.highest, s_.sum);
    if (s_.count < options_.n_least || s_.highest - s_.sum <= options_.threshold) return false;
    s_ = {};
    return true;
  }

  struct State {
    std::uint64_t count = 0;
    double mean = 0, sum = 0, highest = 0;
  };
  const State& state() const { return s_; }
  void set_state(const State& state) { s_ = state; }

 private:
  Options options_;
  State s_;
};

}  // namespace hardwood
