// Forward pass of soft trees: a sample goes to both sides of a split unless one side has
// probability 1.
//
// Hazimeh, Ponomareva, Mol, Tan, Mazumder. The Tree Ensemble Layer: Differentiability meets
// Conditional Computation. ICML 2020. [TEL20]
//
// Algorithm 1 processes one sample at a time. Here the samples of a tile walk together, depth
// first. Each node has a list of the samples that reach it, so its weights are loaded once. Memory
// is one list per level: O(depth) per sample.
//
// If at least half of the tile is at a node, the scores of the node and of the levels below come
// from one matrix product over all samples: it is several times faster per score than lists, and
// most of the scores are needed (benchmarks/speed/tel_step.py). Scores from a list depend on the
// sample alone. Tiles without XT, as in prediction, use lists only. NumPy reference:
// tests/reference/tel.py.
#pragma once

#include "core/gemm.hpp"
#include "core/loss.hpp"
#include "tree/route.hpp"
#include "tree/soft_tree.hpp"

namespace hardwood::HARDWOOD_ISA {

HARDWOOD_INLINE float exp_of(float x) {
  return exponential(x);
}
HARDWOOD_INLINE double exp_of(double x) {
  return __builtin_exp(x);
}

// The probability of the less likely side and its derivative by u = t / gamma, computed from the
// distance q = 1/2 - |u| to the edge where it becomes 0. Computing it from u would cancel most
// digits.
template <Activation kActivation, class Real>
HARDWOOD_INLINE void lesser_side(Real u, Real& lesser, Real& slope) {
  const Real size = u < 0 ? -u : u;
  if constexpr (kActivation == Activation::kLogistic) {
    const Real e = size == size ? exp_of(-size) : Real(0);  // NaN goes right with probability 1
    lesser = e / (1 + e);
    slope = lesser / (1 + e);
    return;
  }
  const Real q = max_of(Real(0.5) - size, Real(0));
  if constexpr (kActivation == Activation::kSmoothStep) {  // Eq. (4)
    lesser = q * q * (3 - 2 * q);
    slope = 6 * q * (1 - q);
  } else {
    lesser = q * q * q * (10 + q * (6 * q - 15));
    slope = 30 * q * q * (1 - q) * (1 - q);
  }
}

template <Activation kActivation, class Real>
inline void activate_all(int n, const Real* __restrict score, Real gamma, Real* __restrict to_left,
                         Real* __restrict to_right, Real* __restrict slope) {
  const Real per_score = 1 / gamma;
  for (int i = 0; i < n; ++i) {
    const Real u = score[i] / gamma;
    Real lesser, steepness;
    lesser_side<kActivation>(u, lesser, steepness);
    to_right[i] = u < 0 ? lesser : 1 - lesser;
    to_left[i] = u < 0 ? 1 - lesser : lesser;
    slope[i] = steepness * per_score;
  }
}

template <class Real>
inline void activate(Activation activation, int n, const SoftLevel<Real>& at, Real gamma) {
  switch (activation) {
    case Activation::kSmoothStep:
      return activate_all<Activation::kSmoothStep>(n, at.score, gamma, at.to_left, at.to_right,
                                                   at.slope);
    case Activation::kSmoothStep5:
      return activate_all<Activation::kSmoothStep5>(n, at.score, gamma, at.to_left, at.to_right,
                                                    at.slope);
    case Activation::kLogistic:
      return activate_all<Activation::kLogistic>(n, at.score, gamma, at.to_left, at.to_right,
                                                 at.slope);
  }
}

// w.x + b of the listed samples.
inline void list_scores(const float* w, float bias, int d, const float* X, std::ptrdiff_t stride,
                        int n, const std::int32_t* sample, float* score) {
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    Vector<8> sums[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) sums[r] = score_8<0>(bias, w, X + sample[i + r] * stride, d);
    store<8>(score + i, fold1_of_8(sums));
  }
  for (; i < n; ++i) score[i] = fold1(score_8<0>(bias, w, X + sample[i] * stride, d));
}

inline void list_scores(const double* w, double bias, int d, const double* X, std::ptrdiff_t stride,
                        int n, const std::int32_t* sample, double* score) {
  for (int i = 0; i < n; ++i) {
    const double* x = X + sample[i] * stride;
    double sum[4] = {bias};
    for (int j = 0; j < d; ++j) sum[j % 4] += w[j] * x[j];
    score[i] = (sum[0] + sum[2]) + (sum[1] + sum[3]);
  }
}

// Where a node stands: entry `local` of the subtree of a block whose scores begin at `score`, or in
// none; and how many inner blocks are open.
struct BlockPlace {
  float* score = nullptr;
  int local = 0;
  int height = 0;
  int n_open = 0;

  HARDWOOD_INLINE BlockPlace child(int side) const {
    const int below = 2 * local + 1 + side;
    return score && below < (1 << height) - 1 ? BlockPlace{score, below, height, n_open}
                                              : BlockPlace{nullptr, 0, 0, n_open};
  }
};

// What a walk over the trees does at every node, forward and backward.
template <class Real, class Value>
class SoftWalk {
 public:
  SoftWalk(const SoftTrees<Real, Value>& trees, SoftTile<Real, Value>& tile)
      : trees_(trees),
        tile_(tile),
        has_blocks_(sizeof(Real) == sizeof(float) && tile.XT && tile.n >= kFewestForBlocks) {}

 protected:
  static constexpr int kFewestForBlocks = 16;

  void point_at(int tree) {
    const std::ptrdiff_t m = trees_.shape.n_nodes();
    tree_ = tree;
    W_ = trees_.W + tree * m * trees_.stride;
    b_ = trees_.b + tree * m;
    O_ = trees_.O + tree * (m + 1) * trees_.shape.n_outputs;
  }

  // All samples, at the root.
  void start_list() {
    for (int i = 0; i < tile_.n; ++i) {
      tile_.levels[0].sample[i] = i;
      tile_.levels[0].p[i] = 1;
    }
  }

  HARDWOOD_INLINE const Real* weights(std::ptrdiff_t node) const {
    return W_ + node * trees_.stride;
  }

  HARDWOOD_INLINE int top_nodes_of_tree() const {
    return (1 << top_height(trees_.shape.depth)) - 1;
  }

  // Scores of the first nodes of all trees. In heap order these are the first rows of each.
  void score_tops() {
    if (!has_blocks_) return;
    const int per_tree = top_nodes_of_tree();
    for (int tree = 0; tree < trees_.shape.n_trees; ++tree) {
      point_at(tree);
      for (int i = 0; i < per_tree; ++i) take_row(tile_.top, tree * per_tree + i, i);
    }
    score_block(tile_.top, trees_.shape.n_trees * per_tree);
  }

  HARDWOOD_INLINE BlockPlace top_place() const {
    if (!has_blocks_) return {};
    const std::ptrdiff_t rows = tree_ * top_nodes_of_tree();
    return {tile_.top.score + rows * tile_.capacity, 0, top_height(trees_.shape.depth), 0};
  }

  // Returns whether an inner block was opened; the caller must close it.
  HARDWOOD_INLINE bool open_block(int level, int node, int count, BlockPlace& place) {
    if (place.score || !has_blocks_ || 2 * count < tile_.n) return false;
    const SoftBlock& block = tile_.inner[place.n_open];
    const int height = min_of(kInnerHeight, trees_.shape.depth - level);
    for (int i = 0; i < (1 << height) - 1; ++i) take_row(block, i, block_node(node, i));
    score_block(block, (1 << height) - 1);
    place = {block.score, 0, height, place.n_open + 1};
    return true;
  }

  // Node number of entry `local` of a block: the levels of a subtree have 1, 2, 4, ... nodes.
  HARDWOOD_INLINE static int block_node(int root, int local) {
    const int level = 31 - __builtin_clz(static_cast<unsigned>(local + 1));
    return (root << level) + local;
  }

  HARDWOOD_INLINE void take_row(const SoftBlock& block, std::ptrdiff_t row, int node) {
    block.b[row] = static_cast<float>(b_[node]);
    for (std::ptrdiff_t j = 0; j < trees_.stride; ++j)
      block.W[row * trees_.stride + j] = static_cast<float>(weights(node)[j]);
  }

  void score_block(const SoftBlock& block, int n_nodes) {
    const int d = trees_.shape.n_columns, capacity = tile_.capacity;
    const std::size_t size = static_cast<std::size_t>(n_nodes) * capacity;
    if constexpr (sizeof(Real) == sizeof(float)) {
      Real* kept = room_on_tape(size);
      if (kept && reads_tape_) {
        copy(size, kept, block.score);
        return;
      }
      gemm({block.W, n_nodes, d, trees_.stride}, {tile_.XT, d, capacity, capacity},
           {block.score, n_nodes, capacity, capacity}, Start::kRowBias, block.b);
      if (kept) copy(size, block.score, kept);
    }
  }

  // Space for the next scores, or null if there is none. Both passes visit the nodes in the same
  // order, so the backward pass reads what the forward pass wrote.
  HARDWOOD_INLINE Real* room_on_tape(std::size_t size) {
    ScoreTape<Real>& tape = tile_.tape;
    if (tape.used + size > tape.capacity) return nullptr;
    tape.used += size;
    return tape.data + (tape.used - size);
  }

  // In steps of eight, for which all arrays have space: most lists are so short that a function
  // call would take longer.
  template <class T>
  HARDWOOD_INLINE static void copy(std::size_t n, const T* from, T* to) {
    for (std::size_t i = 0; i < n; i += kRoomBehind)
      __builtin_memcpy(to + i, from + i, kRoomBehind * sizeof(T));
  }

  HARDWOOD_INLINE float* block_row(BlockPlace place) const {
    return place.score + static_cast<std::ptrdiff_t>(place.local) * tile_.capacity;
  }

  // Scores of the samples at a node, and their probabilities of going right.
  void decide(int level, int node, int count, BlockPlace place) {
    const SoftLevel<Real>& at = tile_.levels[level];
    if (!place.score) {
      score_list(at, node, count);
    } else {
      const float* row = block_row(place);
      if (count == tile_.n)  // lists are in order: this one is all samples
        for (int i = 0; i < count; ++i) at.score[i] = row[i];
      else
        for (int i = 0; i < count; ++i) at.score[i] = row[at.sample[i]];
    }
    activate(trees_.activation, count, at, trees_.gamma);
  }

  void score_list(const SoftLevel<Real>& at, int node, int count) {
    Real* kept = room_on_tape(count);
    if (kept && reads_tape_) {
      copy(count, kept, at.score);
      return;
    }
    list_scores(weights(node), b_[node], trees_.shape.n_columns, tile_.X, trees_.stride, count,
                at.sample, at.score);
    if (kept) copy(count, at.score, kept);
  }

  // Passes the samples to a child; returns how many reach it. A probability that underflows counts
  // as 0, everywhere that children are counted.
  HARDWOOD_INLINE int pass_on(int level, int count, int side) {
    const SoftLevel<Real>&at = tile_.levels[level], &below = tile_.levels[level + 1];
    const Real* __restrict to = side ? at.to_right : at.to_left;
    Real* __restrict p = below.p;
    int reached = 0;
    for (int i = 0; i < count; ++i) {
      p[i] = at.p[i] * to[i];
      reached += p[i] > 0;
    }
    if (reached == count) {
      copy(count, at.sample, below.sample);
      return count;
    }
    if (reached == 0) return 0;
    int next = 0;
    for (int i = 0; i < count; ++i) {
      const Real here = p[i];
      below.sample[next] = at.sample[i];
      p[next] = here;
      next += here > 0;
    }
    return reached;
  }

  const SoftTrees<Real, Value>& trees_;
  SoftTile<Real, Value>& tile_;
  const bool has_blocks_;
  int tree_ = 0;
  const Real* W_ = nullptr;
  const Real* b_ = nullptr;
  const Value* O_ = nullptr;
  bool reads_tape_ = false;
};

// Algorithm 1 [TEL20] for a tile.
template <class Real, class Value>
class SoftForward : SoftWalk<Real, Value> {
 public:
  using SoftWalk<Real, Value>::SoftWalk;

  void run() {
    this->score_tops();
    for (int tree = 0; tree < this->trees_.shape.n_trees; ++tree) {
      this->point_at(tree);
      this->start_list();
      visit(0, 0, this->tile_.n, this->top_place());
    }
  }

 private:
  void visit(int level, int node, int count, BlockPlace place) {
    this->open_block(level, node, count, place);
    this->decide(level, node, count, place);
    for (int side = 0; side < 2; ++side) {
      const int reached = this->pass_on(level, count, side), child = 2 * node + 1 + side;
      if (reached == 0) continue;
      if (level + 1 == this->trees_.shape.depth)
        add_leaf(child - this->trees_.shape.n_nodes(), reached);
      else
        visit(level + 1, child, reached, place.child(side));
    }
  }

  void add_leaf(int leaf, int count) {
    const int k = this->trees_.shape.n_outputs;
    auto& tile = this->tile_;
    const SoftLevel<Real>& at = tile.levels[this->trees_.shape.depth];
    const Value* o = this->O_ + static_cast<std::ptrdiff_t>(leaf) * k;
    for (int i = 0; i < count; ++i) {
      Value* out = tile.out + static_cast<std::ptrdiff_t>(at.sample[i]) * k;
      const Value p = static_cast<Value>(at.p[i]);
      for (int j = 0; j < k; ++j) out[j] += p * o[j];
    }
    tile.n_reached += count;
    if (tile.weight) weigh_leaf(leaf, count);
    if (!tile.leaves_reached) return;
    for (int i = 0; i < count; ++i)
      ++tile.leaves_reached[static_cast<std::ptrdiff_t>(at.sample[i]) * this->trees_.shape.n_trees +
                            this->tree_];
  }

  // Sample by sample, so that the sum does not depend on the tiles.
  void weigh_leaf(int leaf, int count) {
    const auto& tile = this->tile_;
    const SoftLevel<Real>& at = tile.levels[this->trees_.shape.depth];
    const std::ptrdiff_t of_tree = std::ptrdiff_t{this->tree_} * this->trees_.shape.n_leaves();
    double& sum = tile.leaf_weight[of_tree + leaf];
    for (int i = 0; i < count; ++i) sum += tile.weight[at.sample[i]] * at.p[i];
  }
};

template <class Real, class Value>
inline void soft_forward(const SoftTrees<Real, Value>& trees, SoftTile<Real, Value>& tile) {
  SoftForward<Real, Value>(trees, tile).run();
}

}  // namespace hardwood::HARDWOOD_ISA
