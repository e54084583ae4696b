#include "learn/loop/descent.hpp"

#include <algorithm>
#include <limits>

#include "core/kernels.hpp"

namespace hardwood {

Descent::Descent(const Learner& learner, const TrainingOptions& options)
    : learner_(learner),
      options_(options),
      layout_(learner.layout()),
      parameters_(layout_.n_parameters()) {
  if (!options.hidden.empty())
    layers_.emplace(static_cast<int>(layout_.n_splits), layout_.n_columns, options.hidden);
}

void Descent::start(Random& random, std::span<const float> parameters) {
  if (parameters.empty())
    learner_.initialize(random, parameters_.data());
  else
    std::copy(parameters.begin(), parameters.end(), parameters_.begin());
  if (!layers_) return;
  if (parameters.empty())
    layers_->initialize(random);
  else
    layers_->start_from(random, weights(parameters_.data()), biases());
  layers_->collapse(weights(parameters_.data()), biases());
}

float* Descent::gradient() {
  if (gradient_.size() == 0)
    for (Buffer<float>* each : {&gradient_, &second_moment_, &first_moment_})
      *each = Buffer<float>(size());
  return gradient_.data();
}

void Descent::step(double learning_rate) {
  StepOptions step = options_.step;
  step.learning_rate = static_cast<float>(learning_rate);
  const float* gradient = this->gradient();
  const std::size_t n = parameters_.size(), penalized = layout_.n_penalized();
  if (!layers_) {
    const bool is_clipped = options_.clip_norm < std::numeric_limits<float>::infinity();
    clock_.prepare(step, is_clipped ? kernels().squared_norm(n, gradient) : 0.0,
                   options_.clip_norm);
    optimize(0, penalized, step);
    step.l1 = step.l2 = 0;
    optimize(penalized, n, step);
    return;
  }
  // The weights and biases of splits are updated through their factors, everything else directly.
  const std::size_t weights_end = layout_.weights_end(), biases_end = penalized + layout_.n_splits;
  const double norm = layers_->spread(weights(gradient), gradient + penalized) +
                      kernels().squared_norm(penalized - weights_end, gradient + weights_end) +
                      kernels().squared_norm(n - biases_end, gradient + biases_end);
  clock_.prepare(step, norm, options_.clip_norm);
  layers_->step(step);
  optimize(weights_end, penalized, step);
  step.l1 = step.l2 = 0;
  optimize(biases_end, n, step);
  layers_->collapse(weights(parameters_.data()), biases());
}

void Descent::optimize(std::size_t first, std::size_t last, const StepOptions& options) {
  kernels().optimize(last - first, parameters_.data() + first, gradient_.data() + first,
                     second_moment_.data() + first, first_moment_.data() + first, options);
}

}  // namespace hardwood
