// How much a split lowers the impurity of a node, from sums over the rows of its sides.
//
// With S the weight of a side's rows, s_k that of class or label k, s_q = sum of w y_q for numbers:
//
//   entropy   S H = -sum_k s_k log2(s_k / S)      labels: the mean over labels of that of yes and no
//   Gini      S G = S - sum_k s_k^2 / S           likewise
//   variance  S V = sum w y^2 - mean_q s_q^2 / S
//
// The search maximizes the contribution of both sides to the decrease, without terms whose sum is
// the same for every split. Its difference from the value of the undivided node, divided by the
// weight of the node, is the decrease of the mean impurity.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "learn/greedy/greedy.hpp"

namespace hardwood {

// Entropies are added up as integer multiples of 2^-24. Sums of integers do not depend on the order
// or on what was added and subtracted before, so a threshold can move row by row, and equally good
// splits compare as equal.
inline std::int64_t x_log_x(double x) {
  return x > 0 ? static_cast<std::int64_t>(std::nearbyint(x * std::log2(x) * 0x1p24)) : 0;
}

// The targets of the rows of a level, in the order of nodes.
struct RowTargets {
  Measure measure = Measure::kClassEntropy;
  int width = 1;                                     // classes, labels or numbers
  std::vector<std::int32_t> label;                   // (n,) classes only
  std::vector<float> numbers;                        // (n, width) labels and numbers only
  std::vector<double> weight;                        // (n,)
  std::vector<double> count;                         // (n,) for min_samples_*
  const std::vector<std::int64_t>* table = nullptr;  // x_log_x(0, 1, ...), if all weights are 1

  std::size_t n_sums() const { return 1 + static_cast<std::size_t>(width); }  // S first

  std::int64_t entropy_term(double x) const {
    return table ? (*table)[static_cast<std::size_t>(x)] : x_log_x(x);
  }

  // Adds a row, `times` times, to sums (n_sums,).
  void add(std::size_t i, double* sums, double times = 1.0) const {
    const double w = times * weight[i];
    sums[0] += w;
    if (has_classes(measure)) {
      sums[1 + label[i]] += w;
      return;
    }
    const float* y = numbers.data() + i * width;
    for (int q = 0; q < width; ++q) sums[1 + q] += w * y[q];
  }
};

// The two sides of a split whose threshold moves over the rows of a node: all rows are on the right
// until they move to the left.
class Sides {
 public:
  explicit Sides(const RowTargets& targets)
      : targets_(targets), left_(targets.n_sums()), terms_(targets.width) {}

  void start(const double* total) {
    total_ = total;
    std::fill(left_.begin(), left_.end(), 0.0);
    left_count_ = left_squares_ = right_squares_ = 0;
    sum_ = 0;
    for (int k = 0; k < targets_.width; ++k) {
      if (targets_.measure == Measure::kClassEntropy)
        sum_ += terms_[k] = targets_.entropy_term(total[1 + k]);
      right_squares_ += total[1 + k] * total[1 + k];
    }
  }
  void take(std::size_t row) { move(row, 1.0); }
  void give_back(std::size_t row) { move(row, -1.0); }
  void take_sums(const double* sums, double count) {
    left_count_ += count;
    left_[0] += sums[0];
    for (int k = 0; k < targets_.width; ++k)
      if (sums[1 + k] != 0) change(k, sums[1 + k]);
  }
  double left_count() const { return left_count_; }
  double left_weight() const { return left_[0]; }

  // The contribution of both sides.
  double worth() const {
    const double S = left_[0], R = total_[0] - S;
    switch (targets_.measure) {
      case Measure::kClassEntropy:
        return static_cast<double>(sum_ - targets_.entropy_term(S) - targets_.entropy_term(R)) *
               0x1p-24;
      case Measure::kLabelEntropy:
        return (label_entropy(S, R)) * 0x1p-24 / targets_.width;
      case Measure::kClassGini:
        return quotient(left_squares_, S) + quotient(right_squares_, R);
      case Measure::kLabelGini:
        return 2 * mean_of_squares(S, R);
      case Measure::kVariance:
        return mean_of_squares(S, R);
    }
    return 0;
  }

 private:
  static double quotient(double x, double S) { return S > 0 ? x / S : 0; }

  void move(std::size_t row, double times) {
    left_count_ += times * targets_.count[row];
    if (!has_classes(targets_.measure)) return targets_.add(row, left_.data(), times);
    const double w = times * targets_.weight[row];
    left_[0] += w;
    change(targets_.label[row], w);
  }

  // Moves the weight of one class, or the sum of one label or number, to the left.
  void change(int k, double w) {
    double& left = left_[1 + k];
    const double right = total_[1 + k] - left;
    left += w;
    if (targets_.measure == Measure::kClassEntropy) {
      const std::int64_t term =
          targets_.entropy_term(left) + targets_.entropy_term(total_[1 + k] - left);
      sum_ += term - terms_[k];
      terms_[k] = term;
    } else if (targets_.measure == Measure::kClassGini) {
      left_squares_ += w * (2 * left - w);
      right_squares_ -= w * (2 * right - w);
    }
  }

  double label_entropy(double S, double R) const {
    std::int64_t sum = 0;
    for (int q = 0; q < targets_.width; ++q) {
      const double yes = left_[1 + q], right_yes = total_[1 + q] - yes;
      sum += targets_.entropy_term(yes) + targets_.entropy_term(S - yes) +
             targets_.entropy_term(right_yes) + targets_.entropy_term(R - right_yes);
    }
    const std::int64_t both = targets_.entropy_term(S) + targets_.entropy_term(R);
    return static_cast<double>(sum - targets_.width * both);
  }

  double mean_of_squares(double S, double R) const {
    double left = 0, right = 0;
    for (int q = 0; q < targets_.width; ++q) {
      const double other = total_[1 + q] - left_[1 + q];
      left += left_[1 + q] * left_[1 + q];
      right += other * other;
    }
    return (quotient(left, S) + quotient(right, R)) / targets_.width;
  }

  const RowTargets& targets_;
  const double* total_ = nullptr;
  double left_count_ = 0, left_squares_ = 0, right_squares_ = 0;
  std::int64_t sum_ = 0;
  std::vector<double> left_;
  std::vector<std::int64_t> terms_;  // of each class, on both sides
};

}  // namespace hardwood
