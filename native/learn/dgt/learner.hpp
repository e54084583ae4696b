// DGT as the training loop sees it: parameters [W | A | b | theta] in one stretch, and tiles through
// step.hpp and soft_step.hpp.
#pragma once

#include "core/kernels.hpp"
#include "learn/dgt/memory.hpp"
#include "learn/loop/training.hpp"
#include "tree/nodes.hpp"

namespace hardwood {

// Sharpness of annealed routing, from the first step to the last.
struct Annealing {
  float first = 1;
  float last = 100;
  bool is_logarithmic = false;
};

class DgtLearner final : public Learner {
 public:
  DgtLearner(DgtShape shape, DgtForm form, Annealing annealing, Loss loss, float loss_parameter,
             int batch_size);

  std::size_t n_parameters() const override {
    return theta_at() + static_cast<std::size_t>(shape_.n_leaves()) * shape_.n_outputs;
  }
  std::size_t n_penalized() const override { return bias_at(); }
  SplitPlace splits() const override { return {shape_.n_nodes(), shape_.n_columns}; }
  bool is_soft() const override { return form_.routing == Routing::kAnnealed; }
  void set_progress(double progress) override;
  int tile_capacity(int batch_size) const override;
  void initialize(Random& random, float* parameters) const override;
  double add_gradient(const float* parameters, const SampleTile& tile, float factor,
                      const float* slope, bool first, float* gradient) override;
  void predict(const float* parameters, const SampleTile& tile, Purpose purpose,
               float* prediction) override;

  DgtParameters view(float* parameters) const {
    return {parameters, shape_.has_linear_leaves ? parameters + leaf_weights_at() : nullptr,
            parameters + bias_at(), parameters + theta_at()};
  }
  DgtShape shape() const { return shape_; }

 private:
  std::size_t leaf_weights_at() const {
    return static_cast<std::size_t>(shape_.n_nodes()) * padded(shape_.n_columns);
  }
  std::size_t bias_at() const {
    const std::size_t linear =
        static_cast<std::size_t>(shape_.n_leaves()) * shape_.n_outputs * padded(shape_.n_columns);
    return leaf_weights_at() + (shape_.has_linear_leaves ? linear : 0);
  }
  std::size_t theta_at() const { return bias_at() + shape_.n_nodes(); }
  void load(const SampleTile& samples);

  DgtShape shape_;
  DgtForm form_;
  Annealing annealing_;
  Loss loss_;
  float loss_parameter_;
  RouteNodes nodes_;  // the perfect tree, for routing
  DgtTileMemory memory_;
};

}  // namespace hardwood
