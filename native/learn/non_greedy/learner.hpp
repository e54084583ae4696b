// Non-greedy trees for the training loop: parameters [W | b | theta] in one array, and steps that
// only touch the splits and leaves on the paths of a batch's rows.
//
// `train` (learn/loop/training.hpp) runs it, on the rows that its problem names: a tree of one split and two
// leaves, on the rows of one node, is CO2.
#pragma once

#include <span>
#include <vector>

#include "core/kernels.hpp"
#include "learn/loop/training.hpp"

namespace hardwood {

// The topology of a tree. Splits come before their children; leaves are numbered from left to
// right.
class TreeTopology {
 public:
  // children (m, 2): a split by its number, leaf j as ~j. Throws std::invalid_argument otherwise.
  explicit TreeTopology(std::span<const std::int32_t> children);

  int n_splits() const { return static_cast<int>(children_.size() / 2); }
  int n_leaves() const { return n_splits() + 1; }
  int max_depth() const { return max_depth_; }
  // Everything but the parameters.
  LearnedTree view() const;

 private:
  std::vector<std::int32_t> children_, parent_, depth_, first_leaf_;
  int max_depth_ = 0;
};

struct NonGreedyOptions {
  Inference inference = Inference::kFast;
  bool is_stable = false;  // SSGD: rows keep their leaves until the bound stops falling
  float nu = 1.0f;         // |w_i|^2 + b_i^2 <= nu
  float momentum = 0.9f;
  float l1 = 0.0f;
  int max_features = 0;  // that a split may weigh; 0: any number
  // (n_columns,) which feature each encoded column is of; only for max_features
  std::vector<std::int32_t> feature_of_column;
};

class NonGreedyLearner final : public Learner {
 public:
  // Of the problem it keeps sizes and the loss.
  NonGreedyLearner(const TreeTopology& topology, const Problem& problem,
                   const NonGreedyOptions& options, int batch_size, int n_threads = 1);

  int tile_capacity(int batch_size) const override { return rounded_up(batch_size, kTileStep); }
  // Random splits of norm sqrt(nu), and leaves of zeros.
  void initialize(Random& random, float* parameters) const override;
  void before_epoch(int epoch, const float* parameters, const Tiles& all_rows) override;
  double step(const Batch& batch, Descent& descent) override;
  void predict(const float* parameters, const SampleTile& tile, Purpose purpose,
               float* prediction) override;
  void report(double weight, EpochRecord& record) override;

  // Before the first step: line 8 of Alg. 1 for all splits, and the losses of all leaves. `step`
  // calls it.
  void prepare(float* parameters);
  // SSGD's a(x), a leaf for each row of the table.
  void assign(std::span<const std::int32_t> leaves);
  // Loss-augmented inference for rows of a tile; `found()` and `moves_of(i)` return the result.
  void augment(const float* parameters, const SampleTile& tile);
  std::span<const AugmentedRow> found() const { return found_; }
  std::span<const SplitMove> moves_of(int row) const;

 private:
  // The contribution of a row to the gradient of a split or a leaf.
  struct RowGradient {
    std::int32_t node = 0;
    std::int32_t row = 0;
    float factor = 0;
  };
  struct Worker {
    std::vector<float> score, violation;
    std::vector<std::int32_t> node;
  };

  bool has_table() const { return has_class_target(loss_); }
  LearnedTree tree(const float* parameters) const;
  bool assigns_anew(int epoch);
  LeafLosses losses() const;
  void move_splits(float* parameters, const SampleTile& tile, double learning_rate);
  void move_split(float* parameters, const SampleTile& tile, std::span<const RowGradient> rows,
                  const SplitStep& step);
  void move_leaves(float* parameters, const SampleTile& tile, double learning_rate);
  void project(float* w, float* b, double norm) const;
  void keep_features(float* w, float* velocity) const;
  void refresh_leaf(const float* parameters, int leaf);
  void refresh_split(const float* parameters, int split);
  void refresh_above(const float* parameters, std::span<const std::int32_t> leaves);

  TreeTopology topology_;
  int n_columns_, n_outputs_, n_targets_;
  Loss loss_;
  float loss_parameter_;
  NonGreedyOptions options_;
  int n_threads_;
  bool is_prepared_ = false;
  Buffer<float> velocity_, bias_velocity_, theta_velocity_;
  Buffer<float> table_, bounds_;     // LeafLosses
  std::vector<float> targets_;       // (rows of a tile, t)
  std::vector<AugmentedRow> found_;  // (rows of a tile,)
  std::vector<SplitMove> moves_;     // (rows of a tile, 2 depth)
  std::vector<RowGradient> row_gradients_;
  std::vector<Worker> workers_;
  std::vector<char> is_stale_;          // (m,) splits whose bounds are to be computed again
  std::vector<std::int32_t> assigned_;  // (rows of the table,) SSGD's a(x)
  double bound_ = 0, last_bound_ = 0, bound_before_ = 0;
};

}  // namespace hardwood
