#include "learn/reinforced/learner.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/threads.hpp"

namespace hardwood {

namespace {

// Trajectories have a key of their own: the loop draws orders of rows from the seed itself.
constexpr std::uint64_t kTrajectories = 0x7E1E97A3C0FFEE01u;
// The learning rate of the value of a node, per trajectory.
constexpr float kValueRate = 0.02f;

}  // namespace

PolicyTopology::PolicyTopology(std::span<const std::int32_t> parents)
    : nodes_(parents.size()), child_(parents.empty() ? 0 : parents.size() - 1) {
  const int T = n_nodes();
  const auto check = [](bool is_right) {
    if (!is_right)
      throw std::invalid_argument(
          "parents must be a tree: the root first, parents before children");
  };
  check(T >= 1 && parents[0] == -1);
  std::vector<int> depth(T);
  for (int t = 1; t < T; ++t) {
    check(parents[t] >= 0 && parents[t] < t);
    ++nodes_[parents[t]].n_children;
    depth[t] = depth[parents[t]] + 1;
    max_depth_ = std::max(max_depth_, depth[t]);
  }
  int n_placed = 0, n_rows_met = 0;
  for (PolicyNode& node : nodes_) {
    node.first_child = n_placed;
    node.first_row = n_rows_met;
    n_placed += node.n_children;
    n_rows_met += std::max(node.n_children - 1, 0);
    node.leaf = node.n_children == 0 ? n_leaves_++ : -1;
    most_children_ = std::max(most_children_, node.n_children);
  }
  std::vector<std::int32_t> next(T);
  for (int t = 0; t < T; ++t) next[t] = nodes_[t].first_child;
  for (int t = 1; t < T; ++t) child_[next[parents[t]]++] = t;
}

LearnedPolicy PolicyTopology::view() const {
  LearnedPolicy tree;
  tree.n_nodes = n_nodes();
  tree.n_rows = n_rows();
  tree.n_leaves = n_leaves_;
  tree.nodes = nodes_.data();
  tree.child = child_.data();
  return tree;
}

std::size_t PolicyTopology::most_visits(int n_samples) const {
  return std::min<std::size_t>(
      n_nodes(),
      std::size_t{1} + static_cast<std::size_t>(n_samples) * static_cast<std::size_t>(max_depth_));
}

std::size_t PolicyTopology::most_branches(int n_samples) const {
  return std::min<std::size_t>(n_nodes(), most_visits(n_samples) * most_children_);
}

ReinforcedLearner::ReinforcedLearner(const PolicyTopology& topology, const Problem& problem,
                                     const ReinforcedOptions& options, int batch_size,
                                     std::uint64_t seed, int n_threads)
    : GradientLearner({static_cast<std::size_t>(topology.n_rows()),
                       static_cast<std::size_t>(topology.n_leaves()), problem.n_columns(),
                       options.learns_actions() ? options.n_actions : problem.n_outputs}),
      topology_(topology),
      n_columns_(layout().n_columns),
      n_outputs_(layout().n_outputs),
      n_targets_(problem.n_targets),
      loss_(problem.loss),
      loss_parameter_(problem.loss_parameter),
      options_(options),
      seed_(seed ^ kTrajectories),
      n_threads_(n_threads),
      capacity_(rounded_up(batch_size, kTileStep)),
      place_(problem.source.n_rows, -1),
      table_(has_table() ? layout().n_values() : 0),
      mass_(has_table() ? layout().n_leaves * padded(n_outputs_) : 0),
      value_(options.baseline == Baseline::kValue ? topology.n_nodes() * n_values() : 0),
      value_sum_(value_.size()),
      value_count_(value_.size()),
      targets_(static_cast<std::size_t>(capacity_) * n_targets_) {
  std::int64_t n_placed = 0;
  for (const std::int64_t row : problem.train) place_[row] = n_placed++;
  set_progress(0);
  step_ = 0;
  is_by_lanes_ = takes_lanes();
  if (is_by_lanes_) {
    reserve_lanes();
    return;
  }
  rows_.resize(capacity_);
  const std::size_t M = options.n_samples;
  for (RowMemory& row : rows_) {
    row.visit.resize(topology.most_visits(options.n_samples));
    row.pi.resize(topology.most_branches(options.n_samples));
    row.sample.resize(M);
    row.spare.resize(M);
    row.uniform.resize(n_uniforms());
    row.action.resize(options.learns_actions() ? M : 0);
    row.walk = {0, row.visit.data(), row.pi.data(), row.sample.data(), row.spare.data()};
  }
}

// The cost by lanes is the number of nodes, in steps of sixteen; by rows it is the number of
// visits, each with some overhead.
bool ReinforcedLearner::takes_lanes() const {
  if (options_.learns_actions()) return false;
  if (options_.estimator == PolicyEstimator::kExact) return true;
  if (options_.by_lanes) return *options_.by_lanes;
  const double c = padded(n_columns_), m = topology_.n_rows();
  const double n_visits =
      std::min(m, static_cast<double>(options_.n_samples) * topology_.max_depth());
  return m * (c / 8 + 6) < n_visits * (c / 4 + 120);
}

void ReinforcedLearner::reserve_lanes() {
  const std::size_t n = capacity_, M = options_.n_samples, m = std::max(topology_.n_rows(), 1);
  const std::size_t stride = lane_stride();
  XT_ = Buffer<float>(stride * n_columns_);
  score_ = Buffer<float>(stride * m);
  const bool is_exact = options_.estimator == PolicyEstimator::kExact;
  reach_ = Buffer<float>(is_exact ? stride * layout().n_leaves : 0);
  leaf_ = Buffer<std::int32_t>(is_exact ? 0 : n * M);
  scale_ = Buffer<float>(n);
  loss_of_row_ = Buffer<float>(n);
  class_of_row_ = Buffer<float>(has_table() && is_exact ? n * padded(n_outputs_) : 0);
  lanes_.resize(n_threads_);
  const std::size_t size = static_cast<std::size_t>(topology_.n_nodes()) * kPolicyLanes;
  for (LaneMemory& lanes : lanes_) {
    for (Buffer<float>* array : {&lanes.pi, &lanes.cost, &lanes.reach})
      *array = Buffer<float>(size);
    if (is_exact) continue;
    for (Buffer<float>* array : {&lanes.advantage, &lanes.entropy}) *array = Buffer<float>(size);
    lanes.uniform = Buffer<float>(M * topology_.max_depth() * kPolicyLanes);
    for (Buffer<float>* array : {&lanes.drawn, &lanes.bonus})
      *array = Buffer<float>(M * kPolicyLanes);
    lanes.end = Buffer<std::int32_t>(M * kPolicyLanes);
  }
}

void ReinforcedLearner::set_progress(double progress) {
  const double part = std::min(progress / options_.annealed_at, 1.0);
  entropy_ = static_cast<float>(options_.entropy * (1.0 - part));
  const double first = options_.first_temperature, last = options_.last_temperature;
  sharpness_ = static_cast<float>(1.0 / (first * std::pow(last / first, part)));
  ++step_;
}

// Scores of the first policies have the same standard deviation for every number of columns, in
// standard units.
void ReinforcedLearner::initialize(Random& random, float* parameters) const {
  const std::size_t rows = topology_.n_rows(), stride = padded(n_columns_);
  const auto uniform = [&](float deviation) {
    const float bound = deviation * std::sqrt(3.0f);
    return random.uniform(-bound, bound);
  };
  const float deviation = options_.policy_scale / std::sqrt(static_cast<float>(n_columns_));
  for (std::size_t i = 0; i < rows; ++i)
    for (int j = 0; j < n_columns_; ++j) parameters[i * stride + j] = uniform(deviation);
  float* alpha = alphas(parameters);
  for (std::size_t i = 0; i < layout().n_values(); ++i) alpha[i] = uniform(options_.leaf_scale);
}

void ReinforcedLearner::finish(float* parameters) const {
  const float factor = 1.0f / options_.last_temperature;
  if (factor == 1.0f) return;
  for (float* p = parameters; p != alphas(parameters); ++p) *p *= factor;
}

LearnedPolicy ReinforcedLearner::policy(const float* parameters) const {
  LearnedPolicy tree = topology_.view();
  tree.n_outputs = n_outputs_;
  tree.stride = padded(n_columns_);
  const Parameters<const float> p = layout().view(parameters);
  tree.W = p.W;
  tree.b = p.b;
  tree.alpha = p.leaves;
  tree.sharpness = sharpness_;
  return tree;
}

LearnedTree ReinforcedLearner::leaves(const float* parameters) const {
  LearnedTree tree;
  tree.n_outputs = n_outputs_;
  tree.theta = alphas(parameters);
  return tree;
}

LeafLosses ReinforcedLearner::losses() const {
  return {loss_, loss_parameter_, n_outputs_, has_table() ? table_.data() : nullptr, nullptr};
}

WalkOptions ReinforcedLearner::walk_options(int row) const {
  WalkOptions o{options_.n_samples, options_.baseline, entropy_, nullptr, 0};
  if (options_.baseline == Baseline::kValue) {
    const auto target = static_cast<std::size_t>(
        has_table() ? targets_[static_cast<std::size_t>(row) * n_targets_] : 0.0f);
    o.value = value_.data() + target;
    o.value_step = static_cast<std::ptrdiff_t>(n_values());
  }
  return o;
}

void ReinforcedLearner::refresh_table(const float* parameters) {
  if (!has_table()) return;
  for (std::size_t leaf = 0; leaf < layout().n_leaves; ++leaf)
    kernels().class_losses(loss_, n_outputs_, alphas(parameters) + leaf * n_outputs_,
                           table_.data() + leaf * n_outputs_);
}

// Numbers of the row at its place for this step: depth by depth, then those of actions.
void ReinforcedLearner::draw(int i, std::int64_t row) {
  std::vector<float>& uniform = rows_[i].uniform;
  if (!given_.empty()) {
    std::copy_n(given_.begin() + static_cast<std::ptrdiff_t>(i * uniform.size()), uniform.size(),
                uniform.begin());
    return;
  }
  Random random(seed_, step_ << 32 ^ static_cast<std::uint64_t>(place_[row]));
  for (float& u : uniform) u = random.uniform();
}

void ReinforcedLearner::walk_rows(const float* parameters, const SampleTile& tile) {
  tile.copy_targets(n_targets_, targets_.data());
  const LearnedPolicy tree = policy(parameters);
  const double work =
      static_cast<double>(tile.n) * padded(n_columns_) * options_.n_samples * topology_.max_depth();
  const int n_parts = threads_for(work, n_threads_);
  parallel_for(n_parts, n_parts, [&](int part) {
    for (int i = tile.n * part / n_parts; i < tile.n * (part + 1) / n_parts; ++i) {
      draw(i, tile.rows[i]);
      kernels().policy_walk(tree, tile.X.row(i), walk_options(i), rows_[i].uniform.data(),
                            rows_[i].walk);
      if (options_.learns_actions()) draw_action(parameters, i);
    }
  });
}

namespace {

void soft_max(int n, const float* scores, double* p) {
  const double top = *std::max_element(scores, scores + n);
  double sum = 0;
  for (int a = 0; a < n; ++a) sum += p[a] = std::exp(scores[a] - top);
  for (int a = 0; a < n; ++a) p[a] /= sum;
}

}  // namespace

// Each trajectory draws an action of its leaf.
void ReinforcedLearner::draw_action(const float* parameters, int i) {
  RowMemory& row = rows_[i];
  const LearnedPolicy tree = policy(parameters);
  const float* u =
      row.uniform.data() + static_cast<std::size_t>(topology_.max_depth()) * options_.n_samples;
  std::vector<double> p(n_outputs_);
  for (int v = 0; v < row.walk.n_visits; ++v) {
    const Visit& visit = row.visit[v];
    const std::int32_t leaf = tree.nodes[visit.node].leaf;
    if (leaf < 0) continue;
    soft_max(n_outputs_, tree.alpha + static_cast<std::size_t>(leaf) * n_outputs_, p.data());
    for (int s = visit.first; s < visit.first + visit.n; ++s) {
      double sum = p[0];
      int a = 0;
      while (u[row.sample[s]] >= sum && a + 1 < n_outputs_) sum += p[++a];
      row.action[row.sample[s]] = a;
    }
  }
}

double ReinforcedLearner::add_gradient(const float* parameters, const SampleTile& tile,
                                       float factor, float* gradient) {
  if (tile.is_first) std::fill_n(gradient, layout().n_parameters(), 0.0f);
  if (is_by_lanes_) return lanes_gradient(parameters, tile, factor, gradient);
  return sampled_gradient(parameters, tile, factor, gradient);
}

// The estimate of Sec. 2.3 for a batch.
double ReinforcedLearner::sampled_gradient(const float* parameters, const SampleTile& tile,
                                           float factor, float* gradient) {
  if (!options_.learns_actions()) {  // else `predict` has walked
    refresh_table(parameters);
    walk_rows(parameters, tile);
  }
  const LearnedPolicy tree = policy(parameters);
  const float share = factor / static_cast<float>(options_.n_samples);
  double total = 0;
  for (int i = 0; i < tile.n; ++i) {
    const float scale = tile.weight[i] * share;
    if (options_.learns_actions())
      cost_of_actions(i, tile.slope, tile.weight[i] * factor);
    else
      total += tile.weight[i] * cost_of_leaves(parameters, i);
    kernels().policy_return(tree, walk_options(i), scale, rows_[i].walk);
  }
  add_policy_slopes(tile, gradient);
  if (options_.learns_actions())
    add_action_slopes(parameters, tile, factor, gradient);
  else
    add_leaf_slopes(parameters, tile, factor, gradient);
  if (options_.baseline == Baseline::kValue) {
    for (int i = 0; i < tile.n; ++i) keep_walk_costs(i);
    move_values();
  }
  return total;
}

// Sets the costs of the visits of leaves; returns the mean loss of the trajectories.
double ReinforcedLearner::cost_of_leaves(const float* parameters, int i) {
  const LearnedTree at = leaves(parameters);
  const LeafLosses of = losses();
  const LearnedPolicy tree = topology_.view();
  RowMemory& row = rows_[i];
  double total = 0;
  for (int v = 0; v < row.walk.n_visits; ++v) {
    Visit& visit = row.visit[v];
    const std::int32_t leaf = tree.nodes[visit.node].leaf;
    if (leaf < 0) continue;
    visit.cost = static_cast<float>(visit.n) *
                 kernels().leaf_loss(at, of, leaf,
                                     targets_.data() + static_cast<std::size_t>(i) * n_targets_);
    total += visit.cost;
  }
  return total / options_.n_samples;
}

// The caller gives the costs of trajectories, times the weight of the row in the batch.
void ReinforcedLearner::cost_of_actions(int i, const float* slope, float row_share) {
  RowMemory& row = rows_[i];
  const LearnedPolicy tree = topology_.view();
  const float* cost = slope + static_cast<std::size_t>(i) * options_.n_samples;
  for (int v = 0; v < row.walk.n_visits; ++v) {
    Visit& visit = row.visit[v];
    if (tree.nodes[visit.node].leaf < 0) continue;
    visit.cost = 0;
    for (int s = visit.first; s < visit.first + visit.n && row_share > 0; ++s)
      visit.cost += cost[row.sample[s]] / row_share;
  }
}

void ReinforcedLearner::add_policy_slopes(const SampleTile& tile, float* gradient) {
  float* const bias = layout().view(gradient).b;
  const std::ptrdiff_t stride = padded(n_columns_);
  const LearnedPolicy tree = topology_.view();
  // Threads share the rows of weights: each adds up the gradient of its own rows, in the order of
  // samples.
  const double work =
      static_cast<double>(tile.n) * stride * options_.n_samples * topology_.max_depth();
  const int n_parts = threads_for(work, n_threads_);
  parallel_for(n_parts, n_parts, [&](int part) {
    for (int i = 0; i < tile.n; ++i) {
      const RowMemory& row = rows_[i];
      for (int v = 0; v < row.walk.n_visits; ++v) {
        const Visit& visit = row.visit[v];
        const PolicyNode& node = tree.nodes[visit.node];
        for (int c = 1; c < node.n_children; ++c) {
          const int r = node.first_row + c - 1;
          if (r % n_parts != part) continue;
          const float slope = row.pi[visit.pi_at + c];
          kernels().add_scaled(stride, slope, tile.X.row(i), gradient + r * stride);
          bias[r] += slope;
        }
      }
    }
  });
}

// The gradient of the loss at the leaves that were reached.
void ReinforcedLearner::add_leaf_slopes(const float* parameters, const SampleTile& tile,
                                        float factor, float* gradient) {
  const LearnedPolicy tree = topology_.view();
  const float share = factor / static_cast<float>(options_.n_samples);
  if (has_table()) std::fill(mass_.begin(), mass_.end(), 0.0f);
  for (int i = 0; i < tile.n; ++i) {
    const float* y = targets_.data() + static_cast<std::size_t>(i) * n_targets_;
    for (int v = 0; v < rows_[i].walk.n_visits; ++v) {
      const Visit& visit = rows_[i].visit[v];
      const std::int32_t leaf = tree.nodes[visit.node].leaf;
      if (leaf < 0) continue;
      const std::size_t at = static_cast<std::size_t>(leaf) * n_outputs_;
      const float mass = tile.weight[i] * share * static_cast<float>(visit.n);
      if (has_table())
        mass_[static_cast<std::size_t>(leaf) * padded(n_outputs_) +
              static_cast<std::size_t>(y[0])] += mass;
      else
        kernels().add_leaf_slope(leaves(parameters), losses(), leaf, y, mass,
                                 alphas(gradient) + at);
    }
  }
  if (has_table()) add_class_masses(parameters, gradient);
}

// The choice of an action at a leaf is one more decision of the policy.
void ReinforcedLearner::add_action_slopes(const float* parameters, const SampleTile& tile,
                                          float factor, float* gradient) {
  const LearnedPolicy tree = policy(parameters);
  const float share = factor / static_cast<float>(options_.n_samples);
  std::vector<double> p(n_outputs_);
  for (int i = 0; i < tile.n; ++i) {
    const RowMemory& row = rows_[i];
    const float* cost = tile.slope + static_cast<std::size_t>(i) * options_.n_samples;
    for (int v = 0; v < row.walk.n_visits; ++v) {
      const Visit& visit = row.visit[v];
      const std::int32_t leaf = tree.nodes[visit.node].leaf;
      if (leaf < 0) continue;
      const std::size_t at = static_cast<std::size_t>(leaf) * n_outputs_;
      float* g = alphas(gradient) + at;
      soft_max(n_outputs_, tree.alpha + at, p.data());
      double sum = 0, entropy = 0;
      for (int s = visit.first; s < visit.first + visit.n; ++s) {
        const float of_one = cost[row.sample[s]] / static_cast<float>(options_.n_samples);
        sum += of_one;
        g[row.action[row.sample[s]]] += of_one;
      }
      for (const double q : p) entropy -= q * std::log(std::max(q, 1e-30));
      const double bonus = static_cast<double>(entropy_) * tile.weight[i] * share * visit.n;
      for (int a = 0; a < n_outputs_; ++a)
        g[a] +=
            static_cast<float>(p[a] * (bonus * (std::log(std::max(p[a], 1e-30)) + entropy) - sum));
    }
  }
}

// The costs of trajectories from each node on, added up over a batch.
void ReinforcedLearner::keep_walk_costs(int i) {
  const WalkOptions o = walk_options(i);
  const std::ptrdiff_t first = o.value - value_.data();
  for (int v = 0; v < rows_[i].walk.n_visits; ++v) {
    const Visit& visit = rows_[i].visit[v];
    if (visit.below == visit.below_end) continue;
    const float n = static_cast<float>(visit.n);
    const std::size_t at = first + visit.node * o.value_step;
    value_count_[at] += n;
    value_sum_[at] += visit.cost + n * entropy_ * visit.entropy;  // without the node's own bonus
  }
}

void ReinforcedLearner::keep_lane_costs(const SampleTile& tile, int block) {
  const int first = block * kPolicyLanes, n = std::clamp(tile.n - first, 0, kPolicyLanes);
  const LearnedPolicy tree = topology_.view();
  for (int l = 0; l < n; ++l) {
    const WalkOptions o = walk_options(first + l);
    const std::ptrdiff_t offset = o.value - value_.data();
    for (int t = 0; t < tree.n_nodes; ++t) {
      const std::size_t lane = static_cast<std::size_t>(t) * kPolicyLanes + l;
      if (tree.nodes[t].n_children == 0 || lanes_[0].reach[lane] == 0) continue;
      value_count_[offset + t * o.value_step] += lanes_[0].reach[lane];
      value_sum_[offset + t * o.value_step] += lanes_[0].cost[lane];
    }
  }
}

// Moves values towards the costs of trajectories, after the step in which they were the baseline.
void ReinforcedLearner::move_values() {
  for (std::size_t at = 0; at < value_.size(); ++at) {
    if (value_count_[at] == 0) continue;
    const float n = value_count_[at], mean = value_sum_[at] / n;
    value_[at] += (mean - value_[at]) * n * kValueRate / (1.0f + n * kValueRate);
    value_count_[at] = value_sum_[at] = 0;
  }
}

// Trajectories of the rows of a block, with the random numbers of `draw`.
PolicyDraws ReinforcedLearner::draws_of(const SampleTile& tile, int block, int part) {
  LaneMemory& memory = lanes_[part];
  const int first = block * kPolicyLanes, M = options_.n_samples, depth = topology_.max_depth();
  const int n = std::clamp(tile.n - first, 0, kPolicyLanes);
  std::uint64_t stream[kPolicyLanes] = {};
  for (int l = 0; l < n; ++l)
    stream[l] = step_ << 32 ^ static_cast<std::uint64_t>(place_[tile.rows[first + l]]);
  kernels().uniform_lanes(seed_, stream, M * depth, memory.uniform.data());
  for (int l = 0; l < n && !given_.empty(); ++l)
    for (int u = 0; u < M * depth; ++u)
      memory.uniform[static_cast<std::size_t>(u) * kPolicyLanes + l] =
          given_[static_cast<std::size_t>(first + l) * M * depth + u];
  PolicyDraws draws;
  draws.n_samples = M;
  draws.baseline = options_.baseline;
  draws.uniform = memory.uniform.data();
  draws.y = targets_.data() + static_cast<std::size_t>(first) * n_targets_;
  draws.n_targets = n_targets_;
  draws.max_depth = depth;
  for (int l = 0; l < kPolicyLanes; ++l) {  // those beyond n weigh nothing, but are walked
    const WalkOptions o = walk_options(first + l);
    draws.value[l] = o.value;
    draws.value_step = o.value_step;
  }
  draws.leaf = leaf_.data() + static_cast<std::size_t>(first) * M;
  draws.end = memory.end.data();
  draws.drawn = memory.drawn.data();
  draws.bonus = memory.bonus.data();
  draws.advantage = memory.advantage.data();
  draws.entropy = memory.entropy.data();
  return draws;
}

void ReinforcedLearner::block_slopes(const LearnedPolicy& tree, const SampleTile& tile, int block,
                                     int part) {
  LaneMemory& memory = lanes_[part];
  const std::size_t at = static_cast<std::size_t>(block) * kPolicyLanes;
  const PolicyLanes lanes{score_.data() + at,      lane_stride(),       tile.target + at,
                          tile.capacity,           scale_.data() + at,  memory.pi.data(),
                          memory.cost.data(),      memory.reach.data(), reach_.data() + at,
                          loss_of_row_.data() + at};
  if (options_.estimator == PolicyEstimator::kExact)
    kernels().policy_enumerate(tree, losses(), entropy_, lanes);
  else
    kernels().policy_sample(tree, losses(), entropy_, draws_of(tile, block, part), lanes);
}

// The gradient of a batch, over all trajectories or over sampled ones.
double ReinforcedLearner::lanes_gradient(const float* parameters, const SampleTile& tile,
                                         float factor, float* gradient) {
  refresh_table(parameters);
  tile.copy_targets(n_targets_, targets_.data());
  const LearnedPolicy tree = policy(parameters);
  const int m = topology_.n_rows(), n = rounded_up(tile.n, kPolicyLanes);
  const int n_blocks = n / kPolicyLanes;
  for (int i = 0; i < capacity_; ++i) scale_[i] = tile.weight[i] * factor;
  const Matrix<const float> X{tile.X.data, n, n_columns_, tile.X.stride};
  kernels().transpose(X, {XT_.data(), n_columns_, n, lane_stride()});
  if (m > 0)
    kernels().gemm({tree.W, m, n_columns_, tree.stride}, {XT_.data(), n_columns_, n, lane_stride()},
                   {score_.data(), m, n, lane_stride()});
  // Learns values from one block after the other.
  const bool is_ordered = options_.baseline == Baseline::kValue;
  const double work = static_cast<double>(capacity_) * topology_.n_nodes() * 16.0;
  const int n_parts = is_ordered ? 1 : std::min(n_blocks, threads_for(work, n_threads_));
  parallel_for(n_parts, n_parts, [&](int part) {
    for (int block = part; block < n_blocks; block += n_parts) {
      block_slopes(tree, tile, block, part);
      if (is_ordered) keep_lane_costs(tile, block);
    }
  });
  if (m > 0) {
    kernels().gemm({score_.data(), m, n, lane_stride()}, X, {gradient, m, n_columns_, tree.stride});
    kernels().row_sums(m, n, score_.data(), lane_stride(), layout().view(gradient).b);
  }
  if (options_.estimator == PolicyEstimator::kExact)
    add_all_leaves(parameters, tile, gradient);
  else
    add_drawn_leaves(parameters, tile, gradient);
  if (is_ordered) move_values();
  double total = 0;
  for (int i = 0; i < tile.n; ++i) total += static_cast<double>(tile.weight[i]) * loss_of_row_[i];
  return total;
}

// The gradients of rows at the leaves that their trajectories reached.
void ReinforcedLearner::add_drawn_leaves(const float* parameters, const SampleTile& tile,
                                         float* gradient) {
  const int M = options_.n_samples, width = padded(n_outputs_);
  if (has_table()) std::fill(mass_.begin(), mass_.end(), 0.0f);
  for (int i = 0; i < tile.n; ++i) {
    const float* y = targets_.data() + static_cast<std::size_t>(i) * n_targets_;
    const float share = scale_[i] / static_cast<float>(M);
    const int lane = i % kPolicyLanes;
    const std::int32_t* leaf = leaf_.data() + static_cast<std::size_t>(i - lane) * M + lane;
    for (int s = 0; s < M; ++s, leaf += kPolicyLanes) {
      const std::size_t at = *leaf;
      if (has_table())
        mass_[at * width + static_cast<std::size_t>(y[0])] += share;
      else
        kernels().add_leaf_slope(leaves(parameters), losses(), *leaf, y, share,
                                 alphas(gradient) + at * n_outputs_);
    }
  }
  if (has_table()) add_class_masses(parameters, gradient);
}

// The gradients of all rows at the leaves, weighted by the probability of reaching them.
void ReinforcedLearner::add_all_leaves(const float* parameters, const SampleTile& tile,
                                       float* gradient) {
  const int L = topology_.n_leaves(), width = padded(n_outputs_);
  if (has_table()) {  // masses of classes at leaves are a product: reach times which class
    std::fill(class_of_row_.begin(), class_of_row_.end(), 0.0f);
    for (int i = 0; i < tile.n; ++i)
      class_of_row_[static_cast<std::size_t>(i) * width +
                    static_cast<std::size_t>(tile.target[i])] = 1.0f;
    kernels().gemm({reach_.data(), L, tile.n, lane_stride()},
                   {class_of_row_.data(), tile.n, n_outputs_, width},
                   {mass_.data(), L, n_outputs_, width});
    add_class_masses(parameters, gradient);
    return;
  }
  for (int leaf = 0; leaf < L; ++leaf) {
    float* slope = alphas(gradient) + static_cast<std::size_t>(leaf) * n_outputs_;
    const float* reach = reach_.data() + leaf * lane_stride();
    for (int i = 0; i < tile.n; ++i)
      if (reach[i] != 0)
        kernels().add_leaf_slope(leaves(parameters), losses(), leaf,
                                 targets_.data() + static_cast<std::size_t>(i) * n_targets_,
                                 reach[i], slope);
  }
}

// The gradients of leaves from the masses of classes that reached them.
void ReinforcedLearner::add_class_masses(const float* parameters, float* gradient) {
  for (std::size_t leaf = 0; leaf < layout().n_leaves; ++leaf) {
    const float* mass = mass_.data() + leaf * padded(n_outputs_);
    const bool is_reached = std::any_of(mass, mass + n_outputs_, [](float m) { return m != 0; });
    const std::size_t at = leaf * n_outputs_;
    if (is_reached)
      kernels().add_class_slopes(loss_, n_outputs_, alphas(parameters) + at, table_.data() + at,
                                 mass, alphas(gradient) + at);
  }
}

// Outputs are those of the greedy path. For a step with actions: the sampled actions, (M,
// capacity).
void ReinforcedLearner::predict(const float* parameters, const SampleTile& tile, Purpose purpose,
                                float* prediction) {
  const std::size_t n = tile.capacity;
  if (options_.learns_actions() && purpose == Purpose::kStep) {
    walk_rows(parameters, tile);
    for (int i = 0; i < tile.n; ++i)
      for (int s = 0; s < options_.n_samples; ++s)
        prediction[s * n + i] = static_cast<float>(rows_[i].action[s]);
    return;
  }
  const LearnedPolicy tree = policy(parameters);
  for (int i = 0; i < tile.n; ++i) {
    const float* scores =
        tree.alpha +
        static_cast<std::size_t>(kernels().greedy_leaf(tree, tile.X.row(i))) * n_outputs_;
    if (options_.learns_actions()) {
      const auto best = static_cast<float>(std::max_element(scores, scores + n_outputs_) - scores);
      for (int s = 0; s < options_.n_samples; ++s) prediction[s * n + i] = best;
    } else {
      for (int o = 0; o < n_outputs_; ++o) prediction[o * n + i] = scores[o];
    }
  }
}

}  // namespace hardwood
