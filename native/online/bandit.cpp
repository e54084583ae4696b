#include "online/bandit.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

namespace hardwood {

namespace {

// Streams of random numbers: one per decision and one per update.
constexpr std::uint64_t kUpdates = 1ull << 62;

constexpr double kNormal95 = 1.959964;  // quantile of the normal distribution for 95 % intervals
constexpr double kTolerated = 0.01;  // loss per round, in the range of rewards, that counts as none
constexpr double kLeastCompared = 500;  // effective rounds, before the tree may decide

Loss loss_of(const BanditOptions& options) {
  if (options.explorer) return Loss::kSquared;
  return options.is_paper ? Loss::kActionSigmoid : Loss::kActionSquared;
}

// The tree learns from stored contexts and from as many mixtures.
int tree_batch(const BanditOptions& options) {
  return options.explorer ? 2 * options.batch_size : options.batch_size;
}

}  // namespace

Bandit::Bandit(int n_columns, int n_actions, const BanditOptions& options, std::uint64_t seed)
    : options_(options),
      seed_(seed),
      tree_({options.height, n_columns, n_actions, false}, loss_of(options), options.step,
            tree_batch(options), seed),
      rewards_(options.is_paper, options.n_first),
      stored_(n_columns, options.is_paper ? options.batch_size : options.buffer_size,
              options.keeps_recent) {
  if (!options.explorer) return;
  explorer_.emplace(n_columns, n_actions, *options.explorer, seed);
  explorer_->publish(tree_.learned_scale(), loss());
  tree_decides_ = options.who_decides == WhoDecides::kTree;
}

Bandit::Choice Bandit::decide(const float* x, ActionMask mask) {
  thread_local std::vector<float> values;  // nothing is allocated for a decision
  thread_local std::vector<double> probability;
  values.resize(n_actions());
  probability.resize(n_actions());
  tree_.count_context(x);
  const OnlineTree::Reached by = tree_.values(x, values);
  if (!tree_decides_) explorer_->values(x, values);
  const std::uint64_t round = n_decided_++;
  spread(values, mask, round + 1, probability);
  const int action = drawn_action(probability, Random(seed_, round).uniform());
  return {action, probability[action], by};
}

void Bandit::spread(std::span<const float> values, ActionMask mask, std::uint64_t round,
                    std::span<double> probability) const {
  if (options_.explores_by_gaps) {
    const auto rounds = static_cast<double>(round - std::min(round, explored_from_.load()));
    explore_by_gaps(values, mask, options_.exploration * std::sqrt(rounds), probability);
  } else {
    explore_uniformly(values, mask, options_.exploration, probability);
  }
  if (options_.min_propensity > 0) keep_above(options_.min_propensity, mask, probability);
}

void Bandit::learn(const float* x, const Outcome& outcome, bool is_new) {
  while (n_waiting_to_save_ > 0) std::this_thread::yield();
  const std::lock_guard lock(learning_);
  if (is_new) tree_.count_context(x);
  Random random(seed_, kUpdates + n_learned_++);
  if (explorer_ && !is_new && explorer_->has_learned()) watch(x, outcome);
  stored_.add(x, outcome, random);
  double change;
  {
    const std::lock_guard scale_lock(scale_);
    change = rewards_.add(outcome.reward, [&] { return stored_rewards(); });
  }
  if (explorer_) note_kind(outcome.reward);
  if (!rewards_.is_known()) return;
  if (explorer_) return learn_by_network(change, random);
  if (options_.is_paper && stored_.size() < static_cast<std::size_t>(options_.batch_size)) return;
  tree_.refresh();
  if (options_.is_paper) return step_on_newest();
  if (change != 1.0) tree_.scale_leaves(change);
  for (due_ += options_.updates_per_round; due_ >= 1; due_ -= 1) step_on_stored(x, outcome, random);
  tree_.publish(n_learned_);
}

// A first reward that is neither 0 nor 1: values get another unit, so what they were is of no use.
void Bandit::note_kind(double reward) {
  if (has_other_rewards_ || options_.loss || reward == 0 || reward == 1) return;
  has_other_rewards_ = true;
  forget_values();
  next_hand_over_ = n_learned_;
}

// Compares tree and network, and what was expected with what came, before the round is learned from.
void Bandit::watch(const float* x, const Outcome& outcome) {
  std::vector<float> expected(n_actions()), by_leaf(n_actions());
  explorer_->values(x, expected);
  tree_.values(x, by_leaf);
  const double reward = standard(outcome.reward);
  comparison_.add(expected, best_action(by_leaf, nullptr), best_action(expected, nullptr), outcome,
                  reward);
  if (detector_.add(reward - static_cast<double>(expected[outcome.action])) &&
      options_.detects_change)
    forget();
}

void Bandit::learn_by_network(double change, Random& random) {
  if (change != 1.0 && loss() != RewardLoss::kLogistic) {
    explorer_->scale_outputs(change);
    tree_.scale_leaves(change);
    comparison_.set_state({});
    next_hand_over_ = n_learned_;
  }
  if (n_learned_ >= next_hand_over_) hand_over(random);
}

void Bandit::hand_over(Random& random) {
  tree_.refresh();
  explorer_->learn(stored_, tree_, loss(), random,
                   [&](const Outcome& outcome) { return standard(outcome.reward); });
  publish();
  next_hand_over_ = n_learned_ + Explorer::interval(n_learned_);
  if (options_.who_decides == WhoDecides::kAuto) let_decide();
}

void Bandit::publish() {
  version_ = n_learned_;
  explorer_->publish(tree_.learned_scale(), loss());
  tree_.publish(version_);
}

// The tree begins to decide when the interval of its gain in reward lies above a tolerated loss, and
// stops when the estimate itself lies below.
void Bandit::let_decide() {
  const DeciderComparison::Estimate more = comparison_.difference();
  if (tree_decides_)
    tree_decides_ = more.mean >= -kTolerated;
  else if (comparison_.n_effective() >= kLeastCompared)
    tree_decides_ = more.mean - kNormal95 * more.error >= -kTolerated;
}

// What is kept: the hidden layers and the splits.
void Bandit::forget_values() {
  explorer_->forget();
  tree_.forget_values();
  comparison_.set_state({});
  detector_.set_state({});
  tree_.refresh();
  publish();
}

// Rewards have changed.
void Bandit::forget() {
  stored_.forget();
  forget_values();
  explored_from_ = n_decided_.load();
  tree_decides_ = options_.who_decides == WhoDecides::kTree;
  if (changes_.size() == kMostChanges) changes_.erase(changes_.begin());
  changes_.push_back(n_learned_);
  next_hand_over_ = n_learned_ + Explorer::interval(0);
}

Bandit::Report Bandit::report() const {
  const std::lock_guard lock(learning_);
  const auto in_units = [&](DeciderComparison::Estimate of) {
    return DeciderComparison::Estimate{reward_of(static_cast<float>(of.mean)), unit() * of.error};
  };
  DeciderComparison::Estimate difference = comparison_.difference();
  difference = {unit() * difference.mean, unit() * difference.error};
  return {comparison_.n_effective(), comparison_.agreement(), in_units(comparison_.tree()),
          in_units(comparison_.network()), difference};
}

std::vector<std::uint64_t> Bandit::changes() const {
  const std::lock_guard lock(learning_);
  return changes_;
}

std::vector<double> Bandit::stored_rewards() const {
  std::vector<double> rewards(stored_.size());
  for (std::size_t i = 0; i < rewards.size(); ++i) rewards[i] = stored_.outcome(i).reward;
  return rewards;
}

// A row of the tile: target 0 is the action, target 1 its reward in standard units.
void Bandit::fill(int i, const float* x, const Outcome& outcome) {
  SampleTile& tile = tree_.batch().tile;
  tree_.standardize(x, tile.X.row(i));
  tile.target[i] = static_cast<float>(outcome.action);
  tile.target[tile.capacity + i] = rewards_.standard(outcome.reward);
  // Squares of gradients are float32: larger weights than this would be infinite there.
  constexpr double kLargestWeight = 1e9;
  const double weight = std::min(1.0 / outcome.propensity, kLargestWeight);
  tile.weight[i] = options_.is_paper ? static_cast<float>(weight) : outcome.weight;
}

// The newest round, and others drawn from all that are stored.
void Bandit::step_on_stored(const float* x, const Outcome& outcome, Random& random) {
  const std::size_t n = stored_.size();
  const int size = static_cast<int>(std::min<std::size_t>(n, options_.batch_size));
  const double deviation = options_.input_noise / std::sqrt(std::sqrt(static_cast<double>(n)));
  SampleTile& tile = tree_.batch().tile;
  tree_.step_on(size, 1.0f / static_cast<float>(size), [&](int first) {
    for (int i = 0; i < tile.n; ++i) {
      const std::size_t drawn = random.below(n);
      fill(i, stored_.context(drawn), stored_.outcome(drawn));
    }
    if (first == 0) fill(0, x, outcome);
    if (deviation > 0) tree_.batch().add_noise(static_cast<float>(deviation), random);
  });
}

void Bandit::step_on_newest() {
  SampleTile& tile = tree_.batch().tile;
  const int size = options_.batch_size;
  tree_.step_on(size, 1.0f / static_cast<float>(size), [&](int first) {
    for (int i = 0; i < tile.n; ++i)
      fill(i, stored_.context(first + i), stored_.outcome(first + i));
  });
  tree_.publish(n_learned_);
  stored_.clear();
}

RewardLoss Bandit::loss() const {
  if (options_.loss) return *options_.loss;
  return has_other_rewards_ ? RewardLoss::kSquared : RewardLoss::kLogistic;
}

// With the logistic loss, values are rewards from 0 to 1 as they are.
float Bandit::standard(double reward) const {
  if (explorer_ && loss() == RewardLoss::kLogistic)
    return static_cast<float>(std::clamp(reward, 0.0, 1.0));
  return rewards_.standard(reward);
}

double Bandit::unit() const {
  return reward_of(1.0f) - reward_of(0.0f);
}

double Bandit::reward_of(float value) const {
  if (explorer_ && loss() == RewardLoss::kLogistic) return value;
  const std::lock_guard lock(scale_);
  if (!options_.is_paper) return rewards_.reward_of(value);
  const double share = 1.0 / (1.0 + std::exp(-static_cast<double>(value)));
  return rewards_.reward_of(static_cast<float>(share));
}

void Bandit::deciding_values(const float* x, std::span<float> values) const {
  if (tree_decides_)
    tree_.values(x, values);
  else
    explorer_->values(x, values);
}

void Bandit::values(const float* x, std::span<double> rewards) const {
  std::vector<float> values(n_actions());
  deciding_values(x, values);
  for (int k = 0; k < n_actions(); ++k) rewards[k] = reward_of(values[k]);
}

int Bandit::leaf(const float* x) const {
  std::vector<float> values(n_actions());
  return tree_.values(x, values).leaf;
}

void Bandit::probabilities(const float* x, ActionMask mask, std::span<double> probability) const {
  std::vector<float> values(n_actions());
  deciding_values(x, values);
  spread(values, mask, n_decided_ + 1, probability);
}

void Bandit::leaf_probabilities(ActionMask mask, std::span<double> probability) const {
  const std::vector<double> values = tree_.raw().values;
  const std::vector<float> leaves(values.begin(), values.end());
  const std::size_t k = n_actions();
  for (std::size_t first = 0; first < leaves.size(); first += k)
    spread(std::span(leaves).subspan(first, k), mask, n_decided_ + 1,
           probability.subspan(first, k));
}

OnlineTree::RawTree Bandit::raw_tree() const {
  OnlineTree::RawTree raw = tree_.raw();
  for (double& value : raw.values) value = reward_of(static_cast<float>(value));
  return raw;
}

void Bandit::start_from(std::span<const double> weights, std::span<const double> bias,
                        std::span<const double> values, std::span<const double> mean,
                        std::span<const double> deviation, double rows) {
  const std::lock_guard lock(learning_);
  const auto [lowest, highest] = std::ranges::minmax(values);
  {
    const std::lock_guard scale_lock(scale_);
    rewards_.start_from(lowest, highest);
  }
  std::vector<float> held(values.size());
  std::ranges::transform(values, held.begin(), [&](double value) {
    const float standard = rewards_.standard(value);
    if (!options_.is_paper) return standard;
    const float share = std::clamp(standard, 0.01f, 0.99f);
    return std::log(share / (1.0f - share));
  });
  tree_.start_from(weights, bias, held, mean, deviation, rows);
}

Bandit::State Bandit::state() const {
  ++n_waiting_to_save_;
  const std::lock_guard lock(learning_);
  --n_waiting_to_save_;
  State s{tree_.state(), rewards_.state(), stored_.state(), n_decided_, n_learned_, due_, {}};
  if (explorer_)
    s.of_network = {explorer_->state(), comparison_.state(),
                    detector_.state(),  next_hand_over_,
                    version_,           explored_from_,
                    has_other_rewards_, explorer_->has_learned(),
                    tree_decides_,      changes_};
  return s;
}

void Bandit::set_state(State s) {
  const std::lock_guard lock(learning_);
  // Where the last step was: with the paper's method, before the rounds that wait for the next one.
  const std::uint64_t waiting = options_.is_paper ? s.stored.outcomes.size() : 0;
  const std::uint64_t last = s.rewards.is_known ? s.n_learned - waiting : 0;
  tree_.set_state(s.tree, explorer_ ? s.of_network.version : last);
  if (explorer_) set_state(s.of_network);
  const std::lock_guard scale_lock(scale_);
  rewards_.set_state(s.rewards);
  stored_.set_state(std::move(s.stored));
  n_decided_ = s.n_decided;
  n_learned_ = s.n_learned;
  due_ = s.due;
}

void Bandit::set_state(const State::OfNetwork& s) {
  comparison_.set_state(s.comparison);
  detector_.set_state(s.detector);
  next_hand_over_ = s.next_hand_over;
  version_ = s.version;
  explored_from_ = s.explored_from;
  has_other_rewards_ = s.has_other_rewards;
  tree_decides_ = s.tree_decides;
  changes_ = s.changes;
  explorer_->set_state(s.network, s.has_learned);
  explorer_->publish(tree_.learned_scale(), loss());
}

}  // namespace hardwood
