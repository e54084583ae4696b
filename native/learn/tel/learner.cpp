#include "learn/tel/learner.hpp"

#include <algorithm>
#include <cmath>

namespace hardwood {

namespace {

constexpr int kPartRows = 256;           // samples that walk together
constexpr double kVarianceFloor = 1e-3;  // epsilon of batch normalization, as Keras has it
constexpr float kStartBound = 0.01f;     // splits and leaves, as the authors' code has it

int part_rows(int capacity) {
  return std::min(kPartRows, capacity);
}
Layout layout_of(const SoftShape& shape) {
  const std::size_t trees = shape.n_trees;
  return {trees * shape.n_nodes(), trees * shape.n_leaves(), shape.n_columns, shape.n_outputs};
}
int n_parts(int capacity) {
  return (capacity + part_rows(capacity) - 1) / part_rows(capacity);
}

}  // namespace

void ColumnMoments::add(const SampleTile& tile) {
  for (int i = 0; i < tile.n; ++i) {
    const double weight = tile.weight[i];
    const float* x = tile.X.row(i);
    total_ += weight;
    for (std::size_t j = 0; j < sum_.size(); ++j) {
      sum_[j] += weight * x[j];
      sum_of_squares_[j] += weight * x[j] * x[j];
    }
  }
}

std::pair<double, double> ColumnMoments::scale_and_shift(int j) const {
  const double mean = sum_[j] / total_;
  const double variance = std::max(sum_of_squares_[j] / total_ - mean * mean, 0.0);
  const double scale = 1.0 / std::sqrt(variance + kVarianceFloor);
  return {scale, -mean * scale};
}

TelLearner::TelLearner(SoftShape shape, Activation activation, float gamma, bool normalizes,
                       Loss loss, float loss_parameter, int batch_size, std::size_t max_kept_scores)
    : GradientLearner(layout_of(shape)),
      shape_(shape),
      activation_(activation),
      gamma_(gamma),
      normalizes_(normalizes),
      loss_(loss),
      loss_parameter_(loss_parameter),
      capacity_(rounded_up(batch_size, kTileStep)),
      memory_(shape, padded(shape.n_columns), part_rows(capacity_), SoftPurpose::kGradient),
      X_(static_cast<std::size_t>(capacity_) * padded(shape.n_columns)),
      XT_(static_cast<std::size_t>(n_parts(capacity_)) * part_rows(capacity_) * shape.n_columns),
      out_(static_cast<std::size_t>(capacity_) * shape.n_outputs),
      slope_(out_.size()),
      prediction_(out_.size()),
      gradient_(out_.size()),
      tape_(kRoomBehind * n_parts(capacity_) +
            std::min(max_kept_scores,
                     static_cast<std::size_t>(capacity_) * shape.n_trees * shape.n_nodes())),
      of_all_(shape.n_columns) {}

SoftTrees<float> TelLearner::trees(const float* parameters) const {
  const auto [W, A, b, leaves] = layout().view(parameters);
  return {shape_, activation_, gamma_, W, padded(shape_.n_columns), b, leaves};
}

void TelLearner::initialize(Random& random, float* parameters) const {
  const std::size_t stride = padded(shape_.n_columns);
  const Parameters<float> p = layout().view(parameters);
  for (std::size_t i = 0; i < layout().n_splits; ++i)
    for (int j = 0; j < shape_.n_columns; ++j)
      p.W[i * stride + j] = random.uniform(-kStartBound, kStartBound);
  for (std::size_t i = 0; i < layout().n_values(); ++i)
    p.leaves[i] = random.uniform(-kStartBound, kStartBound);
}

void TelLearner::load(const SampleTile& samples, Purpose purpose) {
  n_ = samples.n;
  const int d = shape_.n_columns, stride = padded(d);
  ColumnMoments of_batch(d);
  // One row has no variance; it is normalized as in prediction.
  if (normalizes_ && purpose == Purpose::kStep && n_ > 1) of_batch.add(samples);
  const ColumnMoments& moments = of_batch.is_known() ? of_batch : of_all_;
  std::vector<float> scale(d, 1.0f), shift(d);
  for (int j = 0; j < d && moments.is_known(); ++j) {
    const auto [factor, offset] = moments.scale_and_shift(j);
    scale[j] = static_cast<float>(factor);
    shift[j] = static_cast<float>(offset);
  }
  for (int i = 0; i < n_; ++i) {
    const float* x = samples.X.row(i);
    float* normalized = X_.data() + static_cast<std::size_t>(i) * stride;
    for (int j = 0; j < d; ++j) normalized[j] = x[j] * scale[j] + shift[j];
  }
}

template <class Each>
void TelLearner::for_parts(Each&& each) {
  const int rows = part_rows(capacity_), d = shape_.n_columns, stride = padded(d);
  SoftTile<float>& tile = memory_.tile;
  const std::size_t tape = tape_.size() / n_parts(capacity_);
  for (int part = 0; part * rows < n_; ++part) {
    const int first = part * rows;
    tile.n = std::min(rows, n_ - first);
    tile.X = X_.data() + static_cast<std::size_t>(first) * stride;
    tile.XT = XT_.data() + static_cast<std::size_t>(first) * d;
    tile.tape = {tape_.data() + part * tape, tape - kRoomBehind, 0};
    each(tile, first);
  }
}

// Writes the outputs (n, k) to out_.
void TelLearner::forward(const SoftTrees<float>& trees, bool keeps_scores) {
  const int d = shape_.n_columns, k = shape_.n_outputs;
  std::fill_n(out_.begin(), static_cast<std::size_t>(n_) * k, 0.0f);
  for_parts([&](SoftTile<float>& tile, int first) {
    float* XT = XT_.data() + static_cast<std::size_t>(first) * d;
    kernels().transpose({tile.X, tile.n, d, trees.stride}, {XT, d, tile.capacity, tile.capacity});
    if (!keeps_scores) tile.tape = {};
    tile.n_reached = 0;
    tile.out = out_.data() + static_cast<std::size_t>(first) * k;
    kernels().soft_forward(trees, tile);
    if (keeps_scores) n_reached_ += tile.n_reached;
  });
}

double TelLearner::add_gradient(const float* parameters, const SampleTile& samples, float factor,
                                float* gradient) {
  const int k = shape_.n_outputs;
  const SoftTrees<float> soft = trees(parameters);
  if (samples.is_first) std::fill_n(gradient, layout().n_parameters(), 0.0f);
  load(samples, Purpose::kStep);
  forward(soft, true);
  n_met_ += std::int64_t{n_} * shape_.n_trees;
  double total = 0;
  const float* slope = samples.slope;
  if (!slope) {
    kernels().transpose({out_.data(), n_, k, k}, {prediction_.data(), k, capacity_, capacity_});
    total = kernels().loss_and_gradient(
        loss_, loss_parameter_,
        {k, capacity_, prediction_.data(), samples.target, samples.weight, gradient_.data()},
        factor);
    kernels().transpose({gradient_.data(), k, n_, capacity_}, {slope_.data(), n_, k, k});
    slope = slope_.data();
  }
  const Parameters<float> g = layout().view(gradient);
  SoftGradient<float> sums{nullptr, g.W, g.b, g.leaves, nullptr};
  for_parts([&](SoftTile<float>& tile, int row) {
    sums.slope = slope + static_cast<std::size_t>(row) * k;
    kernels().tel_backward(soft, tile, sums);
  });
  return total;
}

void TelLearner::predict(const float* parameters, const SampleTile& samples, Purpose purpose,
                         float* prediction) {
  load(samples, purpose);
  forward(trees(parameters), false);
  const int k = shape_.n_outputs;
  kernels().transpose({out_.data(), n_, k, k}, {prediction, k, capacity_, capacity_});
}

void TelLearner::before_epoch(int epoch, const float*, const Tiles& all_rows) {
  if (normalizes_ && epoch == 0) all_rows([&](const SampleTile& tile) { of_all_.add(tile); });
}

void TelLearner::report(double, EpochRecord& record) {
  record.reachable_leaves = static_cast<double>(n_reached_) / static_cast<double>(n_met_);
  n_reached_ = n_met_ = 0;
}

// Folds the normalization into the splits, which then apply to plain columns.
void TelLearner::finish(float* parameters) const {
  if (!of_all_.is_known()) return;
  const std::size_t stride = padded(shape_.n_columns);
  const Parameters<float> p = layout().view(parameters);
  for (std::size_t i = 0; i < layout().n_splits; ++i) {
    double bias = p.b[i];
    for (int j = 0; j < shape_.n_columns; ++j) {
      const auto [scale, shift] = of_all_.scale_and_shift(j);
      float& w = p.W[i * stride + j];
      bias += w * shift;
      w = static_cast<float>(w * scale);
    }
    p.b[i] = static_cast<float>(bias);
  }
}

}  // namespace hardwood
