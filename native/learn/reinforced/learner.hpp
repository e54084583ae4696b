// Reinforced trees for the training loop: parameters [W | b | alpha] in one array; step.hpp
// computes the batches.
//
// Random numbers are a function of the seed, the row's place among the training rows, the step, the
// trajectory and the depth, so the result depends neither on the number of threads nor on the order
// of a table. Rows are processed side by side, and their gradients are added up in their order.
//
// If the tree is small, or for the exact gradient, a matrix product scores all nodes for sixteen
// rows at a time (`by_lanes`); otherwise each row scores the nodes that its trajectories reach.
//
// With `n_actions` the leaves hold scores of actions, and each trajectory samples one: then
// `predict` for a step samples trajectories and returns their actions, and the slope of a tile is
// the cost of each trajectory, (rows, M).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/kernels.hpp"
#include "learn/loop/training.hpp"

namespace hardwood {

// Nodes in the order of a list of parents: the root first, parents before their children. Leaves are
// numbered in that order, and so are the rows of weights, those of siblings side by side.
class PolicyTopology {
 public:
  // parents (T,): -1 for the root. Throws std::invalid_argument if it is not a tree.
  explicit PolicyTopology(std::span<const std::int32_t> parents);

  int n_nodes() const { return static_cast<int>(nodes_.size()); }
  int n_leaves() const { return n_leaves_; }
  int n_rows() const { return n_leaves_ - 1; }  // one per branch but the first of each node
  int max_depth() const { return max_depth_; }
  // Everything but the parameters.
  LearnedPolicy view() const;
  // Maximum numbers of visits and branches of M trajectories.
  std::size_t most_visits(int n_samples) const;
  std::size_t most_branches(int n_samples) const;

 private:
  std::vector<PolicyNode> nodes_;
  std::vector<std::int32_t> child_;
  int n_leaves_ = 0, max_depth_ = 0, most_children_ = 0;
};

struct ReinforcedOptions {
  PolicyEstimator estimator = PolicyEstimator::kSampled;
  int n_samples = 1;  // M
  Baseline baseline = Baseline::kNone;
  float entropy = 0;  // at the start; falls to 0 along a line until `annealed_at`
  float first_temperature = 1, last_temperature = 1;  // geometric in between, until `annealed_at`
  float annealed_at = 1;                              // part of the training
  float policy_scale = 1;  // standard deviation of the scores of the first policies
  float leaf_scale = 0;    // of the scores of the first leaves
  int n_actions = 0;       // of the leaves, where there are any: scores of actions
  bool learns_actions() const { return n_actions > 0; }
  std::optional<bool> by_lanes;  // by default, whichever is less work
};

class ReinforcedLearner final : public GradientLearner {
 public:
  // Of the problem it keeps sizes, the loss and the places of the training rows.
  ReinforcedLearner(const PolicyTopology& topology, const Problem& problem,
                    const ReinforcedOptions& options, int batch_size, std::uint64_t seed,
                    int n_threads = 1);

  int tile_capacity(int batch_size) const override { return rounded_up(batch_size, kTileStep); }
  void set_progress(double progress) override;
  void initialize(Random& random, float* parameters) const override;
  double add_gradient(const float* parameters, const SampleTile& tile, float factor,
                      float* gradient) override;
  void predict(const float* parameters, const SampleTile& tile, Purpose purpose,
               float* prediction) override;
  // Folds the last temperature into the weights, so that the policies of the model have temperature
  // 1.
  void finish(float* parameters) const override;

  // Random numbers of a row in one step: (depth, M), then those of actions.
  std::size_t n_uniforms() const {
    return static_cast<std::size_t>(options_.n_samples) *
           (topology_.max_depth() + (options_.learns_actions() ? 1 : 0));
  }
  // For tests: walks with given random numbers (rows, n_uniforms).
  void set_uniforms(std::span<const float> uniforms) {
    given_.assign(uniforms.begin(), uniforms.end());
  }
  // For tests: values (T, classes or 1) of Baseline::kValue.
  std::span<float> values() { return {value_.data(), value_.size()}; }

 private:
  struct RowMemory {
    std::vector<Visit> visit;
    std::vector<float> pi;
    std::vector<std::int32_t> sample, spare;
    std::vector<float> uniform;
    std::vector<std::int32_t> action;  // (M,) of each trajectory
    Walk walk;
  };

  const float* alphas(const float* parameters) const { return layout().view(parameters).leaves; }
  float* alphas(float* parameters) const { return layout().view(parameters).leaves; }
  bool has_table() const { return has_class_target(loss_) && !options_.learns_actions(); }
  std::size_t n_values() const { return has_table() ? n_outputs_ : 1; }
  LearnedPolicy policy(const float* parameters) const;
  LearnedTree leaves(const float* parameters) const;
  LeafLosses losses() const;
  WalkOptions walk_options(int row) const;
  void refresh_table(const float* parameters);
  void draw(int i, std::int64_t row);
  void walk_rows(const float* parameters, const SampleTile& tile);
  void draw_action(const float* parameters, int i);
  double sampled_gradient(const float* parameters, const SampleTile& tile, float factor,
                          float* gradient);
  double cost_of_leaves(const float* parameters, int i);
  void cost_of_actions(int i, const float* slope, float row_share);
  void add_policy_slopes(const SampleTile& tile, float* gradient);
  void add_leaf_slopes(const float* parameters, const SampleTile& tile, float factor,
                       float* gradient);
  void add_action_slopes(const float* parameters, const SampleTile& tile, float factor,
                         float* gradient);
  void keep_walk_costs(int i);
  void keep_lane_costs(const SampleTile& tile, int block);
  void move_values();
  bool takes_lanes() const;
  void reserve_lanes();
  double lanes_gradient(const float* parameters, const SampleTile& tile, float factor,
                        float* gradient);
  void block_slopes(const LearnedPolicy& tree, const SampleTile& tile, int block, int part);
  PolicyDraws draws_of(const SampleTile& tile, int block, int part);
  void add_drawn_leaves(const float* parameters, const SampleTile& tile, float* gradient);
  void add_all_leaves(const float* parameters, const SampleTile& tile, float* gradient);
  void add_class_masses(const float* parameters, float* gradient);

  PolicyTopology topology_;
  int n_columns_, n_outputs_, n_targets_;
  Loss loss_;
  float loss_parameter_;
  ReinforcedOptions options_;
  std::uint64_t seed_;
  int n_threads_, capacity_;
  std::vector<std::int64_t> place_;  // (rows of the table,) among the training rows
  std::uint64_t step_ = 0;
  float entropy_ = 0, sharpness_ = 1;
  Buffer<float> table_;                         // (L, k) losses of classes
  Buffer<float> mass_;                          // (L, k) of classes at leaves
  Buffer<float> value_;                         // (T, classes or 1)
  std::vector<float> value_sum_, value_count_;  // of a batch's trajectories
  std::vector<float> targets_;                  // (rows of a tile, t)
  std::vector<float> given_;                    // uniforms of a test
  std::vector<RowMemory> rows_;                 // (rows of a tile,)
  // By lanes:
  bool is_by_lanes_ = false;
  // Floats per row of XT_, score_ and reach_: one cache line more than the rows of a tile, which
  // are mostly a power of two, so that columns do not share a few sets of the cache.
  std::ptrdiff_t lane_stride() const { return capacity_ + kPolicyLanes; }
  Buffer<float> XT_, score_, reach_, scale_, loss_of_row_, class_of_row_;
  Buffer<std::int32_t> leaf_;  // (blocks, M, 16) of trajectories
  struct LaneMemory {
    Buffer<float> pi, cost, reach, advantage, entropy;  // (T, 16)
    Buffer<float> uniform, drawn, bonus;                // (.., 16)
    Buffer<std::int32_t> end;                           // (M, 16)
  };
  std::vector<LaneMemory> lanes_;
};

}  // namespace hardwood
