// DGT's Algorithm 1 for numbers: a tree that predicts one, and learns from estimates of the loss's
// derivative at its prediction (Eq. 9 and 10). Twin: reference/bandit.py.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "online/online_tree.hpp"

namespace hardwood {

struct BanditRegressionOptions {
  int height = 8;
  int batch_size = 4;         // rounds per step
  double perturbation = 0.5;  // delta, in units of `scale`
  double start = 0, scale = 1;
  OnlineStep step;
};

class BanditRegression {
 public:
  BanditRegression(int n_columns, const BanditRegressionOptions& options, std::uint64_t seed)
      : options_(options),
        seed_(seed),
        tree_({options.height, n_columns, 1, false}, Loss::kSquared, options.step,
              options.batch_size, seed) {}

  int n_columns() const { return tree_.shape().n_columns; }
  std::uint64_t n_learned() const { return n_learned_; }
  double distance() const { return options_.perturbation * options_.scale; }

  void meet(const float* x) { tree_.meet(x); }
  double predict(const float* x) const {
    float value;
    tree_.values(x, {&value, 1});
    return options_.start + options_.scale * value;
  }
  // +1 or -1, the u of Eq. (9).
  int direction() { return Random(seed_, n_drawn_++).bits() & 1 ? 1 : -1; }

  // `slope`: the derivative of the loss by the prediction, as it was estimated.
  void learn(const float* x, double slope) {
    const std::lock_guard lock(learning_);
    ++n_learned_;
    contexts_.insert(contexts_.end(), x, x + n_columns());
    slopes_.push_back(static_cast<float>(slope * options_.scale));
    if (static_cast<int>(slopes_.size()) < options_.batch_size) return;
    tree_.refresh();
    step();
  }

  OnlineTree::RawTree raw_tree() const {
    OnlineTree::RawTree raw = tree_.raw();
    for (double& value : raw.values) value = options_.start + options_.scale * value;
    return raw;
  }
  void start_from(std::span<const double> weights, std::span<const double> bias,
                  std::span<const double> values, std::span<const double> mean,
                  std::span<const double> deviation, double rows) {
    const std::lock_guard lock(learning_);
    std::vector<float> held;
    for (const double value : values)
      held.push_back(static_cast<float>((value - options_.start) / options_.scale));
    tree_.start_from(weights, bias, held, mean, deviation, rows);
  }

  struct State {
    OnlineTree::State tree;
    std::uint64_t n_drawn, n_learned;
    std::vector<float> contexts, slopes;
  };
  State state() const {
    const std::lock_guard lock(learning_);
    return {tree_.state(), n_drawn_, n_learned_, contexts_, slopes_};
  }
  void set_state(State s) {
    const std::lock_guard lock(learning_);
    tree_.set_state(s.tree);
    n_drawn_ = s.n_drawn;
    n_learned_ = s.n_learned;
    contexts_ = std::move(s.contexts);
    slopes_ = std::move(s.slopes);
  }

 private:
  void step() {
    SampleTile& tile = tree_.batch().tile;
    const int size = static_cast<int>(slopes_.size());
    for (int first = 0; first < size; first += tile.capacity) {
      tile.n = std::min(size - first, tile.capacity);
      for (int i = 0; i < tile.capacity; ++i) tile.weight[i] = i < tile.n ? 1.0f : 0.0f;
      for (int i = 0; i < tile.n; ++i)
        tree_.standardise(contexts_.data() + static_cast<std::ptrdiff_t>(first + i) * n_columns(),
                          tile.X.row(i));
      tree_.add_gradient(1.0f, slopes_.data() + first);
    }
    tree_.step();
    tree_.publish();
    contexts_.clear();
    slopes_.clear();
  }

  BanditRegressionOptions options_;
  std::uint64_t seed_;
  OnlineTree tree_;
  std::uint64_t n_drawn_ = 0, n_learned_ = 0;
  std::vector<float> contexts_, slopes_;  // of rounds since the last step
  mutable std::mutex learning_;
};

}  // namespace hardwood
