// Non-greedy learning of trees, for one row and for one split. Compiled for each instruction set.
//
// Norouzi, Collins, Johnson, Fleet, Kohli. Efficient Non-greedy Optimization of Decision Trees.
// NIPS 2015.
//
// A leaf j costs a row x the decisions on its path that differ from sgn(W x): each takes 2 |w_i x|
// from g^T W x (Eq. 12), and all others are free. So loss-augmented inference (Eq. 10) is
//     argmax_j  violation_j + loss(theta_j, y),    violation_j = -2 sum_{i differs} |w_i x|
// and a violation can only fall on the way down: branch and bound starts at the natural leaf, where
// it is 0, and skips a subtree if even its largest loss cannot compensate it. Ties go to the
// leftmost leaf, in every search.
//
// NumPy reference: tests/reference/non_greedy.py. Other code calls NonGreedyLearner, learner.hpp.
#pragma once

#include "learn/loop/leaf_losses.hpp"

namespace hardwood::HARDWOOD_ISA {

// w x + b; rows are padded with zeros to whole vectors.
HARDWOOD_INLINE float split_score(const LearnedTree& tree, std::int32_t split, const float* x) {
  return padded_dot(tree.W + split * tree.stride, x, tree.stride) + tree.b[split];
}

// The leaf that a row reaches from a node.
inline std::int32_t natural_leaf(const LearnedTree& tree, std::int32_t node, const float* x) {
  while (node >= 0) node = tree.children[2 * node + (split_score(tree, node, x) >= 0)];
  return ~node;
}

// A search for argmax_j violation_j + loss_j, Eq. (10), for one row.
class LeafSearch {
 public:
  HARDWOOD_INLINE LeafSearch(const LearnedTree& tree, const LeafLosses& losses, const float* x,
                             const float* y, const SearchMemory& memory)
      : tree_(tree), losses_(losses), x_(x), y_(y), memory_(memory) {}

  // Eq. (10) over all leaves, O(2^depth p).
  void exhaustive() {
    natural_path([](std::int32_t, std::int32_t, float) {});
    n_scored_ = 0;  // they are all scored again
    best_ = -__builtin_inff();
    push(0 < tree_.n_splits ? 0 : ~0, 0.0f);
    while (n_ > 0) {
      const auto [node, violation] = pop();
      if (node < 0) {
        offer(~node, violation);
        continue;
      }
      const float score = scored(node);
      const int side = score >= 0;
      push(tree_.children[2 * node + side], violation);
      push(tree_.children[2 * node + !side], violation - 2.0f * __builtin_fabsf(score));
    }
  }

  // Eq. (10) by branch and bound.
  void exact() {
    natural_path([&](std::int32_t, std::int32_t other, float cost) { push(other, -cost); });
    offer_natural();
    while (n_ > 0) {
      const auto [node, violation] = pop();
      if (is_hopeless(node, violation)) continue;
      if (node < 0) {
        offer(~node, violation);
        continue;
      }
      const float score = scored(node);
      const int side = score >= 0;
      push(tree_.children[2 * node + !side], violation - 2.0f * __builtin_fabsf(score));
      push(tree_.children[2 * node + side], violation);
    }
  }

  // Eq. (13): over the leaves reached by changing at most one decision, O(depth^2 p).
  void fast() {
    natural_path([&](std::int32_t, std::int32_t other, float cost) { push(other, -cost); });
    offer_natural();
    while (n_ > 0) {
      auto [node, violation] = pop();
      while (node >= 0) node = tree_.children[2 * node + (scored(node) >= 0)];
      offer(~node, violation);
    }
  }

  std::int32_t natural() const { return natural_; }
  std::int32_t chosen() const { return chosen_; }
  float natural_loss() const { return natural_loss_; }
  float best() const { return best_; }
  std::int64_t n_scored() const { return n_scored_; }

 private:
  struct Entry {
    std::int32_t node;
    float violation;
  };

  HARDWOOD_INLINE float scored(std::int32_t split) {
    ++n_scored_;
    return memory_.score[split] = split_score(tree_, split, x_);
  }

  // Calls each(split, the child not taken, the cost of taking it) from the root to the natural
  // leaf.
  template <class Each>
  HARDWOOD_INLINE void natural_path(Each&& each) {
    std::int32_t node = 0 < tree_.n_splits ? 0 : ~0;
    while (node >= 0) {
      const float score = scored(node);
      const int side = score >= 0;
      each(node, tree_.children[2 * node + !side], 2.0f * __builtin_fabsf(score));
      node = tree_.children[2 * node + side];
    }
    natural_ = ~node;
    natural_loss_ = leaf_loss(tree_, losses_, natural_, y_);
  }

  HARDWOOD_INLINE void offer_natural() {
    chosen_ = natural_;
    best_ = natural_loss_;
  }

  HARDWOOD_INLINE void offer(std::int32_t leaf, float violation) {
    const float value = violation + leaf_loss(tree_, losses_, leaf, y_);
    if (value < best_ || (value == best_ && leaf >= chosen_)) return;
    best_ = value;
    chosen_ = leaf;
  }

  HARDWOOD_INLINE bool is_hopeless(std::int32_t node, float violation) const {
    const float most = violation + loss_bound(tree_, losses_, node, y_);
    const std::int32_t first = node < 0 ? ~node : tree_.first_leaf[node];
    return most < best_ || (most == best_ && first >= chosen_);
  }

  HARDWOOD_INLINE void push(std::int32_t node, float violation) {
    memory_.node[n_] = node;
    memory_.violation[n_++] = violation;
  }
  HARDWOOD_INLINE Entry pop() {
    --n_;
    return {memory_.node[n_], memory_.violation[n_]};
  }

  const LearnedTree& tree_;
  const LeafLosses& losses_;
  const float* x_;
  const float* y_;
  const SearchMemory& memory_;
  int n_ = 0;
  std::int32_t natural_ = 0, chosen_ = 0;
  float natural_loss_ = 0, best_ = 0;
  std::int64_t n_scored_ = 0;
};

// Where g and h differ, Eq. (14): g goes to `chosen`, h to `assigned`, and both follow sgn(W x) off
// their paths. Paths that part at a split differ there; below it, g differs from sgn(W x) or h does.
// `cost()` is what the path to `assigned` costs, 2 sum |w_i x| over its differences from sgn(W x).
class Differences {
 public:
  HARDWOOD_INLINE Differences(const LearnedTree& tree, const float* x, const float* score,
                              SplitMove* moves)
      : tree_(tree), x_(x), score_(score), moves_(moves) {}

  void find(const AugmentedRow& row) {
    int g = tree_.n_splits + row.chosen, h = tree_.n_splits + row.assigned;
    const bool is_fixed = row.assigned != row.natural;
    while (g != h) {
      const bool climbs_g = tree_.depth[g] >= tree_.depth[h];
      const bool climbs_h = tree_.depth[h] >= tree_.depth[g];
      const std::int32_t over_g = tree_.parent[g], over_h = tree_.parent[h];
      if (climbs_g && climbs_h && over_g >> 1 == over_h >> 1) {
        add(over_g >> 1, over_g & 1);
        if (is_fixed) charge_path(over_h);
        return;
      }
      if (climbs_g) {
        if ((score_[over_g >> 1] >= 0) != (over_g & 1)) add(over_g >> 1, over_g & 1);
        g = over_g >> 1;
      }
      if (climbs_h) {
        if (is_fixed && charge(over_h)) add(over_h >> 1, !(over_h & 1));
        h = over_h >> 1;
      }
    }
    if (is_fixed) charge_path(tree_.parent[h]);  // both leaves are one
  }

  int n_moves() const { return n_moves_; }
  float cost() const { return cost_; }

 private:
  HARDWOOD_INLINE void add(std::int32_t split, bool g_goes_right) {
    moves_[n_moves_++] = {split, g_goes_right ? 2.0f : -2.0f};
  }

  // Whether h differs from sgn(W x) at a split on its path; if so, adds its cost. The search may
  // not have visited the split.
  bool charge(std::int32_t over) {
    const float score = split_score(tree_, over >> 1, x_);
    if ((score >= 0) == (over & 1)) return false;
    cost_ += 2.0f * __builtin_fabsf(score);
    return true;
  }
  void charge_path(std::int32_t over) {
    for (; over >= 0; over = tree_.parent[over >> 1]) charge(over);
  }

  const LearnedTree& tree_;
  const float* x_;
  const float* score_;
  SplitMove* moves_;
  int n_moves_ = 0;
  float cost_ = 0;
};

// Lines 4 and 5 of Alg. 1 for one row, and the moves of line 6. `assigned` is a(x), or -1 for the
// natural leaf. `moves` has space for the paths to two leaves.
inline AugmentedRow augment(const LearnedTree& tree, const LeafLosses& losses, Inference inference,
                            const float* x, const float* y, std::int32_t assigned,
                            const SearchMemory& memory, SplitMove* moves) {
  LeafSearch search(tree, losses, x, y, memory);
  if (inference == Inference::kExhaustive)
    search.exhaustive();
  else if (inference == Inference::kExact)
    search.exact();
  else
    search.fast();
  AugmentedRow row{search.natural(), assigned < 0 ? search.natural() : assigned,
                   search.chosen(),  search.natural_loss(),
                   search.best(),    0,
                   search.n_scored()};
  Differences differences(tree, x, memory.score, moves);
  differences.find(row);
  row.n_moves = differences.n_moves();
  row.bound += differences.cost();
  return row;
}

// Line 6 of Alg. 1 for one split, with momentum: n rows of X and their factors. Then the proximal
// step of an L1 penalty. Returns |w|^2 + b^2.
inline double move_split(std::ptrdiff_t stride, const SplitStep& step, int n,
                         const float* const* rows, const float* factors, const MovingSplit& split) {
  float* __restrict w = split.w;
  float* __restrict velocity = split.velocity;
  for (std::ptrdiff_t j = 0; j < stride; ++j) velocity[j] *= step.momentum;
  *split.bias_velocity *= step.momentum;
  for (int i = 0; i < n; ++i) {
    const float* __restrict x = rows[i];
    const float factor = factors[i];
    for (std::ptrdiff_t j = 0; j < stride; ++j) velocity[j] += factor * x[j];
    *split.bias_velocity += factor;
  }
  const float threshold = step.learning_rate * step.l1;
  double norm = 0;
  for (std::ptrdiff_t first = 0; first < stride; first += 8) {
    float lane[8];
    for (int l = 0; l < 8; ++l) {
      const float moved = w[first + l] - step.learning_rate * velocity[first + l];
      const float size = __builtin_fabsf(moved) - threshold;
      w[first + l] = size > 0 ? __builtin_copysignf(size, moved) : 0.0f;
      lane[l] = w[first + l] * w[first + l];
    }
    norm +=
        ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
  }
  *split.b -= step.learning_rate * *split.bias_velocity;
  return norm + static_cast<double>(*split.b) * *split.b;
}

}  // namespace hardwood::HARDWOOD_ISA
