// Rows that change feature by feature from a background row z to rows x, side by side, and what a
// team answers on the way.
//
// A change adds one column of the weights, times the change of the feature, to the scores of all
// splits. Where a score on the way to the leaf is nearer to 0 than rounding errors could have moved
// it, the row is routed anew: every answer is the model's own. After many changes the scores are
// computed anew, so that rounding errors stay small.
#pragma once

#include <span>
#include <vector>

#include "explain/team.hpp"

namespace hardwood {

// Scores of a row come in steps of this many.
inline constexpr int kScoreStep = 16;

// The weights of a tree's splits, column by column.
class Columns {
 public:
  explicit Columns(const Splits& splits)
      : size_(rounded_up(std::max(splits.n_splits, 1), kScoreStep)),
        n_values_(splits.n_values),
        bias_(size_),
        weights_(static_cast<std::size_t>(splits.n_values + splits.n_indicators) * size_) {
    for (int i = 0; i < splits.n_splits; ++i) {
      bias_[i] = splits.nodes[i].bias;
      for (int j = 0; j < n_values_; ++j) weights_[j * size_ + i] = weights_of(splits, i)[j];
      for (int q = 0; q < splits.n_indicators; ++q)
        weights_[(n_values_ + q) * size_ + i] = indicators_of(splits, i)[q];
    }
  }

  std::ptrdiff_t size() const { return size_; }
  const float* bias() const { return bias_.data(); }
  const float* value(std::int32_t column) const { return weights_.data() + column * size_; }
  const float* indicator(std::int32_t which) const {
    return weights_.data() + (n_values_ + which) * size_;
  }

 private:
  std::ptrdiff_t size_, n_values_;
  Buffer<float> bias_, weights_;
};

// Memory and methods of one thread.
class MovingRows {
 public:
  // columns: of each tree. largest: bounds of the values of all rows, those of the background among
  // them, (stride,).
  MovingRows(const Team& team, const std::vector<Columns>& columns, const FeatureMap& map,
             std::ptrdiff_t stride, std::span<const std::int32_t> players,
             std::vector<FeatureRow> rows, const std::vector<float>& largest);

  std::size_t size() const { return rows_.size(); }
  const Team& team() const { return team_; }
  std::size_t n_players() const { return players_.size(); }

  // All rows become z.
  void start(const FeatureRow& z);
  void restart();
  // A feature of all rows becomes that of x, or that of z again.
  void take(std::int32_t player, bool is_x);

  // Answers to a row, (outputs,): now, and before the last change. The same place where the answer
  // has not changed.
  const double* now(std::size_t row) const { return now_[row]; }
  const double* before(std::size_t row) const { return before_[row]; }

 private:
  // Where the rows are in one tree.
  struct OfTree {
    const ForestTree& tree;
    const Columns& columns;
    std::vector<float> slack;        // (splits,) what rounding errors may add to a score
    Buffer<float> scores, z_scores;  // (rows, columns.size()), (columns.size(),)
    std::vector<std::int32_t> leaf;  // (rows,)
    std::vector<double> says;        // (rows, outputs)
    std::int32_t z_leaf;
    std::vector<double> z_says;  // (outputs,)
  };

  void find_z_scores(OfTree& of) const;
  void start_scores();
  void refresh();
  void note_changes(std::int32_t feature, bool is_x);
  void change_scores(OfTree& of, std::int32_t feature);
  void find_leaves(OfTree& of);
  void answer_by_leaf();
  void answer_by_sum();

  const Team& team_;
  const FeatureMap& map_;
  std::ptrdiff_t stride_;
  std::span<const std::int32_t> players_;
  std::vector<char> is_x_;  // (players,) whose features the rows have now
  int n_changes_ = 0, most_changes_;
  std::vector<FeatureRow> rows_;
  FeatureRow z_;
  bool is_constant_;             // one tree with constant leaves: answers are its values
  Buffer<float> values_;         // (rows, stride)
  std::vector<MixedRow> mixed_;  // (rows,)
  std::vector<OfTree> trees_;
  // Of this step, (rows,): by how much the value changes, and the indicators that go on and off.
  std::vector<float> change_;
  std::vector<std::int32_t> on_, off_;
  std::vector<std::int32_t> leaf_, doubtful_;  // (rows,)
  std::vector<const double*> now_, before_;    // (rows,)
  std::vector<double> answers_, at_z_;         // (rows, 2, outputs), (outputs,)
};

}  // namespace hardwood
