// The network that explores: it learns from stored rounds the reward of every action, answers for
// decisions, and trains the tree on its answers for all actions. NumPy reference:
// tests/reference/reward_network.py.
//
// Decisions read a copy of the network, which is replaced as a whole after a number of steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "core/spin_lock.hpp"
#include "online/online_tree.hpp"
#include "online/replay_buffer.hpp"
#include "online/reward_network.hpp"

namespace hardwood {

struct ExplorerOptions {
  NetworkOptions network;
  int batch_size =
      256;  // rounds of a step of the network, and half the contexts of one of the tree
  double updates_per_round = 0.5;  // while the interval between hand-overs is the shortest
};

class Explorer {
 public:
  Explorer(int n_columns, int n_actions, const ExplorerOptions& options, std::uint64_t seed);

  // The expected reward of every action, in the units that the network learns in, zero for all as long
  // as nothing was learned; safe while another thread learns.
  void values(const float* x, std::span<float> out) const;

  // Learning; one thread at a time.
  // Rounds from one hand-over to the next: they grow with the square root of the rounds.
  static std::uint64_t interval(std::uint64_t n_learned) {
    const double root = std::sqrt(static_cast<double>(n_learned));
    return std::max<std::uint64_t>(kShortest, static_cast<std::uint64_t>(root / 4));
  }
  // Steps of the network and then of the tree. `reward_of` returns the reward of a stored round in the
  // units of the network.
  template <class RewardOf>
  void learn(const ReplayBuffer<Outcome>& stored, OnlineTree& tree, RewardLoss loss, Random& random,
             RewardOf&& reward_of) {
    const int n = static_cast<int>(std::min<std::size_t>(stored.size(), options_.batch_size));
    wanted_.resize(n);
    for (int step = 0; step < n_steps_; ++step) {
      for (int i = 0; i < n; ++i) {
        const std::size_t drawn = random.below(stored.size());
        standardize(tree, stored.context(drawn), network_.rows().inputs(n).row(i));
        const Outcome& outcome = stored.outcome(drawn);
        wanted_[i] = {outcome.action, reward_of(outcome), outcome.weight};
      }
      network_.step(wanted_, loss);
    }
    for (int step = 0; step < n_steps_; ++step) teach(stored, tree, loss, random);
    has_learned_ = n_steps_ > 0;
  }
  void scale_outputs(double factor) { network_.scale_outputs(factor); }
  void forget() {
    network_.forget();
    has_learned_ = false;
  }
  // Replaces the network that decisions read.
  void publish(const ColumnScale& scale, RewardLoss loss);
  bool has_learned() const { return has_learned_; }

  RewardNetwork::State state() const { return network_.state(); }
  void set_state(const RewardNetwork::State& state, bool has_learned) {
    network_.set_state(state);
    has_learned_ = has_learned;
  }

 private:
  static constexpr std::uint64_t kShortest = 16;

  struct Served {
    Buffer<float> parameters;
    ColumnScale scale;
    RewardLoss loss;
    bool has_learned;
  };

  static void standardize(const OnlineTree& tree, const float* x, float* z);
  void teach(const ReplayBuffer<Outcome>& stored, OnlineTree& tree, RewardLoss loss,
             Random& random);

  ExplorerOptions options_;
  int n_steps_;
  RewardNetwork network_;
  bool has_learned_ = false;
  std::vector<ActionReward> wanted_;
  std::vector<float> other_;  // scratch: a standardized context
  mutable SpinLock serving_;  // guards the pointer
  std::shared_ptr<const Served> served_;
};

}  // namespace hardwood
