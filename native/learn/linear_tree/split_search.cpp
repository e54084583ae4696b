#include "learn/linear_tree/split_search.hpp"

#include <cmath>
#include <cstddef>

#include "core/threads.hpp"

namespace hardwood {

namespace {

// Sums over some rows: per output the gradient (q) and the lower triangle of the curvature.
class Sums {
 public:
  Sums(int q, int k) : q_(q), k_(k), width_(q + q * (q + 1) / 2) {}

  std::size_t size() const { return static_cast<std::size_t>(width_) * k_; }

  void add_row(const double* z, const double* slope, const double* curvature, double* to) const {
    for (int o = 0; o < k_; ++o, to += width_) {
      for (int a = 0; a < q_; ++a) to[a] += slope[o] * z[a];
      double* H = to + q_;
      for (int a = 0; a < q_; ++a) {
        const double hz = curvature[o] * z[a];
        for (int b = 0; b <= a; ++b) *H++ += hz * z[b];
      }
    }
  }

  // What one Newton step gains, over all outputs; `work` has q (q + 3) / 2 entries.
  double gain(const double* sums, const double* l2, double* work) const {
    double total = 0;
    for (int o = 0; o < k_; ++o, sums += width_) total += gain_of_output(sums, l2, work);
    return total;
  }

 private:
  // 1/2 |L^-1 g|^2 with H + diag(l2) = L L'.
  double gain_of_output(const double* sums, const double* l2, double* work) const {
    double* L = work;
    double* y = work + q_ * (q_ + 1) / 2;
    const double* H = sums + q_;
    double gain = 0;
    for (int a = 0, at = 0; a < q_; ++a) {
      double* row = L + at;
      double rest = sums[a];
      for (int b = 0, at_b = 0; b < a; at_b += ++b) {
        double v = H[at + b];
        for (int c = 0; c < b; ++c) v -= row[c] * L[at_b + c];
        row[b] = v / L[at_b + b];
        rest -= row[b] * y[b];
      }
      double pivot = H[at + a] + l2[a];
      for (int c = 0; c < a; ++c) pivot -= row[c] * row[c];
      // A column that others give exactly has nothing to add.
      const bool is_free = pivot > 1e-10 * (H[at + a] + l2[a]);
      row[a] = is_free ? std::sqrt(pivot) : 1.0;
      y[a] = is_free ? rest / row[a] : 0.0;
      gain += 0.5 * y[a] * y[a];
      at += a + 1;
    }
    return gain;
  }

  int q_, k_, width_;
};

class CandidateScan {
 public:
  explicit CandidateScan(const LinearSplitRows& rows)
      : rows_(rows), sums_(rows.n_columns, rows.n_outputs) {
    work_.resize(static_cast<std::size_t>(rows.n_columns) * (rows.n_columns + 3) / 2);
  }

  LinearSplit scan(const SplitCandidate& candidate) {
    fill(candidate);
    LinearSplit best;
    const int n_present = candidate.n_bins - candidate.has_missing;
    sweep(candidate, n_present, false, best);
    if (candidate.has_missing && count_[n_present] > 0) sweep(candidate, n_present, true, best);
    return best;
  }

 private:
  void fill(const SplitCandidate& candidate) {
    const std::size_t width = sums_.size(), q = rows_.n_columns, k = rows_.n_outputs;
    bins_.assign(width * candidate.n_bins, 0.0);
    count_.assign(candidate.n_bins, 0.0);
    total_.assign(width, 0.0);
    total_count_ = 0;
    for (std::int64_t i = 0; i < rows_.n; ++i) {
      const std::size_t bin = candidate.bin[i];
      sums_.add_row(rows_.z + i * q, rows_.slope + i * k, rows_.curvature + i * k,
                    bins_.data() + bin * width);
      count_[bin] += rows_.count[i];
    }
    for (int bin = 0; bin < candidate.n_bins; ++bin) {
      total_count_ += count_[bin];
      for (std::size_t j = 0; j < width; ++j) total_[j] += bins_[bin * width + j];
    }
    unsplit_ = sums_.gain(total_.data(), rows_.l2, work_.data());
  }

  void sweep(const SplitCandidate& candidate, int n_present, bool missing_right,
             LinearSplit& best) {
    const std::size_t width = sums_.size();
    left_.assign(width, 0.0);
    right_.resize(width);
    double count = 0;
    const auto take = [&](int bin) {
      count += count_[bin];
      for (std::size_t j = 0; j < width; ++j) left_[j] += bins_[bin * width + j];
    };
    if (candidate.has_missing && !missing_right) take(n_present);
    for (int bin = 0; bin + 1 < n_present; ++bin) {
      take(bin);
      if (count_[bin] == 0) continue;  // the same split as before
      if (count < rows_.min_count || total_count_ - count < rows_.min_count) continue;
      for (std::size_t j = 0; j < width; ++j) right_[j] = total_[j] - left_[j];
      const double gain = sums_.gain(left_.data(), rows_.l2, work_.data()) +
                          sums_.gain(right_.data(), rows_.l2, work_.data()) - unsplit_;
      if (gain > best.gain) best = {gain, bin + 1, missing_right};
    }
  }

  const LinearSplitRows& rows_;
  Sums sums_;
  std::vector<double> bins_, count_, total_, left_, right_, work_;
  double total_count_ = 0, unsplit_ = 0;
};

}  // namespace

std::vector<LinearSplit> search_linear_splits(const LinearSplitRows& rows,
                                              const std::vector<SplitCandidate>& candidates,
                                              int n_threads) {
  std::vector<LinearSplit> found(candidates.size());
  const double work = static_cast<double>(rows.n) * candidates.size() * rows.n_columns *
                      rows.n_columns * rows.n_outputs;
  parallel_for(static_cast<int>(candidates.size()), threads_for(work, n_threads),
               [&](int i) { found[i] = CandidateScan(rows).scan(candidates[i]); });
  return found;
}

}  // namespace hardwood
