// A DGT tree that learns while it serves. Decisions use a packed copy of the tree (served_tree.hpp),
// updated after every step, so that no decision waits for a step to end and only learning changes
// decisions. A new copy replaces the old one by swapping pointers.
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
#include "online/served_tree.hpp"

namespace hardwood {

struct OnlineStep {
  StepOptions step;         // learning_rate: of the leaves
  float split_rate = 0.0f;  // learning rate of the splits
  // Learning rates are divided by sqrt(1 + steps / slowing); constant if infinite.
  double slowing = std::numeric_limits<double>::infinity();
  std::vector<int> hidden;   // widths between the linear layers of the splits; none: one layer
  bool starts_level = true;  // all leaves start at zero; else at random, as in the paper
  Path path = Path::kSum;
  Quantizer quantizer = Quantizer::kSign;
  // One number that is added to all values of all leaves is learned too, as in the authors' code. The
  // leaves hold it: only its step is taken on its own.
  bool shares_bias = false;
  float clip = std::numeric_limits<float>::infinity();  // upper bound on the norm of the gradient
  // Decisions use the average of the parameters over about this fraction of all steps, the last ones
  // (polynomial-decay averaging: Shamir, Zhang. ICML 2013). Zero: no averaging.
  double averaging = 0;
  ColumnOrder order;
};

// The samples of a step, in standard units.
class OnlineBatch {
 public:
  OnlineBatch(int n_columns, int n_targets, int capacity);
  SampleTile tile;
  // Adds uniform noise with this standard deviation to the samples. Otherwise a tree that sees the same
  // few rounds many times would overfit them.
  void add_noise(float deviation, Random& random);

 private:
  Buffer<float> X_, target_, weight_;
};

class OnlineTree {
 public:
  OnlineTree(DgtShape shape, Loss loss, const OnlineStep& step, int batch_size, std::uint64_t seed);

  const DgtShape& shape() const { return shape_; }

  // Deciding; safe while another thread learns.
  void count_context(const float* x);  // updates the moments of the columns
  struct Reached {
    int leaf;
    std::uint64_t version;  // the rounds that the tree was learned from
  };
  Reached values(const float* x, std::span<float> out) const;  // of the leaf

  // Learning; one thread at a time. The gradients of a batch's tiles add up until a step is taken.
  // `refresh` copies the scale of the columns, which decisions keep up to date.
  void refresh();
  void standardize(const float* x, float* z) const { learned_scale_.standardize(x, z); }
  const ColumnScale& learned_scale() const { return learned_scale_; }
  OnlineBatch& batch() { return batch_; }
  // A step on `size` rows, tile by tile: fill(first) writes the rows from `first` on and their weights
  // into the batch's tile, whose weights are zero before.
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
  // Forgets the values of the leaves, and averages from here on.
  void forget_values() {
    scale_leaves(0.0);
    n_steps_ = 0;
  }
  void publish(std::uint64_t version);

  struct RawTree {
    std::vector<double> weights, bias;  // (m, c), (m,): for encoded columns
    std::vector<double> values;         // (leaves, k), in standard units
    std::vector<double> scale;          // (c,): standard deviation, 1 for a constant column
    std::uint64_t version = 0;          // the rounds that it was learned from
  };
  RawTree raw() const;
  // Starts from a tree for encoded columns with these means and standard deviations.
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
  void set_state(const State& state, std::uint64_t version);

 private:
  void step();
  void step_of_shared_bias(const StepOptions& step);
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
  Buffer<float> mean_;  // averaged parameters; empty without averaging
  std::optional<LinearLayers> layers_;
  StepClock clock_;
  std::uint64_t n_steps_ = 0;
  OnlineBatch batch_;
  ColumnScale learned_scale_;

  ServedTree next_served_;    // the learning thread's
  mutable SpinLock serving_;  // guards the members below
  ColumnMoments moments_;
  mutable ServedTree served_;  // with scratch memory
};

}  // namespace hardwood
