#include "explain/moving_rows.hpp"

namespace hardwood {

namespace {

// Changes after which scores are computed anew. A walk there and back does without.
int most_changes(std::size_t n_players) {
  return std::max(64, 2 * static_cast<int>(n_players));
}

// What rounding errors may add to the scores of a tree's splits: those of the routing, of the sums
// over all features, and of every change that of a difference, a product and a sum.
std::vector<float> slack_of(const Splits& splits, const FeatureMap& map, std::size_t n_players,
                            const std::vector<float>& largest) {
  const float n_errors = static_cast<float>(n_players) + 2.0f + 3.0f * most_changes(n_players);
  std::vector<float> slack = term_sizes(splits, map, largest);
  for (float& of_split : slack) of_split *= score_error(splits, map) + 0x1p-24f * n_errors;
  return slack;
}

}  // namespace

MovingRows::MovingRows(const Team& team, const std::vector<Columns>& columns, const FeatureMap& map,
                       std::ptrdiff_t stride, std::span<const std::int32_t> players,
                       std::vector<FeatureRow> rows, const std::vector<float>& largest)
    : team_(team),
      map_(map),
      stride_(stride),
      players_(players),
      is_x_(players.size()),
      most_changes_(most_changes(players.size())),
      rows_(std::move(rows)),
      is_constant_(team.trees.size() == 1 && !team.trees[0].linear && team.link == Link::kIdentity),
      values_(rows_.size() * stride),
      change_(rows_.size()),
      on_(rows_.size()),
      off_(rows_.size()),
      leaf_(rows_.size()),
      doubtful_(rows_.size() + 1),
      now_(rows_.size()),
      before_(rows_.size()),
      answers_(rows_.size() * 2 * team.n_outputs),
      at_z_(team.n_outputs) {
  const std::size_t n = rows_.size(), k = team.n_outputs;
  for (std::size_t r = 0; r < n; ++r)
    mixed_.emplace_back(map, values_.data() + static_cast<std::ptrdiff_t>(r) * stride, stride);
  for (std::size_t t = 0; t < team.trees.size(); ++t) {
    const std::size_t size = columns[t].size();
    trees_.push_back({team.trees[t], columns[t],
                      slack_of(*team.trees[t].splits, map, players.size(), largest),
                      Buffer<float>(n * size), Buffer<float>(size), std::vector<std::int32_t>(n),
                      std::vector<double>(n * k), 0, std::vector<double>(k)});
  }
}

void MovingRows::start(const FeatureRow& z) {
  z_ = z;
  MixedRow& row = mixed_.front();
  row.start(z);
  const int k = team_.n_outputs;
  std::fill(at_z_.begin(), at_z_.end(), 0.0);
  for (OfTree& of : trees_) {
    find_z_scores(of);
    kernels().route_encoded(*of.tree.splits, row.encoded(), 0, 1, &of.z_leaf);
    team_.say(of.tree, of.z_leaf, row, of.z_says.data());
    for (int o = 0; o < k; ++o) at_z_[o] += of.z_says[o];
  }
  kernels().link_rows(team_.link, 1, k, at_z_.data());
  restart();
}

void MovingRows::find_z_scores(OfTree& of) const {
  const std::ptrdiff_t size = of.columns.size();
  const float one = 1.0f;
  float* scores = of.z_scores.data();
  std::copy_n(of.columns.bias(), size, scores);
  for (const std::int32_t feature : players_) {
    const std::int32_t column = map_.column[feature], on = z_.on[feature];
    if (column >= 0)
      kernels().change_scores(of.columns.value(column), size, 1, z_.values + column, scores);
    if (on >= 0) kernels().change_scores(of.columns.indicator(on), size, 1, &one, scores);
  }
}

void MovingRows::restart() {
  const std::ptrdiff_t n = std::ssize(rows_), k = team_.n_outputs;
  std::fill(is_x_.begin(), is_x_.end(), 0);
  start_scores();
  for (std::ptrdiff_t r = 0; r < n; ++r) {
    mixed_[r].start(z_);
    for (OfTree& of : trees_) {
      std::copy(of.z_says.begin(), of.z_says.end(), of.says.begin() + r * k);
      of.leaf[r] = of.z_leaf;
    }
    double* answer = answers_.data() + 2 * r * k;
    std::copy(at_z_.begin(), at_z_.end(), answer);
    now_[r] = is_constant_ ? trees_.front().tree.values + trees_.front().z_leaf * k : answer;
  }
  before_ = now_;
}

void MovingRows::start_scores() {
  n_changes_ = 0;
  for (OfTree& of : trees_)
    for (std::ptrdiff_t r = 0; r < std::ssize(rows_); ++r)
      std::copy_n(of.z_scores.data(), of.columns.size(), of.scores.data() + r * of.columns.size());
}

void MovingRows::take(std::int32_t player, bool is_x) {
  const std::int32_t feature = players_[player];
  is_x_[player] = is_x;
  const bool is_due = ++n_changes_ > most_changes_;
  if (is_due) refresh();
  note_changes(feature, is_x);
  if (!is_due)
    for (OfTree& of : trees_) change_scores(of, feature);
  std::copy(now_.begin(), now_.end(), before_.begin());
  is_constant_ ? answer_by_leaf() : answer_by_sum();
}

// Computes the scores anew.
void MovingRows::refresh() {
  start_scores();
  for (std::size_t i = 0; i < players_.size(); ++i) {
    if (!is_x_[i]) continue;
    note_changes(players_[i], true);
    for (OfTree& of : trees_) change_scores(of, players_[i]);
  }
}

void MovingRows::note_changes(std::int32_t feature, bool is_x) {
  const std::int32_t column = map_.column[feature];
  if (column >= 0) {
    const float z = z_.values[column];
    float* value = values_.data() + column;
    for (std::size_t r = 0; r < rows_.size(); ++r, value += stride_) {
      const float x = rows_[r].values[column];
      change_[r] = is_x ? x - z : z - x;
      *value = is_x ? x : z;
    }
  }
  if (map_.listed.empty()) return;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const FeatureRow &to = is_x ? rows_[r] : z_, &from = is_x ? z_ : rows_[r];
    if (column < 0) change_[r] = 0.0f;
    on_[r] = to.on[feature];
    off_[r] = from.on[feature];
    mixed_[r].take(feature, to);
  }
}

void MovingRows::change_scores(OfTree& of, std::int32_t feature) {
  const std::ptrdiff_t size = of.columns.size();
  const std::int32_t column = map_.column[feature];
  if (column >= 0)
    kernels().change_scores(of.columns.value(column), size, static_cast<int>(rows_.size()),
                            change_.data(), of.scores.data());
  if (map_.listed.empty()) return;
  const float plus = 1.0f, minus = -1.0f;
  for (std::ptrdiff_t r = 0; r < std::ssize(rows_); ++r) {
    if (on_[r] == off_[r]) continue;
    float* scores = of.scores.data() + r * size;
    if (on_[r] >= 0) kernels().change_scores(of.columns.indicator(on_[r]), size, 1, &plus, scores);
    if (off_[r] >= 0)
      kernels().change_scores(of.columns.indicator(off_[r]), size, 1, &minus, scores);
  }
}

// Finds where the rows are now: leaf_.
void MovingRows::find_leaves(OfTree& of) {
  const int n_doubtful = kernels().leaves_by_scores(
      *of.tree.splits, of.slack.data(), of.scores.data(), of.columns.size(),
      static_cast<int>(rows_.size()), leaf_.data(), doubtful_.data());
  for (int i = 0; i < n_doubtful; ++i) {
    const std::int32_t r = doubtful_[i];
    kernels().route_encoded(*of.tree.splits, mixed_[r].encoded(), 0, 1, &leaf_[r]);
  }
}

void MovingRows::answer_by_leaf() {
  OfTree& of = trees_.front();
  find_leaves(of);
  const std::ptrdiff_t k = team_.n_outputs;
  for (std::size_t r = 0; r < rows_.size(); ++r) now_[r] = of.tree.values + leaf_[r] * k;
}

void MovingRows::answer_by_sum() {
  const std::ptrdiff_t k = team_.n_outputs;
  for (OfTree& of : trees_) {
    find_leaves(of);
    for (std::size_t r = 0; r < rows_.size(); ++r)
      if (leaf_[r] != of.leaf[r] || of.tree.linear)
        team_.say(of.tree, leaf_[r], mixed_[r], of.says.data() + r * k);
    std::swap(leaf_, of.leaf);
  }
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const bool is_changed = change_[r] != 0 || on_[r] != off_[r];
    if (!is_changed) continue;
    double* first = answers_.data() + 2 * r * k;
    double* answer = now_[r] == first ? first + k : first;
    std::fill_n(answer, k, 0.0);
    for (const OfTree& of : trees_)
      for (std::ptrdiff_t o = 0; o < k; ++o) answer[o] += of.says[r * k + o];
    kernels().link_rows(team_.link, 1, static_cast<int>(k), answer);
    now_[r] = answer;
  }
}

}  // namespace hardwood
