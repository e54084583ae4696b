// Soft trees, forwards: every sample goes to both sides of a split unless the split is sure.
//
// Hazimeh, Ponomareva, Mol, Tan, Mazumder. The Tree Ensemble Layer: Differentiability meets
// Conditional Computation. ICML 2020. [TEL20]
//
// Algorithm 1 walks sample by sample. Here the samples of a tile walk together, depth first: at each
// node a list of those that reach it, so that its weights are loaded once and no list is longer than
// the tile. What is needed at a time is one list per level: O(depth) per sample.
//
// Where at least half of the tile is at a node, the scores of the node and of the two levels below
// come from one matrix product over all samples: a dense product does several times the work per
// second of list after list, and most of it is needed (benchmarks/speed/tel_step.py). Scores from a
// list depend on the sample alone; tiles without XT use lists throughout, as models' answers do.
// Twin: reference/tel.py.
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

// The probability of the less likely side, and its derivative by u = t / gamma, from the distance
// q = 1/2 - |u| to the edge where the split becomes sure: exact where the other way round, from u,
// most digits would cancel.
template <Activation kActivation, class Real>
HARDWOOD_INLINE void lesser_side(Real u, Real& lesser, Real& slope) {
  const Real size = u < 0 ? -u : u;
  if constexpr (kActivation == Activation::kLogistic) {
    const Real e = exp_of(-size);
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

// Where a node stands among the open blocks: entry `local` of the last of `n_open`, or in none.
struct BlockPlace {
  int n_open = 0;
  int local = -1;
  int height = 0;

  HARDWOOD_INLINE BlockPlace child(int side) const {
    const int below = 2 * local + 1 + side;
    return local >= 0 && below < (1 << height) - 1 ? BlockPlace{n_open, below, height}
                                                   : BlockPlace{n_open, -1, 0};
  }
};

// What a walk over one tree does at every node, whichever way it goes.
template <class Real, class Value>
class SoftWalk {
 public:
  SoftWalk(const SoftTrees<Real, Value>& trees, SoftTile<Real, Value>& tile)
      : trees_(trees), tile_(tile) {}

 protected:
  static constexpr bool kHasBlocks = sizeof(Real) == sizeof(float);
  static constexpr int kFewestForBlock = 16;

  void enter_tree(int tree) {
    const std::ptrdiff_t m = trees_.shape.n_nodes();
    tree_ = tree;
    W_ = trees_.W + tree * m * trees_.stride;
    b_ = trees_.b + tree * m;
    O_ = trees_.O + tree * (m + 1) * trees_.shape.n_outputs;
    for (int i = 0; i < tile_.n; ++i) {
      tile_.levels[0].sample[i] = i;
      tile_.levels[0].p[i] = 1;
    }
  }

  HARDWOOD_INLINE const Real* weights(std::ptrdiff_t node) const {
    return W_ + node * trees_.stride;
  }

  // Whether a block was opened, for which the caller is to close it.
  HARDWOOD_INLINE bool open_block(int level, int node, int count, BlockPlace& place) {
    if constexpr (kHasBlocks) {
      if (place.local >= 0 || !tile_.XT || 2 * count < tile_.n || tile_.n < kFewestForBlock)
        return false;
      place = {place.n_open + 1, 0, min_of(kBlockHeight, trees_.shape.depth - level)};
      block_scores(tile_.blocks[place.n_open - 1], node, place.height);
      return true;
    }
    return false;
  }

  // Entry i of a block: node numbers of a subtree run in stretches of 1, 2 and 4.
  HARDWOOD_INLINE static int block_node(int root, int local) {
    const int level = local == 0 ? 0 : local < 3 ? 1 : 2;
    return (root + 1) * (1 << level) - 1 + (local + 1 - (1 << level));
  }

  void block_scores(const SoftBlock& block, int root, int height) {
    const int n_nodes = (1 << height) - 1, d = trees_.shape.n_columns;
    for (int i = 0; i < n_nodes; ++i) {
      const int node = block_node(root, i);
      block.b[i] = b_[node];
      for (std::ptrdiff_t j = 0; j < trees_.stride; ++j)
        block.W[i * trees_.stride + j] = weights(node)[j];
    }
    gemm({block.W, n_nodes, d, trees_.stride}, {tile_.XT, d, tile_.capacity, tile_.capacity},
         {block.score, n_nodes, tile_.capacity, tile_.capacity}, Start::kRowBias, block.b);
  }

  HARDWOOD_INLINE float* block_row(BlockPlace place) const {
    return tile_.blocks[place.n_open - 1].score +
           static_cast<std::ptrdiff_t>(place.local) * tile_.capacity;
  }

  // Scores of the samples at a node, and where they go.
  void decide(int level, int node, int count, BlockPlace place) {
    const SoftLevel<Real>& at = tile_.levels[level];
    if (place.local >= 0) {
      const float* row = block_row(place);
      for (int i = 0; i < count; ++i) at.score[i] = row[at.sample[i]];
    } else {
      score_list(at, node, count);
    }
    activate(trees_.activation, count, at, trees_.gamma);
  }

  // Both passes meet the nodes in the same order, so what one has written the other finds.
  void score_list(const SoftLevel<Real>& at, int node, int count) {
    ScoreTape<Real>& tape = tile_.tape;
    const bool fits = tape.used + count <= tape.capacity;
    Real* kept = tape.data + tape.used;
    if (fits) tape.used += count;
    if (fits && reads_tape_) {
      for (int i = 0; i < count; ++i) at.score[i] = kept[i];
      return;
    }
    list_scores(weights(node), b_[node], trees_.shape.n_columns, tile_.X, trees_.stride, count,
                at.sample, at.score);
    if (fits)
      for (int i = 0; i < count; ++i) kept[i] = at.score[i];
  }

  // Hands the samples on to a child; returns how many reach it. A probability too small for its type
  // is none: the condition is the same wherever children are counted.
  HARDWOOD_INLINE int pass_on(int level, int count, int side) {
    const SoftLevel<Real>&at = tile_.levels[level], &below = tile_.levels[level + 1];
    const Real* to = side ? at.to_right : at.to_left;
    int reached = 0;
    for (int i = 0; i < count; ++i) {
      const Real p = at.p[i] * to[i];
      below.sample[reached] = at.sample[i];
      below.p[reached] = p;
      reached += p > 0;
    }
    return reached;
  }

  const SoftTrees<Real, Value>& trees_;
  SoftTile<Real, Value>& tile_;
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
    for (int tree = 0; tree < this->trees_.shape.n_trees; ++tree) {
      this->enter_tree(tree);
      visit(0, 0, this->tile_.n, {});
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
    if (!tile.leaves_reached) return;
    for (int i = 0; i < count; ++i)
      ++tile.leaves_reached[static_cast<std::ptrdiff_t>(at.sample[i]) * this->trees_.shape.n_trees +
                            this->tree_];
  }
};

template <class Real, class Value>
inline void soft_forward(const SoftTrees<Real, Value>& trees, SoftTile<Real, Value>& tile) {
  SoftForward<Real, Value>(trees, tile).run();
}

}  // namespace hardwood::HARDWOOD_ISA
