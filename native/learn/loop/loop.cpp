// The one training loop: mini-batches, schedule, clipping, penalties, early stopping, best weights.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "core/kernels.hpp"
#include "learn/loop/descent.hpp"
#include "learn/loop/training.hpp"

namespace hardwood {

namespace {

// Encodes given rows of a problem into a tile.
class TileReader {
 public:
  TileReader(const Problem& problem, int capacity)
      : problem_(problem),
        stride_(padded(problem.n_columns())),
        X_(static_cast<std::size_t>(capacity) * stride_),
        target_(static_cast<std::size_t>(capacity) * problem.n_targets),
        weight_(capacity),
        active_(static_cast<std::size_t>(capacity) * problem.encoding.n_features),
        active_end_(capacity) {
    tile_ = {capacity,
             0,
             {X_.data(), capacity, problem.n_columns(), stride_},
             target_.data(),
             weight_.data()};
  }

  const SampleTile& read(std::span<const std::int64_t> rows, bool is_first, const float* slope) {
    clear();
    tile_.n = static_cast<int>(rows.size());
    tile_.rows = rows;
    tile_.is_first = is_first;
    tile_.slope = slope;
    BadEntry bad;  // the table was checked for infinities when it was read
    kernels().encode_rows(problem_.encoding, problem_.source, rows.data(), 0, tile_.n,
                          {X_.data(), stride_, active_.data(), active_end_.data()}, bad);
    for (int i = 0; i < tile_.n; ++i) {
      const std::int64_t row = rows[i];
      weight_[i] = problem_.weight[row];
      for (int t = 0; t < problem_.n_targets; ++t)
        target_[static_cast<std::size_t>(t) * tile_.capacity + i] =
            problem_.target[row * problem_.n_targets + t];
      for (int a = i ? active_end_[i - 1] : 0; a < active_end_[i]; ++a)
        tile_.X.row(i)[problem_.encoding.n_numeric + active_[a]] = 1.0f;
    }
    return tile_;
  }

  // Adds Gaussian noise to the rows of the last tile.
  void add_noise(Random& random, float deviation) {
    for (int i = 0; i < tile_.n; ++i)
      for (int j = 0; j < problem_.n_columns(); ++j)
        tile_.X.row(i)[j] += deviation * random.normal();
  }

 private:
  void clear() {
    if (problem_.encoding.n_indicators > 0) std::fill(X_.begin(), X_.end(), 0.0f);
    std::fill(weight_.begin(), weight_.end(), 0.0f);
  }

  const Problem& problem_;
  std::ptrdiff_t stride_;
  Buffer<float> X_, target_, weight_;
  Buffer<std::int32_t> active_, active_end_;
  SampleTile tile_;
};

constexpr std::uint64_t kNoise = 0x6E6F697365;  // streams of their own

class Run {
 public:
  Run(Learner& learner, const Problem& problem, const TrainingOptions& options, int restart,
      std::uint64_t seed, Monitor& monitor)
      : learner_(learner),
        problem_(problem),
        options_(options),
        restart_(restart),
        seed_(seed),
        monitor_(monitor),
        reader_(problem, learner.tile_capacity(options.batch_size)),
        tile_capacity_(learner.tile_capacity(options.batch_size)),
        descent_(learner, options),
        prediction_(static_cast<std::size_t>(tile_capacity_) * problem.n_outputs),
        slope_(prediction_.size()),
        order_(problem.train.begin(), problem.train.end()) {}

  TrainingResult train(std::span<const float> start) {
    TrainingResult result;
    Random random(seed_, stream(0));
    descent_.start(random, start);
    result.parameters = Buffer<float>(descent_.size());
    keep_parameters(result);
    result.interrupted = monitor_.stop;
    bool stopped = monitor_.stop;
    for (int epoch = 0; epoch < options_.max_epochs && !stopped; ++epoch) {
      EpochRecord record{restart_, epoch};
      learner_.before_epoch(epoch, descent_.parameters(),
                            tiles_of(problem_.train, Reading::kAsTheyAre));
      const bool whole = run_epoch(epoch, record);
      result.interrupted |= !whole;
      if (!whole) {  // the first steps are kept if nothing is better
        if (result.best_epoch < 0) keep_parameters(result);
        break;
      }
      if (!problem_.valid.empty())
        record.validation_loss = mean_loss(problem_.valid, descent_.parameters(), Purpose::kAnswer);
      keep_if_better(record, result);
      result.history.push_back(record);
      stopped = (monitor_.on_epoch && monitor_.on_epoch(record)) || out_of_patience(epoch, result);
    }
    evaluate_best(result);
    learner_.finish(result.parameters.data());
    return result;
  }

 private:
  // Independent streams of random numbers per restart: 0 initializes, e + 1 orders epoch e.
  std::uint64_t stream(int purpose) const {
    return static_cast<std::uint64_t>(restart_) << 32 | static_cast<std::uint32_t>(purpose);
  }

  void keep_parameters(TrainingResult& result) const {
    std::copy_n(descent_.parameters(), descent_.size(), result.parameters.begin());
  }

  // Without validation rows, trees are compared by the training loss of the returned model. A tree
  // that took no step is not compared, and cannot win against one that did.
  void evaluate_best(TrainingResult& result) {
    if (result.history.empty()) return;
    const auto rows = problem_.valid.empty() ? problem_.train : problem_.valid;
    const float* parameters = result.parameters.data();
    if (problem_.valid.empty())
      result.criterion =
          has_value() ? number_or_infinity(mean_loss(rows, parameters, Purpose::kAnswer)) : 0.0;
    if (!learner_.is_soft()) return;
    learner_.set_progress(static_cast<double>(result.best_epoch + 1) / options_.max_epochs);
    result.soft_criterion = mean_loss(rows, parameters, Purpose::kStep);
  }

  // Makes NaN compare as the worst value.
  static double number_or_infinity(double loss) {
    return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
  }

  bool has_value() const { return problem_.loss != Loss::kCustom || custom_has_value_; }

  // Returns false if it was interrupted.
  bool run_epoch(int epoch, EpochRecord& record) {
    Random random(seed_, stream(epoch + 1));
    std::copy(problem_.train.begin(), problem_.train.end(), order_.begin());
    random.shuffle(std::span(order_));
    const std::size_t n = order_.size(), batch = options_.batch_size;
    const std::size_t n_batches = (n + batch - 1) / batch;
    double total = 0;
    for (std::size_t i = 0; i < n_batches; ++i) {
      if (monitor_.stop) return false;
      const double step = static_cast<double>(epoch) * n_batches + i;
      const double n_steps = static_cast<double>(options_.max_epochs) * n_batches;
      learner_.set_progress(step / n_steps);
      record.learning_rate =
          options_.step.learning_rate *
          schedule_factor(options_.schedule, step, n_steps, options_.schedule_cycles);
      const auto rows = std::span(order_).subspan(i * batch, std::min(batch, n - i * batch));
      total += take_step(rows, record.learning_rate);
    }
    const double weight = total_weight(order_);
    record.train_loss = has_value() ? total / weight : std::numeric_limits<double>::quiet_NaN();
    learner_.report(weight, record);
    return true;
  }

  double total_weight(std::span<const std::int64_t> rows) const {
    return std::accumulate(rows.begin(), rows.end(), 0.0, [&](double sum, std::int64_t row) {
      return sum + problem_.weight[row];
    });
  }

  // Steps read noisy rows; all passes of one step draw the same noise.
  enum class Reading { kAsTheyAre, kNoisy };

  template <class Each>
  void for_tiles(std::span<const std::int64_t> rows, const float* slope, Reading reading,
                 Each&& each) {
    Random noise(seed_ ^ kNoise, stream(n_steps_));
    for (std::size_t i = 0; i < rows.size(); i += tile_capacity_) {
      const auto part = rows.subspan(i, std::min<std::size_t>(tile_capacity_, rows.size() - i));
      const SampleTile& tile =
          reader_.read(part, i == 0, slope ? slope + i * problem_.n_outputs : nullptr);
      if (reading == Reading::kNoisy && options_.noise > 0)
        reader_.add_noise(noise, options_.noise);
      each(tile);
    }
  }

  Tiles tiles_of(std::span<const std::int64_t> rows, Reading reading,
                 const float* slope = nullptr) {
    return [=, this](const auto& each) { for_tiles(rows, slope, reading, each); };
  }

  // Returns the weighted sum of the batch's losses.
  double take_step(std::span<const std::int64_t> rows, double learning_rate) {
    const int n = static_cast<int>(rows.size());
    const bool is_custom = problem_.loss == Loss::kCustom;
    const double total = is_custom
                             ? custom_slope(rows, 1.0f / static_cast<float>(n),
                                            descent_.parameters(), Purpose::kStep, Reading::kNoisy)
                             : 0.0;
    const float* slope = is_custom ? batch_slope_.data() : nullptr;
    const double rest =
        learner_.step({n, tiles_of(rows, Reading::kNoisy, slope), learning_rate}, descent_);
    ++n_steps_;
    return total + rest;
  }

  // Calls the custom loss for the gradient of a whole batch; batch_slope_ (n, k) receives it times
  // weight and factor.
  double custom_slope(std::span<const std::int64_t> rows, float factor, const float* parameters,
                      Purpose purpose, Reading reading) {
    const int n = static_cast<int>(rows.size()), k = problem_.n_outputs, t = problem_.n_targets;
    std::vector<float> prediction(static_cast<std::size_t>(n) * k),
        target(static_cast<std::size_t>(n) * t), values(n);
    batch_slope_.assign(prediction.size(), 0.0f);
    float* next = prediction.data();
    for_tiles(rows, nullptr, reading, [&](const SampleTile& tile) {
      learner_.predict(parameters, tile, purpose, prediction_.data());
      for (int i = 0; i < tile.n; ++i)
        for (int o = 0; o < k; ++o)
          *next++ = prediction_[static_cast<std::size_t>(o) * tile.capacity + i];
    });
    for (int i = 0; i < n; ++i)
      std::copy_n(problem_.target + rows[i] * t, t,
                  target.begin() + static_cast<std::ptrdiff_t>(i) * t);
    custom_has_value_ =
        (*problem_.custom)(n, prediction.data(), target.data(), batch_slope_.data(), values.data());
    double total = 0;
    for (int i = 0; i < n; ++i) {
      const float weight = problem_.weight[rows[i]];
      total += custom_has_value_ ? weight * values[i] : 0.0;
      for (int o = 0; o < k; ++o)
        batch_slope_[static_cast<std::size_t>(i) * k + o] *= weight * factor;
    }
    return total;
  }

  double mean_loss(std::span<const std::int64_t> rows, const float* parameters, Purpose purpose) {
    if (problem_.loss == Loss::kCustom) {
      const double total = custom_slope(rows, 1.0f, parameters, purpose, Reading::kAsTheyAre);
      return has_value() ? total / total_weight(rows) : std::numeric_limits<double>::quiet_NaN();
    }
    double total = 0;
    for_tiles(rows, nullptr, Reading::kAsTheyAre, [&](const SampleTile& tile) {
      learner_.predict(parameters, tile, purpose, prediction_.data());
      total += kernels().loss_and_gradient(problem_.loss, problem_.loss_parameter,
                                           {problem_.n_outputs, tile.capacity, prediction_.data(),
                                            tile.target, tile.weight, slope_.data()},
                                           1.0f);
    });
    return total / total_weight(rows);
  }

  // With validation rows the parameters of the best epoch are kept, otherwise those of the last
  // epoch.
  void keep_if_better(const EpochRecord& record, TrainingResult& result) {
    const double loss = number_or_infinity(record.validation_loss);
    const bool validated = !problem_.valid.empty();
    if (validated && result.best_epoch >= 0 && loss >= result.criterion) return;
    if (validated) result.criterion = loss;
    result.best_epoch = record.epoch;
    keep_parameters(result);
  }

  bool out_of_patience(int epoch, const TrainingResult& result) const {
    return options_.patience > 0 && !problem_.valid.empty() &&
           epoch - result.best_epoch >= options_.patience;
  }

  Learner& learner_;
  const Problem& problem_;
  const TrainingOptions& options_;
  int restart_;
  std::uint64_t seed_;
  Monitor& monitor_;
  TileReader reader_;
  int tile_capacity_;
  Descent descent_;
  Buffer<float> prediction_, slope_;
  std::vector<float> batch_slope_;
  std::vector<std::int64_t> order_;
  int n_steps_ = 0;  // taken
  bool custom_has_value_ = true;
};

}  // namespace

Learner::Learner(const Layout& layout) : layout_(layout) {
  if (layout.n_parameters() > std::numeric_limits<std::int32_t>::max())
    throw std::length_error(
        "a model with this many splits, leaves, columns and outputs is too large");
}

double GradientLearner::step(const Batch& batch, Descent& descent) {
  const float factor = 1.0f / static_cast<float>(batch.n);
  double total = 0;
  batch.tiles([&](const SampleTile& tile) {
    total += add_gradient(descent.parameters(), tile, factor, descent.gradient());
  });
  descent.step(batch.learning_rate);
  return total;
}

TrainingResult train(Learner& learner, const Problem& problem, const TrainingOptions& options,
                     int restart, std::uint64_t seed, std::span<const float> start,
                     Monitor& monitor) {
  return Run(learner, problem, options, restart, seed, monitor).train(start);
}

}  // namespace hardwood
