// TEL backwards: Algorithm 2 and Theorem 1 [TEL20], the gradient over the fractional tree.
//
// The walk of tree/soft.hpp again, over the nodes that samples reach. On the way up, every sample
// at a node has the derivative v of the loss by the probability of reaching the node:
//   v(leaf) = <slope, o_l>,   v(node) = (1 - S) v(left) + S v(right),
// and the gradient by the node's score is  p S'(t) (v(right) - v(left)),  zero unless 0 < S < 1: the
// fractional nodes, of which a sample has as many as leaves it reaches, less one. The paper's sums
// over leaves are p v; written so, nothing is divided by S or 1 - S, and no digits are lost where
// these are small. NumPy reference: tests/reference/tel.py.
#pragma once

#include "tree/soft.hpp"

namespace hardwood::HARDWOOD_ISA {

// dw += g x and dx += g w of the listed samples, in stretches of columns that stay in registers.
inline void add_list_gradient(int n, const std::int32_t* sample, const float* g, const float* X,
                              std::ptrdiff_t stride, float* dw) {
  constexpr int kVectors = 4;
  std::ptrdiff_t j = 0;
  for (; j + 8 * kVectors <= stride; j += 8 * kVectors) {
    Vector<8> sum[kVectors];
    for (int v = 0; v < kVectors; ++v) sum[v] = load<8>(dw + j + 8 * v);
    for (int i = 0; i < n; ++i)
      for (int v = 0; v < kVectors; ++v)
        sum[v] += g[i] * load<8>(X + sample[i] * stride + j + 8 * v);
    for (int v = 0; v < kVectors; ++v) store<8>(dw + j + 8 * v, sum[v]);
  }
  for (; j < stride; j += 8) {
    Vector<8> sum = load<8>(dw + j);
    for (int i = 0; i < n; ++i) sum += g[i] * load<8>(X + sample[i] * stride + j);
    store<8>(dw + j, sum);
  }
}

inline void add_list_gradient(int n, const std::int32_t* sample, const double* g, const double* X,
                              std::ptrdiff_t stride, double* dw) {
  for (int i = 0; i < n; ++i) {
    const double* x = X + sample[i] * stride;
    for (std::ptrdiff_t j = 0; j < stride; ++j) dw[j] += g[i] * x[j];
  }
}

template <class Real>
inline void add_input_gradient(int n, const std::int32_t* sample, const Real* g,
                               const Real* __restrict w, std::ptrdiff_t stride, Real* dX) {
  for (int i = 0; i < n; ++i) {
    Real* __restrict dx = dX + sample[i] * stride;
    const Real factor = g[i];
    for (std::ptrdiff_t j = 0; j < stride; ++j) dx[j] += factor * w[j];
  }
}

// <slope, o>, and do += p slope.
inline float leaf_value(int k, const float* slope, const float* o, float p, float* dO) {
  Vector<8> sums{};
  int j = 0;
  for (; j + 8 <= k; j += 8) {
    const Vector<8> s = load<8>(slope + j);
    sums += s * load<8>(o + j);
    store<8>(dO + j, load<8>(dO + j) + p * s);
  }
  float value = k < 8 ? 0.0f : fold1(sums);
  for (; j < k; ++j) {
    value += slope[j] * o[j];
    dO[j] += p * slope[j];
  }
  return value;
}

inline double leaf_value(int k, const double* slope, const double* o, double p, double* dO) {
  double value = 0;
  for (int j = 0; j < k; ++j) {
    value += slope[j] * o[j];
    dO[j] += p * slope[j];
  }
  return value;
}

template <class Real>
class TelBackward : SoftWalk<Real, Real> {
 public:
  TelBackward(const SoftTrees<Real>& trees, SoftTile<Real>& tile,
              const SoftGradient<Real>& gradient)
      : SoftWalk<Real, Real>(trees, tile), gradient_(gradient) {
    this->reads_tape_ = true;
    tile.tape.used = 0;
  }

  void run() {
    const std::ptrdiff_t m = this->trees_.shape.n_nodes(), k = this->trees_.shape.n_outputs;
    this->score_tops();
    for (int tree = 0; tree < this->trees_.shape.n_trees; ++tree) {
      point_at_gradient_of(tree, m, k);
      this->start_list();
      const BlockPlace top = this->top_place();
      forget(0);
      visit(0, 0, this->tile_.n, top);
      if (top.score) clear_unmet(top);
    }
    if (this->has_blocks_) add_tops_gradient(m, k);
  }

 private:
  void point_at_gradient_of(int tree, std::ptrdiff_t m, std::ptrdiff_t k) {
    this->point_at(tree);
    dW_ = gradient_.W + tree * m * this->trees_.stride;
    db_ = gradient_.b + tree * m;
    dO_ = gradient_.O + tree * (m + 1) * k;
  }

  void visit(int level, int node, int count, BlockPlace place) {
    const bool opened = this->open_block(level, node, count, place);
    if (opened) forget(place.n_open);
    this->decide(level, node, count, place);
    const SoftLevel<Real>& at = this->tile_.levels[level];
    child_values(level, node, count, 0, place, at.left_value);
    child_values(level, node, count, 1, place, at.value);
    Real total = 0;
    for (int i = 0; i < count; ++i) {
      const Real left = at.left_value[i], right = at.value[i];
      at.value[i] = at.to_left[i] * left + at.to_right[i] * right;
      at.score[i] = at.p[i] * at.slope[i] * (right - left);
      total += at.score[i];
    }
    db_[node] += total;
    add_split_gradient(level, node, count, place);
    if (opened) close_block(node, place);
  }

  // Values of the child for the samples at its parent: zero for those that do not reach it.
  void child_values(int level, int node, int count, int side, BlockPlace place, Real* values) {
    const int reached = this->pass_on(level, count, side), child = 2 * node + 1 + side;
    const SoftLevel<Real>&at = this->tile_.levels[level], &below = this->tile_.levels[level + 1];
    const bool is_leaf = level + 1 == this->trees_.shape.depth;
    if (reached > 0 && is_leaf) leaf_values(child - this->trees_.shape.n_nodes(), reached);
    if (reached > 0 && !is_leaf) visit(level + 1, child, reached, place.child(side));
    if (reached == count) {
      this->copy(count, below.value, values);
      return;
    }
    const Real* to = side ? at.to_right : at.to_left;
    int next = 0;
    for (int i = 0; i < count; ++i) {
      const bool reaches = at.p[i] * to[i] > 0;
      values[i] = reaches ? below.value[next] : 0;
      next += reaches;
    }
  }

  void leaf_values(int leaf, int count) {
    const int k = this->trees_.shape.n_outputs;
    const SoftLevel<Real>& at = this->tile_.levels[this->trees_.shape.depth];
    const Real* o = this->O_ + static_cast<std::ptrdiff_t>(leaf) * k;
    Real* dO = dO_ + static_cast<std::ptrdiff_t>(leaf) * k;
    for (int i = 0; i < count; ++i) {
      const Real* slope = gradient_.slope + static_cast<std::ptrdiff_t>(at.sample[i]) * k;
      at.value[i] = leaf_value(k, slope, o, at.p[i], dO);
    }
  }

  // The gradients by the scores of a node in a block wait for the matrix products of the block.
  void add_split_gradient(int level, int node, int count, BlockPlace place) {
    const SoftLevel<Real>& at = this->tile_.levels[level];
    if (place.score) {
      float* row = this->block_row(place);
      clear(row);
      met_[place.n_open][place.local] = true;
      for (int i = 0; i < count; ++i) row[at.sample[i]] = static_cast<float>(at.score[i]);
      return;
    }
    int n = 0;
    for (int i = 0; i < count; ++i) {  // the fractional ones
      at.sample[n] = at.sample[i];
      at.score[n] = at.score[i];
      n += at.score[i] != 0;
    }
    const std::ptrdiff_t stride = this->trees_.stride;
    add_list_gradient(n, at.sample, at.score, this->tile_.X, stride, dW_ + node * stride);
    if (gradient_.X)
      add_input_gradient(n, at.sample, at.score, this->weights(node), stride, gradient_.X);
  }

  void close_block(int root, BlockPlace place) {
    const int n_nodes = (1 << place.height) - 1;
    const SoftBlock& block = this->tile_.inner[place.n_open - 1];
    clear_unmet(place);
    block_gradient(block, n_nodes);
    for (int i = 0; i < n_nodes; ++i) add_row(block, i, this->block_node(root, i));
  }

  void add_tops_gradient(std::ptrdiff_t m, std::ptrdiff_t k) {
    const int per_tree = this->top_nodes_of_tree(), n_trees = this->trees_.shape.n_trees;
    block_gradient(this->tile_.top, n_trees * per_tree);
    for (int tree = 0; tree < n_trees; ++tree) {
      point_at_gradient_of(tree, m, k);
      for (int i = 0; i < per_tree; ++i) add_row(this->tile_.top, tree * per_tree + i, i);
    }
  }

  // Computes the gradients by X, which are added, and by W, which overwrite W, from the gradients
  // by the scores.
  void block_gradient(const SoftBlock& block, int n_nodes) {
    if constexpr (sizeof(Real) == sizeof(float)) {
      const int n = this->tile_.n, d = this->trees_.shape.n_columns;
      const std::ptrdiff_t stride = this->trees_.stride;
      const Matrix<const float> by_score{block.score, n_nodes, n, this->tile_.capacity};
      if (gradient_.X)
        gemm_transposed(by_score, {block.W, n_nodes, d, stride}, {gradient_.X, n, d, stride},
                        Start::kAccumulate);
      gemm(by_score, {this->tile_.X, n, d, stride}, {block.W, n_nodes, d, stride}, Start::kZero);
    }
  }

  HARDWOOD_INLINE void add_row(const SoftBlock& block, std::ptrdiff_t row, std::ptrdiff_t node) {
    const std::ptrdiff_t stride = this->trees_.stride;
    for (std::ptrdiff_t j = 0; j < stride; ++j) dW_[node * stride + j] += block.W[row * stride + j];
  }

  // Nodes of a block that no sample reached still hold their scores.
  void clear_unmet(BlockPlace place) {
    for (place.local = 0; place.local < (1 << place.height) - 1; ++place.local)
      if (!met_[place.n_open][place.local]) clear(this->block_row(place));
  }

  HARDWOOD_INLINE void forget(int block) {
    for (bool& met : met_[block]) met = false;
  }

  HARDWOOD_INLINE void clear(float* row) const {
    for (int i = 0; i < this->tile_.capacity; ++i) row[i] = 0;
  }

  const SoftGradient<Real>& gradient_;
  // The nodes that samples reached, in the top of a tree and in each inner block.
  bool met_[1 + most_inner_blocks(kDeepestSoftTree)][kInnerNodes] = {};
  Real* dW_ = nullptr;
  Real* db_ = nullptr;
  Real* dO_ = nullptr;
};

template <class Real>
inline void tel_backward(const SoftTrees<Real>& trees, SoftTile<Real>& tile,
                         const SoftGradient<Real>& gradient) {
  TelBackward<Real>(trees, tile, gradient).run();
}

}  // namespace hardwood::HARDWOOD_ISA
