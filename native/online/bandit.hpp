// Trees that learn from the rewards of their own actions. NumPy reference: tests/reference/bandit.py.
//
// Three methods:
//
//   replay   The leaf that a context reaches holds the expected reward of every action. Each round
//            goes to the replay buffer and takes a few steps on mini-batches of stored rounds, with
//            the squared error of the chosen action. Noise is added to stored contexts, the less the
//            more rounds there are. Exploration is by inverse gap weighting with gamma = exploration
//            sqrt(t).
//   paper    [DGT22] Algorithm 1: exploration by Eq. (7), gradient by Eq. (8), one step per batch_size
//            rounds. No rounds are stored.
//   network  A network learns from the stored rounds the reward of every action, explores, and trains
//            the tree on its answers for all actions (explorer.hpp). It hands over to decisions at fixed
//            numbers of rounds. The network decides, or the tree, or the tree once an estimate on the
//            policy's own rounds says that nothing is lost (decider_comparison.hpp). When rewards
//            fall below what was expected, what was learned is forgotten (page_hinkley.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "online/decider_comparison.hpp"
#include "online/exploration.hpp"
#include "online/explorer.hpp"
#include "online/online_tree.hpp"
#include "online/page_hinkley.hpp"
#include "online/replay_buffer.hpp"
#include "online/reward_scale.hpp"

namespace hardwood {

enum class WhoDecides { kNetwork, kTree, kAuto };

struct BanditOptions {
  int height = 8;
  bool is_paper = false;
  bool explores_by_gaps = true;  // else by Eq. (7)
  double exploration = 100;      // gamma / sqrt(t); Eq. (7): delta
  double min_propensity = 0;
  int batch_size = 128;  // paper: rounds per step
  double updates_per_round = 1;
  std::size_t buffer_size = 1;  // rounds in the replay buffer
  bool keeps_recent = false;    // else a uniform sample of all rounds
  double input_noise = 1;       // standard deviation of the noise, times (stored rounds)^(1/4)
  int n_first = 20;             // rounds before the first step, which show the size of rewards
  OnlineStep step;
  // Of the network; without it, the tree learns by itself.
  std::optional<ExplorerOptions> explorer;
  std::optional<RewardLoss> loss;  // none: logistic as long as all rewards are 0 or 1, then squared
  WhoDecides who_decides = WhoDecides::kNetwork;
  bool detects_change = true;
};

class Bandit {
 public:
  static constexpr std::size_t kMostChanges = 100;  // that are remembered

  Bandit(int n_columns, int n_actions, const BanditOptions& options, std::uint64_t seed);

  struct Choice {
    int action;
    double propensity;
    OnlineTree::Reached by;
  };
  // Draws an action for a context; safe while another thread learns.
  Choice decide(const float* x, ActionMask mask);
  // `is_new`: no decision was made here for the context, so it is not counted yet.
  void learn(const float* x, const Outcome& outcome, bool is_new);

  void values(const float* x, std::span<double> rewards) const;
  int leaf(const float* x) const;
  void probabilities(const float* x, ActionMask mask, std::span<double> probability) const;
  // Of every leaf, (leaves, actions).
  void leaf_probabilities(ActionMask mask, std::span<double> probability) const;

  int n_columns() const { return tree_.shape().n_columns; }
  int n_actions() const { return tree_.shape().n_outputs; }
  std::uint64_t n_decided() const { return n_decided_; }
  std::uint64_t n_learned() const { return n_learned_; }
  OnlineTree::RawTree raw_tree() const;  // values in units of the reward
  bool tree_decides() const { return tree_decides_; }
  // Estimated rewards of tree and network, in units of the reward.
  struct Report {
    double n_effective = 0, agreement = 0;
    DeciderComparison::Estimate tree, network, difference;
  };
  Report report() const;
  // The number of rounds learned at each change that was detected, the last ones.
  std::vector<std::uint64_t> changes() const;
  // Values in units of the reward.
  void start_from(std::span<const double> weights, std::span<const double> bias,
                  std::span<const double> values, std::span<const double> mean,
                  std::span<const double> deviation, double rows);

  struct State {
    OnlineTree::State tree;
    RewardScale::State rewards;
    ReplayBuffer<Outcome>::State stored;
    std::uint64_t n_decided, n_learned;
    double due;
    struct OfNetwork {
      RewardNetwork::State network;
      DeciderComparison::State comparison{};
      PageHinkley::State detector;
      std::uint64_t next_hand_over = 0, version = 0, explored_from = 0;
      bool has_other_rewards = false, has_learned = false, tree_decides = false;
      std::vector<std::uint64_t> changes;
    } of_network;
  };
  State state() const;
  void set_state(State state);

 private:
  double reward_of(float value) const;
  double unit() const;  // of rewards, in which values are learned
  float standard(double reward) const;
  RewardLoss loss() const;
  void spread(std::span<const float> values, ActionMask mask, std::uint64_t round,
              std::span<double> probability) const;
  std::vector<double> stored_rewards() const;
  void fill(int i, const float* x, const Outcome& outcome);
  void step_on_stored(const float* x, const Outcome& outcome, Random& random);
  void step_on_newest();
  void deciding_values(const float* x, std::span<float> values) const;
  void learn_by_network(double change, Random& random);
  void watch(const float* x, const Outcome& outcome);
  void note_kind(double reward);
  void hand_over(Random& random);
  void publish();
  void let_decide();
  void forget_values();
  void forget();
  void set_state(const State::OfNetwork& state);

  BanditOptions options_;
  std::uint64_t seed_;
  OnlineTree tree_;
  RewardScale rewards_;
  ReplayBuffer<Outcome> stored_;
  std::atomic<std::uint64_t> n_decided_ = 0, n_learned_ = 0;
  double due_ = 0;  // fraction of a step that is left over from earlier rounds
  std::optional<Explorer> explorer_;
  DeciderComparison comparison_;
  PageHinkley detector_{PageHinkley::Options{}};
  std::uint64_t next_hand_over_ = 0, version_ = 0;  // in rounds learned; version_: the last one
  std::atomic<std::uint64_t> explored_from_ = 0;    // decisions before the last change
  std::atomic<bool> has_other_rewards_ = false;     // than 0 and 1
  std::atomic<bool> tree_decides_ = true;
  std::vector<std::uint64_t> changes_;
  mutable std::mutex learning_;
  // Threads that wait for the state. A mutex is not fair: without this count, a thread that learns
  // in a loop could keep it forever.
  mutable std::atomic<int> n_waiting_to_save_ = 0;
  mutable std::mutex scale_;  // guards rewards_ where it is read while learning
};

}  // namespace hardwood
