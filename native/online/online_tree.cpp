#include "online/online_tree.hpp"

#include <algorithm>
#include <cmath>

#include "core/kernels.hpp"

namespace hardwood {

namespace {
// Its own stream of random numbers, beyond those of any round.
constexpr std::uint64_t kStartStream = 1ull << 63;
}  // namespace

OnlineBatch::OnlineBatch(int n_columns, int capacity)
    : X_(static_cast<std::size_t>(capacity) * padded(n_columns)),
      target_(2 * static_cast<std::size_t>(capacity)),
      weight_(capacity) {
  tile.capacity = capacity;
  tile.X = {X_.data(), capacity, n_columns, padded(n_columns)};
  tile.target = target_.data();
  tile.weight = weight_.data();
}

OnlineTree::OnlineTree(DgtShape shape, Loss loss, const OnlineStep& step, int batch_size,
                       std::uint64_t seed)
    : shape_(shape),
      seed_(seed),
      step_(step),
      learner_(shape, DgtForm{}, Annealing{}, loss, 0.0f, batch_size),
      parameters_(learner_.n_parameters()),
      first_moment_(learner_.n_parameters()),
      second_moment_(learner_.n_parameters()),
      gradient_(learner_.n_parameters()),
      batch_(shape.n_columns, learner_.tile_capacity(batch_size)),
      learned_moments_(shape.n_columns),
      moments_(shape.n_columns),
      served_(learner_.n_parameters()),
      z_(shape.n_columns) {
  Random random(seed, kStartStream);
  learner_.initialise(random, parameters_.data());
  const DgtParameters p = learner_.view(parameters_.data());
  if (!step.hidden.empty()) {
    layers_.emplace(shape.n_nodes(), shape.n_columns, step.hidden);
    layers_->initialise(random);
    layers_->collapse(weights_in(p.W), p.b);
  }
  if (step.starts_level)
    std::fill_n(p.theta, static_cast<std::size_t>(shape.n_leaves()) * shape.n_outputs, 0.0f);
  publish();
}

void OnlineTree::meet(const float* x) {
  const std::lock_guard lock(serving_);
  moments_.add(x);
}

int OnlineTree::leaf_of(const DgtParameters& p, const float* z) const {
  const int m = shape_.n_nodes(), d = shape_.n_columns;
  int node = 0;
  while (node < m) {
    const float* w = p.W + static_cast<std::ptrdiff_t>(node) * padded(d);
    float lane[8] = {}, score = p.b[node];
    int c = 0;
    for (; c + 8 <= d; c += 8)
      for (int l = 0; l < 8; ++l) lane[l] += w[c + l] * z[c + l];
    for (; c < d; ++c) score += w[c] * z[c];
    for (int l = 0; l < 8; ++l) score += lane[l];
    node = 2 * node + 1 + (score >= 0);
  }
  return node - m;
}

void OnlineTree::values(const float* x, std::span<float> out) const {
  const std::lock_guard lock(serving_);
  moments_.standardise(x, z_.data());
  const DgtParameters p = learner_.view(const_cast<float*>(served_.data()));
  const std::ptrdiff_t k = shape_.n_outputs;
  std::copy_n(p.theta + leaf_of(p, z_.data()) * k, k, out.begin());
}

void OnlineTree::refresh() {
  const std::lock_guard lock(serving_);
  learned_moments_ = moments_;
}

void OnlineTree::add_gradient(float factor, const float* slope) {
  learner_.add_gradient(parameters_.data(), batch_.tile, factor, slope, is_first_,
                        gradient_.data());
  is_first_ = false;
}

void OnlineTree::step() {
  StepOptions step = step_.step;
  clock_.prepare(step, 0.0, 1.0f);
  const double slower = 1.0 / std::sqrt(1.0 + static_cast<double>(n_steps_++) / step_.slowing);
  const auto move = [&](std::size_t first, std::size_t last, float rate) {
    step.learning_rate = static_cast<float>(rate * slower);
    kernels().optimise(last - first, parameters_.data() + first, gradient_.data() + first,
                       second_moment_.data() + first, first_moment_.data() + first, step);
  };
  const DgtParameters p = learner_.view(parameters_.data());
  const std::size_t leaves = p.theta - parameters_.data();  // splits come before them
  move(leaves, parameters_.size(), step_.step.learning_rate);
  if (layers_) {
    step.learning_rate = static_cast<float>(step_.split_rate * slower);
    layers_->spread(weights_in(gradient_.data()), learner_.view(gradient_.data()).b);
    layers_->step(step);
    layers_->collapse(weights_in(p.W), p.b);
  } else {
    move(0, leaves, step_.split_rate);
  }
  is_first_ = true;
}

void OnlineTree::scale_leaves(double factor) {
  const DgtParameters p = learner_.view(parameters_.data());
  for (int i = 0; i < shape_.n_leaves() * shape_.n_outputs; ++i)
    p.theta[i] = static_cast<float>(p.theta[i] * factor);
}

void OnlineTree::publish() {
  const std::lock_guard lock(serving_);
  std::copy(parameters_.begin(), parameters_.end(), served_.begin());
}

OnlineTree::RawTree OnlineTree::raw() const {
  const std::lock_guard lock(serving_);
  const DgtParameters p = learner_.view(const_cast<float*>(served_.data()));
  const int m = shape_.n_nodes(), d = shape_.n_columns;
  RawTree raw{
      std::vector<double>(static_cast<std::size_t>(m) * d), std::vector<double>(m), {}, {}, {}};
  for (int i = 0; i < m; ++i) {
    raw.bias[i] = p.b[i];
    for (int c = 0; c < d; ++c) {
      const double w = static_cast<double>(p.W[static_cast<std::ptrdiff_t>(i) * padded(d) + c]) *
                       moments_.factor()[c];
      raw.weights[static_cast<std::size_t>(i) * d + c] = w;
      raw.bias[i] -= w * moments_.center()[c];
    }
  }
  raw.values.assign(p.theta, p.theta + shape_.n_leaves() * shape_.n_outputs);
  raw.center.assign(moments_.center().begin(), moments_.center().end());
  for (const float factor : moments_.factor())
    raw.scale.push_back(factor > 0 ? 1.0 / static_cast<double>(factor) : 1.0);
  return raw;
}

void OnlineTree::start_from(std::span<const double> weights, std::span<const double> bias,
                            std::span<const float> values, std::span<const double> mean,
                            std::span<const double> deviation, double rows) {
  const DgtParameters p = learner_.view(parameters_.data());
  const int d = shape_.n_columns;
  for (int i = 0; i < shape_.n_nodes(); ++i) {
    double at_mean = bias[i];
    for (int c = 0; c < d; ++c) {
      const double w = weights[static_cast<std::size_t>(i) * d + c];
      at_mean += w * mean[c];
      p.W[static_cast<std::ptrdiff_t>(i) * padded(d) + c] = static_cast<float>(w * deviation[c]);
    }
    p.b[i] = static_cast<float>(at_mean);
  }
  std::copy(values.begin(), values.end(), p.theta);
  if (layers_) {
    Random random(seed_, kStartStream);
    layers_->start_from(random, weights_in(p.W), p.b);
    layers_->collapse(weights_in(p.W), p.b);
  }
  {
    const std::lock_guard lock(serving_);
    moments_.start_from(mean, deviation, rows);
  }
  publish();
}

OnlineTree::State OnlineTree::state() const {
  const std::lock_guard lock(serving_);
  const auto all = [](const Buffer<float>& b) { return std::vector<float>(b.begin(), b.end()); };
  return {all(parameters_),
          all(first_moment_),
          all(second_moment_),
          layers_ ? layers_->state() : std::vector<float>{},
          moments_.state(),
          clock_.powers(),
          n_steps_};
}

void OnlineTree::set_state(const State& s) {
  std::copy(s.parameters.begin(), s.parameters.end(), parameters_.begin());
  std::copy(s.first_moment.begin(), s.first_moment.end(), first_moment_.begin());
  std::copy(s.second_moment.begin(), s.second_moment.end(), second_moment_.begin());
  if (layers_) layers_->set_state(s.layers);
  clock_.set_powers(s.powers);
  n_steps_ = s.n_steps;
  {
    const std::lock_guard lock(serving_);
    moments_.set_state(s.columns);
  }
  publish();
}

}  // namespace hardwood
