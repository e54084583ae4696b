// A DGT tree that learns while it serves: what it decides by is a copy, renewed after every step, so
// that nobody who asks for a decision waits for a step to end. The copy is made beside the one that
// is in use, and takes its place by an exchange of pointers.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "core/objective.hpp"
#include "core/random.hpp"
#include "core/spin_lock.hpp"
#include "learn/dgt/learner.hpp"
#include "learn/loop/layers.hpp"
#include "online/column_moments.hpp"

namespace hardwood {

struct OnlineStep {
  StepOptions step;         // learning_rate: of the leaves
  float split_rate = 0.0f;  // that of the splits
  // Rates are divided by sqrt(1 + steps / slowing); infinite: they stay.
  double slowing = std::numeric_limits<double>::infinity();
  std::vector<int> hidden;   // widths between the linear layers of the splits; none: one layer
  bool starts_level = true;  // all leaves at zero; else at random, as the paper has it
  Path path = Path::kSum;
  float clip = std::numeric_limits<float>::infinity();  // the most that a gradient's norm counts
  // What is decided by is a mean of parameters over the last steps: about this part of all steps
  // (polynomial-decay averaging: Shamir, Zhang. ICML 2013). Zero: the parameters as they are.
  double averaging = 0;
};

// Samples on their way to a step, in standard units.
class OnlineBatch {
 public:
  OnlineBatch(int n_columns, int capacity);
  SampleTile tile;
  // Adds noise to the samples, uniform and of this deviation. A tree that sees the same few rounds
  // again and again would otherwise learn where exactly they lie.
  void blur(float deviation, Random& random);

 private:
  Buffer<float> X_, target_, weight_;
};

class OnlineTree {
 public:
  OnlineTree(DgtShape shape, Loss loss, const OnlineStep& step, int batch_size, std::uint64_t seed);

  const DgtShape& shape() const { return shape_; }

  // Deciding; safe while another thread learns.
  void meet(const float* x);                                // counts a row into the moments
  void values(const float* x, std::span<float> out) const;  // what the leaf holds

  // Learning; one thread at a time. Gradients of a batch's tiles add up until a step is taken.
  // `refresh` takes over what deciding has learned about the columns.
  void refresh();
  void standardize(const float* x, float* z) const { learned_scale_.standardize(x, z); }
  OnlineBatch& batch() { return batch_; }
  // A step on that many rows, some at a time: fill(first) writes those from there on, with their
  // weights, which are zero before, into the batch's tile.
  template <class Fill>
  void step_on(int size, float factor, Fill&& fill) {
    SampleTile& tile = batch_.tile;
    for (int first = 0; first < size; first += tile.capacity) {
      tile.n = std::min(size - first, tile.capacity);
      tile.is_first = first == 0;
      tile.slope = nullptr;
      std::fill_n(tile.weight, tile.capacity, 0.0f);
      fill(first);
      learner_.add_gradient(parameters_.data(), tile, factor, gradient_.data());
    }
    step();
  }
  void scale_leaves(double factor);
  void scale_leaves(int output, double factor);
  void publish();

  struct RawTree {
    std::vector<double> weights, bias;  // (m, c), (m,): for columns in their own units
    std::vector<double> values;         // (leaves, k): as the leaves hold them
    std::vector<double> center, scale;  // (c,): mean and deviation, 1 for what has not varied
  };
  RawTree raw() const;
  // From a tree for columns in their own units, which are of these means and deviations.
  void start_from(std::span<const double> weights, std::span<const double> bias,
                  std::span<const float> values, std::span<const double> mean,
                  std::span<const double> deviation, double rows);

  struct State {
    std::vector<float> parameters, first_moment, second_moment, layers, mean;
    std::vector<double> columns;
    StepClock::Powers powers;
    std::uint64_t n_steps = 0;
  };
  State state() const;  // between steps
  void set_state(const State& state);

 private:
  int leaf_of(const Parameters<float>& p, const float* z) const;
  void step();
  double squared_norm();
  void average();
  Matrix<float> weights_in(float* of) const {
    return {of, shape_.n_nodes(), shape_.n_columns, padded(shape_.n_columns)};
  }

  DgtShape shape_;
  std::uint64_t seed_;
  OnlineStep step_;
  DgtLearner learner_;
  Buffer<float> parameters_, first_moment_, second_moment_, gradient_;
  Buffer<float> mean_;  // of parameters; empty without averaging
  std::optional<LinearLayers> layers_;
  StepClock clock_;
  std::uint64_t n_steps_ = 0;
  OnlineBatch batch_;
  ColumnScale learned_scale_;

  Buffer<float> next_served_;  // the learning thread's
  mutable SpinLock serving_;   // guards what follows
  ColumnMoments moments_;
  Buffer<float> served_;
  mutable std::vector<float> z_;
};

}  // namespace hardwood
