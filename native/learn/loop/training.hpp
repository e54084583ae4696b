// A learning problem, the options of the training loop, and its result.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "core/objective.hpp"
#include "core/random.hpp"
#include "learn/loop/layout.hpp"
#include "table/encoding.hpp"

namespace hardwood {

// Gradient of a custom loss, outside the engine. Arrays are (n, k) and (n, t), row-major. If the
// loss has no values, it leaves `values` (n,) unchanged and returns false.
using CustomLoss = std::function<bool(int n, const float* prediction, const float* target,
                                      float* gradient, float* values)>;

struct Problem {
  Encoding encoding;
  Source source;
  const float* target = nullptr;  // (n, n_targets)
  int n_targets = 1;
  const float* weight = nullptr;  // (n,) mean 1 over the training rows
  std::span<const std::int64_t> train;
  std::span<const std::int64_t> valid;
  Loss loss = Loss::kSquared;
  float loss_parameter = 0;
  int n_outputs = 1;
  const CustomLoss* custom = nullptr;  // not owned: runs copy their problem on threads of their own

  int n_columns() const { return encoding.n_numeric + encoding.n_indicators; }
};

struct TrainingOptions {
  int max_epochs = 100;
  int batch_size = 128;
  StepOptions step;  // learning_rate is the peak; l1 and l2 apply to the penalized parameters
  Schedule schedule = Schedule::kCosine;
  int schedule_cycles = 4;
  float clip_norm = std::numeric_limits<float>::infinity();
  std::vector<int> hidden;  // widths between the linear layers of the splits; none: one layer
  float noise = 0;          // standard deviation of what steps add to every entry of their rows
  int patience = 0;         // epochs without a better validation loss before stopping; 0: never
};

struct EpochRecord {
  int restart = 0;
  int epoch = 0;
  double train_loss = 0;
  double validation_loss = std::numeric_limits<double>::quiet_NaN();
  double learning_rate = 0;
  // For soft trees: leaves reached per sample and tree, on average over the epoch.
  double reachable_leaves = std::numeric_limits<double>::quiet_NaN();
  // For learners that minimize a bound on the loss: the bound, as train_loss.
  double train_bound = std::numeric_limits<double>::quiet_NaN();
};

// The observer of a run: it is given each epoch and can stop the run. An interrupt also sets
// `stop`.
struct Monitor {
  std::atomic<bool> stop{false};
  std::function<bool(const EpochRecord&)> on_epoch;  // true: stop this run
};

// A tile of encoded samples for a learner; `capacity` is a multiple of 16.
struct SampleTile {
  int capacity = 0;
  int n = 0;
  Matrix<float> X;          // (capacity, padded columns); rows beyond n have no weight
  float* target = nullptr;  // (t, capacity)
  float* weight = nullptr;  // (capacity,), zero beyond n
  std::span<const std::int64_t> rows = {};  // (n,) their numbers in the table
  bool is_first = true;                     // of its batch
  // (n, k) the loss's gradient by the prediction, weights and 1/batch included; null where the
  // engine has the loss.
  const float* slope = nullptr;

  void copy_targets(int n_targets, float* by_row) const {  // (n, t)
    for (int i = 0; i < n; ++i)
      for (int t = 0; t < n_targets; ++t)
        *by_row++ = target[static_cast<std::size_t>(t) * capacity + i];
  }
};

// The purpose of a prediction: the gradient of a step, for which some learners use a softer model,
// or the output of the final model.
enum class Purpose { kStep, kAnswer };

// Calls a function with some rows, tile by tile.
using Tiles = std::function<void(const std::function<void(const SampleTile&)>&)>;

struct Batch {
  int n = 0;  // rows
  Tiles tiles;
  double learning_rate = 0;
};

class Descent;

// What a learner implements: parameters, steps and predictions. The loop does the rest.
class Learner {
 public:
  // Throws std::length_error for more parameters than 31 bits count.
  explicit Learner(const Layout& layout);
  virtual ~Learner() = default;

  const Layout& layout() const { return layout_; }
  virtual int tile_capacity(int batch_size) const = 0;
  virtual void initialize(Random& random, float* parameters) const = 0;
  // The fraction of training that is done, from 0 to 1; called before every step.
  virtual void set_progress(double) {}
  // Whether steps use a softer model than the output.
  virtual bool is_soft() const { return false; }
  // For statistics of all training rows.
  virtual void before_epoch(int /*epoch*/, const float* /*parameters*/, const Tiles& /*all_rows*/) {
  }
  // Updates the parameters; returns the weighted sum of the batch's losses, without those given as
  // slopes.
  virtual double step(const Batch& batch, Descent& descent) = 0;
  virtual void predict(const float* parameters, const SampleTile& tile, Purpose purpose,
                       float* prediction) = 0;  // (k, capacity)
  // Statistics of the steps of an epoch; `weight` is the weight of their rows.
  virtual void report(double /*weight*/, EpochRecord&) {}
  // Converts the learned parameters to those of the model; called once, at the end.
  virtual void finish(float*) const {}

 private:
  Layout layout_;
};

// A learner whose steps follow the gradient of a whole batch.
class GradientLearner : public Learner {
 public:
  using Learner::Learner;
  double step(const Batch& batch, Descent& descent) override;
  // Adds the gradient of a tile; the first tile of a batch overwrites it. Returns the weighted sum
  // of losses.
  virtual double add_gradient(const float* parameters, const SampleTile& tile, float factor,
                              float* gradient) = 0;
};

struct TrainingResult {
  Buffer<float> parameters;
  double criterion =
      std::numeric_limits<double>::infinity();  // validation loss, or training loss without one
  // The criterion of the learned soft model, if it differs from that of the output.
  double soft_criterion = std::numeric_limits<double>::quiet_NaN();
  int best_epoch = -1;
  bool interrupted = false;
  std::vector<EpochRecord> history;
};

TrainingResult train(Learner& learner, const Problem& problem, const TrainingOptions& options,
                     int restart, std::uint64_t seed, std::span<const float> start,
                     Monitor& monitor);

}  // namespace hardwood
