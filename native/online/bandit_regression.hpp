// Trees that set a number and learn from its loss, or from the losses of two numbers around it. NumPy
// reference: tests/reference/bandit.py.
//
//   replay   A round is stored as the predicted number p and the estimated slope s of the loss there.
//            With the curvature c of the loss (loss_shape.hpp), the loss of the round is about
//            c/2 (f - t)^2 + constant with the target t = p - s/c, so the tree is fitted to the
//            targets: each round takes a few steps of that regression on mini-batches of stored
//            rounds. For a squared loss the targets are exact (two points) or unbiased (one point).
//            For other losses they are accurate where p was nearly optimal; so old rounds are
//            replayed less: of two that are drawn, the more recent one is used.
//            One point: leaves also hold the expected loss. It is subtracted before the slope is
//            estimated. Eq. (9) remains unbiased, since the sign is drawn at random, and loses most of
//            its variance, which comes from the size of the loss.
//   paper    [DGT22] Algorithm 1: a step along the slopes of Eq. (9) or (10) per batch_size rounds. No
//            rounds are stored.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "online/loss_shape.hpp"
#include "online/online_tree.hpp"
#include "online/replay_buffer.hpp"
#include "online/reward_scale.hpp"

namespace hardwood {

struct BanditRegressionOptions {
  int height = 6;
  bool is_paper = false;
  bool has_two_points = true;
  double perturbation = 0.5;  // delta, in units of `scale`
  double start = 0, scale = 1;
  int batch_size = 128;  // paper: rounds per step
  double updates_per_round = 1;
  std::size_t buffer_size = 1;  // rounds in the replay buffer
  double input_noise = 1;       // standard deviation of the noise, times (stored rounds)^(1/4)
  int n_first = 20;             // rounds before the first step
  int recency = 2;   // rounds drawn for each one that is replayed, which is the most recent
  double reach = 4;  // one point: the farthest a target is from the prediction, in distances
  OnlineStep step;
};

// The result of one round: in units of `scale`, from `start`.
struct Trial {
  double prediction = 0;
  double loss = 0;      // one point
  double slope = 0;     // of the loss
  double variance = 0;  // of the noise in its estimate from one point; 0 with two points
};

class BanditRegression {
 public:
  BanditRegression(int n_columns, const BanditRegressionOptions& options, std::uint64_t seed);

  int n_columns() const { return tree_.shape().n_columns; }
  std::uint64_t n_learned() const { return n_learned_; }
  double distance() const { return options_.perturbation * options_.scale; }

  // Deciding; safe while another thread learns.
  void count_context(const float* x) { tree_.count_context(x); }
  struct Prediction {
    double number;
    OnlineTree::Reached by;
  };
  Prediction predict(const float* x) const;
  // The number to try, in distances from the prediction: -1 or +1, the u of Eq. (9); with replay
  // also -2 or +2.
  int direction();

  // Losses at the prediction minus and plus the distance, or at one number.
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
    ReplayBuffer<Trial>::State stored;
    std::uint64_t n_drawn, n_learned;
    double due;
  };
  State state() const;
  void set_state(State s);

 private:
  double number_of(float value) const;
  double expected_loss(const float* x) const;
  double inner(double number) const { return (number - options_.start) / options_.scale; }
  double curvature() const;
  double target(const Trial& trial, double curvature) const;
  double add_target(const Trial& trial);
  double add_first_targets();
  void learn(const float* x, const Trial& trial);
  void fill(int i, const float* x, const Trial& trial, double curvature);
  std::size_t drawn(Random& random) const;
  void step_on_stored(const float* x, const Trial& trial, Random& random);
  void step_on_newest();

  BanditRegressionOptions options_;
  std::uint64_t seed_;
  OnlineTree tree_;
  RewardScale targets_, expected_;  // of numbers, and of their losses
  LossShape losses_;
  ReplayBuffer<Trial> stored_;
  std::atomic<std::uint64_t> n_drawn_ = 0, n_learned_ = 0;
  double due_ = 0;  // fraction of a step that is left over from earlier rounds
  mutable std::mutex learning_;
  mutable std::mutex scale_;  // guards targets_ where it is read while learning
};

}  // namespace hardwood
