#include "online/reward_network.hpp"

#include <algorithm>
#include <cmath>

#include "core/kernels.hpp"

namespace hardwood {

namespace {

// A stream of random numbers of its own, beside those of the tree and of the rounds.
constexpr std::uint64_t kStartStream = (1ull << 63) + 1;

int columns_of(const NetworkShape& shape, int i) {
  return shape.width(i) + (i < kNetworkLayers);  // and the constant
}

}  // namespace

std::size_t NetworkShape::first(int i) const {
  std::size_t sum = 0;
  for (int j = 0; j < i; ++j)
    sum += static_cast<std::size_t>(width_[j] + 1) * padded(width_[j + 1]);
  return sum;
}

Activations::Activations(const NetworkShape& shape, int capacity) {
  for (int i = 0; i <= kNetworkLayers; ++i) {
    columns_[i] = columns_of(shape, i);
    stride_[i] = padded(columns_[i]);
    values_[i] = Buffer<float>(static_cast<std::size_t>(capacity) * stride_[i]);
  }
}

void forward(const NetworkShape& shape, const float* parameters, int n, Activations& rows) {
  for (int i = 0; i < kNetworkLayers; ++i) {
    const Matrix<float> in = rows.at(i, n), out = rows.at(i + 1, n);
    const int width = shape.width(i + 1);
    for (int r = 0; r < n; ++r) in.row(r)[shape.width(i)] = 1.0f;
    kernels().gemm(in, shape.layer(parameters, i), out);
    if (i + 1 == kNetworkLayers) return;
    for (int r = 0; r < n; ++r)
      for (int j = 0; j < width; ++j) out.row(r)[j] = std::max(out.row(r)[j], 0.0f);
  }
}

float expected_reward(RewardLoss loss, float output) {
  return loss == RewardLoss::kLogistic ? 1.0f / (1.0f + std::exp(-output)) : output;
}

float reward_slope(RewardLoss loss, float output, float reward) {
  const float error = expected_reward(loss, output) - reward;
  return loss == RewardLoss::kHuber ? std::clamp(error, -kHuberWidth, kHuberWidth) : error;
}

RewardNetwork::RewardNetwork(int n_columns, int n_actions, const NetworkOptions& options,
                             int batch_size, std::uint64_t seed)
    : shape_(n_columns, options.hidden, n_actions),
      options_(options),
      parameters_(shape_.n_parameters()),
      first_moment_(shape_.n_parameters()),
      second_moment_(shape_.n_parameters()),
      gradient_(shape_.n_parameters()),
      transposed_(static_cast<std::size_t>(std::max(options.hidden, n_actions)) *
                  padded(options.hidden + 1)),
      start_(shape_.n_parameters() - last_layer()),
      rows_(shape_, batch_size),
      slopes_(shape_, batch_size) {
  Random random(seed, kStartStream);
  for (int i = 0; i < kNetworkLayers; ++i) {
    const Matrix<float> W = shape_.layer(parameters_.data(), i);
    const float bound = 1.0f / std::sqrt(static_cast<float>(shape_.width(i)));
    for (int r = 0; r < W.rows; ++r)
      for (int j = 0; j < W.cols; ++j) W.row(r)[j] = random.uniform(-bound, bound);
  }
  std::copy(parameters_.begin() + last_layer(), parameters_.end(), start_.begin());
}

// From the slopes of the outputs to the gradient of every layer. G = A^T S, and the slopes of the
// layer before are S W^T where its units are on.
void RewardNetwork::fall(int n) {
  for (int i = kNetworkLayers - 1; i >= 0; --i) {
    Matrix<float> slope = slopes_.at(i + 1, n);
    slope.cols = shape_.width(i + 1);
    kernels().gemm_transposed(rows_.at(i, n), slope, shape_.layer(gradient_.data(), i));
    if (i == 0) return;
    Matrix<float> W = shape_.layer(parameters_.data(), i);
    W.rows = shape_.width(i);  // without the bias
    const Matrix<float> back{transposed_.data(), W.cols, W.rows, padded(W.rows)};
    kernels().transpose(W, back);
    kernels().gemm(slope, back, slopes_.at(i, n));
    for (int r = 0; r < n; ++r) {
      const float* unit = rows_.at(i, n).row(r);
      float* to = slopes_.at(i, n).row(r);
      for (int j = 0; j < W.rows; ++j) to[j] = unit[j] > 0 ? to[j] : 0.0f;
    }
  }
}

std::span<const float> RewardNetwork::gradient(std::span<const ActionReward> wanted,
                                               RewardLoss loss) {
  const int n = static_cast<int>(wanted.size());
  answer(n);
  const Matrix<float> slope = slopes_.outputs(n), found = rows_.outputs(n);
  for (int r = 0; r < n; ++r) {
    const ActionReward& row = wanted[r];
    std::fill_n(slope.row(r), slope.stride, 0.0f);
    slope.row(r)[row.action] = row.weight / static_cast<float>(n) *
                               reward_slope(loss, found.row(r)[row.action], row.reward);
  }
  fall(n);
  return {gradient_.data(), gradient_.size()};
}

void RewardNetwork::step(std::span<const ActionReward> wanted, RewardLoss loss) {
  gradient(wanted, loss);
  StepOptions step = options_.step;
  clock_.prepare(step, 0.0, std::numeric_limits<float>::infinity());
  const float kept = 1.0f - step.learning_rate * options_.weight_decay;
  for (float& w : parameters_) w *= kept;
  kernels().optimize(parameters_.size(), parameters_.data(), gradient_.data(),
                     second_moment_.data(), first_moment_.data(), step);
  for (float& w : parameters_) w = std::clamp(w, -kMostNetworkWeight, kMostNetworkWeight);
}

void RewardNetwork::scale_outputs(double factor) {
  for (std::size_t i = last_layer(); i < parameters_.size(); ++i)
    parameters_[i] = static_cast<float>(parameters_[i] * factor);
}

void RewardNetwork::forget() {
  std::copy(start_.begin(), start_.end(), parameters_.begin() + last_layer());
  std::ranges::fill(first_moment_, 0.0f);
  std::ranges::fill(second_moment_, 0.0f);
  clock_ = {};
}

RewardNetwork::State RewardNetwork::state() const {
  const auto all = [](const Buffer<float>& b) { return std::vector<float>(b.begin(), b.end()); };
  return {all(parameters_), all(first_moment_), all(second_moment_), clock_.powers()};
}

void RewardNetwork::set_state(const State& s) {
  std::ranges::copy(s.parameters, parameters_.begin());
  std::ranges::copy(s.first_moment, first_moment_.begin());
  std::ranges::copy(s.second_moment, second_moment_.begin());
  clock_.set_powers(s.powers);
}

}  // namespace hardwood
