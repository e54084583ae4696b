#include "learn/tao_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/threads.hpp"
#include "learn/greedy_data.hpp"
#include "learn/tao_logistic.hpp"

namespace hardwood {

namespace {

constexpr int kRowsAtOnce = 2048;
// A node with more than this part of the rows has all threads to itself.
constexpr double kLargePart = 0.25;

// Calls work(first, n) for stretches of n_rows rows.
template <class Work>
void over_rows(int n_rows, int n_threads, Work&& work) {
  parallel_for((n_rows + kRowsAtOnce - 1) / kRowsAtOnce, n_threads, [&](int chunk) {
    const int first = chunk * kRowsAtOnce;
    work(first, std::min(kRowsAtOnce, n_rows - first));
  });
}

// The rows at a node that care for the side they go to.
struct ReducedProblem {
  std::vector<std::int32_t> rows;
  std::vector<float> sign;   // 1: the right side has the smaller loss
  std::vector<double> cost;  // of going to the other side
  double weight = 0;         // of the rows
  double total_cost = 0;
};

// A split with its place among others: by the reduced loss and prices, then by the gap it stands in.
struct Candidate {
  std::vector<float> w;  // (stride,)
  float b = 0;
  double loss = std::numeric_limits<double>::infinity();
  double gap = -1;  // between the scores next to it, for |w| = 1

  bool is_better_than(const Candidate& other) const {
    return loss < other.loss || (loss == other.loss && gap > other.gap);
  }
};

class NodeStep {
 public:
  NodeStep(const LearnedTree& tree, int n_columns, const TaoRows& rows, const TaoLeaves& leaves,
           const TaoOptions& options, int n_threads, const std::atomic<bool>& stop)
      : tree_(tree),
        n_columns_(n_columns),
        rows_(rows),
        leaves_(leaves),
        options_(options),
        n_threads_(n_threads),
        stop_(stop) {}

  std::int64_t passes() const { return passes_; }

  // The best split found for a node with such rows, and what it gains; 0: the old one stays.
  double improve(std::int32_t node, std::span<const std::int32_t> which, float* w, float* b) {
    const ReducedProblem problem = reduced(node, which);
    if (problem.rows.empty()) return 0;
    const Candidate old = as_it_is(problem, w, *b);
    if (!(old.loss > 0)) return 0;
    Candidate best = with_threshold(problem, old.w);
    if (differ(problem))
      for (const std::vector<float>& direction : directions(problem, old)) {
        const Candidate found = with_threshold(problem, direction);
        if (found.is_better_than(best)) best = found;
      }
    if (stop_ || !(best.loss < old.loss)) return 0;
    std::ranges::copy(best.w, w);
    *b = best.b;
    return old.loss - best.loss;
  }

 private:
  // Theorem 3.1: rows whose losses differ, with the better side and the difference.
  ReducedProblem reduced(std::int32_t node, std::span<const std::int32_t> which) const {
    const int n = static_cast<int>(which.size());
    std::vector<float> left(n), right(n);
    over_rows(n, n_threads_, [&](int first, int count) {
      std::vector<float> scratch(2 * leaves_.losses.n_outputs);
      for (const auto& [side, out] : {std::pair{0, &left}, std::pair{1, &right}})
        kernels().losses_below(tree_, leaves_, tree_.children[2 * node + side], rows_,
                               which.data() + first, count, scratch.data(), out->data() + first);
    });
    ReducedProblem problem;
    for (int i = 0; i < n; ++i) {
      const double weight = rows_.weight[which[i]];
      const double cost = weight * std::abs(static_cast<double>(left[i]) - right[i]);
      if (!(cost > 0)) continue;
      problem.rows.push_back(which[i]);
      problem.sign.push_back(right[i] < left[i] ? 1.0f : -1.0f);
      problem.cost.push_back(cost);
      problem.weight += weight;
      problem.total_cost += cost;
    }
    return problem;
  }

  static bool differ(const ReducedProblem& problem) {
    return std::ranges::find(problem.sign, -problem.sign.front()) != problem.sign.end();
  }

  std::vector<float> scores(const ReducedProblem& problem, const std::vector<float>& w) const {
    std::vector<float> out(problem.rows.size());
    over_rows(static_cast<int>(out.size()), n_threads_, [&](int first, int count) {
      kernels().score_rows(w.data(), rows_, problem.rows.data() + first, count, out.data() + first);
    });
    return out;
  }

  double price(const std::vector<float>& w) const {
    if (options_.weight_price == 0) return 0;
    return options_.weight_price *
           static_cast<double>(std::ranges::count_if(w, [](float v) { return v != 0; }));
  }

  Candidate as_it_is(const ReducedProblem& problem, const float* w, float b) const {
    Candidate old{{w, w + rows_.stride}, b, 0, -1};
    const std::vector<float> score = scores(problem, old.w);
    for (std::size_t i = 0; i < score.size(); ++i)
      if ((score[i] + b >= 0) != (problem.sign[i] > 0)) old.loss += problem.cost[i];
    old.loss += price(old.w);
    return old;
  }

  // The threshold along a direction with the smallest reduced loss; of equal ones, that in the
  // widest gap.
  Candidate with_threshold(const ReducedProblem& problem, const std::vector<float>& w) const {
    Candidate best;
    const std::vector<float> score = scores(problem, w);
    std::vector<std::uint64_t> keys(score.size()), spare;
    for (std::size_t i = 0; i < score.size(); ++i) {
      if (!std::isfinite(score[i])) return best;
      keys[i] = std::uint64_t{ordered_bits(score[i])} << 32 | i;
    }
    sort_by_upper_half(keys, spare, 4);
    const auto at = [&](std::size_t k) {
      return from_ordered_bits(static_cast<std::uint32_t>(keys[k] >> 32));
    };
    const double norm = std::sqrt(std::inner_product(w.begin(), w.end(), w.begin(), 0.0));
    const double fixed = price(w);
    best.w = w;
    double loss = 0;  // all go right
    for (std::size_t i = 0; i < score.size(); ++i)
      loss += problem.sign[i] < 0 ? problem.cost[i] : 0;
    const auto offer = [&](double gap, float threshold) {
      if (loss + fixed < best.loss || (loss + fixed == best.loss && gap > best.gap)) {
        best.loss = loss + fixed;
        best.gap = gap;
        best.b = -threshold;
      }
    };
    offer(0, at(0));
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const std::size_t i = keys[k] & 0xFFFFFFFFu;
      loss += problem.sign[i] > 0 ? problem.cost[i] : -problem.cost[i];
      if (k + 1 == keys.size())
        offer(0, std::nextafter(at(k), std::numeric_limits<float>::infinity()));
      else if (keys[k] >> 32 != keys[k + 1] >> 32)
        offer((static_cast<double>(at(k + 1)) - at(k)) / norm, between(at(k), at(k + 1)));
    }
    best.loss = std::max(best.loss, fixed);  // rounding of sums that end at zero
    return best;
  }

  // A threshold above a and not above b.
  static float between(float a, float b) {
    const float middle = a + 0.5f * (b - a);
    return middle > a && middle <= b ? middle : b;
  }

  // The rows of a problem side by side, without the columns that do not vary among them.
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

  const float* row(std::int32_t r) const { return rows_.X + r * rows_.stride; }

  // Directions that logistic regression finds, one for each strength of the penalty.
  std::vector<std::vector<float>> directions(const ReducedProblem& problem, const Candidate& old) {
    std::vector<std::vector<float>> found = solved(problem, old.w, old.b, nullptr);
    if (options_.max_features == 0) return found;
    std::vector<std::vector<float>> sparse;
    for (const std::vector<float>& w : found) {
      const std::vector<bool> allowed = largest_features(w);
      for (std::vector<float>& again : solved(problem, w, 0, &allowed))
        sparse.push_back(std::move(again));
    }
    return sparse;
  }

  std::vector<std::vector<float>> solved(const ReducedProblem& problem, const std::vector<float>& w,
                                         float b, const std::vector<bool>* allowed) {
    const Gathered g = gathered(problem, allowed);
    const int d = static_cast<int>(g.columns.size()), n = static_cast<int>(problem.rows.size());
    std::vector<std::vector<float>> found;
    if (d == 0) return found;
    const LogisticRows rows{n, g.stride, g.X.data(), problem.sign.data(), g.weight.data()};
    std::vector<float> start(d);
    for (int c = 0; c < d; ++c) start[c] = w[g.columns[c]];
    calibrate(rows, problem, w, start, b);
    for (const double l1 : options_.l1) {
      const LogisticOptions own{l1, options_.l2, options_.max_passes, options_.tolerance,
                                n_threads_};
      LogisticSolution solution = solve_logistic(rows, d, own, start, b, stop_);
      passes_ += static_cast<std::int64_t>(solution.passes) * n;
      std::vector<float>& full = found.emplace_back(rows_.stride);
      for (int c = 0; c < d; ++c) full[g.columns[c]] = solution.w[c];
      if (std::ranges::all_of(solution.w, [](float v) { return v == 0; })) found.pop_back();
      start = std::move(solution.w);
      b = solution.b;
    }
    return found;
  }

  // Brings the old split to the size that suits it as a logistic regression: by Newton's method over
  // a factor and a bias. Where it points the wrong way, or is nothing, the start is zero.
  void calibrate(const LogisticRows& rows, const ReducedProblem& problem,
                 const std::vector<float>& w, std::vector<float>& start, float& b) const {
    const std::vector<float> score = scores(problem, w);
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
    b = static_cast<float>(bias);
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

  // Columns of the features with the largest weights, as many as may be weighed.
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

  const LearnedTree& tree_;
  const int n_columns_;
  const TaoRows& rows_;
  const TaoLeaves& leaves_;
  const TaoOptions& options_;
  const int n_threads_;
  const std::atomic<bool>& stop_;
  std::int64_t passes_ = 0;
};

class Sweep {
 public:
  Sweep(const TreeTopology& topology, int n_columns, const TaoRows& rows, const TaoLeaves& leaves,
        const TaoParameters& parameters, const TaoOptions& options, int n_threads,
        const std::atomic<bool>& stop)
      : n_columns_(n_columns),
        rows_(rows),
        leaves_(leaves),
        parameters_(parameters),
        options_(options),
        n_threads_(n_threads),
        stop_(stop),
        tree_(topology.view()),
        nodes_at_(topology.max_depth()) {
    tree_.n_outputs = leaves.losses.n_outputs;
    tree_.stride = rows.stride;
    tree_.W = parameters.W;
    tree_.b = parameters.b;
    tree_.theta = parameters.theta;
    for (int i = 0; i < topology.n_splits(); ++i) nodes_at_[tree_.depth[i]].push_back(i);
  }

  TaoSweepResult run() {
    const int height = static_cast<int>(nodes_at_.size());
    std::vector<std::vector<std::int32_t>> node_at(height);  // of each row, leaves as negative
    if (height > 0) node_at[0].assign(rows_.n, 0);
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
  // From the nodes of rows at a depth to those at the next.
  std::vector<std::int32_t> moved_on(const std::vector<std::int32_t>& node) const {
    std::vector<std::int32_t> next(node.size());
    over_rows(rows_.n, n_threads_, [&](int first, int count) {
      for (int i = first; i < first + count; ++i) {
        next[i] = node[i];
        if (node[i] < 0) continue;
        float score;
        kernels().score_rows(parameters_.W + node[i] * rows_.stride, rows_, &i, 1, &score);
        next[i] = tree_.children[2 * node[i] + (score + parameters_.b[node[i]] >= 0)];
      }
    });
    return next;
  }

  void improve(int depth, const std::vector<std::int32_t>& node_of_row) {
    const std::vector<std::int32_t>& nodes = nodes_at_[depth];
    std::vector<std::vector<std::int32_t>> rows_at(nodes.size());
    std::vector<std::int32_t> place(tree_.n_splits, -1);
    for (std::size_t i = 0; i < nodes.size(); ++i) place[nodes[i]] = static_cast<int>(i);
    for (std::int32_t r = 0; r < rows_.n; ++r)
      if (node_of_row[r] >= 0) rows_at[place[node_of_row[r]]].push_back(r);
    std::vector<int> small;
    std::vector<double> gain(nodes.size());
    std::vector<std::int64_t> passes(nodes.size());
    const auto step = [&](int i, int n_threads) {
      if (stop_) return;
      NodeStep own(tree_, n_columns_, rows_, leaves_, options_, n_threads, stop_);
      gain[i] = own.improve(nodes[i], rows_at[i], parameters_.W + nodes[i] * rows_.stride,
                            parameters_.b + nodes[i]);
      passes[i] = own.passes();
    };
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
      if (n_threads_ > 1 && rows_at[i].size() > kLargePart * rows_.n)
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
  const TaoRows& rows_;
  const TaoLeaves& leaves_;
  const TaoParameters& parameters_;
  const TaoOptions& options_;
  const int n_threads_;
  const std::atomic<bool>& stop_;
  LearnedTree tree_;
  std::vector<std::vector<std::int32_t>> nodes_at_;
  TaoSweepResult result_;
};

}  // namespace

TaoSweepResult sweep_splits(const TreeTopology& topology, int n_columns, const TaoRows& rows,
                            const TaoLeaves& leaves, const TaoParameters& parameters,
                            const TaoOptions& options, int n_threads,
                            const std::atomic<bool>& stop) {
  return Sweep(topology, n_columns, rows, leaves, parameters, options, n_threads, stop).run();
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
