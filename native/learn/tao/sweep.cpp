#include "learn/tao/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/threads.hpp"
#include "learn/greedy/data.hpp"
#include "learn/tao/logistic.hpp"

namespace hardwood {

namespace {

constexpr int kRowsAtOnce = 2048;
// A node with more than this fraction of the rows uses all threads.
constexpr double kLargePart = 0.25;
// The decrease of the logistic loss that is needed to replace an otherwise equal split.
constexpr double kNoticeable = 1e-3;
// Bound on the rounding error of a sum of costs, relative to the sum.
constexpr double kRounding = 1e-12;

// Calls work(first, n) for stretches of n_rows rows.
template <class Work>
void over_rows(int n_rows, int n_threads, Work&& work) {
  parallel_for((n_rows + kRowsAtOnce - 1) / kRowsAtOnce, n_threads, [&](int chunk) {
    const int first = chunk * kRowsAtOnce;
    work(first, std::min(kRowsAtOnce, n_rows - first));
  });
}

// A threshold above a and not above b.
float between(float a, float b) {
  const float middle = a + 0.5f * (b - a);
  return middle > a && middle <= b ? middle : b;
}

struct Candidate {
  std::vector<float> w;  // (stride,)
  float b = 0;
  double loss = std::numeric_limits<double>::infinity();  // reduced, with prices
};

// What logistic regression found, in all columns.
struct Direction {
  std::vector<float> w;  // (stride,)
  float b = 0;
  bool is_better = false;  // than the split it started from, by the logistic loss
};

class NodeStep {
 public:
  NodeStep(const TaoView& view, int n_columns, const TaoOptions& options, int n_threads,
           const std::atomic<bool>& stop)
      : view_(view), n_columns_(n_columns), options_(options), n_threads_(n_threads), stop_(stop) {}

  std::int64_t passes() const { return passes_; }

  // Finds a better split for a node with these rows; returns the decrease.
  double improve(std::int32_t node, std::span<const std::int32_t> which, float* w, float* b) {
    const ReducedProblem problem = reduced_problem(view_, node, which, n_threads_);
    if (problem.rows.empty()) return 0;
    const Candidate old = as_it_is(problem, {w, w + stride()}, *b);
    Candidate best = old, moved = with_best_threshold(problem, old.w);
    if (moved.loss < best.loss) best = std::move(moved);
    if (differ(problem))
      for (const Direction& direction : directions(problem, old)) {
        Candidate found = chosen_threshold(problem, direction, old.loss);
        const bool is_as_good = direction.is_better && found.loss == best.loss;
        if (found.loss < best.loss || is_as_good) best = std::move(found);
      }
    if (stop_) return 0;
    std::ranges::copy(best.w, w);
    *b = best.b;
    return old.loss - best.loss;
  }

 private:
  std::ptrdiff_t stride() const { return view_.rows.stride; }

  static bool differ(const ReducedProblem& problem) {
    return std::ranges::find(problem.sign, -problem.sign.front()) != problem.sign.end();
  }

  std::vector<float> scores(const ReducedProblem& problem, const std::vector<float>& w) const {
    std::vector<float> out(problem.rows.size());
    over_rows(static_cast<int>(out.size()), n_threads_, [&](int first, int count) {
      kernels().score_rows(w.data(), view_.rows, problem.rows.data() + first, count,
                           out.data() + first);
    });
    return out;
  }

  double price(const std::vector<float>& w) const {
    if (options_.l0 == 0) return 0;
    return options_.l0 *
           static_cast<double>(std::ranges::count_if(w, [](float v) { return v != 0; }));
  }

  Candidate as_it_is(const ReducedProblem& problem, std::vector<float> w, float b) const {
    const std::vector<float> score = scores(problem, w);
    return evaluated(problem, score, std::move(w), b);
  }

  // All candidates are compared by the same sum, over the rows on the wrong side only. The running
  // sums of a threshold search lose small costs next to large ones.
  Candidate evaluated(const ReducedProblem& problem, std::span<const float> score,
                      std::vector<float> w, float b) const {
    double loss = price(w);
    for (std::size_t i = 0; i < score.size(); ++i)
      if ((score[i] + b >= 0) != (problem.sign[i] > 0)) loss += problem.cost[i];
    return {std::move(w), b, loss};
  }

  Candidate with_best_threshold(const ReducedProblem& problem, const std::vector<float>& w) const {
    const std::vector<float> score = scores(problem, w);
    if (!std::ranges::all_of(score, [](float s) { return std::isfinite(s); })) return {};
    return evaluated(problem, score, w, -best_threshold(score, problem).at);
  }

  // The threshold of the logistic regression if it is no worse than the old split, because it takes
  // the distances of rows into account; otherwise the best threshold.
  Candidate chosen_threshold(const ReducedProblem& problem, const Direction& direction,
                             double old_loss) const {
    Candidate own = as_it_is(problem, direction.w, direction.b);
    if (own.loss < old_loss || (direction.is_better && own.loss == old_loss)) return own;
    return with_best_threshold(problem, direction.w);
  }

  // The rows of a problem side by side, without the columns that are constant among them.
  struct Gathered {
    std::vector<std::int32_t> columns;
    std::ptrdiff_t stride = 0;
    Buffer<float> X;
    std::vector<float> weight;  // of mean as the rows have it
  };

  Gathered gathered(const ReducedProblem& problem, const std::vector<bool>* allowed) const {
    const int n = static_cast<int>(problem.rows.size());
    std::vector<std::uint8_t> varies(n_columns_);
    const float* x0 = row(problem.rows[0]);
    for (const std::int32_t r : problem.rows) {
      const float* x = row(r);
      for (int c = 0; c < n_columns_; ++c) varies[c] |= x[c] != x0[c];
    }
    Gathered g;
    for (int c = 0; c < n_columns_; ++c)
      if (varies[c] && (!allowed || (*allowed)[c])) g.columns.push_back(c);
    g.stride = rounded_up(std::max<int>(1, static_cast<int>(g.columns.size())), 16);
    g.X = Buffer<float>(static_cast<std::size_t>(n) * g.stride);
    over_rows(n, n_threads_, [&](int first, int count) {
      for (int i = first; i < first + count; ++i) {
        const float* x = row(problem.rows[i]);
        float* to = g.X.data() + i * g.stride;
        for (std::size_t c = 0; c < g.columns.size(); ++c) to[c] = x[g.columns[c]];
      }
    });
    const double scale = problem.weight / problem.total_cost;
    for (const double cost : problem.cost) g.weight.push_back(static_cast<float>(cost * scale));
    return g;
  }

  const float* row(std::int32_t r) const { return view_.rows.X + r * stride(); }

  // Directions of the logistic regressions, one for each strength of the penalty.
  std::vector<Direction> directions(const ReducedProblem& problem, const Candidate& old) {
    std::vector<Direction> found = solved(problem, old.w, nullptr);
    if (options_.max_features == 0) return found;
    std::vector<Direction> sparse;
    for (const Direction& direction : found) {
      const std::vector<bool> allowed = largest_features(direction.w);
      for (Direction& again : solved(problem, direction.w, &allowed))
        sparse.push_back({std::move(again.w), again.b, direction.is_better});
    }
    return sparse;
  }

  std::vector<Direction> solved(const ReducedProblem& problem, const std::vector<float>& w,
                                const std::vector<bool>* allowed) {
    const Gathered g = gathered(problem, allowed);
    const int d = static_cast<int>(g.columns.size()), n = static_cast<int>(problem.rows.size());
    std::vector<Direction> found;
    if (d == 0) return found;
    const LogisticRows rows{n, g.stride, g.X.data(), problem.sign.data(), g.weight.data()};
    std::vector<float> start(d);
    for (int c = 0; c < d; ++c) start[c] = w[g.columns[c]];
    float b = calibrate(rows, scores(problem, w), start);
    for (const double l1 : options_.l1) {
      const LogisticOptions own{l1, options_.l2, options_.logistic_passes,
                                options_.logistic_tolerance, n_threads_};
      LogisticSolution solution = solve_logistic(rows, d, own, start, b, stop_);
      passes_ += static_cast<std::int64_t>(solution.passes) * n;
      start = std::move(solution.w);
      b = solution.b;
      if (std::ranges::all_of(start, [](float v) { return v == 0; })) continue;
      const bool is_better = solution.objective < (1 - kNoticeable) * solution.start_objective;
      Direction& direction = found.emplace_back(std::vector<float>(stride()), b, is_better);
      for (int c = 0; c < d; ++c) direction.w[g.columns[c]] = start[c];
    }
    return found;
  }

  // Scales the old split to fit as a logistic regression, by Newton's method over a factor and a
  // bias. If it points the wrong way or is zero, the start is zero.
  static float calibrate(const LogisticRows& rows, const std::vector<float>& score,
                         std::vector<float>& start) {
    double factor = 0, bias = 0, sum = 0, squares = 0;
    for (const float s : score) {
      sum += s;
      squares += static_cast<double>(s) * s;
    }
    const double spread = squares / rows.n - (sum / rows.n) * (sum / rows.n);
    if (spread > 0 && std::isfinite(spread))
      std::tie(factor, bias) = scaled_fit(rows, score, std::sqrt(spread), sum / rows.n);
    if (!(factor > 0)) factor = bias = 0;
    for (float& v : start) v = static_cast<float>(v * factor);
    return static_cast<float>(bias);
  }

  static std::pair<double, double> scaled_fit(const LogisticRows& rows,
                                              const std::vector<float>& score, double spread,
                                              double mean) {
    constexpr int kSteps = 6;
    double a = 0, c = 0;  // of (score - mean) / spread
    for (int step = 0; step < kSteps; ++step) {
      double ga = 0, gc = 0, haa = 1e-3 * rows.n / 4, hac = 0, hcc = 1e-9;
      ga = a * haa;  // a little ridge: separable scores have no finite factor
      for (int i = 0; i < rows.n; ++i) {
        const double z = (score[i] - mean) / spread, s = rows.sign[i], m = s * (a * z + c);
        const double p = 1.0 / (1.0 + std::exp(std::min(m, 500.0)));
        const double g = -rows.weight[i] * s * p, h = rows.weight[i] * p * (1 - p);
        ga += g * z;
        gc += g;
        haa += h * z * z;
        hac += h * z;
        hcc += h;
      }
      const double det = haa * hcc - hac * hac;
      if (!(det > 0)) break;
      a -= std::clamp((hcc * ga - hac * gc) / det, -4.0, 4.0);
      c -= std::clamp((haa * gc - hac * ga) / det, -4.0, 4.0);
    }
    return {a / spread, c - a * mean / spread};
  }

  // Columns of the features with the largest weights, up to the allowed number.
  std::vector<bool> largest_features(const std::vector<float>& w) const {
    const auto& feature = options_.feature_of_column;
    const int n_features = 1 + *std::ranges::max_element(feature);
    std::vector<float> size(n_features);
    for (int c = 0; c < n_columns_; ++c)
      size[feature[c]] = std::max(size[feature[c]], std::abs(w[c]));
    std::vector<std::int32_t> order(n_features);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int a, int b) { return size[a] > size[b]; });
    std::vector<bool> is_chosen(n_features), allowed(n_columns_);
    for (int f = 0; f < std::min(n_features, options_.max_features); ++f)
      is_chosen[order[f]] = true;
    for (int c = 0; c < n_columns_; ++c) allowed[c] = is_chosen[feature[c]];
    return allowed;
  }

  const TaoView& view_;
  const int n_columns_;
  const TaoOptions& options_;
  const int n_threads_;
  const std::atomic<bool>& stop_;
  std::int64_t passes_ = 0;
};

class Sweep {
 public:
  Sweep(const TreeTopology& topology, int n_columns, const TaoView& view,
        const TaoParameters& parameters, const TaoOptions& options, int n_threads,
        const std::atomic<bool>& stop)
      : n_columns_(n_columns),
        view_(view),
        parameters_(parameters),
        options_(options),
        n_threads_(n_threads),
        stop_(stop),
        nodes_at_(topology.max_depth()) {
    for (int i = 0; i < topology.n_splits(); ++i) nodes_at_[view.tree.depth[i]].push_back(i);
  }

  TaoSweepResult run() {
    const int height = static_cast<int>(nodes_at_.size());
    std::vector<std::vector<std::int32_t>> node_at(height);  // of each row, leaves as negative
    if (height > 0) node_at[0].assign(view_.rows.n, 0);
    if (options_.from_the_root)
      for (int depth = 0; depth < height && !stop_; ++depth) {
        improve(depth, node_at[depth]);
        if (depth + 1 < height) node_at[depth + 1] = moved_on(node_at[depth]);
      }
    else {
      for (int depth = 1; depth < height; ++depth) node_at[depth] = moved_on(node_at[depth - 1]);
      for (int depth = height - 1; depth >= 0 && !stop_; --depth) improve(depth, node_at[depth]);
    }
    return result_;
  }

 private:
  // Moves rows from their nodes at one depth to those at the next.
  std::vector<std::int32_t> moved_on(const std::vector<std::int32_t>& node) const {
    std::vector<std::int32_t> next(node.size());
    over_rows(view_.rows.n, n_threads_, [&](int first, int count) {
      for (int i = first; i < first + count; ++i) {
        next[i] = node[i];
        if (node[i] < 0) continue;
        float score;
        kernels().score_rows(parameters_.W + node[i] * view_.rows.stride, view_.rows, &i, 1,
                             &score);
        next[i] = view_.tree.children[2 * node[i] + (score + parameters_.b[node[i]] >= 0)];
      }
    });
    return next;
  }

  void improve(int depth, const std::vector<std::int32_t>& node_of_row) {
    const std::vector<std::int32_t>& nodes = nodes_at_[depth];
    std::vector<std::vector<std::int32_t>> rows_at(nodes.size());
    std::vector<std::int32_t> place(view_.tree.n_splits, -1);
    for (std::size_t i = 0; i < nodes.size(); ++i) place[nodes[i]] = static_cast<int>(i);
    for (std::int32_t r = 0; r < view_.rows.n; ++r)
      if (node_of_row[r] >= 0) rows_at[place[node_of_row[r]]].push_back(r);
    std::vector<int> small;
    std::vector<double> gain(nodes.size());
    std::vector<std::int64_t> passes(nodes.size());
    const auto step = [&](int i, int n_threads) {
      if (stop_) return;
      NodeStep own(view_, n_columns_, options_, n_threads, stop_);
      gain[i] = own.improve(nodes[i], rows_at[i], parameters_.W + nodes[i] * view_.rows.stride,
                            parameters_.b + nodes[i]);
      passes[i] = own.passes();
    };
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
      if (n_threads_ > 1 && rows_at[i].size() > kLargePart * view_.rows.n)
        step(i, n_threads_);
      else
        small.push_back(i);
    parallel_for(static_cast<int>(small.size()), n_threads_, [&](int s) { step(small[s], 1); });
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      result_.n_changed += gain[i] > 0;
      result_.gain += gain[i];
      result_.passes += passes[i];
    }
  }

  const int n_columns_;
  const TaoView& view_;
  const TaoParameters& parameters_;
  const TaoOptions& options_;
  const int n_threads_;
  const std::atomic<bool>& stop_;
  std::vector<std::vector<std::int32_t>> nodes_at_;
  TaoSweepResult result_;
};

}  // namespace

TaoView view_of(const TreeTopology& topology, const TaoRows& rows, const TaoLeaves& leaves,
                const TaoParameters& parameters) {
  TaoView view{topology.view(), rows, leaves};
  view.tree.n_outputs = leaves.losses.n_outputs;
  view.tree.stride = rows.stride;
  view.tree.W = parameters.W;
  view.tree.b = parameters.b;
  view.tree.theta = parameters.theta;
  return view;
}

// Theorem 3.2: rows whose losses differ, with the better side and the difference.
ReducedProblem reduced_problem(const TaoView& view, std::int32_t node,
                               std::span<const std::int32_t> rows_at_node, int n_threads) {
  const int n = static_cast<int>(rows_at_node.size());
  std::vector<float> left(n), right(n);
  over_rows(n, n_threads, [&](int first, int count) {
    std::vector<float> scratch(2 * view.leaves.losses.n_outputs);
    for (const auto& [side, out] : {std::pair{0, &left}, std::pair{1, &right}})
      kernels().losses_below(view.tree, view.leaves, view.tree.children[2 * node + side], view.rows,
                             rows_at_node.data() + first, count, scratch.data(),
                             out->data() + first);
  });
  ReducedProblem problem;
  for (int i = 0; i < n; ++i) {
    const double weight = view.rows.weight[rows_at_node[i]];
    const double cost = weight * std::abs(static_cast<double>(left[i]) - right[i]);
    if (!(cost > 0)) continue;
    problem.rows.push_back(rows_at_node[i]);
    problem.sign.push_back(right[i] < left[i] ? 1.0f : -1.0f);
    problem.cost.push_back(cost);
    problem.weight += weight;
    problem.total_cost += cost;
  }
  return problem;
}

Threshold best_threshold(std::span<const float> score, const ReducedProblem& problem) {
  std::vector<std::uint64_t> keys(score.size()), spare;
  for (std::size_t i = 0; i < score.size(); ++i)
    keys[i] = std::uint64_t{ordered_bits(score[i])} << 32 | i;
  sort_by_upper_half(keys, spare, 4);
  const auto at = [&](std::size_t k) {
    return from_ordered_bits(static_cast<std::uint32_t>(keys[k] >> 32));
  };
  double loss = 0;  // all go right
  for (std::size_t i = 0; i < score.size(); ++i) loss += problem.sign[i] < 0 ? problem.cost[i] : 0;
  // Beyond all scores by their range, so that rounding moves none of them across.
  const float first = at(0), last = at(keys.size() - 1),
              size = std::max(std::abs(first), std::abs(last));
  const float beyond = size > 0 ? std::max(last - first, 1e-3f * size) : 1.0f;
  Threshold best{first - beyond, loss, 0};
  const double negligible =
      kRounding * problem.total_cost;  // the difference of sums that should be equal
  const auto offer = [&](double gap, float threshold) {
    const bool is_as_good = loss <= best.loss + negligible && gap > best.gap;
    if (loss < best.loss - negligible || is_as_good) best = {threshold, std::max(loss, 0.0), gap};
  };
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const std::size_t i = keys[k] & 0xFFFFFFFFu;
    loss += problem.sign[i] > 0 ? problem.cost[i] : -problem.cost[i];
    if (k + 1 == keys.size())
      offer(0, last + beyond);
    else if (keys[k] >> 32 != keys[k + 1] >> 32)
      offer(static_cast<double>(at(k + 1)) - at(k), between(at(k), at(k + 1)));
  }
  return best;
}

TaoSweepResult sweep_splits(const TreeTopology& topology, int n_columns, const TaoRows& rows,
                            const TaoLeaves& leaves, const TaoParameters& parameters,
                            const TaoOptions& options, int n_threads,
                            const std::atomic<bool>& stop) {
  const TaoView view = view_of(topology, rows, leaves, parameters);
  return Sweep(topology, n_columns, view, parameters, options, n_threads, stop).run();
}

std::vector<std::int32_t> leaves_of(const TreeTopology& topology, const TaoRows& rows,
                                    const float* W, const float* b, int n_threads) {
  LearnedTree tree = topology.view();
  tree.stride = rows.stride;
  tree.W = W;
  tree.b = b;
  std::vector<std::int32_t> leaf(rows.n);
  over_rows(rows.n, n_threads, [&](int first, int count) {
    for (int i = first; i < first + count; ++i)
      leaf[i] = kernels().natural_leaf(tree, tree.n_splits > 0 ? 0 : ~0, rows.X + i * rows.stride);
  });
  return leaf;
}

}  // namespace hardwood
