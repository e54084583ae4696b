#include "explain/shapley/shapley.hpp"

#include <numeric>

#include "core/random.hpp"
#include "core/threads.hpp"
#include "explain/shapley/path_enumeration.hpp"
#include "explain/shapley/subsets.hpp"
#include "explain/shapley/walk.hpp"

namespace hardwood {

namespace {

// Rows of one task, which walk together, there and back.
constexpr std::int64_t kMostRows = kMostMoving / 2;
// The number of cases of the first background rows, relative to the limit per row, above which a
// row is sampled instead.
constexpr std::int64_t kHeadStart = 2;
// With more players than this, sets are not enumerated; the enumeration of cases may need fewer.
constexpr std::size_t kMostPlayers = 24;

void raise_to(const FeatureRow& row, std::vector<float>& largest) {
  for (std::size_t j = 0; j < largest.size(); ++j)
    largest[j] = std::max(largest[j], std::abs(row.values[j]));
}

// Shared by all tasks.
struct Work {
  const std::vector<Group>& groups;
  const FeatureMap& map;
  std::ptrdiff_t stride;
  const FeatureRows &rows, &background;
  const ShapleyOptions& options;
  const std::atomic<bool>& stop;
  const ShapleyAnswers& answers;
};

// How values are computed. If splits weigh most players, there are about as many cases as sets, and
// a set takes less time. With `kCases`, rows with too many cases are sampled.
enum class Way { kSample, kSets, kCases };

// The plan for a group.
struct Plan {
  Plan(const Work& work, std::size_t group)
      : number(group), players(players_of(work.groups[group], work.map)) {
    std::size_t n_splits = 0, n_weights = 0;
    std::vector<char> marks(work.map.n_features);
    for (const ForestTree& tree : work.groups[group].trees) {
      columns.emplace_back(*tree.splits);
      n_splits += tree.splits->n_splits;
      for (int i = 0; i < tree.splits->n_splits; ++i) {
        std::fill(marks.begin(), marks.end(), 0);
        mark_weighed(work.map, weights_of(*tree.splits, i), indicators_of(*tree.splits, i), marks);
        n_weights += std::count(marks.begin(), marks.end(), 1);
      }
    }
    most_cases = work.options.most_cases / std::ssize(work.groups);
    const std::size_t n = players.size();
    const bool is_dense = 2 * n_weights >= n_splits * n;
    const bool are_few = n < 62 && std::int64_t{1} << n <= most_cases;
    way = is_dense && !are_few            ? Way::kSample
          : is_dense && n <= kMostPlayers ? Way::kSets
                                          : Way::kCases;
    if (most_cases == 0) way = Way::kSample;
  }

  std::uint64_t number;
  std::vector<std::int32_t> players;
  std::vector<Columns> columns;
  std::int64_t most_cases;
  Way way;
};

// One group and some rows.
class Task {
 public:
  Task(const Work& work, const Plan& plan, std::vector<float> largest, std::int64_t first,
       std::int64_t last)
      : work_(work),
        group_(work.groups[plan.number]),
        plan_(plan),
        largest_(std::move(largest)),
        first_(first),
        last_(last),
        size_(plan.players.size() * group_.n_outputs) {
    for (std::int64_t row = first; row < last; ++row) raise_to(work.rows[row], largest_);
  }

  void run() const {
    std::vector<std::int64_t> rows(last_ - first_);
    std::iota(rows.begin(), rows.end(), first_);
    if (plan_.way == Way::kSets) return solve(rows, true);
    if (plan_.way == Way::kCases) {
      PathEnumerator solver(group_, work_.map, work_.stride, plan_.players, largest_, work_.stop);
      std::erase_if(rows, [&](std::int64_t row) { return solves(solver, row); });
    }
    if (!rows.empty()) solve(rows, false);
  }

 private:
  // Enumerates the cases of a row and writes the result; returns false if there are too many.
  bool solves(PathEnumerator& solver, std::int64_t row) const {
    std::vector<double> values(size_), variances(size_);
    std::int64_t n_cases = 0;
    for (std::int64_t z = 0; z < work_.background.size(); ++z) {
      const std::int64_t left = plan_.most_cases * (kHeadStart + z) - n_cases;
      const std::int64_t n =
          solver.add({work_.rows[row], work_.background[z]}, left, values.data());
      if (n < 0) return false;
      n_cases += n;
    }
    write(row, values.data(), variances.data());
    return true;
  }

  // Enumerates all sets for some rows together, or samples.
  void solve(const std::vector<std::int64_t>& rows, bool is_exact) const {
    std::vector<double> values(rows.size() * size_), variances(rows.size() * size_);
    std::vector<FeatureRow> encoded;
    for (const std::int64_t row : rows) encoded.push_back(work_.rows[row]);
    const Game game{group_, work_.map, work_.stride, plan_.players, plan_.columns};
    if (is_exact) {
      Subsets subsets(game, encoded, largest_, work_.stop);
      for (std::int64_t z = 0; z < work_.background.size() && !work_.stop; ++z)
        subsets.add(work_.background[z], values.data());
    } else {
      Walks walks(game, encoded, largest_, work_.stop);
      std::vector<std::int32_t> orders(plan_.players.size() * work_.options.n_orders);
      for (std::int64_t z = 0; z < work_.background.size() && !work_.stop; ++z) {
        draw(z, orders);
        walks.add(work_.background[z], orders, values.data(), variances.data());
      }
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      work_.answers.is_exact[rows[i]] &= is_exact;
      write(rows[i], values.data() + i * size_, variances.data() + i * size_);
    }
  }

  void draw(std::int64_t z, std::span<std::int32_t> orders) const {
    const std::size_t n = plan_.players.size();
    Random random(work_.options.seed, plan_.number << 32 | static_cast<std::uint64_t>(z));
    for (std::size_t first = 0; first < orders.size(); first += n) {
      const std::span<std::int32_t> order = orders.subspan(first, n);
      std::iota(order.begin(), order.end(), 0);
      random.shuffle(order);
    }
  }

  // Adds sums over the background rows to the results of a row.
  void write(std::int64_t row, const double* values, const double* variances) const {
    const ShapleyAnswers& answers = work_.answers;
    const double share = group_.share / static_cast<double>(work_.background.size());
    for (std::size_t i = 0; i < plan_.players.size(); ++i) {
      const std::size_t from = i * group_.n_outputs + group_.first_output;
      const std::size_t to = (row * work_.map.n_features + plan_.players[i]) * answers.n_outputs;
      for (int o = 0; o < answers.n_outputs; ++o) {
        answers.values[to + o] += share * values[from + o];
        answers.variances[to + o] += share * share * variances[from + o];
      }
    }
  }

  const Work& work_;
  const Group& group_;
  const Plan& plan_;
  std::vector<float> largest_;
  const std::int64_t first_, last_;
  const std::size_t size_;
};

}  // namespace

void shapley(const std::vector<Group>& groups, const FeatureMap& map, std::ptrdiff_t stride,
             const FeatureRows& rows, const FeatureRows& background, const ShapleyOptions& options,
             const std::atomic<bool>& stop, const ShapleyAnswers& answers) {
  const Work work{groups, map, stride, rows, background, options, stop, answers};
  std::vector<float> largest(stride);
  for (std::int64_t z = 0; z < background.size(); ++z) raise_to(background[z], largest);
  const std::int64_t share = (rows.size() + options.n_threads - 1) / options.n_threads;
  const std::int64_t n_rows = std::clamp<std::int64_t>(share, 1, kMostRows);
  const std::int64_t n_tasks = (rows.size() + n_rows - 1) / n_rows;
  for (std::size_t group = 0; group < groups.size() && !stop; ++group) {
    const Plan plan(work, group);
    parallel_for(static_cast<int>(n_tasks), options.n_threads, [&](int t) {
      const std::int64_t first = t * n_rows, last = std::min(first + n_rows, rows.size());
      if (!stop) Task(work, plan, largest, first, last).run();
    });
  }
}

}  // namespace hardwood
