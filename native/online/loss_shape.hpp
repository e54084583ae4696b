// What losses that were seen say about the loss function: how much it bends, and, where one number is
// tried per round, what is lost in the mean and how noisy an estimate of the slope is therefore.
// Twin: tests/reference/bandit.py.
//
// Two points: a loss that bends by c has the mean m = (slope^2) / (2 c) + constant at the two numbers
// that are tried, so that c comes from the regression of m on slope^2; of a squared loss, exactly.
//
// One point: numbers at the distance delta or 2 delta are tried, by chance, which costs
// c ((2 delta)^2 - delta^2) / 2 more where they are farther.
//
// Rounds count by the inverse of the losses' square at that time, and the less the older they are.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

namespace hardwood {

class LossShape {
 public:
  // The slope from two losses, and their mean.
  void add_pair(double slope, double loss) {
    const double x = slope * slope, w = weight();
    forget();
    for (const auto& [i, value] : {std::pair{0, 1.0}, {1, x}, {2, loss}, {3, x * x}, {4, x * loss}})
      sums_[i] += w * value;
    follow(loss);
  }
  // How much more one loss was than was expected, at a number that is delta, or where it is far twice
  // that, from the prediction.
  void add_one(double more, bool is_far) {
    const double w = weight();
    forget();
    sums_[is_far ? 2 : 0] += w;
    sums_[is_far ? 3 : 1] += w * more;
    follow(more);
  }

  double square() const { return square_; }  // of losses, lately

  double bend_of_pairs() const {
    const auto& [n, x, m, xx, xm] = sums_;
    const double spread = n * xx - x * x, common = n * xm - x * m;
    const bool is_plain = spread > kLeastSpread * n * xx && common > 0;
    const double bend = is_plain ? 0.5 * spread / common : 0.5 * x / m;
    return std::isfinite(bend) && bend > 0 ? bend : 1.0;
  }
  // Not less than what is certain: a bend that is too large only makes steps shorter.
  double bend_of_singles(double delta) const {
    const auto& [near, at_near, far, at_far, unused] = sums_;
    const double more = at_far / far - at_near / near, error = std::sqrt(1 / near + 1 / far);
    const double bend = 2.0 * (std::max(more, 0.0) + error) / (3.0 * delta * delta);
    return std::isfinite(bend) && bend > 0 ? bend : 1.0;
  }

  struct State {
    std::uint64_t count = 0;
    double square = 0;
    std::array<double, 5> sums{};
  };
  State state() const { return {count_, square_, sums_}; }
  void set_state(const State& s) { count_ = s.count, square_ = s.square, sums_ = s.sums; }

 private:
  static constexpr std::uint64_t kFirst = 20;
  static constexpr double kLately = 0.01, kForgotten = 1e-4, kLeastSpread = 1e-6;

  void follow(double loss) {
    const double part = std::max(kLately, 1.0 / static_cast<double>(++count_));
    square_ += part * (loss * loss - square_);
    if (count_ == kFirst && square_ > 0)
      for (double& sum : sums_) sum /= square_;
  }
  // Of the next loss: not by its own size, which would count large ones less. The first ones count
  // the same, since a few losses may all be small by chance.
  double weight() const { return count_ < kFirst || square_ == 0 ? 1.0 : 1.0 / square_; }
  void forget() {
    for (double& sum : sums_) sum *= 1.0 - kForgotten;
  }

  std::uint64_t count_ = 0;
  double square_ = 0;
  std::array<double, 5> sums_{};
};

}  // namespace hardwood
