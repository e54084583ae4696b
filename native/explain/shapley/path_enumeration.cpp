#include "explain/shapley/path_enumeration.hpp"

namespace hardwood {

namespace {

// More nested decisions could exceed the stack of a thread, and no enumeration that ends has this
// many.
constexpr int kMostDecisions = 8192;

}  // namespace

PathEnumerator::PathEnumerator(const Group& group, const FeatureMap& map, std::ptrdiff_t stride,
                               std::span<const std::int32_t> players,
                               const std::vector<float>& largest, const std::atomic<bool>& stop)
    : group_(group),
      map_(map),
      players_(players),
      stop_(stop),
      trees_(group.trees.size()),
      values_of_row_(stride),
      row_(map, values_of_row_.data(), stride),
      state_(players.size()),
      totals_((group.trees.size() + 1) * group.n_outputs),
      at_start_(group.n_outputs),
      answer_(group.n_outputs) {
  const std::size_t n_decisions = std::min<std::size_t>(players.size(), kMostDecisions);
  sums_.resize((n_decisions + 1) * 2 * group.n_outputs);
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    const Splits& splits = *group.trees[t].splits;
    list_players(group.trees[t], trees_[t]);
    for (const float size : term_sizes(splits, map, largest))
      trees_[t].slack.push_back(score_error(splits, map) * size);
  }
}

void PathEnumerator::list_players(const ForestTree& tree, OfTree& of) const {
  const Splits& splits = *tree.splits;
  const int n_nodes = splits.n_splits + (tree.linear ? tree.linear->n_leaves : 0);
  std::vector<char> marks(map_.n_features);
  of.first.assign(1, 0);
  for (int node = 0; node < n_nodes; ++node) {
    std::fill(marks.begin(), marks.end(), 0);
    if (node < splits.n_splits)
      mark_weighed(map_, weights_of(splits, node), indicators_of(splits, node), marks);
    else
      for (int o = 0; o < group_.n_outputs; ++o)
        mark_weighed(map_, weights_of(*tree.linear, node - splits.n_splits, o),
                     indicators_of(*tree.linear, node - splits.n_splits, o), marks);
    for (std::size_t i = 0; i < players_.size(); ++i)
      if (marks[players_[i]]) of.players.push_back(static_cast<std::int32_t>(i));
    of.first.push_back(of.players.size());
  }
  of.says.resize(of.players.size());
  of.n_says.resize(n_nodes);
  of.met.resize(n_nodes);
  of.at_z.resize(splits.n_splits);
}

std::int64_t PathEnumerator::add(const Pair& pair, std::int64_t most, double* values) {
  pair_ = pair;
  values_ = values;
  most_ = most;
  ++pair_number_;
  n_cases_ = 0;
  is_over_ = false;
  n_x_ = n_z_ = 0;
  g_ = 1.0;
  // A feature that is equal in both rows counts as z's and is no player.
  for (std::size_t i = 0; i < players_.size(); ++i)
    state_[i] = pair.differs(map_, players_[i]) ? kOpen : kZ;
  row_.start(pair.z);
  std::fill(totals_.begin(), totals_.end(), 0.0);
  for (const ForestTree& tree : group_.trees) {  // answers are counted from f(z)
    std::int32_t leaf = 0;
    kernels().route_encoded(*tree.splits, row_.encoded(), 0, 1, &leaf);
    group_.say(tree, leaf, row_, answer_.data());
    for (int o = 0; o < group_.n_outputs; ++o) totals_[o] += answer_[o];
  }
  std::copy_n(totals_.begin(), group_.n_outputs, at_start_.begin());
  kernels().link_rows(group_.link, 1, group_.n_outputs, at_start_.data());
  std::fill_n(totals_.begin(), group_.n_outputs, 0.0);
  visit(0, 0);
  return is_over_ ? -1 : n_cases_;
}

std::span<const PathEnumerator::Say> PathEnumerator::says_of(std::size_t tree, std::int32_t node) {
  OfTree& of = trees_[tree];
  if (of.met[node] != pair_number_) find_says(tree, node);
  return {of.says.data() + of.first[node], static_cast<std::size_t>(of.n_says[node])};
}

// The effects at a node of the features in which the rows differ, the largest first.
void PathEnumerator::find_says(std::size_t tree, std::int32_t node) {
  OfTree& of = trees_[tree];
  const Splits& splits = *group_.trees[tree].splits;
  const bool is_split = node < splits.n_splits;
  const float* weights = is_split ? weights_of(splits, node) : nullptr;
  const float* indicators = is_split ? indicators_of(splits, node) : nullptr;
  double at_z = is_split ? splits.nodes[node].bias : 0.0;
  Say* end = of.says.data() + of.first[node];
  Say* const begin = end;
  for (std::size_t i = of.first[node]; i < of.first[node + 1]; ++i) {
    const std::int32_t player = of.players[i], feature = players_[player];
    const std::int32_t column = map_.column[feature], on = pair_.z.on[feature];
    if (is_split && column >= 0)
      at_z += static_cast<double>(weights[column]) * pair_.z.values[column];
    if (is_split && on >= 0) at_z += indicators[on];
    if (!pair_.differs(map_, feature)) continue;
    *end++ = {player, is_split ? pair_.gain(map_, feature, weights, indicators) : 0.0};
  }
  std::sort(begin, end, [](const Say& a, const Say& b) {
    const double size_a = std::abs(a.gain), size_b = std::abs(b.gain);
    return size_a > size_b || (size_a == size_b && a.player < b.player);
  });
  of.n_says[node] = static_cast<std::int32_t>(end - begin);
  of.met[node] = pair_number_;
  if (is_split) of.at_z[node] = at_z;
}

// Node: a split, or a leaf numbered after the splits.
void PathEnumerator::visit(std::size_t tree, std::int32_t node) {
  const ForestTree& of_group = group_.trees[tree];
  const std::int32_t n_splits = of_group.splits->n_splits;
  if (node >= n_splits) {
    const bool is_open = of_group.linear && !group_.is_linear_at_leaves();
    if (is_open)
      pass_leaf(tree, node - n_splits, says_of(tree, node));
    else
      arrive(tree, node - n_splits);
    return;
  }
  const std::span<const Say> says = says_of(tree, node);
  Open open{trees_[tree].at_z[node], 0.0, 0.0};
  for (const Say& say : says) {
    if (state_[say.player] == kX) open.score += say.gain;
    if (state_[say.player] == kOpen) (say.gain < 0 ? open.low : open.high) += say.gain;
  }
  pass_split(tree, node, says, open);
}

void PathEnumerator::pass_split(std::size_t tree, std::int32_t node, std::span<const Say> says,
                                Open open) {
  const Splits& splits = *group_.trees[tree].splits;
  const double slack = trees_[tree].slack[node];
  if (open.score + open.low > slack) return visit(tree, splits.nodes[node].child[1]);
  if (open.score + open.high < -slack) return visit(tree, splits.nodes[node].child[0]);
  std::size_t i = 0;
  while (i < says.size() && state_[says[i].player] != kOpen) ++i;
  if (i == says.size()) return visit(tree, splits.nodes[node].child[goes_right(splits, node)]);
  const Say say = says[i];
  (say.gain < 0 ? open.low : open.high) -= say.gain;
  decide(say.player, [&](bool is_x) {
    pass_split(tree, node, says.subspan(i + 1),
               {is_x ? open.score + say.gain : open.score, open.low, open.high});
  });
}

// For a linear leaf whose output is not linear: all features that matter to it must be decided.
void PathEnumerator::pass_leaf(std::size_t tree, std::int32_t leaf, std::span<const Say> says) {
  std::size_t i = 0;
  while (i < says.size() && state_[says[i].player] != kOpen) ++i;
  if (i == says.size()) return arrive(tree, leaf);
  decide(says[i].player, [&](bool) { pass_leaf(tree, leaf, says.subspan(i + 1)); });
}

// Decides a feature both ways; then(is_x) goes on.
template <class Then>
void PathEnumerator::decide(std::int32_t player, Then&& then) {
  const double n = n_x_ + n_z_, g = g_;
  if (n + 1 > kMostDecisions || (n_cases_ % 1024 == 0 && stop_)) is_over_ = true;
  if (is_over_) return;
  decide_as(player, true, g * (n_x_ + 1) / (n + 1), then);
  decide_as(player, false, g * (n_z_ + 1) / (n + 1), then);
  g_ = g;
}

template <class Then>
void PathEnumerator::decide_as(std::int32_t player, bool is_x, double g, Then&& then) {
  const int k = group_.n_outputs;
  const std::size_t depth = static_cast<std::size_t>(n_x_ + n_z_);
  const Sums here = sums_at(depth), below = sums_at(depth + 1);
  std::fill_n(below.of_x, 2 * k, 0.0);
  double& count = is_x ? n_x_ : n_z_;
  count += 1;
  g_ = g;
  state_[player] = is_x ? kX : kZ;
  row_.take(players_[player], is_x ? pair_.x : pair_.z);
  then(is_x);
  row_.take(players_[player], pair_.z);
  state_[player] = kOpen;
  count -= 1;
  double* value = values_ + static_cast<std::ptrdiff_t>(player) * k;
  for (int o = 0; o < k; ++o) {
    value[o] += is_x ? below.of_x[o] : -below.of_z[o];
    here.of_x[o] += below.of_x[o];
    here.of_z[o] += below.of_z[o];
  }
}

// At a leaf with an output: continues with the next tree, or ends the case.
void PathEnumerator::arrive(std::size_t tree, std::int32_t leaf) {
  const int k = group_.n_outputs;
  double* total = totals_.data() + (tree + 1) * k;
  group_.say(group_.trees[tree], leaf, row_, total);
  for (int o = 0; o < k; ++o) total[o] += total[o - k];
  if (tree + 1 < trees_.size()) return visit(tree + 1, 0);
  end_case(total);
  if (group_.trees[0].linear && group_.is_linear_at_leaves())
    add_linear_terms(leaf, says_of(0, leaf + group_.trees[0].splits->n_splits));
}

void PathEnumerator::end_case(const double* answer) {
  if (++n_cases_ > most_) is_over_ = true;
  const int k = group_.n_outputs;
  std::copy_n(answer, k, answer_.data());
  if (group_.link != Link::kIdentity) kernels().link_rows(group_.link, 1, k, answer_.data());
  const Sums sums = sums_at(static_cast<std::size_t>(n_x_ + n_z_));
  const double per_x = n_x_ > 0 ? g_ / n_x_ : 0.0, per_z = n_z_ > 0 ? g_ / n_z_ : 0.0;
  for (int o = 0; o < k; ++o) {
    const double v = answer_[o] - at_start_[o];
    sums.of_x[o] += v * per_x;
    sums.of_z[o] += v * per_z;
  }
}

// A leaf that is linear in the open features adds, for each of them, a case with one more feature
// of x, whose output is the contribution of the feature.
void PathEnumerator::add_linear_terms(std::int32_t leaf, std::span<const Say> says) {
  const LinearLeaves& leaves = *group_.trees[0].linear;
  const int k = group_.n_outputs;
  const double p = n_x_ + 1, g = g_ * p / (p + n_z_);
  const Sums sums = sums_at(static_cast<std::size_t>(n_x_ + n_z_));
  for (const Say& say : says) {
    if (state_[say.player] != kOpen) continue;
    double* value = values_ + static_cast<std::ptrdiff_t>(say.player) * k;
    for (int o = 0; o < k; ++o) {
      const double v = pair_.gain(map_, players_[say.player], weights_of(leaves, leaf, o),
                                  indicators_of(leaves, leaf, o));
      value[o] += v * g / p;
      sums.of_x[o] += v * g / p;
      if (n_z_ > 0) sums.of_z[o] += v * g / n_z_;
    }
  }
}

// The router's own decision, if all features with a weight in the split are decided.
bool PathEnumerator::goes_right(const Splits& splits, std::int32_t node) {
  const EncodedRows row = row_.encoded();
  return kernels().goes_right(splits, node, row.values, row.active, row.active + *row.active_end);
}

}  // namespace hardwood
