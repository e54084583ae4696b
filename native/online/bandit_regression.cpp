#include "online/bandit_regression.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace hardwood {

namespace {
// Streams of random numbers: one per decision and one per update.
constexpr std::uint64_t kUpdates = 1ull << 62;

// The number and, where slopes are estimated from one loss, its expected loss.
int n_outputs(const BanditRegressionOptions& options) {
  return options.is_paper || options.has_two_points ? 1 : 2;
}
}  // namespace

BanditRegression::BanditRegression(int n_columns, const BanditRegressionOptions& options,
                                   std::uint64_t seed)
    : options_(options),
      seed_(seed),
      tree_({options.height, n_columns, n_outputs(options), false}, Loss::kSquared, options.step,
            options.batch_size, seed),
      targets_(false, options.n_first),
      expected_(false, options.n_first),
      stored_(n_columns, options.is_paper ? options.batch_size : options.buffer_size, true) {}

double BanditRegression::number_of(float value) const {
  if (options_.is_paper) return options_.start + options_.scale * value;
  const std::lock_guard lock(scale_);
  return options_.start + options_.scale * targets_.reward_of(value);
}

BanditRegression::Prediction BanditRegression::predict(const float* x) const {
  float value[2];
  const OnlineTree::Reached by = tree_.values(x, value);
  return {number_of(value[0]), by};
}

double BanditRegression::expected_loss(const float* x) const {
  if (!expected_.is_known()) return expected_.mean();
  float value[2];
  tree_.values(x, value);
  return expected_.reward_of(value[1]);
}

int BanditRegression::direction() {
  const std::uint32_t word = Random(seed_, n_drawn_++).bits();
  const int side = word & 1 ? 1 : -1;
  return !options_.is_paper && word & 2 ? 2 * side : side;
}

void BanditRegression::learn_two(const float* x, double prediction, double below, double above) {
  const std::lock_guard lock(learning_);
  const double slope = (above - below) / (2 * options_.perturbation);  // Eq. (10)
  losses_.add_pair(slope, 0.5 * (above + below));
  learn(x, {inner(prediction), 0.0, slope, 0.0});
}

void BanditRegression::learn_one(const float* x, double prediction, int direction, double loss) {
  const std::lock_guard lock(learning_);
  const double distance = options_.perturbation * direction;
  const double expected = options_.is_paper ? 0.0 : expected_loss(x);
  const double slope = (loss - expected) / distance;  // Eq. (9)
  losses_.add_one(loss - expected, std::abs(direction) > 1);
  learn(x, {inner(prediction), loss, slope, losses_.square() / (distance * distance)});
}

double BanditRegression::curvature() const {
  return options_.has_two_points ? losses_.curvature_from_pairs()
                                 : losses_.curvature_from_singles(options_.perturbation);
}

// The minimum of the loss, as estimated from this round. With one point, the estimate is mostly noise,
// so the step is bounded: far from the minimum losses are larger, and so is their noise.
double BanditRegression::target(const Trial& trial, double curvature) const {
  const double step = trial.slope / curvature, most = options_.reach * options_.perturbation;
  return trial.prediction - (options_.has_two_points ? step : std::clamp(step, -most, most));
}

// Both return the factor by which the numbers in the leaves must be multiplied.
double BanditRegression::add_target(const Trial& trial) {
  const std::lock_guard lock(scale_);
  return targets_.add(target(trial, curvature()));
}

// Targets need the curvature of the loss, which takes some rounds to estimate.
double BanditRegression::add_first_targets() {
  double change = 1.0;
  for (std::size_t i = 0; i < stored_.size(); ++i) change *= add_target(stored_.outcome(i));
  return change;
}

void BanditRegression::learn(const float* x, const Trial& trial) {
  Random random(seed_, kUpdates + n_learned_++);
  stored_.add(x, trial, random);
  if (options_.is_paper) {
    if (stored_.size() < static_cast<std::size_t>(options_.batch_size)) return;
    tree_.refresh();
    step_on_newest();
    return;
  }
  const double loss_change = expected_.add(trial.loss);
  const std::uint64_t n_first = options_.n_first;
  if (n_learned_ < n_first) return;
  const double change = n_learned_ == n_first ? add_first_targets() : add_target(trial);
  if (!targets_.is_known()) return;
  tree_.refresh();
  if (change != 1.0) tree_.scale_leaves(0, change);
  if (!options_.has_two_points && loss_change != 1.0) tree_.scale_leaves(1, loss_change);
  for (due_ += options_.updates_per_round; due_ >= 1; due_ -= 1) step_on_stored(x, trial, random);
  tree_.publish(n_learned_);
}

// A row of the tile. Rounds whose slopes were noisier than recent ones have a smaller weight.
void BanditRegression::fill(int i, const float* x, const Trial& trial, double curvature) {
  SampleTile& tile = tree_.batch().tile;
  tree_.standardize(x, tile.X.row(i));
  tile.target[i] = targets_.standard(target(trial, curvature));
  if (!options_.has_two_points) tile.target[tile.capacity + i] = expected_.standard(trial.loss);
  const double noise = losses_.square() / (options_.perturbation * options_.perturbation);
  tile.weight[i] = noise < trial.variance ? static_cast<float>(noise / trial.variance) : 1.0f;
}

std::size_t BanditRegression::drawn(Random& random) const {
  const std::size_t n = stored_.size();
  std::size_t recency = 0;  // 0 is the oldest
  for (int i = 0; i < options_.recency; ++i)
    recency = std::max<std::size_t>(recency, random.below(n));
  return (stored_.n_added() + recency) % n;  // a full buffer is a ring
}

// The newest round, and others drawn from all that are stored.
void BanditRegression::step_on_stored(const float* x, const Trial& trial, Random& random) {
  const std::size_t n = stored_.size();
  const int size = static_cast<int>(std::min<std::size_t>(n, options_.batch_size));
  const double deviation = options_.input_noise / std::sqrt(std::sqrt(static_cast<double>(n)));
  const double c = curvature();
  SampleTile& tile = tree_.batch().tile;
  tree_.step_on(size, 1.0f / static_cast<float>(size), [&](int first) {
    for (int i = 0; i < tile.n; ++i) {
      const std::size_t place = drawn(random);
      fill(i, stored_.context(place), stored_.outcome(place), c);
    }
    if (first == 0) fill(0, x, trial, c);
    if (deviation > 0) tree_.batch().add_noise(static_cast<float>(deviation), random);
  });
}

void BanditRegression::step_on_newest() {
  SampleTile& tile = tree_.batch().tile;
  const int size = options_.batch_size;
  std::vector<float> slopes(size);
  for (int i = 0; i < size; ++i) slopes[i] = static_cast<float>(stored_.outcome(i).slope);
  tree_.step_on(size, 1.0f, [&](int first) {
    for (int i = 0; i < tile.n; ++i) tree_.standardize(stored_.context(first + i), tile.X.row(i));
    std::fill_n(tile.weight, tile.n, 1.0f);
    tile.slope = slopes.data() + first;
  });
  tree_.publish(n_learned_);
  stored_.clear();
}

OnlineTree::RawTree BanditRegression::raw_tree() const {
  OnlineTree::RawTree raw = tree_.raw();
  const int k = tree_.shape().n_outputs, n_leaves = tree_.shape().n_leaves();
  for (int i = 0; i < n_leaves; ++i)
    raw.values[i] = number_of(static_cast<float>(raw.values[static_cast<std::size_t>(i) * k]));
  raw.values.resize(n_leaves);
  return raw;
}

void BanditRegression::start_from(std::span<const double> weights, std::span<const double> bias,
                                  std::span<const double> values, std::span<const double> mean,
                                  std::span<const double> deviation, double rows) {
  const std::lock_guard lock(learning_);
  const auto [lowest, highest] = std::ranges::minmax(values);
  if (!options_.is_paper) {
    const std::lock_guard scale_lock(scale_);
    targets_.start_from(inner(lowest), inner(highest));
  }
  const std::size_t k = tree_.shape().n_outputs;
  std::vector<float> held(values.size() * k);  // expected losses are unknown
  for (std::size_t i = 0; i < values.size(); ++i)
    held[i * k] = options_.is_paper ? static_cast<float>(inner(values[i]))
                                    : targets_.standard(inner(values[i]));
  tree_.start_from(weights, bias, held, mean, deviation, rows);
}

BanditRegression::State BanditRegression::state() const {
  const std::lock_guard lock(learning_);
  return {tree_.state(),   targets_.state(), expected_.state(), losses_.state(),
          stored_.state(), n_drawn_,         n_learned_,        due_};
}

void BanditRegression::set_state(State s) {
  const std::lock_guard lock(learning_);
  const std::uint64_t waiting = options_.is_paper ? s.stored.outcomes.size() : 0;
  const bool is_learned = options_.is_paper || s.targets.is_known;
  tree_.set_state(s.tree, is_learned ? s.n_learned - waiting : 0);
  const std::lock_guard scale_lock(scale_);
  targets_.set_state(s.targets);
  expected_.set_state(s.expected);
  losses_.set_state(s.losses);
  stored_.set_state(std::move(s.stored));
  n_drawn_ = s.n_drawn;
  n_learned_ = s.n_learned;
  due_ = s.due;
}

}  // namespace hardwood
