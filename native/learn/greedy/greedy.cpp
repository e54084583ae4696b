#include "learn/greedy/greedy.hpp"

#include <cmath>

#include "core/threads.hpp"
#include "learn/greedy/level.hpp"

namespace hardwood {

namespace {

// A node that is neither a split nor a leaf yet, and its place in the tree.
struct OpenNode {
  LevelNode rows;
  int parent = -1, side = 0;
};

class Grower {
 public:
  Grower(const Problem& problem, const double* count, const GreedyOptions& options,
         std::uint64_t seed, int n_threads, const std::atomic<bool>& stop)
      : problem_(problem),
        count_(count),
        options_(options),
        data_(problem, options.search != Search::kAxis, n_threads),
        level_{data_, options, {}, {}, seed, n_threads, stop} {
    const std::size_t n = data_.n_rows();
    level_.row.resize(n);
    for (std::size_t i = 0; i < n; ++i) level_.row[i] = static_cast<std::int32_t>(i);
    RowTargets& targets = level_.targets;
    targets.measure = options.measure;
    targets.width = has_classes(options.measure) ? problem.n_outputs : problem.n_targets;
    targets.weight.resize(n);
    targets.count.resize(n);
    if (has_classes(options.measure))
      targets.label.resize(n);
    else
      targets.numbers.resize(n * targets.width);
    tabulate(n);
    tree_.leaf.assign(n, 0);
  }

  GreedyTree grow() {
    std::vector<OpenNode> open(1);
    open[0].rows.last = data_.n_rows();
    for (int depth = 0; !open.empty(); ++depth) {
      gather();
      for (OpenNode& node : open) sum_up(node.rows);
      if (depth == 0) {
        total_weight_ = open[0].rows.totals[0];
        level_.least_weight = options_.min_weight_fraction_leaf * total_weight_;
      }
      std::vector<OpenNode> to_split;
      for (OpenNode& node : open) {
        if (depth < options_.max_depth && !level_.stop && may_be_split(node.rows))
          to_split.push_back(std::move(node));
        else
          make_leaf(node);
      }
      open = split(to_split);
    }
    tree_.interrupted = level_.stop;
    return std::move(tree_);
  }

 private:
  // A table of x log2 x for integers x, if all rows have weight 1.
  void tabulate(std::size_t n) {
    for (const std::int64_t row : problem_.train)
      if (problem_.weight[row] != 1.0f) return;
    for (std::size_t x = 0; x <= n; ++x) table_.push_back(x_log_x(static_cast<double>(x)));
    level_.targets.table = &table_;
  }

  // Targets in the order of the level's rows.
  void gather() {
    RowTargets& targets = level_.targets;
    for (std::size_t i = 0; i < level_.row.size(); ++i) {
      const std::int64_t row = problem_.train[level_.row[i]];
      targets.weight[i] = problem_.weight[row];
      targets.count[i] = count_[row];
      const float* y = problem_.target + row * problem_.n_targets;
      if (has_classes(options_.measure))
        targets.label[i] = static_cast<std::int32_t>(y[0]);
      else
        std::copy_n(y, targets.width, targets.numbers.begin() + i * targets.width);
    }
  }

  void sum_up(LevelNode& node) const {
    node.totals.assign(level_.targets.n_sums(), 0.0);
    for (int i = node.first; i < node.last; ++i) {
      level_.targets.add(i, node.totals.data());
      node.count += level_.targets.count[i];
    }
  }

  bool may_be_split(const LevelNode& node) const {
    if (node.size() < 2 || !(node.totals[0] > 0)) return false;
    if (options_.min_samples_split > 2 && node.count < options_.min_samples_split) return false;
    return !is_pure(node);
  }

  bool is_pure(const LevelNode& node) const {
    const RowTargets& targets = level_.targets;
    for (int i = node.first + 1; i < node.last; ++i) {
      if (has_classes(options_.measure)) {
        if (targets.label[i] != targets.label[node.first]) return false;
        continue;
      }
      const auto y = targets.numbers.begin();
      const auto first = y + static_cast<std::ptrdiff_t>(node.first) * targets.width;
      if (!std::equal(first, first + targets.width,
                      y + static_cast<std::ptrdiff_t>(i) * targets.width))
        return false;
    }
    return true;
  }

  void hang(const OpenNode& node, std::int32_t what) {
    if (node.parent >= 0) tree_.children[node.parent][node.side] = what;
  }

  void make_leaf(const OpenNode& node) {
    const int leaf = tree_.n_leaves++;
    hang(node, -1 - leaf);
    for (int i = node.rows.first; i < node.rows.last; ++i) tree_.leaf[level_.row[i]] = leaf;
  }

  bool is_worth_it(const LevelNode& node, double worth) const {
    if (worth == kNoWorth || level_.stop) return false;
    if (options_.min_impurity_decrease <= 0)
      return true;  // as in scikit-learn, no decrease is needed
    Sides undivided(level_.targets);
    undivided.start(node.totals.data());
    const double decrease = worth - undivided.worth();
    return decrease / total_weight_ >= options_.min_impurity_decrease;
  }

  struct Found {
    AxisSplit axis;
    ObliqueSplit oblique;  // better than the axis split, if there is one
    double worth() const { return oblique.found() ? oblique.worth : axis.worth; }
  };

  std::vector<Found> search(const std::vector<LevelNode>& nodes) const {
    std::vector<Found> found(nodes.size());
    std::vector<ObliqueSplit> oblique(nodes.size());
    std::vector<std::uint8_t> varies;
    if (options_.search == Search::kRandom) {
      oblique = search_random(level_, nodes);
    } else {
      const auto axis =
          search_axis(level_, nodes, options_.search == Search::kOc1 ? &varies : nullptr);
      for (std::size_t i = 0; i < nodes.size(); ++i) found[i].axis = axis[i];
      if (options_.search == Search::kOc1) oblique = search_oc1(level_, nodes, axis, varies);
      if (options_.search == Search::kCo2) oblique = search_co2(level_, problem_, nodes, axis);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) found[i].oblique = std::move(oblique[i]);
    return found;
  }

  // Splits the nodes that can be split; returns their children.
  std::vector<OpenNode> split(std::vector<OpenNode>& nodes) {
    std::vector<LevelNode> rows(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].rows.number = n_searched_++;
      rows[i] = nodes[i].rows;
    }
    std::vector<Found> found = search(rows);
    std::vector<int> boundary(nodes.size(), -1);
    parallel_for(static_cast<int>(nodes.size()), level_.n_threads, [&](int i) {
      if (is_worth_it(rows[i], found[i].worth())) boundary[i] = divide(rows[i], found[i]);
    });
    std::vector<OpenNode> children;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const int middle = boundary[i];
      if (middle <= rows[i].first || middle >= rows[i].last) {
        make_leaf(nodes[i]);
        continue;
      }
      const auto number = static_cast<int>(tree_.splits.size());
      hang(nodes[i], number);
      tree_.splits.push_back(as_split(found[i]));
      tree_.children.push_back({0, 0});
      for (int side = 0; side < 2; ++side) {
        OpenNode child{{}, number, side};
        child.rows.first = side == 0 ? rows[i].first : middle;
        child.rows.last = side == 0 ? middle : rows[i].last;
        children.push_back(std::move(child));
      }
    }
    return children;
  }

  // Moves the rows that go left before those that go right, keeping their order; returns where the
  // right ones begin.
  int divide(const LevelNode& node, const Found& found) {
    std::vector<std::int32_t> left, right;
    std::vector<float> scores(found.oblique.found() ? node.size() : 0);
    if (found.oblique.found())
      project_one(level_, node, found.oblique.weights.data(), scores.data());
    for (int i = 0; i < node.size(); ++i) {
      const std::int32_t row = level_.row[node.first + i];
      const bool is_right = found.oblique.found() ? scores[i] + found.oblique.bias >= 0
                                                  : goes_right(data_, found.axis, row);
      (is_right ? right : left).push_back(row);
    }
    const auto at = std::copy(left.begin(), left.end(), level_.row.begin() + node.first);
    std::copy(right.begin(), right.end(), at);
    return node.first + static_cast<int>(left.size());
  }

  GreedySplit as_split(const Found& found) const {
    if (!found.oblique.found()) return split_of(data_, found.axis);
    GreedySplit split{{}, found.oblique.bias};
    for (int c = 0; c < data_.n_columns(); ++c)
      if (found.oblique.weights[c] != 0) split.terms.push_back({c, found.oblique.weights[c]});
    return split;
  }

  const Problem& problem_;
  const double* count_;
  const GreedyOptions& options_;
  GreedyData data_;
  std::vector<std::int64_t> table_;
  Level level_;
  double total_weight_ = 0;
  std::uint64_t n_searched_ = 0;
  GreedyTree tree_;
};

}  // namespace

GreedyTree grow_greedy(const Problem& problem, const double* count, const GreedyOptions& options,
                       std::uint64_t seed, int n_threads, const std::atomic<bool>& stop) {
  return Grower(problem, count, options, seed, n_threads, stop).grow();
}

}  // namespace hardwood
