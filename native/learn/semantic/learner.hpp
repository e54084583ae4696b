// Semantic logits for the training loop: parameters [W | A | b | theta] in one array, without theta
// where leaves are dealt to classes; step.hpp computes the tiles.
#pragma once

#include <vector>

#include "core/kernels.hpp"
#include "learn/dgt/learner.hpp"
#include "learn/loop/training.hpp"
#include "tree/nodes.hpp"

namespace hardwood {

class SemanticLearner final : public GradientLearner {
 public:
  // classes (leaves,): the class of each leaf, at least one leaf each; empty: leaves learn values,
  // and predictions mix the n_mixed best at first, fewer and fewer, and at last one.
  SemanticLearner(DgtShape shape, std::vector<std::int32_t> classes, int n_mixed, Loss loss,
                  float loss_parameter, int batch_size);

  bool is_soft() const override { return n_mixed_ > 1; }
  void set_progress(double progress) override;
  int tile_capacity(int batch_size) const override { return dgt_tile_capacity(shape_, batch_size); }
  void initialize(Random& random, float* parameters) const override;
  double add_gradient(const float* parameters, const SampleTile& tile, float factor,
                      float* gradient) override;
  void predict(const float* parameters, const SampleTile& tile, Purpose purpose,
               float* prediction) override;

 private:
  SemanticLeaves leaves() const { return {classes_.empty() ? nullptr : classes_.data(), mixed_}; }
  void load(const SampleTile& samples);
  void answer(const Parameters<float>& p, const SampleTile& samples);

  DgtShape shape_;
  std::vector<std::int32_t> classes_;
  int n_mixed_, mixed_;  // at first, and now
  Loss loss_;
  float loss_parameter_;
  RouteNodes nodes_;  // the perfect tree, for routing
  DgtTileMemory memory_;
  Buffer<float> own_memory_;
  SemanticTile tile_;
};

}  // namespace hardwood
