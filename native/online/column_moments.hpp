// Means and deviations of columns as rows arrive, so that contexts are standardised without a pass
// over data: Welford's update, entry by entry.
#pragma once

#include <cmath>
#include <span>
#include <vector>

namespace hardwood {

class ColumnMoments {
 public:
  explicit ColumnMoments(int n_columns)
      : count_(n_columns),
        mean_(n_columns),
        squares_(n_columns),
        center_(n_columns),
        factor_(n_columns) {}

  int n_columns() const { return static_cast<int>(mean_.size()); }

  // A missing entry, NaN, is not counted.
  void add(const float* x) {
    for (int c = 0; c < n_columns(); ++c) {
      if (std::isnan(x[c])) continue;
      const double difference = x[c] - mean_[c];
      mean_[c] += difference / ++count_[c];
      squares_[c] += difference * (x[c] - mean_[c]);
      renew(c);
    }
  }

  // As if so many rows of these moments had arrived.
  void start_from(std::span<const double> mean, std::span<const double> deviation, double rows) {
    for (int c = 0; c < n_columns(); ++c) {
      count_[c] = rows;
      mean_[c] = mean[c];
      squares_[c] = deviation[c] * deviation[c] * rows;
      renew(c);
    }
  }

  // z = (x - mean) / deviation; zero for what is missing, and for a column that has not varied yet.
  void standardise(const float* x, float* z) const {
    for (int c = 0; c < n_columns(); ++c) {
      const float value = (x[c] - center_[c]) * factor_[c];
      z[c] = value == value ? value : 0.0f;
    }
  }

  std::span<const float> center() const { return center_; }
  std::span<const float> factor() const { return factor_; }  // 1 / deviation, or 0

  // For saving: counts, means and sums of squares, one after the other.
  std::vector<double> state() const {
    std::vector<double> all(count_);
    all.insert(all.end(), mean_.begin(), mean_.end());
    all.insert(all.end(), squares_.begin(), squares_.end());
    return all;
  }
  void set_state(std::span<const double> state) {
    for (int c = 0; c < n_columns(); ++c) {
      count_[c] = state[c];
      mean_[c] = state[n_columns() + c];
      squares_[c] = state[2 * n_columns() + c];
      renew(c);
    }
  }

 private:
  void renew(int c) {
    center_[c] = static_cast<float>(mean_[c]);
    const double deviation = count_[c] > 0 ? std::sqrt(squares_[c] / count_[c]) : 0.0;
    const float factor = static_cast<float>(1.0 / deviation);
    factor_[c] = std::isfinite(factor) ? factor : 0.0f;
  }

  std::vector<double> count_, mean_, squares_;
  std::vector<float> center_, factor_;
};

}  // namespace hardwood
