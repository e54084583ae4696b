// DGT as the training loop sees it: parameters [W | b | theta] in one stretch, and tiles through
// dgt.hpp.
#pragma once

#include <vector>

#include "core/kernels.hpp"
#include "learn/training.hpp"
#include "tree/nodes.hpp"

namespace hardwood {

class DgtLearner final : public Learner {
 public:
  DgtLearner(DgtShape shape, Loss loss, float loss_parameter, int batch_size);

  std::size_t n_parameters() const override {
    return theta_at() + static_cast<std::size_t>(shape_.n_leaves()) * shape_.n_outputs;
  }
  std::size_t n_penalised() const override { return bias_at(); }
  int tile_capacity(int batch_size) const override;
  void initialise(Random& random, float* parameters) const override;
  double add_gradient(const float* parameters, const SampleTile& tile, float factor,
                      const float* slope, bool first, float* gradient) override;
  void predict(const float* parameters, const SampleTile& tile, float* prediction) override;

  DgtParameters view(float* parameters) const {
    return {parameters, parameters + bias_at(), parameters + theta_at()};
  }
  DgtShape shape() const { return shape_; }

 private:
  std::size_t bias_at() const {
    return static_cast<std::size_t>(shape_.n_nodes()) * padded(shape_.n_columns);
  }
  std::size_t theta_at() const { return bias_at() + shape_.n_nodes(); }

  DgtShape shape_;
  Loss loss_;
  float loss_parameter_;
  Buffer<float> memory_;
  std::vector<std::int32_t> leaf_;
  RouteNodes nodes_;  // the perfect tree, for routing
  DgtTile tile_;
};

}  // namespace hardwood
