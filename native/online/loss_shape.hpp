// Properties of the loss function, estimated from observed losses: its curvature and, with one number
// per round, the mean square of the losses, which determines the noise of slopes.
// NumPy reference: tests/reference/bandit.py.
//
// Two points: with curvature c, the mean loss at the two numbers is m = (slope^2) / (2 c) + constant,
// so c follows from the regression of m on slope^2; for a squared loss, exactly.
//
// One point: the number is at the distance delta or 2 delta, at random. The farther one has a loss
// that is larger by c ((2 delta)^2 - delta^2) / 2 on average.
//
// The weight of a round is the inverse of the mean squared loss at that time, and decays with age.
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
  // A loss minus its expected value, at a number that is delta from the prediction, or 2 delta if
  // `is_far`.
  void add_one(double more, bool is_far) {
    const double w = weight();
    forget();
    sums_[is_far ? 2 : 0] += w;
    sums_[is_far ? 3 : 1] += w * more;
    follow(more);
  }

  double square() const { return square_; }  // recent mean of squared losses

  double curvature_from_pairs() const {
    const auto& [n, x, m, xx, xm] = sums_;
    const double spread = n * xx - x * x, common = n * xm - x * m;
    const bool is_plain = spread > kLeastSpread * n * xx && common > 0;
    const double curvature = is_plain ? 0.5 * spread / common : 0.5 * x / m;
    return std::isfinite(curvature) && curvature > 0 ? curvature : 1.0;
  }
  // An upper estimate: too large a curvature only makes steps shorter.
  double curvature_from_singles(double delta) const {
    const auto& [near, at_near, far, at_far, unused] = sums_;
    const double more = at_far / far - at_near / near, error = std::sqrt(1 / near + 1 / far);
    const double curvature = 2.0 * (std::max(more, 0.0) + error) / (3.0 * delta * delta);
    return std::isfinite(curvature) && curvature > 0 ? curvature : 1.0;
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
  static constexpr double kRecent = 0.01, kForgotten = 1e-4, kLeastSpread = 1e-6;

  void follow(double loss) {
    const double part = std::max(kRecent, 1.0 / static_cast<double>(++count_));
    square_ += part * (loss * loss - square_);
    if (count_ == kFirst && square_ > 0)
      for (double& sum : sums_) sum /= square_;
  }
  // Of the next loss. It does not depend on that loss, which would give large losses less weight. The
  // first losses have equal weights, since a few may all be small by chance.
  double weight() const { return count_ < kFirst || square_ == 0 ? 1.0 : 1.0 / square_; }
  void forget() {
    for (double& sum : sums_) sum *= 1.0 - kForgotten;
  }

  std::uint64_t count_ = 0;
  double square_ = 0;
  std::array<double, 5> sums_{};
};

}  // namespace hardwood
