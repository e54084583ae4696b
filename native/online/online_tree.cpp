#include "online/online_tree.hpp"

#include <algorithm>
#include <cmath>

#include "core/kernels.hpp"

namespace hardwood {

namespace {
// A stream of random numbers of its own, beyond those of the rounds.
constexpr std::uint64_t kStartStream = 1ull << 63;
}  // namespace

OnlineBatch::OnlineBatch(int n_columns, int n_targets, int capacity)
    : X_(static_cast<std::size_t>(capacity) * padded(n_columns)),
      target_(static_cast<std::size_t>(n_targets) * capacity),
      weight_(capacity) {
  tile.capacity = capacity;
  tile.X = {X_.data(), capacity, n_columns, padded(n_columns)};
  tile.target = target_.data();
  tile.weight = weight_.data();
}

// One random word gives two entries.
void OnlineBatch::add_noise(float deviation, Random& random) {
  const float width = 2.0f * std::sqrt(3.0f) * deviation;
  const auto noise = [&](std::uint32_t half) {
    return width * (static_cast<float>(half & 0xffff) * 0x1p-16f - 0.5f);
  };
  const int n_columns = static_cast<int>(tile.X.cols);
  for (int i = 0; i < tile.n; ++i) {
    float* z = tile.X.row(i);
    for (int c = 0; c < n_columns; c += 2) {
      const std::uint32_t word = random.bits();
      z[c] += noise(word);
      if (c + 1 < n_columns) z[c + 1] += noise(word >> 16);
    }
  }
}

OnlineTree::OnlineTree(DgtShape shape, Loss loss, const OnlineStep& step, int batch_size,
                       std::uint64_t seed)
    : shape_(shape),
      seed_(seed),
      step_(step),
      learner_(shape, DgtForm{step.path, step.quantizer}, Annealing{}, loss, 0.0f, batch_size),
      parameters_(learner_.layout().n_parameters()),
      first_moment_(learner_.layout().n_parameters() + step.shares_bias),
      second_moment_(learner_.layout().n_parameters() + step.shares_bias),
      gradient_(learner_.layout().n_parameters()),
      mean_(step.averaging > 0 ? learner_.layout().n_parameters() : 0),
      // The losses of actions read two targets, the others one per output.
      batch_(shape.n_columns, std::max(shape.n_outputs, 2), learner_.tile_capacity(batch_size)),
      learned_scale_{std::vector<float>(shape.n_columns), std::vector<float>(shape.n_columns)},
      next_served_(shape, step.order),
      moments_(shape.n_columns),
      served_(shape, step.order) {
  Random random(seed, kStartStream);
  learner_.initialize(random, parameters_.data());
  const Parameters<float> p = learner_.layout().view(parameters_.data());
  if (!step.hidden.empty()) {
    layers_.emplace(shape.n_nodes(), shape.n_columns, step.hidden);
    layers_->initialize(random);
    layers_->collapse(weights_in(p.W), p.b);
  }
  if (step.starts_level)
    std::fill_n(p.leaves, static_cast<std::size_t>(shape.n_leaves()) * shape.n_outputs, 0.0f);
  std::copy_n(parameters_.begin(), mean_.size(), mean_.begin());
  publish(0);
}

void OnlineTree::count_context(const float* x) {
  const std::lock_guard lock(serving_);
  moments_.add(x);
}

OnlineTree::Reached OnlineTree::values(const float* x, std::span<float> out) const {
  const std::lock_guard lock(serving_);
  const int leaf = served_.leaf_of(x);
  std::copy_n(served_.leaf(leaf), shape_.n_outputs, out.begin());
  return {leaf, served_.version};
}

void OnlineTree::refresh() {
  const std::lock_guard lock(serving_);
  if (learned_scale_.version != moments_.scale().version) learned_scale_ = moments_.scale();
}

// Of everything that a step updates: with several layers, their factors instead of the splits.
double OnlineTree::squared_norm() {
  const Parameters<float> g = learner_.layout().view(gradient_.data());
  const std::size_t leaves = g.leaves - gradient_.data();
  double sum = layers_ ? layers_->spread(weights_in(g.W), g.b) : 0.0;
  for (std::size_t i = layers_ ? leaves : 0; i < gradient_.size(); ++i)
    sum += static_cast<double>(gradient_[i]) * gradient_[i];
  return sum;
}

// A row's slope is in the gradient of one leaf, so the sum over the leaves is the gradient by what
// they share. The averages of that gradient are the last entries of the moments.
void OnlineTree::step_of_shared_bias(const StepOptions& step) {
  float* leaves = learner_.layout().view(parameters_.data()).leaves;
  const std::size_t first = leaves - parameters_.data(), last = parameters_.size();
  float sum = 0, move = 0;
  for (std::size_t i = first; i < last; ++i) sum += gradient_[i];
  kernels().optimize(1, &move, &sum, second_moment_.data() + last, first_moment_.data() + last,
                     step);
  for (std::size_t i = first; i < last; ++i) parameters_[i] += move;
}

// Splits may be penalized, leaves are not.
void OnlineTree::step() {
  StepOptions step = step_.step;
  const bool needs_norm = layers_ || std::isfinite(step_.clip);
  clock_.prepare(step, needs_norm ? squared_norm() : 0.0, step_.clip);
  const double slower = 1.0 / std::sqrt(1.0 + static_cast<double>(n_steps_++) / step_.slowing);
  const auto move = [&](std::size_t first, std::size_t last, float rate) {
    step.learning_rate = static_cast<float>(rate * slower);
    kernels().optimize(last - first, parameters_.data() + first, gradient_.data() + first,
                       second_moment_.data() + first, first_moment_.data() + first, step);
  };
  const Parameters<float> p = learner_.layout().view(parameters_.data());
  const std::size_t leaves = p.leaves - parameters_.data();  // splits come before them
  step.l2 = 0.0f;
  move(leaves, parameters_.size(), step_.step.learning_rate);
  if (step_.shares_bias) step_of_shared_bias(step);
  step.l2 = step_.step.l2;
  if (layers_) {
    step.learning_rate = static_cast<float>(step_.split_rate * slower);
    layers_->step(step);
    layers_->collapse(weights_in(p.W), p.b);
  } else {
    move(0, leaves, step_.split_rate);
  }
  average();
}

void OnlineTree::average() {
  const float part = static_cast<float>(
      std::min(1.0, 1.0 / (1.0 + step_.averaging * static_cast<double>(n_steps_))));
  for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += part * (parameters_[i] - mean_[i]);
}

void OnlineTree::scale_leaves(double factor) {
  for (int k = 0; k < shape_.n_outputs; ++k) scale_leaves(k, factor);
}

void OnlineTree::scale_leaves(int output, double factor) {
  const auto scale = [&](Buffer<float>& parameters) {
    float* theta = learner_.layout().view(parameters.data()).leaves;
    for (int i = output; i < shape_.n_leaves() * shape_.n_outputs; i += shape_.n_outputs)
      theta[i] = static_cast<float>(theta[i] * factor);
  };
  scale(parameters_);
  if (mean_.size()) scale(mean_);
}

void OnlineTree::publish(std::uint64_t version) {
  Buffer<float>& decides = mean_.size() ? mean_ : parameters_;
  next_served_.pack(learner_.layout().view(decides.data()), learned_scale_);
  next_served_.version = version;
  const std::lock_guard lock(serving_);
  std::swap(served_, next_served_);
}

OnlineTree::RawTree OnlineTree::raw() const {
  const std::lock_guard lock(serving_);
  const std::span<const float> leaves = served_.leaves();
  return {served_.weights(),
          served_.bias(),
          {leaves.begin(), leaves.end()},
          served_.deviation(),
          served_.version};
}

void OnlineTree::start_from(std::span<const double> weights, std::span<const double> bias,
                            std::span<const float> values, std::span<const double> mean,
                            std::span<const double> deviation, double rows) {
  const Parameters<float> p = learner_.layout().view(parameters_.data());
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
  std::copy(values.begin(), values.end(), p.leaves);
  if (layers_) {
    Random random(seed_, kStartStream);
    layers_->start_from(random, weights_in(p.W), p.b);
    layers_->collapse(weights_in(p.W), p.b);
  }
  {
    const std::lock_guard lock(serving_);
    moments_.start_from(mean, deviation, rows);
  }
  refresh();
  std::copy_n(parameters_.begin(), mean_.size(), mean_.begin());
  publish(0);
}

OnlineTree::State OnlineTree::state() const {
  const auto all = [](const Buffer<float>& b) { return std::vector<float>(b.begin(), b.end()); };
  State s{all(parameters_),    all(first_moment_),
          all(second_moment_), layers_ ? layers_->state() : std::vector<float>{},
          all(mean_),          {},
          clock_.powers(),     n_steps_};
  const std::lock_guard lock(serving_);
  s.columns = moments_.state();
  for (const auto* part : {&learned_scale_.center, &learned_scale_.factor})
    s.columns.insert(s.columns.end(), part->begin(), part->end());
  return s;
}

void OnlineTree::set_state(const State& s, std::uint64_t version) {
  std::copy(s.parameters.begin(), s.parameters.end(), parameters_.begin());
  std::copy(s.first_moment.begin(), s.first_moment.end(), first_moment_.begin());
  std::copy(s.second_moment.begin(), s.second_moment.end(), second_moment_.begin());
  if (layers_) {
    const Parameters<float> p = learner_.layout().view(parameters_.data());
    layers_->set_state(s.layers);
    layers_->collapse(weights_in(p.W), p.b);
  }
  std::copy(s.mean.begin(), s.mean.end(), mean_.begin());
  clock_.set_powers(s.powers);
  n_steps_ = s.n_steps;
  {
    const std::lock_guard lock(serving_);
    moments_.set_state(s.columns);
  }
  auto from = s.columns.end() - 2 * shape_.n_columns;
  for (auto* part : {&learned_scale_.center, &learned_scale_.factor})
    for (float& value : *part) value = static_cast<float>(*from++);
  learned_scale_.version = 0;
  publish(version);
}

}  // namespace hardwood
