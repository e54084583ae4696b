// Probabilities of a policy tree's leaves, and the most probable one by best-first search.
//
// The probability of a node is the product of the probabilities of the branches that lead to it, so
// it is at most that of its parent. Once a leaf is the most probable of all open nodes, no leaf
// below the others can be more probable.
#pragma once

#include <algorithm>
#include <cmath>
#include <queue>
#include <vector>

#include "core/kernels.hpp"

namespace hardwood {

// One encoded row, with the list of its indicators that are 1.
struct PolicyRow {
  const float* values = nullptr;
  const std::int32_t* active = nullptr;
  const std::int32_t* active_end = nullptr;
};

class PolicySearch {
 public:
  explicit PolicySearch(const PolicySplits& tree) : tree_(tree) {
    int widest = 1;
    for (int i = 0; i < tree.n_nodes; ++i) widest = std::max(widest, tree.nodes[i].n_children);
    scores_.resize(widest);
    logs_.resize(widest);
  }

  // The most probable leaf; the last of equals.
  std::int32_t most_probable(const PolicyRow& row) {
    open_ = {};
    open_.push({0.0, 0, tree_.nodes[0].leaf});
    while (tree_.nodes[open_.top().node].n_children > 0) {
      const Open top = open_.top();
      open_.pop();
      const PolicyNode& node = tree_.nodes[top.node];
      move_logs(top.node, row);
      for (int j = 0; j < node.n_children; ++j) {
        const std::int32_t child = tree_.child[node.first_child + j];
        open_.push({top.log_probability + logs_[j], child, tree_.nodes[child].leaf});
      }
    }
    return open_.top().leaf;
  }

  // Probabilities of all leaves, (n_leaves,).
  void leaf_probabilities(const PolicyRow& row, double* out) {
    reached_.assign(tree_.n_nodes, 0.0);
    for (int at = 0; at < tree_.n_nodes; ++at) {
      const PolicyNode& node = tree_.nodes[at];
      if (node.n_children == 0) {
        out[node.leaf] = std::exp(reached_[at]);
        continue;
      }
      move_logs(at, row);
      for (int j = 0; j < node.n_children; ++j)
        reached_[tree_.child[node.first_child + j]] = reached_[at] + logs_[j];
    }
  }

 private:
  struct Open {
    double log_probability;
    std::int32_t node;
    std::int32_t leaf;  // -1 for a split

    // Among equals, splits come first, because a leaf below may be as probable. Then comes the last
    // leaf.
    bool operator<(const Open& other) const {
      if (log_probability != other.log_probability) return log_probability < other.log_probability;
      if ((leaf < 0) != (other.leaf < 0)) return leaf >= 0;
      return leaf < other.leaf;
    }
  };

  // Log-probabilities of the branches of a node: the log-softmax of the scores of its children.
  void move_logs(std::int32_t at, const PolicyRow& row) {
    constexpr double kLargest = 1e290;  // differences and sums along a path stay finite
    const PolicyNode& node = tree_.nodes[at];
    kernels().policy_scores(tree_, at, row.values, row.active, row.active_end, scores_.data());
    double largest = 0.0, total = 0.0;
    for (int j = 0; j < node.n_children; ++j) {
      const double score = std::ldexp(static_cast<double>(scores_[j]), node.exponent);
      // NaN is never the largest, as on the greedy path.
      logs_[j] = std::isnan(score) ? -kLargest : std::clamp(score, -kLargest, kLargest);
      largest = std::max(largest, logs_[j]);
    }
    for (int j = 0; j < node.n_children; ++j) total += std::exp(logs_[j] -= largest);
    const double log_total = std::log(total);
    for (int j = 0; j < node.n_children; ++j) logs_[j] -= log_total;
  }

  const PolicySplits& tree_;
  std::vector<float> scores_;
  std::vector<double> logs_, reached_;
  std::priority_queue<Open> open_;
};

}  // namespace hardwood
