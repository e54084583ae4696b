// The parameters of a run and their updates: direct, or with the splits as products of layers.
#pragma once

#include <optional>
#include <span>

#include "learn/loop/layers.hpp"
#include "learn/loop/training.hpp"

namespace hardwood {

class Descent {
 public:
  Descent(const Learner& learner, const TrainingOptions& options);

  void start(Random& random, std::span<const float> parameters);  // none given: random ones
  const float* parameters() const { return parameters_.data(); }
  float* parameters() { return parameters_.data(); }
  std::size_t size() const { return parameters_.size(); }
  // To be filled for the next step.
  float* gradient();
  void step(double learning_rate);

 private:
  void optimize(std::size_t first, std::size_t last, const StepOptions& options);

  const Learner& learner_;
  const TrainingOptions& options_;
  Layout layout_;
  template <class T>
  Matrix<T> weights(T* of) const {
    return {of, static_cast<int>(layout_.n_splits), layout_.n_columns, padded(layout_.n_columns)};
  }
  float* biases() { return layout_.view(parameters_.data()).b; }
  Buffer<float> parameters_;
  Buffer<float> gradient_, second_moment_, first_moment_;  // none until a gradient is asked for
  std::optional<LinearLayers> layers_;
  StepClock clock_;
};

}  // namespace hardwood
