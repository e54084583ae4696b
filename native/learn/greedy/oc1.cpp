// OC1: improves a hyperplane one coordinate at a time, from several starts.
//
// Murthy, Kasif, Salzberg 1994, Sec. 3. Moving along a direction D, row i changes sides where
// score_i + a D_i = 0 (the paper's U_j, for a coordinate's D): all such a are sorted, and the best
// point between two of them is taken. Departs from the paper: (1) rows change sides either way, by
// the sign of D_i, so the search along a line is exact for entries of any sign; (2) a pass tries
// n_coordinates coordinates that vary at the node, drawn anew, and always the bias; (3) at most
// max_sweeps passes are made from a start.
#include <cmath>

#include "core/threads.hpp"
#include "learn/greedy/level.hpp"

namespace hardwood {

namespace {

// One start at one node.
class Oc1Start {
 public:
  Oc1Start(const Level& level, const LevelNode& node, std::span<const std::uint8_t> varies,
           int start)
      : level_(level),
        node_(node),
        random_(level.seed, node.number << 20 | static_cast<std::uint64_t>(start)),
        sides_(level.targets),
        weights_(level.data.n_columns()),
        score_(node.size()),
        slope_(node.size()),
        key_of_row_(node.size()) {
    for (int c = 0; c < level.data.n_columns(); ++c)
      if (varies[c]) columns_.push_back(c);
  }

  ObliqueSplit run(const AxisSplit* axis) {
    if (axis)
      start_at(split_of(level_.data, *axis));
    else
      start_at_random();
    int passes = 0, jumps = 0;
    do {
      while (passes < level_.options.max_sweeps && !level_.stop && pass()) ++passes;
      ++passes;
      while (jumps < level_.options.n_jumps && !level_.stop && !jump()) ++jumps;
    } while (jumps < level_.options.n_jumps && passes < level_.options.max_sweeps && !level_.stop);
    return along(level_, node_, weights_);
  }

 private:
  void start_at(const GreedySplit& split) {
    for (const SplitTerm& term : split.terms) weights_[term.column] = term.weight;
    bias_ = split.bias;
    score_all();
    worth_ = worth_now();
  }

  void start_at_random() {
    draw_coordinates();
    for (const int c : chosen_) weights_[c] = random_.uniform(-1.0f, 1.0f);
    bias_ = 0;
    score_all();
    worth_ = kNoWorth;
    improve_along_bias();
  }

  void score_all() {
    std::fill(score_.begin(), score_.end(), bias_);
    for (int c = 0; c < level_.data.n_columns(); ++c)
      if (weights_[c] != 0) {
        read_column(c);
        for (std::size_t i = 0; i < score_.size(); ++i) score_[i] += weights_[c] * slope_[i];
      }
  }

  double worth_now() {
    sides_.start(node_.totals.data());
    for (std::size_t i = 0; i < score_.size(); ++i)
      if (!(score_[i] >= 0)) sides_.take(node_.first + i);
    return level_.allows(sides_, node_) ? sides_.worth() : kNoWorth;
  }

  void read_column(int c) {
    const RankedColumn& column = level_.data.column(c);
    const std::int32_t* rows = level_.row.data() + node_.first;
    const std::uint32_t missing = column.missing();
    column.with_ranks([&](const auto* ranks) {
      for (std::size_t i = 0; i < slope_.size(); ++i) {
        const std::uint32_t rank = ranks[rows[i]];
        slope_[i] = rank == missing ? 0.0 : column.values[rank];
      }
    });
  }

  // Columns that vary at the node, at most n_coordinates.
  void draw_coordinates() {
    const auto n = std::min<std::size_t>(columns_.size(), level_.options.n_coordinates);
    for (std::size_t i = 0; i < n; ++i)
      std::swap(columns_[i], columns_[i + random_.below(columns_.size() - i)]);
    chosen_.assign(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(n));
  }

  // Tries coordinates one by one; returns whether one helped.
  bool pass() {
    draw_coordinates();
    bool helped = improve_along_bias();
    for (const int c : chosen_) {
      if (level_.stop) break;
      read_column(c);
      if (const auto step = line_search()) {
        weights_[c] += *step;
        helped |= improved_;
      }
    }
    return helped;
  }

  // Tries one random direction; returns whether it helped.
  bool jump() {
    draw_coordinates();
    std::vector<double> direction(chosen_.size()), sum(slope_.size());
    for (std::size_t d = 0; d < direction.size(); ++d) {
      direction[d] = random_.uniform(-1.0f, 1.0f);
      read_column(chosen_[d]);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += direction[d] * slope_[i];
    }
    const double of_bias = random_.uniform(-1.0f, 1.0f);
    for (std::size_t i = 0; i < sum.size(); ++i) slope_[i] = sum[i] + of_bias;
    const auto step = line_search();
    if (!step) return false;
    for (std::size_t d = 0; d < direction.size(); ++d) weights_[chosen_[d]] += *step * direction[d];
    bias_ += *step * of_bias;
    return improved_;
  }

  bool improve_along_bias() {
    std::fill(slope_.begin(), slope_.end(), 1.0);
    const auto step = line_search();
    if (step) bias_ += *step;
    return step && improved_;
  }

  // Takes the best step along slope_ if it helps. An equally good hyperplane is taken with a
  // probability that falls as long as nothing helps (the paper's P_move).
  std::optional<double> line_search() {
    sort_crossings();
    if (keys_.empty()) return {};
    Best best;
    sides_.start(node_.totals.data());
    for (std::size_t i = 0; i < score_.size(); ++i) {
      const bool moves = key_of_row_[i] != 0;
      if (moves ? slope_[i] > 0 : !(score_[i] >= 0)) sides_.take(node_.first + i);
    }
    consider(place(keys_.front() >> 32) - 1.0, best);
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      const std::size_t i = keys_[k] & 0xFFFFFFFFu;
      if (slope_[i] > 0)
        sides_.give_back(node_.first + i);
      else
        sides_.take(node_.first + i);
      if (k + 1 == keys_.size())
        consider(place(keys_[k] >> 32) + 1.0, best);
      else if (keys_[k] >> 32 != keys_[k + 1] >> 32)
        consider(0.5 * place(keys_[k] >> 32) + 0.5 * place(keys_[k + 1] >> 32), best);
    }
    return take_step(best);
  }

  struct Best {
    double worth = kNoWorth;
    double step = 0;
  };

  static double place(std::uint64_t key) {
    return from_ordered_bits(static_cast<std::uint32_t>(key));
  }

  // The steps at which rows change sides; rows that never do have the key 0.
  void sort_crossings() {
    keys_.clear();
    for (std::size_t i = 0; i < score_.size(); ++i) {
      key_of_row_[i] = 0;
      if (slope_[i] == 0) continue;
      const auto crossing = static_cast<float>(-score_[i] / slope_[i]);
      if (!(std::fabs(crossing) < 1e18f)) continue;
      key_of_row_[i] = ordered_bits(crossing);  // zero is the key of a NaN alone
      keys_.push_back(std::uint64_t{key_of_row_[i]} << 32 | i);
    }
    sort_by_upper_half(keys_, spare_, 4);
  }

  void consider(double step, Best& best) {
    if (!level_.allows(sides_, node_)) return;
    const double worth = sides_.worth();
    if (worth > best.worth) best = {worth, step};
  }

  std::optional<double> take_step(const Best& best) {
    improved_ = best.worth > worth_;
    if (improved_)
      p_move_ = 1.0f;
    else if (best.worth < worth_ || best.worth == kNoWorth || random_.uniform() >= p_move_)
      return {};
    else
      p_move_ -= 0.1f;
    for (std::size_t i = 0; i < score_.size(); ++i) score_[i] += best.step * slope_[i];
    worth_ = best.worth;
    return best.step;
  }

  const Level& level_;
  const LevelNode& node_;
  Random random_;
  Sides sides_;
  std::vector<double> weights_;
  double bias_ = 0;
  std::vector<double> score_, slope_;
  std::vector<std::uint32_t> key_of_row_;
  std::vector<int> columns_, chosen_;
  std::vector<std::uint64_t> keys_, spare_;
  double worth_ = kNoWorth;
  bool improved_ = false;
  float p_move_ = 1.0f;
};

}  // namespace

std::vector<ObliqueSplit> search_oc1(const Level& level, std::span<const LevelNode> nodes,
                                     std::span<const AxisSplit> axis,
                                     const std::vector<std::uint8_t>& varies) {
  const int n_columns = level.data.n_columns(), n_starts = level.options.n_split_restarts;
  std::vector<ObliqueSplit> found(nodes.size() * n_starts);
  parallel_for(static_cast<int>(found.size()), level.n_threads, [&](int task) {
    const int i = task / n_starts, start = task % n_starts;
    if (level.stop || (start == 0 && !axis[i].found())) return;
    const std::span<const std::uint8_t> of_node(varies.data() + std::size_t(i) * n_columns,
                                                n_columns);
    found[task] = Oc1Start(level, nodes[i], of_node, start).run(start == 0 ? &axis[i] : nullptr);
  });
  std::vector<ObliqueSplit> best(nodes.size());
  for (std::size_t task = 0; task < found.size(); ++task) {
    const std::size_t i = task / n_starts;
    if (found[task].worth > std::max(best[i].worth, axis[i].worth))
      best[i] = std::move(found[task]);
  }
  return best;
}

}  // namespace hardwood
