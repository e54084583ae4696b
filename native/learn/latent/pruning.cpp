#include "learn/latent/pruning.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace hardwood {

namespace {

// The sum of term(0), ..., term(n - 1), in four independent running sums.
template <class Term>
double sum_of(std::size_t n, Term&& term) {
  double lane[4] = {};
  const std::size_t whole = n / 4 * 4;
  for (std::size_t i = 0; i < whole; i += 4)
    for (int l = 0; l < 4; ++l) lane[l] += term(i + l);
  for (std::size_t i = whole; i < n; ++i) lane[0] += term(i);
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

}  // namespace

template <class Real>
PruningProgram<Real>::PruningProgram(int n_nodes)
    : nodes_(n_nodes),
      order_(n_nodes),
      part_of_(n_nodes),
      spare_(n_nodes),
      slopes_(n_nodes),
      is_above_(n_nodes) {
  std::iota(order_.begin(), order_.end(), 0);
}

// The activity that nodes without remaining values would have as one group.
template <class Real>
double PruningProgram<Real>::common_activity(const Part& part) const {
  double sum = 0, curvature = 0;
  for (int i = part.first; i < part.last; ++i) {
    const Node& node = nodes_[order_[i]];
    sum += node.sum;
    curvature += lambda_ + node.count;
  }
  return sum / curvature;
}

// The median of nine spread over all, so that a cut there about halves the rest.
template <class Real>
double PruningProgram<Real>::typical_value(const Part& part) const {
  constexpr int kSample = 9;
  std::array<Real, kSample> sample;
  const auto position = [&](int k) { return part.n_values * (2 * k + 1) / (2 * kSample); };
  std::size_t passed = 0;
  int drawn = 0;
  for (int i = part.first; drawn < kSample; ++i) {
    const auto& values = nodes_[order_[i]].values;
    for (; drawn < kSample && position(drawn) < passed + values.size(); ++drawn)
      sample[drawn] = values[position(drawn) - passed];
    passed += values.size();
  }
  const auto middle = sample.begin() + kSample / 2;
  std::nth_element(sample.begin(), middle, sample.end());
  return static_cast<double>(*middle);
}

// g'(tau), for a threshold between the previous thresholds of the node.
template <class Real>
double PruningProgram<Real>::slope(const Node& node, double tau) const {
  const auto terms = sum_of(node.values.size(), [&](std::size_t i) {
    const double beyond = tau - static_cast<double>(node.values[i]);
    return beyond < 0 ? beyond : 0.0;
  });
  return (lambda_ + node.count) * tau - node.sum + terms;
}

// Marks the nodes whose activity exceeds tau, and counts them. Parents come before children.
template <class Real>
int PruningProgram<Real>::mark_above(const Part& part, double tau) {
  for (int i = part.first; i < part.last; ++i) slopes_[order_[i]] = slope(nodes_[order_[i]], tau);
  for (int i = part.last - 1; i >= part.first; --i) {
    const int t = order_[i];
    if (slopes_[t] < 0 && !is_top(t)) slopes_[(t - 1) / 2] += slopes_[t];
  }
  int n_above = 0;
  for (int i = part.first; i < part.last; ++i) {
    const int t = order_[i];
    is_above_[t] = slopes_[t] < 0 && (is_top(t) || is_above_[(t - 1) / 2]);
    n_above += is_above_[t];
  }
  return n_above;
}

// Moves the marked nodes first, keeping the order; returns where the others begin.
template <class Real>
int PruningProgram<Real>::divide(const Part& part) {
  int above = part.first, below = 0;
  for (int i = part.first; i < part.last; ++i) {
    const std::int32_t t = order_[i];
    if (is_above_[t])
      order_[above++] = t;
    else
      spare_[below++] = t;
  }
  std::copy_n(spare_.begin(), below, order_.begin() + above);
  return above;
}

// Both without branches, which would be unpredictable: every value is written, and the next may
// overwrite it.
template <class Real>
void PruningProgram<Real>::keep_above(Node& node, double tau) {
  std::size_t kept = 0;
  for (const Real v : node.values) {
    node.values[kept] = v;
    kept += static_cast<double>(v) > tau;
  }
  node.values.resize(kept);
}

template <class Real>
void PruningProgram<Real>::keep_below(Node& node, double tau) {
  std::size_t kept = 0;
  const std::size_t n = node.values.size();
  node.sum += sum_of(n, [&](std::size_t i) {
    const double value = static_cast<double>(node.values[i]);
    return value < tau ? 0.0 : value;
  });
  for (const Real v : node.values) {
    node.values[kept] = v;
    kept += static_cast<double>(v) < tau;
  }
  node.count += static_cast<double>(n - kept);
  node.values.resize(kept);
}

// Nodes above tau drop the values below it; nodes below tau keep the sum of those above.
template <class Real>
auto PruningProgram<Real>::narrowed(int first, int last, double tau, bool is_above) -> Part {
  Part part{first, last, 0};
  ++n_parts_;
  for (int i = first; i < last; ++i) {
    Node& node = nodes_[order_[i]];
    part_of_[order_[i]] = n_parts_;
    is_above ? keep_above(node, tau) : keep_below(node, tau);
    part.n_values += node.values.size();
  }
  return part;
}

// Every group of the range, with the minimum of its objective (Eq. 9).
template <class Real>
void PruningProgram<Real>::settle(const Part& part, Pruning& result) const {
  for (int i = part.first; i < part.last; ++i) {
    const int t = order_[i];
    const int group = is_top(t) ? t : result.group[(t - 1) / 2];
    result.group[t] = group;
    result.activity[group] += nodes_[t].sum;
    result.curvature[group] += lambda_ + nodes_[t].count;
  }
  for (int i = part.first; i < part.last; ++i) {
    const int t = order_[i], group = result.group[t];
    if (group == t)
      result.activity[t] = std::min(result.activity[t] / result.curvature[t], 1.0);
    else
      result.activity[t] = result.activity[group], result.curvature[t] = result.curvature[group];
  }
}

// Proposition 2 without an order: a = sum of values above it / (lambda + their number). From below,
// the right side is never too high, since the slope falls only where it passes a value.
template <class Real>
void PruningProgram<Real>::solve_alone(Pruning& result) {
  for (std::size_t t = 0; t < nodes_.size(); ++t) {
    const Node& node = nodes_[t];
    const Real* values = node.values.data();
    std::size_t n = node.values.size();
    if (left_.size() < n) left_.resize(n);
    double a = -1, next = 0, curvature = lambda_;
    while (next > a) {
      a = next;
      std::size_t kept = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const Real v = values[i];
        left_[kept] = v;
        kept += static_cast<double>(v) > a;
      }
      n = kept;
      values = left_.data();
      curvature = lambda_ + node.count + static_cast<double>(n);
      const double sum = sum_of(n, [&](std::size_t i) { return static_cast<double>(values[i]); });
      next = (node.sum + sum) / curvature;
    }
    result.group[t] = static_cast<std::int32_t>(t);
    result.activity[t] = std::min(next, 1.0);
    result.curvature[t] = curvature;
  }
}

// A node's activity lies between the lowest that it or an ancestor has alone and the highest that it
// or a descendant has: pooled groups are pulled up from below, and down from above (the multipliers
// of a_t <= a_parent are not negative). Beyond that, values are on a known side.
template <class Real>
void PruningProgram<Real>::drop_settled(const std::vector<double>& alone) {
  constexpr double kRounding = 1e-12;
  std::vector<double> low = alone, high = alone;
  const int n = static_cast<int>(alone.size());
  for (int t = 1; t < n; ++t) low[t] = std::min(low[t], low[(t - 1) / 2]);
  for (int t = n - 1; t > 0; --t) high[(t - 1) / 2] = std::max(high[(t - 1) / 2], high[t]);
  for (int t = 0; t < n; ++t) {
    keep_above(nodes_[t], low[t] - kRounding);
    keep_below(nodes_[t], high[t] + kRounding);
  }
}

template <class Real>
void PruningProgram<Real>::solve_by_cuts(Pruning& result) {
  drop_settled(result.activity);
  std::ranges::fill(result.activity, 0.0);
  std::ranges::fill(result.curvature, 0.0);
  open_.push_back({0, static_cast<int>(nodes_.size()), 0});
  for (const Node& node : nodes_) open_.back().n_values += node.values.size();
  while (!open_.empty()) {
    const Part part = open_.back();
    open_.pop_back();
    const double tau = part.n_values ? typical_value(part) : common_activity(part);
    const int n_above = mark_above(part, tau);
    if (part.n_values == 0 && (n_above == 0 || n_above == part.last - part.first)) {
      settle(part, result);
      continue;
    }
    const int below = divide(part);
    if (below < part.last) open_.push_back(narrowed(below, part.last, tau, false));
    if (below > part.first) open_.push_back(narrowed(part.first, below, tau, true));
  }
}

template <class Real>
Pruning PruningProgram<Real>::solve(double lambda) {
  lambda_ = lambda;
  const std::size_t n = nodes_.size();
  Pruning result{std::vector<double>(n), std::vector<std::int32_t>(n), std::vector<double>(n)};
  solve_alone(result);
  const auto parent = [](std::size_t t) { return (t - 1) / 2; };
  bool is_ordered = true;
  for (std::size_t t = 1; t < n; ++t)
    is_ordered &= result.activity[t] <= result.activity[parent(t)];
  if (!is_ordered) solve_by_cuts(result);
  // Rounding of sums in another order can lift a node above its parent.
  for (std::size_t t = 1; t < n; ++t)
    result.activity[t] = std::min(result.activity[t], result.activity[parent(t)]);
  return result;
}

template <class Real>
Pruning PruningProgram<Real>::nothing_pruned() const {
  const std::size_t n = nodes_.size();
  return {std::vector<double>(n, 1.0), order_, std::vector<double>(n)};
}

template class PruningProgram<float>;
template class PruningProgram<double>;

}  // namespace hardwood
