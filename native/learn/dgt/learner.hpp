// DGT for the training loop: parameters [W | A | b | theta] in one array; step.hpp and
// soft_step.hpp compute the tiles.
#pragma once

#include "core/kernels.hpp"
#include "learn/dgt/memory.hpp"
#include "learn/loop/training.hpp"
#include "tree/nodes.hpp"

namespace hardwood {

// Sharpness of annealed routing at the first and at the last step.
struct Annealing {
  float first = 1;
  float last = 100;
  bool is_logarithmic = false;
};

// A random start, uniform in +-1/sqrt(inputs) for the splits and the leaves, biases zero: the authors'
// code.
void initialize_perfect_tree(const DgtShape& shape, const Layout& layout, Random& random,
                             float* parameters);

class DgtLearner final : public GradientLearner {
 public:
  DgtLearner(DgtShape shape, DgtForm form, Annealing annealing, Loss loss, float loss_parameter,
             int batch_size);

  bool is_soft() const override { return form_.routing == Routing::kAnnealed; }
  void set_progress(double progress) override;
  int tile_capacity(int batch_size) const override;
  void initialize(Random& random, float* parameters) const override;
  double add_gradient(const float* parameters, const SampleTile& tile, float factor,
                      float* gradient) override;
  void predict(const float* parameters, const SampleTile& tile, Purpose purpose,
               float* prediction) override;

  DgtShape shape() const { return shape_; }

 private:
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
