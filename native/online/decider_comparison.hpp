// The rewards of the tree and of the network without exploration, and how often they agree:
// doubly robust estimates (Dudik, Langford, Li. ICML 2011) on rounds that neither has learned from.
// NumPy reference: tests/reference/reward_network.py.
//
// Old rounds count less: both policies change while they learn.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "online/replay_buffer.hpp"

namespace hardwood {

class DeciderComparison {
 public:
  static constexpr double kMemory = 1000;     // rounds; the weight of a round falls by 1/e
  static constexpr double kMostWeight = 100;  // of an observed reward, so that none dominates

  // `expected`: the network's estimates, in the units of `reward`.
  void add(std::span<const float> expected, int by_tree, int by_network, const Outcome& outcome,
           double reward) {
    const double weight = std::min(1.0 / outcome.propensity, kMostWeight);
    const double error = reward - static_cast<double>(expected[outcome.action]);
    const auto reward_of = [&](int action) {
      return expected[action] + (action == outcome.action ? weight * error : 0.0);
    };
    const double tree = reward_of(by_tree), network = reward_of(by_network);
    constexpr double kept = 1.0 - 1.0 / kMemory;
    for (double& sum : sums_) sum *= kept;
    sums_[1] *= kept;  // squares of weights
    const std::array<double, kSums> more{1.0,
                                         1.0,
                                         by_tree == by_network ? 1.0 : 0.0,
                                         tree,
                                         tree * tree,
                                         network,
                                         network * network,
                                         tree - network,
                                         (tree - network) * (tree - network)};
    for (int i = 0; i < kSums; ++i) sums_[i] += more[i];
  }

  double n_effective() const { return sums_[1] > 0 ? sums_[0] * sums_[0] / sums_[1] : 0.0; }
  double agreement() const { return mean(2); }
  struct Estimate {
    double mean = 0, error = 0;  // the standard error
  };
  Estimate tree() const { return estimate(3); }
  Estimate network() const { return estimate(5); }
  Estimate difference() const { return estimate(7); }  // tree less network

  static constexpr int kSums = 9;
  using State = std::array<double, kSums>;
  const State& state() const { return sums_; }
  void set_state(const State& state) { sums_ = state; }

 private:
  double mean(int i) const { return sums_[0] > 0 ? sums_[i] / sums_[0] : 0.0; }
  Estimate estimate(int i) const {
    const double n = n_effective();
    const double variance = std::max(mean(i + 1) - mean(i) * mean(i), 0.0);
    return {mean(i), n > 1 ? std::sqrt(variance / (n - 1)) : 0.0};
  }

  State sums_{};
};

}  // namespace hardwood
