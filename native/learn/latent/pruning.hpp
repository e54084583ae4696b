// Which nodes of a tree are active: the pruning program of latent trees. NumPy reference: tests/reference/latent.py.
//
// Zantedeschi, Kusner, Niculae. Learning Binary Decision Trees by Argmin Differentiation. ICML 2021.
//
// Activities a are the minimum of sum_t g_t(a_t) over 0 <= a_t <= a_parent(t) <= 1 (Eq. 7), where
// g_t(a) = lambda/2 a^2 + sum_i 1/2 max(v_it - a, 0)^2 and v_it = q_it + 1/2.
//
// The paper sorts all values and pools nodes that violate the order, one after the other (Algorithm
// 1). Nothing is sorted here. Newton's method solves each node alone, from below, and drops the
// values it has passed. If a child then exceeds its parent, the range of activities is divided: for
// a threshold tau, the nodes with a_t > tau are the set, closed under parents, whose slopes
// g'_t(tau) have the least sum, which one pass up and down the tree finds (Hochbaum, Queyranne.
// SIAM J. Discrete Math. 2003). Nodes above tau never need a value below it again, and nodes below
// it need the sum of those above, not each; pooled groups are sets that no cut divides. Cuts halve
// the rest, so the time is nearly linear in the number of values, whatever the values are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hardwood {

struct Pruning {
  std::vector<double> activity;     // (nodes,)
  std::vector<std::int32_t> group;  // (nodes,): the topmost node that is pooled with it
  // (nodes,): second derivative of the group's objective, lambda |G| + k of Proposition 2
  std::vector<double> curvature;
};

// Nodes in heap order: children of t are 2t + 1 and 2t + 2.
template <class Real>
class PruningProgram {
 public:
  explicit PruningProgram(int n_nodes);

  // Adds a value of node t; values of at most 0 are ignored, values of at least 1 are summed.
  void add(int t, Real v) {
    if (!(v > 0)) return;
    Node& node = nodes_[t];
    if (v >= 1) {
      node.sum += static_cast<double>(v);
      node.count += 1;
    } else {
      node.values.push_back(v);
    }
  }
  // lambda > 0. Call once: it consumes the values.
  Pruning solve(double lambda);
  // For lambda = 0: every node is active, whatever the values.
  Pruning nothing_pruned() const;

 private:
  struct Node {
    std::vector<Real> values;   // that may lie on either side of the activity
    double sum = 0, count = 0;  // of those that surely lie above it
  };
  struct Part {
    int first, last;  // of order_: nodes whose activities lie between the same two thresholds
    std::size_t n_values;
  };
  void solve_alone(Pruning& result);
  void drop_settled(const std::vector<double>& alone);
  void solve_by_cuts(Pruning& result);
  bool is_top(int t) const { return t == 0 || part_of_[(t - 1) / 2] != part_of_[t]; }
  double common_activity(const Part& part) const;
  double typical_value(const Part& part) const;
  double slope(const Node& node, double tau) const;
  int mark_above(const Part& part, double tau);
  int divide(const Part& part);
  static void keep_above(Node& node, double tau);
  static void keep_below(Node& node, double tau);
  Part narrowed(int first, int last, double tau, bool is_above);
  void settle(const Part& part, Pruning& result) const;

  double lambda_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> order_, part_of_, spare_;
  std::vector<double> slopes_;
  std::vector<char> is_above_;
  std::vector<Real> left_;
  std::vector<Part> open_;
  std::int32_t n_parts_ = 0;
};

extern template class PruningProgram<float>;
extern template class PruningProgram<double>;

}  // namespace hardwood
