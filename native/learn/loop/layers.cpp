#include "learn/loop/layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/kernels.hpp"

namespace hardwood {

namespace {

// Rows of a factor's gradient that are computed together: a register block of the matrix product.
constexpr int kRowsAtOnce = 6;

void set_identity(Matrix<float> I) {
  for (int i = 0; i < I.rows; ++i) {
    std::fill_n(I.row(i), I.stride, 0.0f);
    I.row(i)[i] = 1.0f;
  }
}

// In place: the lower triangle of K becomes C with C C^T = K.
void cholesky(std::vector<double>& K, int n) {
  for (int j = 0; j < n; ++j) {
    double* row_j = K.data() + static_cast<std::size_t>(j) * n;
    for (int i = j; i < n; ++i) {
      double* row_i = K.data() + static_cast<std::size_t>(i) * n;
      double sum = row_i[j];
      for (int k = 0; k < j; ++k) sum -= row_i[k] * row_j[k];
      if (i == j && !(sum > 0)) throw std::invalid_argument("the hidden layers are degenerate");
      row_i[j] = i == j ? std::sqrt(sum) : sum / row_j[j];
    }
  }
}

// In place: x becomes the solution of C C^T x = x.
void solve(const std::vector<double>& C, int n, double* x) {
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < i; ++k) x[i] -= C[static_cast<std::size_t>(i) * n + k] * x[k];
    x[i] /= C[static_cast<std::size_t>(i) * n + i];
  }
  for (int i = n - 1; i >= 0; --i) {
    for (int k = i + 1; k < n; ++k) x[i] -= C[static_cast<std::size_t>(k) * n + i] * x[k];
    x[i] /= C[static_cast<std::size_t>(i) * n + i];
  }
}

}  // namespace

LinearLayers::LinearLayers(int n_nodes, int n_columns, std::span<const int> hidden) {
  width_.push_back(n_columns + 1);
  width_.insert(width_.end(), hidden.begin(), hidden.end());
  width_.push_back(n_nodes);
  thin_ = std::min(n_columns + 1, n_nodes);
  check_size();
  std::size_t widest = 0;
  for (const int width : width_) {
    const std::size_t size = static_cast<std::size_t>(width) * padded(thin_);
    up_.emplace_back(size);
    down_.emplace_back(size);
    widest = std::max(widest, static_cast<std::size_t>(padded(width)));
  }
  for (int i = 0; i + 1 < static_cast<int>(width_.size()); ++i) {
    const std::size_t size = static_cast<std::size_t>(width_[i + 1]) * stride(i);
    factors_.emplace_back(size);
    second_moment_.emplace_back(size);
    first_moment_.emplace_back(size);
  }
  for (Buffer<float>& gram : gram_)
    gram = Buffer<float>(static_cast<std::size_t>(thin_) * padded(thin_));
  up_transposed_ = Buffer<float>(thin_ * widest);
  rows_ = Buffer<float>(kRowsAtOnce * widest);
  set_identity(by_columns() ? thin(up_, 0) : thin(down_, n_layers()));
}

// Before anything is allocated. Throws std::length_error.
void LinearLayers::check_size() const {
  double n = 0;  // beyond what integers count
  for (std::size_t i = 0; i < width_.size(); ++i) {
    n += 2.0 * width_[i] * padded(thin_);
    if (i > 0) n += static_cast<double>(width_[i]) * padded(width_[i - 1]);
  }
  if (n > std::numeric_limits<std::int32_t>::max())
    throw std::length_error("hidden layers of these widths are too large");
}

void LinearLayers::initialize(Random& random) {
  for (int i = 0; i < n_layers(); ++i) {
    const int inputs = i == 0 ? width_[0] - 1 : width_[i];
    const float bound = 1.0f / std::sqrt(static_cast<float>(std::max(inputs, 1)));
    const Matrix<float> W = factor(i);
    for (int r = 0; r < W.rows; ++r)
      for (int c = 0; c < inputs; ++c) W.row(r)[c] = random.uniform(-bound, bound);
  }
}

void LinearLayers::start_from(Random& random, Matrix<const float> W, const float* bias) {
  const int d1 = width_.front(), last = n_layers() - 1, inner = width_[last];
  if (*std::min_element(width_.begin() + 1, width_.end() - 1) < d1)
    throw std::invalid_argument(
        "to start from a tree every hidden size must be at least the number of columns plus one");
  initialize(random);
  // A constant column of zeros could not represent the biases of the start.
  const float bound = 1.0f / std::sqrt(static_cast<float>(d1));
  for (int r = 0; r < width_[1]; ++r) factor(0).row(r)[d1 - 1] = random.uniform(-bound, bound);
  // P = W_{L-1} ... W_1 in float64;  W_L = W (P^T P)^-1 P^T.
  std::vector<double> P(static_cast<std::size_t>(d1) * d1);
  for (int j = 0; j < d1; ++j) P[static_cast<std::size_t>(j) * d1 + j] = 1;
  for (int i = 0; i < last; ++i) {
    std::vector<double> next(static_cast<std::size_t>(width_[i + 1]) * d1);
    for (int r = 0; r < width_[i + 1]; ++r)
      for (int c = 0; c < width_[i]; ++c) {
        const double w = factor(i).row(r)[c];
        for (int j = 0; j < d1; ++j)
          next[static_cast<std::size_t>(r) * d1 + j] += w * P[static_cast<std::size_t>(c) * d1 + j];
      }
    P = std::move(next);
  }
  std::vector<double> K(static_cast<std::size_t>(d1) * d1);
  for (int r = 0; r < inner; ++r)
    for (int i = 0; i < d1; ++i)
      for (int j = 0; j <= i; ++j)
        K[static_cast<std::size_t>(i) * d1 + j] +=
            P[static_cast<std::size_t>(r) * d1 + i] * P[static_cast<std::size_t>(r) * d1 + j];
  cholesky(K, d1);
  std::vector<double> x(d1);
  for (int node = 0; node < width_.back(); ++node) {
    for (int c = 0; c + 1 < d1; ++c) x[c] = W.row(node)[c];
    x[d1 - 1] = bias[node];
    solve(K, d1, x.data());
    for (int r = 0; r < inner; ++r) {
      double sum = 0;
      for (int c = 0; c < d1; ++c) sum += P[static_cast<std::size_t>(r) * d1 + c] * x[c];
      factor(last).row(node)[r] = static_cast<float>(sum);
    }
  }
}

void LinearLayers::climb(int first, int last) {
  for (int i = first; i <= last; ++i) kernels().gemm(factor(i - 1), thin(up_, i - 1), thin(up_, i));
}

void LinearLayers::fall(int first, int last) {
  for (int i = first; i >= last; --i)
    kernels().gemm_transposed(factor(i), thin(down_, i + 1), thin(down_, i));
}

void LinearLayers::collapse(Matrix<float> W, float* bias) {
  const int m = width_.back(), d = width_.front() - 1, n = n_layers();
  if (by_columns())
    climb(1, n);
  else
    fall(n - 1, 0);
  const Matrix<float> product = by_columns() ? thin(up_, n) : thin(down_, 0);
  for (int node = 0; node < m; ++node) {
    for (int c = 0; c < d; ++c)
      W.row(node)[c] = by_columns() ? product.row(node)[c] : product.row(c)[node];
    bias[node] = by_columns() ? product.row(node)[d] : product.row(d)[node];
  }
}

double LinearLayers::spread(Matrix<const float> gradient, const float* bias_gradient) {
  const int m = width_.back(), d = width_.front() - 1, n = n_layers();
  const Matrix<float> G = by_columns() ? thin(down_, n) : thin(up_, 0);
  for (int node = 0; node < m; ++node) {
    for (int c = 0; c < d; ++c)
      (by_columns() ? G.row(node)[c] : G.row(c)[node]) = gradient.row(node)[c];
    (by_columns() ? G.row(node)[d] : G.row(d)[node]) = bias_gradient[node];
  }
  if (by_columns())
    fall(n - 1, 1);
  else
    climb(1, n - 1);
  // |down up^T|^2 = <down^T down, up^T up>
  double norm = 0;
  for (int i = 0; i < n; ++i) {
    const Matrix<float> D = thin(down_, i + 1), U = thin(up_, i);
    const Matrix<float> of_down{gram_[0].data(), thin_, thin_, padded(thin_)},
        of_up{gram_[1].data(), thin_, thin_, padded(thin_)};
    kernels().gemm_transposed(D, D, of_down);
    kernels().gemm_transposed(U, U, of_up);
    for (int r = 0; r < thin_; ++r)
      for (int c = 0; c < thin_; ++c)
        norm += static_cast<double>(of_down.row(r)[c]) * of_up.row(r)[c];
  }
  return std::max(norm, 0.0);  // a tiny one may be lost to rounding
}

void LinearLayers::step(const StepOptions& options) {
  for (int i = 0; i < n_layers(); ++i) step_factor(i, options);
}

void LinearLayers::step_factor(int i, const StepOptions& options) {
  const Matrix<float> W = factor(i), D = thin(down_, i + 1), U = thin(up_, i);
  const Matrix<float> UT{up_transposed_.data(), thin_, W.cols, W.stride};
  kernels().transpose(U, UT);
  for (int t = 0; t < thin_; ++t) std::fill(UT.row(t) + W.cols, UT.row(t) + W.stride, 0.0f);
  const Matrix<float> G{rows_.data(), kRowsAtOnce, W.cols, W.stride};
  for (int r = 0; r < W.rows; r += kRowsAtOnce) {
    const int n = std::min(kRowsAtOnce, W.rows - r);
    kernels().gemm({D.row(r), n, thin_, D.stride}, UT, {G.data, n, W.cols, W.stride});
    const std::size_t at = static_cast<std::size_t>(r) * W.stride;
    kernels().optimize(static_cast<std::size_t>(n) * W.stride, W.row(r), G.data,
                       second_moment_[i].data() + at, first_moment_[i].data() + at, options);
  }
}

std::vector<float> LinearLayers::state() const {
  std::vector<float> all;
  for (const auto* parts : {&factors_, &second_moment_, &first_moment_})
    for (const Buffer<float>& part : *parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

void LinearLayers::set_state(std::span<const float> state) {
  for (auto* parts : {&factors_, &second_moment_, &first_moment_})
    for (Buffer<float>& part : *parts) {
      std::copy_n(state.begin(), part.size(), part.begin());
      state = state.subspan(part.size());
    }
}

}  // namespace hardwood
