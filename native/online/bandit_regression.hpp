// Trees that set a number and learn from what it, or two numbers about it, cost. Twin:
// tests/reference/bandit.py.
//
//   replay   Rounds are stored as the number p that was predicted and the slope s of the loss there, as
//            it was estimated. With c, how much the loss bends (loss_shape.hpp), the loss of round i is
//            about c/2 (f - t)^2 + constant with the target t = p - s/c, so that a tree that predicts
//            the targets costs least: each round takes a few steps of that regression on mini-batches of
//            stored rounds. Of a squared loss the targets are exact (two points) or right in the mean
//            (one point); of any other they are right where p was about right, and old rounds are
//            forgotten, the newer of two that are drawn being replayed.
//            One point: leaves also hold what is lost there in the mean. It is taken off a loss before
//            the slope is estimated: this leaves Eq. (9) unbiased, the sign being drawn, and most of
//            its variance is the loss's own size.
//   paper    [DGT22] Algorithm 1: a step along the slopes by Eq. (9) or (10) whenever so many rounds have
//            been accumulated. Nothing is kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "online/loss_shape.hpp"
#include "online/online_tree.hpp"
#include "online/reservoir.hpp"
#include "online/reward_scale.hpp"

namespace hardwood {

struct BanditRegressionOptions {
  int height = 6;
  bool is_paper = false;
  bool has_two_points = true;
  double perturbation = 0.5;  // delta, in units of `scale`
  double start = 0, scale = 1;
  int batch_size = 128;  // paper: rounds per step
  double batches = 1;    // per round
  std::size_t capacity = 1;
  double blur = 1;   // deviation of the noise, times (stored rounds)^(1/4)
  int n_first = 20;  // rounds before the first step
  int recency = 2;   // rounds that are drawn for one to be replayed, the newest
  double reach = 4;  // one point: the farthest a target is from the prediction, in distances
  OnlineStep step;
};

// What was learned of one round: in units of `scale`, from `start`.
struct Trial {
  double prediction = 0;
  double loss = 0;      // one point
  double slope = 0;     // of the loss
  double variance = 0;  // of its estimate by one point, as far as it is noise; two have none
};

class BanditRegression {
 public:
  BanditRegression(int n_columns, const BanditRegressionOptions& options, std::uint64_t seed);

  int n_columns() const { return tree_.shape().n_columns; }
  std::uint64_t n_learned() const { return n_learned_; }
  double distance() const { return options_.perturbation * options_.scale; }

  // Deciding; safe while another thread learns.
  void meet(const float* x) { tree_.meet(x); }
  double predict(const float* x) const;
  // Which number to try, in distances from the prediction: -1 or +1, the u of Eq. (9); with replay
  // also -2 or +2.
  int direction();

  // What was lost at the prediction less and plus the distance, or at one number.
  void learn_two(const float* x, double prediction, double below, double above);
  void learn_one(const float* x, double prediction, int direction, double loss);

  OnlineTree::RawTree raw_tree() const;
  void start_from(std::span<const double> weights, std::span<const double> bias,
                  std::span<const double> values, std::span<const double> mean,
                  std::span<const double> deviation, double rows);

  struct State {
    OnlineTree::State tree;
    RewardScale::State targets, expected;
    LossShape::State losses;
    Reservoir<Trial>::State stored;
    std::uint64_t n_drawn, n_learned;
    double due;
  };
  State state() const;
  void set_state(State s);

 private:
  double number_of(float value) const;
  double expected_loss(const float* x) const;
  double inner(double number) const { return (number - options_.start) / options_.scale; }
  double bend() const;
  double target(const Trial& trial, double bend) const;
  double add_target(const Trial& trial);
  double add_first_targets();
  void learn(const float* x, const Trial& trial);
  void fill(int i, const float* x, const Trial& trial, double bend);
  std::size_t drawn(Random& random) const;
  void step_on_stored(const float* x, const Trial& trial, Random& random);
  void step_on_newest();

  BanditRegressionOptions options_;
  std::uint64_t seed_;
  OnlineTree tree_;
  RewardScale targets_, expected_;  // numbers, and what they cost
  LossShape losses_;
  Reservoir<Trial> stored_;
  std::atomic<std::uint64_t> n_drawn_ = 0, n_learned_ = 0;
  double due_ = 0;  // steps that are to be taken
  mutable std::mutex learning_;
  mutable std::mutex scale_;  // guards targets_ where it is read while learning
};

}  // namespace hardwood
