#include "online/bandit.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

namespace hardwood {

namespace {

// Streams of random numbers: one per decision and one per update.
constexpr std::uint64_t kUpdates = 1ull << 62;

Loss loss_of(const BanditOptions& options) {
  return options.is_paper ? Loss::kActionSigmoid : Loss::kActionSquared;
}

}  // namespace

Bandit::Bandit(int n_columns, int n_actions, const BanditOptions& options, std::uint64_t seed)
    : options_(options),
      seed_(seed),
      tree_({options.height, n_columns, n_actions, false}, loss_of(options), options.step,
            options.batch_size, seed),
      rewards_(options.is_paper, options.n_first),
      stored_(n_columns, options.is_paper ? options.batch_size : options.buffer_size,
              options.keeps_recent) {}

Bandit::Choice Bandit::decide(const float* x, ActionMask mask) {
  thread_local std::vector<float> values;  // nothing is allocated for a decision
  thread_local std::vector<double> probability;
  values.resize(n_actions());
  probability.resize(n_actions());
  tree_.count_context(x);
  const OnlineTree::Reached by = tree_.values(x, values);
  const std::uint64_t round = n_decided_++;
  spread(values, mask, round + 1, probability);
  const int action = drawn_action(probability, Random(seed_, round).uniform());
  return {action, probability[action], by};
}

void Bandit::spread(std::span<const float> values, ActionMask mask, std::uint64_t round,
                    std::span<double> probability) const {
  if (options_.is_paper)
    explore_uniformly(values, mask, options_.exploration, probability);
  else
    explore_by_gaps(values, mask, options_.exploration * std::sqrt(static_cast<double>(round)),
                    probability);
}

void Bandit::learn(const float* x, const Outcome& outcome, bool is_new) {
  while (n_waiting_to_save_ > 0) std::this_thread::yield();
  const std::lock_guard lock(learning_);
  if (is_new) tree_.count_context(x);
  Random random(seed_, kUpdates + n_learned_++);
  stored_.add(x, outcome, random);
  double change;
  {
    const std::lock_guard scale_lock(scale_);
    change = rewards_.add(outcome.reward, [&] { return stored_rewards(); });
  }
  if (!rewards_.is_known()) return;
  if (options_.is_paper && stored_.size() < static_cast<std::size_t>(options_.batch_size)) return;
  tree_.refresh();
  if (options_.is_paper) return step_on_newest();
  if (change != 1.0) tree_.scale_leaves(change);
  for (due_ += options_.updates_per_round; due_ >= 1; due_ -= 1) step_on_stored(x, outcome, random);
  tree_.publish(n_learned_);
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
  tile.weight[i] = options_.is_paper ? static_cast<float>(weight) : 1.0f;
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

double Bandit::reward_of(float value) const {
  const std::lock_guard lock(scale_);
  if (!options_.is_paper) return rewards_.reward_of(value);
  const double share = 1.0 / (1.0 + std::exp(-static_cast<double>(value)));
  return rewards_.reward_of(static_cast<float>(share));
}

void Bandit::values(const float* x, std::span<double> rewards) const {
  std::vector<float> values(n_actions());
  tree_.values(x, values);
  for (int k = 0; k < n_actions(); ++k) rewards[k] = reward_of(values[k]);
}

int Bandit::leaf(const float* x) const {
  std::vector<float> values(n_actions());
  return tree_.values(x, values).leaf;
}

void Bandit::probabilities(const float* x, ActionMask mask, std::span<double> probability) const {
  std::vector<float> values(n_actions());
  tree_.values(x, values);
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
  return {tree_.state(), rewards_.state(), stored_.state(), n_decided_, n_learned_, due_};
}

void Bandit::set_state(State s) {
  const std::lock_guard lock(learning_);
  // Where the last step was: with the paper's method, before the rounds that wait for the next one.
  const std::uint64_t waiting = options_.is_paper ? s.stored.outcomes.size() : 0;
  tree_.set_state(s.tree, s.rewards.is_known ? s.n_learned - waiting : 0);
  const std::lock_guard scale_lock(scale_);
  rewards_.set_state(s.rewards);
  stored_.set_state(std::move(s.stored));
  n_decided_ = s.n_decided;
  n_learned_ = s.n_learned;
  due_ = s.due;
}

}  // namespace hardwood
