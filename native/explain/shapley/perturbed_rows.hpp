// Rows that change feature by feature, side by side, and the outputs of a group for them.
//
// A change adds one term to the scores of the splits on a row's path. The path is computed again
// only from the first split whose side has changed. A score within rounding errors of 0 is computed
// again by the router. So every output is exactly that of the model.
#pragma once

#include <span>
#include <vector>

#include "explain/shapley/group.hpp"
#include "explain/shapley/paths.hpp"

namespace hardwood {

// The weights of a tree's splits, ordered by value.
class Columns {
 public:
  explicit Columns(const Splits& splits)
      : size_(std::max(splits.n_splits, 1)),  // a path without splits has the root's place
        weights_(static_cast<std::size_t>(splits.n_values) * size_) {
    for (int i = 0; i < splits.n_splits; ++i)
      for (int j = 0; j < splits.n_values; ++j) weights_[j * size_ + i] = weights_of(splits, i)[j];
  }

  const float* operator[](std::int32_t value) const { return weights_.data() + value * size_; }

 private:
  std::ptrdiff_t size_;
  std::vector<float> weights_;
};

// A group and its features.
struct Game {
  const Group& group;
  const FeatureMap& map;
  std::ptrdiff_t stride;  // of encoded rows
  const std::vector<std::int32_t>& players;
  const std::vector<Columns>& columns;  // of each tree
};

// The memory and the methods of one thread.
class PerturbedRows {
 public:
  // n_rows: at most kMostMoving. largest: bounds of the values of all rows to come, (stride,).
  PerturbedRows(const Game& game, std::size_t n_rows, const std::vector<float>& largest);

  std::size_t size() const { return starts_.size(); }
  const Group& group() const { return group_; }
  std::size_t n_players() const { return players_.size(); }

  // The start and the end of a row.
  void set_start(std::size_t row, const FeatureRow& start);
  void set_end(std::size_t row, const FeatureRow& end) { ends_[row] = end; }
  // Sets all rows to their starts.
  void start();
  // Sets one feature of all rows to that of their ends, or back to that of their starts.
  void take(std::int32_t player, bool is_end);

  // The rows whose outputs may have changed in the last step.
  std::span<const std::int32_t> touched() const { return {touched_.data(), n_touched_}; }
  // Outputs for a row, (outputs,): now and, for a changed row, before the last step.
  const double* now(std::size_t row) const { return now_[row]; }
  const double* before(std::size_t row) const { return before_[row]; }

 private:
  // Paths in one tree, owned.
  struct PathMemory {
    PathMemory(std::size_t n_rows, int n_levels, int n_outputs, float slack);
    void copy(const PathMemory& other);

    std::vector<std::int32_t> nodes, n_splits, leaf;
    std::vector<float> scores;
    std::vector<double> says;  // (rows, outputs) what the tree says
    Paths paths;
  };
  struct OfTree {
    const ForestTree& tree;
    const Columns& columns;
    PathMemory now, at_start;
  };

  void answer_start(std::size_t row);
  void note_changes(std::int32_t feature, bool is_end);
  bool has_changed(std::size_t row) const { return change_[row] != 0 || on_[row] != off_[row]; }
  std::size_t change_scores(OfTree& of, std::int32_t feature);
  std::size_t change_indicators(OfTree& of);
  // A path that starts with a score of 0 is computed from the root.
  static void doubt_root(PathMemory& memory, std::size_t row) {
    memory.nodes[row * memory.paths.n_levels] = 0;
    memory.scores[row * memory.paths.n_levels] = 0.0f;
    memory.n_splits[row] = 0;
  }
  void doubt_all(OfTree& of);
  void follow(OfTree& of, std::size_t n_listed);
  void answer_by_leaf(std::size_t n_listed);
  void say(OfTree& of, std::size_t n_listed);
  void answer_by_sum();

  const Group& group_;
  const FeatureMap& map_;
  std::ptrdiff_t stride_;
  const std::vector<std::int32_t>& players_;
  bool is_constant_;                       // one tree with constant leaves: answers are its values
  std::vector<FeatureRow> starts_, ends_;  // (rows,)
  Buffer<float> values_;                   // (rows, stride)
  std::vector<MixedRow> mixed_;            // (rows,)
  std::vector<OfTree> trees_;
  int n_changes_ = 0, most_changes_;
  // Of this step, (rows,): by how much the value changes, and the indicators that go on and off.
  std::vector<float> change_;
  std::vector<std::int32_t> on_, off_;
  std::vector<Doubt> listed_;          // (rows + 1,)
  std::vector<std::int32_t> touched_;  // (rows,)
  std::size_t n_touched_ = 0;
  std::vector<char> is_touched_;             // (rows,)
  std::vector<const double*> now_, before_;  // (rows,)
  std::vector<double> answers_, at_start_;   // (rows, 2, outputs), (rows, outputs)
};

}  // namespace hardwood
