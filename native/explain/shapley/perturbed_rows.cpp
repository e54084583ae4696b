#include "explain/shapley/perturbed_rows.hpp"

namespace hardwood {

namespace {

// Number of changes after which paths are computed from the root again, so that rounding errors
// stay small. A walk does not need this.
int most_changes(std::size_t n_players) {
  return std::max(64, static_cast<int>(n_players));
}

// Bound on the rounding errors of a tree's scores: those of the router and, for every change, of a
// difference, a product and a sum.
float slack_of(const Splits& splits, const FeatureMap& map, std::size_t n_players,
               const std::vector<float>& largest) {
  const float n_errors = 3.0f * static_cast<float>(most_changes(n_players) + 1);
  float most = 0.0f;
  for (const float size : term_sizes(splits, map, largest)) most = std::max(most, size);
  return most * (score_error(splits, map) + 0x1p-24f * n_errors);
}

}  // namespace

PerturbedRows::PathMemory::PathMemory(std::size_t n_rows, int n_levels, int n_outputs, float slack)
    : nodes(n_rows * n_levels),
      n_splits(n_rows),
      leaf(n_rows),
      scores(n_rows * n_levels),
      says(n_rows * n_outputs),
      paths{n_levels, nodes.data(), scores.data(), n_splits.data(), leaf.data(), slack} {}

void PerturbedRows::PathMemory::copy(const PathMemory& other) {
  std::copy(other.nodes.begin(), other.nodes.end(), nodes.begin());
  std::copy(other.n_splits.begin(), other.n_splits.end(), n_splits.begin());
  std::copy(other.leaf.begin(), other.leaf.end(), leaf.begin());
  std::copy(other.scores.begin(), other.scores.end(), scores.begin());
  std::copy(other.says.begin(), other.says.end(), says.begin());
}

PerturbedRows::PerturbedRows(const Game& game, std::size_t n_rows,
                             const std::vector<float>& largest)
    : group_(game.group),
      map_(game.map),
      stride_(game.stride),
      players_(game.players),
      is_constant_(group_.trees.size() == 1 && !group_.trees[0].linear &&
                   group_.link == Link::kIdentity),
      starts_(n_rows),
      ends_(n_rows),
      values_(n_rows * stride_),
      most_changes_(most_changes(players_.size())),
      change_(n_rows),
      on_(n_rows),
      off_(n_rows),
      listed_(n_rows + 1),
      touched_(n_rows),
      is_touched_(n_rows),
      now_(n_rows),
      before_(n_rows),
      answers_(n_rows * 2 * group_.n_outputs),
      at_start_(n_rows * group_.n_outputs) {
  for (std::size_t r = 0; r < n_rows; ++r)
    mixed_.emplace_back(map_, values_.data() + static_cast<std::ptrdiff_t>(r) * stride_, stride_);
  trees_.reserve(group_.trees.size());  // paths point into them
  for (std::size_t t = 0; t < group_.trees.size(); ++t) {
    const ForestTree& tree = group_.trees[t];
    const int n_levels = rounded_up(std::max(tree.splits->depth, 1), kLevelStep);
    const float slack = slack_of(*tree.splits, map_, players_.size(), largest);
    trees_.push_back({tree,
                      game.columns[t],
                      {n_rows, n_levels, group_.n_outputs, slack},
                      {n_rows, n_levels, group_.n_outputs, slack}});
  }
}

void PerturbedRows::set_start(std::size_t row, const FeatureRow& start) {
  starts_[row] = start;
  MixedRow& mixed = mixed_[row];
  mixed.start(start);
  const EncodedRows encoded = mixed.encoded();
  for (OfTree& of : trees_) {
    PathMemory& memory = of.at_start;
    doubt_root(memory, row);
    kernels().follow_row(*of.tree.splits, memory.paths, encoded.values, encoded.active,
                         encoded.active + *encoded.active_end, {static_cast<std::int32_t>(row), 0});
  }
  if (!is_constant_) answer_start(row);
}

void PerturbedRows::answer_start(std::size_t row) {
  const std::size_t k = group_.n_outputs;
  double* answer = at_start_.data() + row * k;
  std::fill_n(answer, k, 0.0);
  for (OfTree& of : trees_) {
    double* says = of.at_start.says.data() + row * k;
    group_.say(of.tree, of.at_start.leaf[row], mixed_[row], says);
    for (std::size_t o = 0; o < k; ++o) answer[o] += says[o];
  }
  kernels().link_rows(group_.link, 1, group_.n_outputs, answer);
}

void PerturbedRows::start() {
  const std::size_t k = group_.n_outputs;
  n_changes_ = 0;
  for (OfTree& of : trees_) of.now.copy(of.at_start);
  for (std::size_t r = 0; r < size(); ++r) {
    mixed_[r].start(starts_[r]);
    double* answer = answers_.data() + 2 * r * k;
    std::copy_n(at_start_.data() + r * k, k, answer);
    now_[r] = is_constant_ ? trees_.front().tree.values + trees_.front().now.leaf[r] * k : answer;
  }
}

void PerturbedRows::take(std::int32_t player, bool is_end) {
  const std::int32_t feature = players_[player];
  note_changes(feature, is_end);
  const bool is_due = ++n_changes_ > most_changes_;
  if (is_due) n_changes_ = 0;
  for (OfTree& of : trees_) {
    std::size_t n_listed = change_scores(of, feature);
    if (is_due) {
      doubt_all(of);
      n_listed = size();
    }
    follow(of, n_listed);
    is_constant_ ? answer_by_leaf(n_listed) : say(of, n_listed);
  }
  if (!is_constant_) answer_by_sum();
}

void PerturbedRows::note_changes(std::int32_t feature, bool is_end) {
  const std::int32_t column = map_.column[feature];
  const std::vector<FeatureRow>&to = is_end ? ends_ : starts_, &from = is_end ? starts_ : ends_;
  if (column >= 0) {
    float* value = values_.data() + column;
    for (std::size_t r = 0; r < size(); ++r, value += stride_) {
      *value = to[r].values[column];
      change_[r] = *value - from[r].values[column];
    }
  } else {
    std::fill(change_.begin(), change_.end(), 0.0f);
  }
  if (map_.listed.empty()) return;
  for (std::size_t r = 0; r < size(); ++r) {
    on_[r] = to[r].on[feature];
    off_[r] = from[r].on[feature];
    mixed_[r].take(feature, to[r]);
  }
}

// Lists the rows that may have changed sides; returns how many.
std::size_t PerturbedRows::change_scores(OfTree& of, std::int32_t feature) {
  std::size_t n_listed = 0;
  if (map_.column[feature] >= 0)
    n_listed = kernels().change_value(of.columns[map_.column[feature]], of.now.paths,
                                      static_cast<int>(size()), change_.data(), listed_.data());
  return map_.listed.empty() ? n_listed : change_indicators(of);
}

// The same if an indicator may have changed besides the value.
std::size_t PerturbedRows::change_indicators(OfTree& of) {
  const Splits& splits = *of.tree.splits;
  PathMemory& memory = of.now;
  std::size_t n_listed = 0;
  for (std::size_t r = 0; r < size(); ++r) {
    if (!has_changed(r)) continue;
    const std::size_t first = r * memory.paths.n_levels;
    std::int32_t level = -1;
    for (std::int32_t l = memory.n_splits[r] - 1; l >= 0; --l) {
      const std::int32_t node = memory.nodes[first + l];
      const float* terms = indicators_of(splits, node);
      float& score = memory.scores[first + l];
      if (on_[r] != off_[r]) {
        score += on_[r] < 0 ? 0.0f : terms[on_[r]];
        score -= off_[r] < 0 ? 0.0f : terms[off_[r]];
      }
      const std::int32_t below = l + 1 < memory.n_splits[r] ? memory.nodes[first + l + 1]
                                                            : memory.leaf[r] + splits.n_splits;
      const bool is_same = splits.nodes[node].child[score >= 0] == below;
      if (!is_same || !(std::abs(score) - memory.paths.slack >= 0)) level = l;
    }
    if (level >= 0) listed_[n_listed++] = {static_cast<std::int32_t>(r), level};
  }
  return n_listed;
}

// Lists all rows, to be followed from the root.
void PerturbedRows::doubt_all(OfTree& of) {
  for (std::size_t r = 0; r < size(); ++r) {
    doubt_root(of.now, r);
    listed_[r] = {static_cast<std::int32_t>(r), 0};
  }
}

void PerturbedRows::follow(OfTree& of, std::size_t n_listed) {
  const Splits& splits = *of.tree.splits;
  if (map_.listed.empty()) {
    kernels().follow_rows(splits, of.now.paths, values_.data(), stride_, static_cast<int>(n_listed),
                          listed_.data());
    return;
  }
  for (std::size_t i = 0; i < n_listed; ++i) {
    const EncodedRows row = mixed_[listed_[i].row].encoded();
    kernels().follow_row(splits, of.now.paths, row.values, row.active, row.active + *row.active_end,
                         listed_[i]);
  }
}

void PerturbedRows::answer_by_leaf(std::size_t n_listed) {
  const OfTree& of = trees_.front();
  const std::ptrdiff_t k = group_.n_outputs;
  n_touched_ = n_listed;
  for (std::size_t i = 0; i < n_listed; ++i) {
    const std::int32_t r = touched_[i] = listed_[i].row;
    before_[r] = now_[r];
    now_[r] = of.tree.values + of.now.leaf[r] * k;
  }
}

// The outputs of a tree for the rows whose paths changed, or for all rows if the output depends on
// the row.
void PerturbedRows::say(OfTree& of, std::size_t n_listed) {
  const std::size_t k = group_.n_outputs;
  const auto say_of = [&](std::size_t r) {
    group_.say(of.tree, of.now.leaf[r], mixed_[r], of.now.says.data() + r * k);
    is_touched_[r] = 1;
  };
  for (std::size_t i = 0; i < n_listed; ++i) say_of(listed_[i].row);
  if (!of.tree.linear) return;
  for (std::size_t r = 0; r < size(); ++r)
    if (has_changed(r)) say_of(r);
}

void PerturbedRows::answer_by_sum() {
  const std::size_t k = group_.n_outputs;
  n_touched_ = 0;
  for (std::size_t r = 0; r < size(); ++r) {
    if (!is_touched_[r]) continue;
    is_touched_[r] = 0;
    touched_[n_touched_++] = static_cast<std::int32_t>(r);
    double* first = answers_.data() + 2 * r * k;
    double* answer = now_[r] == first ? first + k : first;
    std::fill_n(answer, k, 0.0);
    for (const OfTree& of : trees_)
      for (std::size_t o = 0; o < k; ++o) answer[o] += of.now.says[r * k + o];
    kernels().link_rows(group_.link, 1, group_.n_outputs, answer);
    before_[r] = now_[r];
    now_[r] = answer;
  }
}

}  // namespace hardwood
