#include "learn/tao/logistic.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include "core/buffer.hpp"
#include "core/kernels.hpp"
#include "core/threads.hpp"

namespace hardwood {

namespace {

using Values = std::vector<double>;

constexpr int kChunkRows = 1024;
constexpr int kMemory = 10;            // pairs of steps and changes of the gradient
constexpr double kWorthThreads = 1e6;  // multiplications below which threads cost more
constexpr double kSufficient = 1e-4;   // of the decrease that the slope promises
constexpr int kMaxHalvings = 20;

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}

// The smooth part of the objective: points are [w | b], (d + 1,).
class SmoothPart {
 public:
  SmoothPart(const LogisticRows& rows, int d, const LogisticOptions& options)
      : rows_(rows),
        d_(d),
        options_(options),
        n_chunks_((rows.n + kChunkRows - 1) / kChunkRows),
        w_(rows.stride),
        chunk_gradient_(static_cast<std::size_t>(n_chunks_) * rows.stride),
        chunk_sums_(2 * n_chunks_) {}

  int passes() const { return passes_; }

  double operator()(const Values& x, Values& gradient) {
    ++passes_;
    for (int j = 0; j < d_; ++j) w_[j] = static_cast<float>(x[j]);
    const bool is_large = static_cast<double>(rows_.n) * rows_.stride > kWorthThreads;
    parallel_for(n_chunks_, is_large ? options_.n_threads : 1, [&](int c) { pass(c, x[d_]); });
    return summed(x, gradient);
  }

 private:
  void pass(int c, double b) {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(c) * kChunkRows;
    const LogisticRows chunk{std::min(kChunkRows, static_cast<int>(rows_.n - first)), rows_.stride,
                             rows_.X + first * rows_.stride, rows_.sign + first,
                             rows_.weight + first};
    chunk_sums_[2 * c] =
        kernels().logistic_pass(chunk, w_.data(), static_cast<float>(b),
                                chunk_gradient_.data() + c * rows_.stride, &chunk_sums_[2 * c + 1]);
  }

  double summed(const Values& x, Values& gradient) {
    double value = 0;
    for (int j = 0; j < d_; ++j) {
      gradient[j] = options_.l2 * x[j];
      value += 0.5 * options_.l2 * x[j] * x[j];
    }
    gradient[d_] = 0;
    for (int c = 0; c < n_chunks_; ++c) {
      const float* g = chunk_gradient_.data() + c * rows_.stride;
      for (int j = 0; j < d_; ++j) gradient[j] += g[j];
      value += chunk_sums_[2 * c];
      gradient[d_] += chunk_sums_[2 * c + 1];
    }
    return value;
  }

  const LogisticRows rows_;
  const int d_;
  const LogisticOptions options_;
  const int n_chunks_;
  Buffer<float> w_, chunk_gradient_;
  Values chunk_sums_;
  int passes_ = 0;
};

class OwlQn {
 public:
  OwlQn(const LogisticRows& rows, int d, const LogisticOptions& options)
      : smooth_(rows, d, options), d_(d), options_(options), curvature_(curvatures(rows)) {}

  LogisticSolution solve(Values x, const std::atomic<bool>& stop) {
    const std::size_t size = x.size();
    Values gradient(size), next(size), next_gradient(size);
    double value = smooth_(x, gradient) + penalty(x);
    LogisticSolution solution;
    solution.start_objective = value;
    int n_small = 0;
    while (smooth_.passes() < options_.max_passes && !stop && n_small < 2) {
      const Values pseudo = pseudo_gradient(x, gradient);
      if (!std::ranges::any_of(pseudo, [](double v) { return v != 0; })) break;
      Values direction = aligned(direction_of(pseudo), pseudo);
      double next_value = 0;
      if (!search(x, value, pseudo, direction, next, next_value, next_gradient)) {
        if (steps_.empty()) break;
        steps_.clear();  // what it remembers does not fit here
        continue;
      }
      remember(x, gradient, next, next_gradient);
      n_small = value - next_value <= options_.tolerance * value ? n_small + 1 : 0;
      std::swap(x, next);
      std::swap(gradient, next_gradient);
      value = next_value;
    }
    solution.w.assign(x.begin(), x.begin() + d_);
    solution.b = static_cast<float>(x[d_]);
    solution.objective = value;
    solution.passes = smooth_.passes();
    return solution;
  }

 private:
  struct Step {
    Values s, y;
    double rho;
  };

  // Upper bounds on the second derivatives, per column: c_i x_ij^2 / 4.
  Values curvatures(const LogisticRows& rows) const {
    Values h(d_ + 1);
    for (int i = 0; i < rows.n; ++i) {
      const float* x = rows.X + i * rows.stride;
      const double c = 0.25 * rows.weight[i];
      for (int j = 0; j < d_; ++j) h[j] += c * x[j] * x[j];
      h[d_] += c;
    }
    double largest = 0;
    for (int j = 0; j < d_; ++j) largest = std::max(largest, h[j] += options_.l2);
    for (double& v : h) v = std::max(v, 1e-6 * largest + 1e-30);
    return h;
  }

  double penalty(const Values& x) const {
    double sum = 0;
    for (int j = 0; j < d_; ++j) sum += std::abs(x[j]);
    return options_.l1 * sum;
  }

  // The smallest subgradient: zero where |gradient| <= l1 keeps a weight at zero.
  Values pseudo_gradient(const Values& x, const Values& gradient) const {
    Values pseudo = gradient;
    for (int j = 0; j < d_; ++j) {
      const double g = gradient[j], l1 = options_.l1;
      if (x[j] != 0)
        pseudo[j] = g + (x[j] > 0 ? l1 : -l1);
      else
        pseudo[j] = g > l1 ? g - l1 : g < -l1 ? g + l1 : 0.0;
    }
    return pseudo;
  }

  // -H pseudo by the two loops of L-BFGS; H_0 is diagonal.
  Values direction_of(const Values& pseudo) const {
    Values q = pseudo, alpha(steps_.size());
    for (std::size_t i = steps_.size(); i-- > 0;) {
      alpha[i] = steps_[i].rho * dot(steps_[i].s, q);
      for (std::size_t j = 0; j < q.size(); ++j) q[j] -= alpha[i] * steps_[i].y[j];
    }
    double scale = 1.0;
    if (!steps_.empty()) {
      const Step& last = steps_.back();
      double preconditioned = 0;
      for (std::size_t j = 0; j < q.size(); ++j)
        preconditioned += last.y[j] * last.y[j] / curvature_[j];
      scale = 1.0 / (last.rho * preconditioned);
    }
    for (std::size_t j = 0; j < q.size(); ++j) q[j] *= scale / curvature_[j];
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const double beta = steps_[i].rho * dot(steps_[i].y, q);
      for (std::size_t j = 0; j < q.size(); ++j) q[j] += (alpha[i] - beta) * steps_[i].s[j];
    }
    for (double& v : q) v = -v;
    return q;
  }

  static Values aligned(Values direction, const Values& pseudo) {
    for (std::size_t j = 0; j < direction.size(); ++j)
      if (direction[j] * pseudo[j] >= 0) direction[j] = 0;
    return direction;
  }

  // Halves the step until the objective falls enough; weights do not cross zero.
  bool search(const Values& x, double value, const Values& pseudo, const Values& direction,
              Values& next, double& next_value, Values& next_gradient) {
    double step = 1.0;
    for (int halving = 0; halving < kMaxHalvings; ++halving, step *= 0.5) {
      double promised = 0;
      for (int j = 0; j <= d_; ++j) {
        next[j] = x[j] + step * direction[j];
        const double orthant = x[j] != 0 ? x[j] : -pseudo[j];
        if (j < d_ && options_.l1 > 0 && next[j] * orthant <= 0) next[j] = 0;
        promised += pseudo[j] * (next[j] - x[j]);
      }
      if (!(promised < 0)) return false;
      next_value = smooth_(next, next_gradient) + penalty(next);
      if (next_value <= value + kSufficient * promised) return true;
      if (smooth_.passes() >= options_.max_passes) return false;
    }
    return false;
  }

  void remember(const Values& x, const Values& gradient, const Values& next,
                const Values& next_gradient) {
    Step step{Values(x.size()), Values(x.size()), 0};
    for (std::size_t j = 0; j < x.size(); ++j) {
      step.s[j] = next[j] - x[j];
      step.y[j] = next_gradient[j] - gradient[j];
    }
    const double curvature = dot(step.s, step.y);
    if (!(curvature > 1e-12 * dot(step.y, step.y))) return;
    step.rho = 1.0 / curvature;
    if (steps_.size() == kMemory) steps_.pop_front();
    steps_.push_back(std::move(step));
  }

  SmoothPart smooth_;
  const int d_;
  const LogisticOptions options_;
  const Values curvature_;
  std::deque<Step> steps_;
};

}  // namespace

LogisticSolution solve_logistic(const LogisticRows& rows, int d, const LogisticOptions& options,
                                std::vector<float> w, float b, const std::atomic<bool>& stop) {
  Values start(w.begin(), w.end());
  start.push_back(b);
  return OwlQn(rows, d, options).solve(std::move(start), stop);
}

}  // namespace hardwood
