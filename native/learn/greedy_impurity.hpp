// How much a split lowers the impurity of a node, from sums over the rows of its sides.
//
// With S the weight of a side's rows, s_k that of class or label k, s_q = sum of w y_q for numbers:
//
//   entropy   S H = -sum_k s_k log2(s_k / S)      labels: the mean over labels of that of yes and no
//   Gini      S G = S - sum_k s_k^2 / S           likewise
//   variance  S V = sum w y^2 - mean_q s_q^2 / S
//
// What is maximised is what a side adds to the decrease: terms that both sides share, and that add
// up to the same for every split, are left out. Divided by the node's weight, the difference to the
// node's own value is the decrease of the mean impurity.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "learn/greedy.hpp"

namespace hardwood {

// What the rows at hand are to be told apart by: in order of nodes, each node's rows together.
struct RowTargets {
  Measure measure = Measure::kClassEntropy;
  int width = 1;                                 // classes, labels or numbers
  std::vector<std::int32_t> label;               // (n,) classes only
  std::vector<float> numbers;                    // (n, width) labels and numbers only
  std::vector<double> weight;                    // (n,)
  std::vector<double> count;                     // (n,) for min_samples_*
  const std::vector<double>* x_log_x = nullptr;  // of 0, 1, ...; where all weights are 1

  std::size_t n_sums() const { return 1 + static_cast<std::size_t>(width); }  // S first

  double entropy_term(double x) const {
    if (x_log_x) return (*x_log_x)[static_cast<std::size_t>(x)];
    return x > 0 ? x * std::log2(x) : 0;  // differences of sums may fall below zero
  }

  // Adds one row to sums (n_sums,).
  void add(std::size_t i, double* sums) const {
    const double w = weight[i];
    sums[0] += w;
    if (has_classes(measure)) {
      sums[1 + label[i]] += w;
      return;
    }
    const float* y = numbers.data() + i * width;
    for (int q = 0; q < width; ++q) sums[1 + q] += w * y[q];
  }

  void subtract(std::size_t i, double* sums) const {
    const double w = weight[i];
    sums[0] -= w;
    if (has_classes(measure)) {
      sums[1 + label[i]] -= w;
      return;
    }
    const float* y = numbers.data() + i * width;
    for (int q = 0; q < width; ++q) sums[1 + q] -= w * y[q];
  }

  // What one side adds.
  double worth(const double* sums) const {
    const double S = sums[0];
    if (!(S > 0)) return 0;
    double total = 0;
    switch (measure) {
      case Measure::kClassEntropy:
        for (int k = 0; k < width; ++k) total += entropy_term(sums[1 + k]);
        return total - entropy_term(S);
      case Measure::kLabelEntropy:
        for (int q = 0; q < width; ++q)
          total += entropy_term(sums[1 + q]) + entropy_term(S - sums[1 + q]) - entropy_term(S);
        return total / width;
      case Measure::kClassGini:
        for (int k = 0; k < width; ++k) total += sums[1 + k] * sums[1 + k];
        return total / S;
      case Measure::kLabelGini:
        for (int q = 0; q < width; ++q) total += sums[1 + q] * sums[1 + q];
        return 2 * total / S / width;
      case Measure::kVariance:
        for (int q = 0; q < width; ++q) total += sums[1 + q] * sums[1 + q];
        return total / S / width;
    }
    return 0;
  }
};

// The two sides of a split that is being moved over the rows of a node: all rows are on the right
// until they are taken to the left.
class Sides {
 public:
  explicit Sides(const RowTargets& targets)
      : targets_(targets), left_(targets.n_sums()), right_(targets.n_sums()) {}

  void start(const double* total) {
    total_ = total;
    std::fill(left_.begin(), left_.end(), 0.0);
    left_count_ = 0;
  }
  void take(std::size_t row) {
    targets_.add(row, left_.data());
    left_count_ += targets_.count[row];
  }
  void give_back(std::size_t row) {
    targets_.subtract(row, left_.data());
    left_count_ -= targets_.count[row];
  }
  void take_sums(const double* sums, double count) {
    for (std::size_t s = 0; s < left_.size(); ++s) left_[s] += sums[s];
    left_count_ += count;
  }
  double left_count() const { return left_count_; }

  double worth() {
    for (std::size_t s = 0; s < left_.size(); ++s) right_[s] = total_[s] - left_[s];
    return targets_.worth(left_.data()) + targets_.worth(right_.data());
  }

 private:
  const RowTargets& targets_;
  const double* total_ = nullptr;
  double left_count_ = 0;
  std::vector<double> left_, right_;
};

}  // namespace hardwood
