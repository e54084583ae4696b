// Exact splits on one column: tries all thresholds between the distinct values at a node.
#include <cmath>

#include "core/threads.hpp"
#include "learn/greedy/level.hpp"

namespace hardwood {

namespace {

// Number of entries (rows times columns) per task.
constexpr std::int64_t kTaskEntries = 1 << 19;

class ColumnScan {
 public:
  explicit ColumnScan(const Level& level) : level_(level), sides_(level.targets) {}

  // Tries column c of a node; returns whether it varies there.
  bool scan(const LevelNode& node, int c, AxisSplit& best) {
    node_ = &node;
    column_ = c;
    best_ = &best;
    const RankedColumn& column = level_.data.column(c);
    if (column.values.empty() || !gather(column)) return false;
    if (low_ == high_) return !missing_.empty();  // the missing indicator is a column of its own
    const auto n_bins = static_cast<std::size_t>(high_ - low_) + 1;
    const bool few = n_bins * level_.targets.n_sums() <= 2 * static_cast<std::size_t>(node.size());
    const int n_ways = missing_.empty() ? 1 : 2;
    if (few)
      fill_bins(n_bins);
    else
      sort_rows();
    for (int way = 0; way < n_ways; ++way) {
      sides_.start(node.totals.data());
      if (n_ways == 2 && way == 0)
        for (const std::int32_t i : missing_) sides_.take(i);
      const int side = n_ways == 1 ? -1 : way;
      if (few)
        sweep_bins(n_bins, side);
      else
        sweep_rows(side);
    }
    return true;
  }

 private:
  // Ranks of the node's rows, and their range. Returns false if all entries are missing.
  bool gather(const RankedColumn& column) {
    const int n = node_->size();
    rank_.resize(n);
    const std::int32_t* rows = level_.row.data() + node_->first;
    column.with_ranks([&](const auto* ranks) {
      for (int i = 0; i < n; ++i) rank_[i] = ranks[rows[i]];
    });
    missing_.clear();
    if (column.flag >= 0)
      for (int i = 0; i < n; ++i)
        if (rank_[i] == column.missing()) missing_.push_back(node_->first + i);
    if (missing_.size() == rank_.size()) return false;
    low_ = column.missing(), high_ = 0;
    for (const std::uint32_t r : rank_) {
      if (r == column.missing()) continue;
      low_ = std::min(low_, r);
      high_ = std::max(high_, r);
    }
    return true;
  }

  bool is_missing(std::uint32_t rank) const { return rank > high_; }

  // Few distinct values: sums for each, in the order of rows.
  void fill_bins(std::size_t n_bins) {
    const RowTargets& targets = level_.targets;
    const std::size_t width = targets.n_sums();
    bins_.assign(n_bins * width, 0.0);
    bin_count_.assign(n_bins, 0.0);
    bin_rows_.assign(n_bins, 0);
    for (int i = 0; i < node_->size(); ++i) {
      if (is_missing(rank_[i])) continue;
      const std::size_t bin = rank_[i] - low_, row = node_->first + static_cast<std::size_t>(i);
      targets.add(row, bins_.data() + bin * width);
      bin_count_[bin] += targets.count[row];
      ++bin_rows_[bin];
    }
  }

  void sweep_bins(std::size_t n_bins, int missing_side) {
    const std::size_t width = level_.targets.n_sums();
    std::uint32_t previous = 0;
    for (std::size_t bin = 0; bin < n_bins; ++bin) {
      if (bin_rows_[bin] == 0) continue;
      if (bin > 0) consider(low_ + previous, low_ + static_cast<std::uint32_t>(bin), missing_side);
      sides_.take_sums(bins_.data() + bin * width, bin_count_[bin]);
      previous = static_cast<std::uint32_t>(bin);
    }
  }

  void sort_rows() {
    keys_.clear();
    for (int i = 0; i < node_->size(); ++i)
      if (!is_missing(rank_[i])) keys_.push_back(std::uint64_t{rank_[i]} << 32 | i);
    sort_by_upper_half(keys_, spare_, (std::bit_width(high_) + 7) / 8);
  }

  void sweep_rows(int missing_side) {
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      const auto rank = static_cast<std::uint32_t>(keys_[k] >> 32);
      if (k > 0) {
        const auto previous = static_cast<std::uint32_t>(keys_[k - 1] >> 32);
        if (previous != rank) consider(previous, rank, missing_side);
      }
      sides_.take(node_->first + (keys_[k] & 0xFFFFFFFFu));
    }
  }

  void consider(std::uint32_t left, std::uint32_t right, int missing_side) {
    if (!level_.allows(sides_, *node_)) return;
    const double worth = sides_.worth();
    if (!(worth > best_->worth)) return;
    const RankedColumn& column = level_.data.column(column_);
    *best_ = {worth, column_, right, between(column.values[left], column.values[right]),
              missing_side};
  }

  const Level& level_;
  Sides sides_;
  const LevelNode* node_ = nullptr;
  int column_ = 0;
  AxisSplit* best_ = nullptr;
  std::uint32_t low_ = 0, high_ = 0;
  std::vector<std::uint32_t> rank_;
  std::vector<std::int32_t> missing_;
  std::vector<double> bins_, bin_count_;
  std::vector<std::int32_t> bin_rows_;
  std::vector<std::uint64_t> keys_, spare_;
};

// Some columns of some nodes.
struct Task {
  int first_node, last_node, first_column, last_column;
};

// Divides large nodes by columns and combines small ones; this depends only on the sizes.
std::vector<Task> tasks_of(std::span<const LevelNode> nodes, int n_columns) {
  std::vector<Task> tasks;
  for (int i = 0; i < static_cast<int>(nodes.size());) {
    std::int64_t entries = std::int64_t{nodes[i].size()} * n_columns;
    if (entries >= kTaskEntries) {
      const auto n = static_cast<int>(std::min<std::int64_t>(entries / kTaskEntries, n_columns));
      for (int part = 0; part < n; ++part)
        tasks.push_back({i, i + 1, static_cast<int>(std::int64_t{n_columns} * part / n),
                         static_cast<int>(std::int64_t{n_columns} * (part + 1) / n)});
      ++i;
      continue;
    }
    int last = i + 1;
    for (; last < static_cast<int>(nodes.size()); ++last) {
      const std::int64_t more = std::int64_t{nodes[last].size()} * n_columns;
      if (entries + more > kTaskEntries) break;
      entries += more;
    }
    tasks.push_back({i, last, 0, n_columns});
    i = last;
  }
  return tasks;
}

}  // namespace

std::vector<AxisSplit> search_axis(const Level& level, std::span<const LevelNode> nodes,
                                   std::vector<std::uint8_t>* varies) {
  const int n_columns = level.data.n_columns();
  if (varies) varies->assign(nodes.size() * n_columns, 0);
  const std::vector<Task> tasks = tasks_of(nodes, n_columns);
  std::vector<std::vector<AxisSplit>> of_task(tasks.size());
  parallel_for(static_cast<int>(tasks.size()), level.n_threads, [&](int t) {
    const Task& task = tasks[t];
    ColumnScan scan(level);
    of_task[t].resize(task.last_node - task.first_node);
    for (int i = task.first_node; i < task.last_node; ++i)
      for (int c = task.first_column; c < task.last_column && !level.stop; ++c) {
        const bool it_varies = scan.scan(nodes[i], c, of_task[t][i - task.first_node]);
        if (varies) (*varies)[static_cast<std::size_t>(i) * n_columns + c] = it_varies;
      }
  });
  std::vector<AxisSplit> best(nodes.size());
  for (std::size_t t = 0; t < tasks.size(); ++t)  // in order of columns: the first of equals wins
    for (int i = tasks[t].first_node; i < tasks[t].last_node; ++i) {
      const AxisSplit& found = of_task[t][i - tasks[t].first_node];
      if (found.worth > best[i].worth) best[i] = found;
    }
  return best;
}

bool goes_right(const GreedyData& data, const AxisSplit& axis, std::int32_t row) {
  const RankedColumn& column = data.column(axis.column);
  const std::uint32_t rank = column.rank(row);
  const bool is_missing = rank == column.missing() && axis.missing_side >= 0;
  return is_missing ? axis.missing_side == 1 : rank >= axis.rank;
}

GreedySplit split_of(const GreedyData& data, const AxisSplit& axis) {
  GreedySplit split{{{axis.column, 1.0f}}, -axis.threshold};
  if (axis.missing_side < 0) return split;
  // A missing entry has value 0, so its score is bias + flag: as far from zero as the threshold is.
  const float margin = std::max(1.0f, std::fabs(axis.threshold));
  split.terms.push_back({data.column(axis.column).flag,
                         axis.threshold + (axis.missing_side == 1 ? margin : -margin)});
  return split;
}

}  // namespace hardwood
