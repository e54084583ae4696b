// Running means and standard deviations of columns (Welford's update), so that contexts are
// standardized without a pass over data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace hardwood {

// The parameters of standardization.
struct ColumnScale {
  std::vector<float> center, factor;  // factor: 1 / standard deviation, or 0
  std::uint64_t version = 0;          // incremented with every change

  // z = (x - mean) / standard deviation; 0 if the column has not varied yet. A missing value counts
  // as 0, the schema's center, as in every tree.
  void standardize(const float* x, float* z) const {
    for (std::size_t c = 0; c < center.size(); ++c) {
      const float known = x[c] == x[c] ? x[c] : 0.0f;
      const float value = (known - center[c]) * factor[c];
      z[c] = value == value ? value : 0.0f;
    }
  }
};

// The scale is not computed with every row, which would take roots and divisions, but whenever the
// number of rows has grown by 1/64.
class ColumnMoments {
 public:
  explicit ColumnMoments(int n_columns) : count_(n_columns), mean_(n_columns), squares_(n_columns) {
    scale_.center.resize(n_columns);
    scale_.factor.resize(n_columns);
  }

  int n_columns() const { return static_cast<int>(mean_.size()); }
  const ColumnScale& scale() const { return scale_; }

  // Missing values (NaN) are not counted.
  void add(const float* x) {
    bool is_even = true;  // all counts are equal, so that one division is enough
    for (int c = 0; c < n_columns(); ++c) {
      count_[c] += x[c] == x[c];
      is_even &= count_[c] == count_[0];
    }
    const double inverse = 1.0 / std::max(count_[0], 1.0);
    for (int c = 0; c < n_columns(); ++c) {
      const double difference = x[c] == x[c] ? x[c] - mean_[c] : 0.0;
      const double step = difference * (is_even ? inverse : 1.0 / std::max(count_[c], 1.0));
      mean_[c] += step;
      squares_[c] += difference * (difference - step);
    }
    if (++n_rows_ >= next_) renew();
  }

  // Starts as if `rows` rows with these moments had arrived.
  void start_from(std::span<const double> mean, std::span<const double> deviation, double rows) {
    for (int c = 0; c < n_columns(); ++c) {
      count_[c] = rows;
      mean_[c] = mean[c];
      squares_[c] = deviation[c] * deviation[c] * rows;
    }
    n_rows_ = rows;
    renew();
  }

  // For saving: counts, means, sums of squares, centers and factors, then the number of rows, and the
  // number at which the scale is computed next.
  std::vector<double> state() const {
    std::vector<double> all;
    for (const auto* part : {&count_, &mean_, &squares_})
      all.insert(all.end(), part->begin(), part->end());
    for (const auto* part : {&scale_.center, &scale_.factor})
      all.insert(all.end(), part->begin(), part->end());
    all.insert(all.end(), {n_rows_, next_});
    return all;
  }
  void set_state(std::span<const double> state) {
    const auto take = [&](auto& part) {
      std::copy_n(state.begin(), part.size(), part.begin());
      state = state.subspan(part.size());
    };
    take(count_), take(mean_), take(squares_), take(scale_.center), take(scale_.factor);
    n_rows_ = state[0], next_ = state[1];
    ++scale_.version;
  }

 private:
  void renew() {
    next_ = n_rows_ + std::max(1.0, std::floor(n_rows_ / 64));
    for (int c = 0; c < n_columns(); ++c) {
      scale_.center[c] = static_cast<float>(mean_[c]);
      const double deviation = std::sqrt(squares_[c] / std::max(count_[c], 1.0));
      const auto factor = static_cast<float>(1.0 / deviation);
      scale_.factor[c] = std::isfinite(factor) ? factor : 0.0f;
    }
    ++scale_.version;
  }

  std::vector<double> count_, mean_, squares_;
  double n_rows_ = 0, next_ = 1;
  ColumnScale scale_;
};

}  // namespace hardwood
