// Overparameterized splits: W = W_L ... W_1 over [x; 1], learned by its factors (DGT, Sec. 3.2; the
// optimization of such products: Arora, Cohen, Hazan. ICML 2018). NumPy reference: tests/reference/layers.py.
//
// The factors are never applied to samples. A step multiplies them into W (m, d + 1), the learner
// works with W, and the gradient G of W gives that of each factor:
//
//   dW_i = (W_L ... W_{i+1})^T  G  (W_{i-1} ... W_1)^T
//
// which is a product of two thin matrices whose common side is the columns (d + 1) or the nodes (m),
// whichever is fewer:
//
//   columns:  up_i = W_i ... W_1         down_i = (W_L ... W_{i+1})^T G       up_L = W
//   nodes:    up_i = W_i ... W_1 G^T     down_i = (W_L ... W_{i+1})^T         down_0 = W^T
//
// In both cases up_i = W_i up_{i-1}, down_{i-1} = W_i^T down_i and dW_i = down_i up_{i-1}^T; only
// the start of the two chains differs. dW_i is computed a few rows at a time, while the optimizer
// updates the factor. Its norm, for clipping, is computed from the thin factors alone.
#pragma once

#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "core/objective.hpp"
#include "core/random.hpp"

namespace hardwood {

class LinearLayers {
 public:
  LinearLayers(int n_nodes, int n_columns, std::span<const int> hidden);

  int n_layers() const { return static_cast<int>(factors_.size()); }
  // Factor i of L: (rows, cols), the rows padded to vectors.
  Matrix<float> factor(int i) { return {factors_[i].data(), width_[i + 1], width_[i], stride(i)}; }

  // Uniform in +-1/sqrt(inputs), with zeros in the column of the constant, as in the authors' code.
  void initialize(Random& random);
  // Factors whose product is W: all but the last random, the last by least squares.
  void start_from(Random& random, Matrix<const float> W, const float* bias);

  // W and its bias from the factors.
  void collapse(Matrix<float> W, float* bias);
  // Takes the gradient of W and of the bias; returns the squared norm of the gradient of all
  // factors.
  double spread(Matrix<const float> gradient, const float* bias_gradient);
  // One step of the optimizer on every factor, with the gradient of the last call of `spread`.
  void step(const StepOptions& options);

  // For saving: the factors and the optimizer's moments, one after the other.
  std::vector<float> state() const;
  void set_state(std::span<const float> state);

 private:
  void check_size() const;
  std::ptrdiff_t stride(int i) const { return padded(width_[i]); }
  Matrix<float> thin(std::vector<Buffer<float>>& chain, int i) {
    return {chain[i].data(), width_[i], thin_, padded(thin_)};
  }
  bool by_columns() const { return width_.front() <= width_.back(); }
  void climb(int first, int last);  // up_i for i in [first, last]
  void fall(int first, int last);   // down_i for i from first to last, falling
  void step_factor(int i, const StepOptions& options);

  std::vector<int> width_;  // d + 1, hidden sizes, m
  int thin_;                // the common side: min(d + 1, m)
  std::vector<Buffer<float>> factors_, second_moment_, first_moment_;
  std::vector<Buffer<float>> up_, down_;  // (width_i, thin)
  Buffer<float> gram_[2], up_transposed_, rows_;
};

}  // namespace hardwood
