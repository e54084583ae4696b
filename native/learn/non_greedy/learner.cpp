#include "learn/non_greedy/learner.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/threads.hpp"
#include "learn/loop/descent.hpp"

namespace hardwood {

namespace {

// SSGD: an epoch that lowers the bound by less than this fraction does not improve it.
constexpr double kNegligible = 0.003;

// Ranges of equal nodes.
template <class RowGradient>
std::vector<std::span<const RowGradient>> by_node(const std::vector<RowGradient>& gradients) {
  std::vector<std::span<const RowGradient>> parts;
  for (std::size_t first = 0, last = 0; first < gradients.size(); first = last) {
    while (last < gradients.size() && gradients[last].node == gradients[first].node) ++last;
    parts.emplace_back(gradients.data() + first, last - first);
  }
  return parts;
}

}  // namespace

TreeTopology::TreeTopology(std::span<const std::int32_t> children)
    : children_(children.begin(), children.end()),
      parent_(children.size() + 1, -1),
      depth_(children.size() + 1),
      first_leaf_(children.size() / 2) {
  const int m = n_splits();
  const auto check = [](bool is_right) {
    if (!is_right)
      throw std::invalid_argument(
          "children must be a tree: splits before their children, leaves from left to right");
  };
  check(children.size() % 2 == 0);
  std::vector<std::int32_t> stack{m > 0 ? 0 : ~0};
  int n_met = 0, n_leaves_met = 0;
  while (!stack.empty()) {
    const std::int32_t node = stack.back();
    stack.pop_back();
    if (node < 0) {
      check(~node == n_leaves_met++);
      max_depth_ = std::max(max_depth_, depth_[m + ~node]);
      continue;
    }
    ++n_met;
    first_leaf_[node] = n_leaves_met;
    for (const int side : {1, 0}) {
      const std::int32_t child = children_[2 * node + side];
      check(child < m && ~child <= m && (child < 0 || child > node));
      const int place = child >= 0 ? child : m + ~child;
      parent_[place] = 2 * node + side;
      depth_[place] = depth_[node] + 1;
      stack.push_back(child);
    }
  }
  check(n_met == m && n_leaves_met == m + 1);
}

LearnedTree TreeTopology::view() const {
  LearnedTree tree;
  tree.n_splits = n_splits();
  tree.children = children_.data();
  tree.parent = parent_.data();
  tree.depth = depth_.data();
  tree.first_leaf = first_leaf_.data();
  return tree;
}

NonGreedyLearner::NonGreedyLearner(const TreeTopology& topology, const Problem& problem,
                                   const NonGreedyOptions& options, int batch_size, int n_threads)
    : Learner({static_cast<std::size_t>(topology.n_splits()),
               static_cast<std::size_t>(topology.n_leaves()), problem.n_columns(),
               problem.n_outputs}),
      topology_(topology),
      n_columns_(problem.n_columns()),
      n_outputs_(problem.n_outputs),
      n_targets_(problem.n_targets),
      loss_(problem.loss),
      loss_parameter_(problem.loss_parameter),
      options_(options),
      n_threads_(std::max(1, n_threads)),
      velocity_(layout().weights_end()),
      bias_velocity_(topology.n_splits()),
      theta_velocity_(layout().n_values()),
      table_(has_table() ? layout().n_values() : 0),
      bounds_(options.inference != Inference::kExact
                  ? 0
                  : layout().n_splits * n_outputs_ * (has_table() ? 1 : 2)),
      workers_(n_threads_),
      is_stale_(topology.n_splits()),
      assigned_(options.is_stable ? problem.source.n_rows : 0) {
  const std::size_t capacity = tile_capacity(batch_size), room = 2 * topology.max_depth() + 2;
  targets_.resize(capacity * n_targets_);
  found_.resize(capacity);
  moves_.resize(capacity * room);
  for (Worker& worker : workers_) {
    worker.score.resize(topology.n_splits());
    worker.violation.resize(room);
    worker.node.resize(room);
  }
}

LearnedTree NonGreedyLearner::tree(const float* parameters) const {
  LearnedTree tree = topology_.view();
  tree.n_outputs = n_outputs_;
  tree.stride = padded(n_columns_);
  const Parameters<const float> p = layout().view(parameters);
  tree.W = p.W;
  tree.b = p.b;
  tree.theta = p.leaves;
  return tree;
}

LeafLosses NonGreedyLearner::losses() const {
  return {loss_, loss_parameter_, n_outputs_, has_table() ? table_.data() : nullptr,
          bounds_.size() ? bounds_.data() : nullptr};
}

void NonGreedyLearner::initialize(Random& random, float* parameters) const {
  const std::size_t stride = padded(n_columns_);
  for (int i = 0; i < topology_.n_splits(); ++i) {
    float* w = parameters + i * stride;
    double norm = 0;
    for (int j = 0; j < n_columns_; ++j) {
      w[j] = random.uniform(-1.0f, 1.0f);
      norm += w[j] * w[j];
    }
    const auto scale = static_cast<float>(std::sqrt(options_.nu / std::max(norm, 1e-30)));
    for (int j = 0; j < n_columns_; ++j) w[j] *= scale;
  }
}

void NonGreedyLearner::prepare(float* parameters) {
  if (is_prepared_) return;
  is_prepared_ = true;
  const std::size_t stride = padded(n_columns_);
  for (int i = 0; i < topology_.n_splits(); ++i) {
    float *w = parameters + i * stride, *b = layout().view(parameters).b + i;
    if (options_.max_features > 0) keep_features(w, nullptr);
    project(w, b, kernels().squared_norm(stride, w) + static_cast<double>(*b) * *b);
  }
  for (int leaf = 0; leaf < topology_.n_leaves(); ++leaf) refresh_leaf(parameters, leaf);
  for (int i = topology_.n_splits() - 1; i >= 0; --i) refresh_split(parameters, i);
}

void NonGreedyLearner::refresh_leaf(const float* parameters, int leaf) {
  if (!has_table()) return;
  const std::size_t at = static_cast<std::size_t>(leaf) * n_outputs_;
  kernels().class_losses(loss_, n_outputs_, layout().view(parameters).leaves + at,
                         table_.data() + at);
}

// The bounds of a split from those of its children, which must be up to date.
void NonGreedyLearner::refresh_split(const float* parameters, int split) {
  if (bounds_.size() == 0) return;
  const LearnedTree of = tree(parameters);
  const int k = n_outputs_;
  const auto at = [&](std::int32_t child, bool high) -> const float* {
    if (child < 0)
      return (has_table() ? table_.data() : of.theta) + static_cast<std::ptrdiff_t>(~child) * k;
    return bounds_.data() + (has_table() ? static_cast<std::ptrdiff_t>(child)
                                         : 2 * static_cast<std::ptrdiff_t>(child) + high) *
                                k;
  };
  const std::int32_t left = of.children[2 * split], right = of.children[2 * split + 1];
  float* out = bounds_.data() + static_cast<std::ptrdiff_t>(split) * k * (has_table() ? 1 : 2);
  if (!has_table()) {
    for (int o = 0; o < k; ++o) out[o] = std::min(at(left, false)[o], at(right, false)[o]);
    out += k;
  }
  for (int o = 0; o < k; ++o) out[o] = std::max(at(left, true)[o], at(right, true)[o]);
}

// Updates the bounds of all splits above changed leaves, each once, from below.
void NonGreedyLearner::refresh_above(const float* parameters,
                                     std::span<const std::int32_t> leaves) {
  if (bounds_.size() == 0) return;
  const LearnedTree of = topology_.view();
  std::vector<std::int32_t> stale;
  for (const std::int32_t leaf : leaves)
    for (std::int32_t over = of.parent[of.place(~leaf)]; over >= 0 && !is_stale_[over >> 1];
         over = of.parent[over >> 1]) {
      is_stale_[over >> 1] = 1;
      stale.push_back(over >> 1);
    }
  std::ranges::sort(stale, std::greater<>());
  for (const std::int32_t split : stale) {
    refresh_split(parameters, split);
    is_stale_[split] = 0;
  }
}

std::span<const SplitMove> NonGreedyLearner::moves_of(int row) const {
  const std::size_t room = moves_.size() / found_.size();
  return {moves_.data() + row * room, static_cast<std::size_t>(found_[row].n_moves)};
}

void NonGreedyLearner::augment(const float* parameters, const SampleTile& tile) {
  tile.copy_targets(n_targets_, targets_.data());
  const LearnedTree of = tree(parameters);
  const LeafLosses at = losses();
  const std::size_t room = moves_.size() / found_.size();
  const int n_parts = threads_for(static_cast<double>(tile.n) * padded(n_columns_) *
                                      (topology_.max_depth() + 1) * topology_.max_depth() / 2,
                                  n_threads_);
  parallel_for(n_parts, n_parts, [&](int part) {
    Worker& worker = workers_[part];
    const SearchMemory memory{worker.score.data(), worker.node.data(), worker.violation.data()};
    for (int i = tile.n * part / n_parts; i < tile.n * (part + 1) / n_parts; ++i)
      found_[i] = kernels().augment(of, at, options_.inference, tile.X.row(i),
                                    targets_.data() + static_cast<std::size_t>(i) * n_targets_,
                                    options_.is_stable ? assigned_[tile.rows[i]] : -1, memory,
                                    moves_.data() + i * room);
  });
}

// One step of Alg. 1 on a mini-batch.
double NonGreedyLearner::step(const Batch& batch, Descent& descent) {
  float* parameters = descent.parameters();
  double total = 0;
  prepare(parameters);
  batch.tiles([&](const SampleTile& tile) {  // one, which has room for a batch
    augment(parameters, tile);
    for (int i = 0; i < tile.n; ++i) {
      total += tile.weight[i] * static_cast<double>(found_[i].loss);
      bound_ += tile.weight[i] * static_cast<double>(found_[i].bound);
    }
    move_splits(parameters, tile, batch.learning_rate);
    move_leaves(parameters, tile, batch.learning_rate);
  });
  return total;
}

void NonGreedyLearner::move_splits(float* parameters, const SampleTile& tile,
                                   double learning_rate) {
  row_gradients_.clear();
  for (int i = 0; i < tile.n; ++i)
    for (const SplitMove& move : moves_of(i))
      row_gradients_.push_back({move.split, i, move.factor * tile.weight[i] / tile.n});
  std::ranges::stable_sort(row_gradients_, {},
                           &RowGradient::node);  // rows of a split in their order
  const SplitStep step{static_cast<float>(learning_rate), options_.momentum, options_.l1};
  const auto parts = by_node(row_gradients_);
  const double work =
      static_cast<double>(row_gradients_.size() + 2 * parts.size()) * padded(n_columns_);
  parallel_for(static_cast<int>(parts.size()), threads_for(work, n_threads_),
               [&](int part) { move_split(parameters, tile, parts[part], step); });
}

// Lines 6 and 8 of Alg. 1 for one split.
void NonGreedyLearner::move_split(float* parameters, const SampleTile& tile,
                                  std::span<const RowGradient> rows, const SplitStep& step) {
  const std::size_t stride = padded(n_columns_), i = rows.front().node;
  std::vector<const float*> x;
  std::vector<float> factors;
  for (const RowGradient& gradient : rows) {
    x.push_back(tile.X.row(gradient.row));
    factors.push_back(gradient.factor);
  }
  const MovingSplit split{parameters + i * stride, velocity_.data() + i * stride,
                          layout().view(parameters).b + i, bias_velocity_.data() + i};
  double norm = kernels().move_split(static_cast<std::ptrdiff_t>(stride), step,
                                     static_cast<int>(x.size()), x.data(), factors.data(), split);
  if (options_.max_features > 0) {
    keep_features(split.w, split.velocity);
    norm = kernels().squared_norm(stride, split.w) + static_cast<double>(*split.b) * *split.b;
  }
  project(split.w, split.b, norm);
}

// Line 8 of Alg. 1 for one split, whose squared norm is known.
void NonGreedyLearner::project(float* w, float* b, double norm) const {
  if (norm <= options_.nu) return;
  const auto scale = static_cast<float>(std::sqrt(options_.nu / norm));
  for (std::ptrdiff_t j = 0; j < padded(n_columns_); ++j) w[j] *= scale;
  *b *= scale;
}

// Limits a split to a number of features: keeps those with the largest weights, the first among
// equals.
void NonGreedyLearner::keep_features(float* w, float* velocity) const {
  const std::vector<std::int32_t>& feature_of = options_.feature_of_column;
  if (feature_of.empty()) return;
  const std::size_t n_features = 1 + *std::ranges::max_element(feature_of);
  if (n_features <= static_cast<std::size_t>(options_.max_features)) return;
  std::vector<double> size(n_features);
  for (int j = 0; j < n_columns_; ++j) size[feature_of[j]] += static_cast<double>(w[j]) * w[j];
  std::vector<std::int32_t> order(n_features);
  for (std::size_t f = 0; f < n_features; ++f) order[f] = static_cast<std::int32_t>(f);
  std::ranges::nth_element(order, order.begin() + options_.max_features,
                           [&](std::int32_t a, std::int32_t b) {
                             return size[a] != size[b] ? size[a] > size[b] : a < b;
                           });
  std::vector<char> stays(n_features);
  for (int f = 0; f < options_.max_features; ++f) stays[order[f]] = 1;
  for (int j = 0; j < n_columns_; ++j)
    if (!stays[feature_of[j]]) {
      w[j] = 0;
      if (velocity) velocity[j] = 0;
    }
}

// Line 10 of Alg. 1.
void NonGreedyLearner::move_leaves(float* parameters, const SampleTile& tile,
                                   double learning_rate) {
  row_gradients_.clear();
  for (int i = 0; i < tile.n; ++i)
    row_gradients_.push_back({found_[i].chosen, i, tile.weight[i] / tile.n});
  std::ranges::stable_sort(row_gradients_, {}, &RowGradient::node);
  const LearnedTree of = tree(parameters);
  const auto rate = static_cast<float>(learning_rate);
  std::vector<std::int32_t> changed;
  for (const auto& rows : by_node(row_gradients_)) {
    const std::int32_t leaf = rows.front().node;
    const std::size_t at = static_cast<std::size_t>(leaf) * n_outputs_;
    float *velocity = theta_velocity_.data() + at, *theta = layout().view(parameters).leaves + at;
    for (int o = 0; o < n_outputs_; ++o) velocity[o] *= options_.momentum;
    for (const RowGradient& gradient : rows)
      kernels().add_leaf_slope(
          of, losses(), leaf, targets_.data() + static_cast<std::size_t>(gradient.row) * n_targets_,
          gradient.factor, velocity);
    for (int o = 0; o < n_outputs_; ++o) theta[o] -= rate * velocity[o];
    refresh_leaf(parameters, leaf);
    changed.push_back(leaf);
  }
  refresh_above(parameters, changed);
}

// SSGD assigns new leaves to rows when an epoch has not improved the bound.
bool NonGreedyLearner::assigns_anew(int epoch) {
  const bool is_first = epoch == 0 || bound_before_ == 0;
  const bool is_over = !is_first && last_bound_ > (1.0 - kNegligible) * bound_before_;
  bound_before_ = is_over ? 0 : last_bound_;
  return epoch == 0 || is_over;
}

void NonGreedyLearner::before_epoch(int epoch, const float* parameters, const Tiles& all_rows) {
  if (!options_.is_stable || !assigns_anew(epoch)) return;
  const LearnedTree of = tree(parameters);
  all_rows([&](const SampleTile& tile) {
    for (int i = 0; i < tile.n; ++i)
      assigned_[tile.rows[i]] = kernels().natural_leaf(of, of.n_splits > 0 ? 0 : ~0, tile.X.row(i));
  });
}

void NonGreedyLearner::assign(std::span<const std::int32_t> leaves) {
  assigned_.assign(leaves.begin(), leaves.end());
}

void NonGreedyLearner::report(double weight, EpochRecord& record) {
  record.train_bound = bound_ / weight;
  last_bound_ = bound_;
  bound_ = 0;
}

void NonGreedyLearner::predict(const float* parameters, const SampleTile& tile, Purpose,
                               float* prediction) {
  const LearnedTree of = tree(parameters);
  for (int i = 0; i < tile.n; ++i) {
    const std::int32_t leaf = kernels().natural_leaf(of, of.n_splits > 0 ? 0 : ~0, tile.X.row(i));
    for (int o = 0; o < n_outputs_; ++o)
      prediction[static_cast<std::size_t>(o) * tile.capacity + i] =
          of.theta[static_cast<std::size_t>(leaf) * n_outputs_ + o];
  }
}

}  // namespace hardwood
