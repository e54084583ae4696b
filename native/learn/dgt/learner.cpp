#include "learn/dgt/learner.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace hardwood {

namespace {

Layout layout_of(const DgtShape& shape) {
  return {static_cast<std::size_t>(shape.n_nodes()), static_cast<std::size_t>(shape.n_leaves()),
          shape.n_columns, shape.n_outputs, shape.has_linear_leaves};
}

}  // namespace

void initialize_perfect_tree(const DgtShape& shape, const Layout& layout, Random& random,
                             float* parameters) {
  const Parameters<float> p = layout.view(parameters);
  const float split_bound = 1.0f / std::sqrt(static_cast<float>(std::max(shape.n_columns, 1)));
  for (int node = 0; node < shape.n_nodes(); ++node)
    for (int j = 0; j < shape.n_columns; ++j)
      p.W[static_cast<std::ptrdiff_t>(node) * padded(shape.n_columns) + j] =
          random.uniform(-split_bound, split_bound);
  const float leaf_bound = 1.0f / std::sqrt(static_cast<float>(shape.n_leaves()));
  for (std::size_t i = 0; i < layout.n_values(); ++i)
    p.leaves[i] = random.uniform(-leaf_bound, leaf_bound);
}

DgtLearner::DgtLearner(DgtShape shape, DgtForm form, Annealing annealing, Loss loss,
                       float loss_parameter, int batch_size)
    : GradientLearner(layout_of(shape)),
      shape_(shape),
      form_(form),
      annealing_(annealing),
      loss_(loss),
      loss_parameter_(loss_parameter),
      nodes_(route_nodes(perfect_children(shape), padded(shape.n_columns))),
      memory_(shape, form.routing == Routing::kAnnealed, dgt_tile_capacity(shape, batch_size)) {
  if (shape.has_linear_leaves && is_soft())
    throw std::invalid_argument("linear leaves need quantized routing");
  set_progress(0);
}

void DgtLearner::set_progress(double progress) {
  const double first = annealing_.first, last = annealing_.last;
  form_.sharpness =
      static_cast<float>(annealing_.is_logarithmic ? first * std::pow(last / first, progress)
                                                   : first + (last - first) * progress);
}

void DgtLearner::load(const SampleTile& samples) {
  memory_.tile.n = samples.n;
  memory_.tile.X = samples.X.data;
  memory_.tile.target = samples.target;
  memory_.tile.weight = samples.weight;
}

int DgtLearner::tile_capacity(int batch_size) const {
  return dgt_tile_capacity(shape_, batch_size);
}

void DgtLearner::initialize(Random& random, float* parameters) const {
  initialize_perfect_tree(shape_, layout(), random, parameters);
}

double DgtLearner::add_gradient(const float* parameters, const SampleTile& samples, float factor,
                                float* gradient) {
  load(samples);
  const bool has_slope = samples.slope != nullptr;
  if (has_slope) memory_.take_slopes(shape_.n_outputs, samples.n, samples.slope);
  if (samples.is_first)
    std::fill(gradient + layout().weights_end(), gradient + layout().n_parameters(), 0.0f);
  return kernels().dgt_tile(shape_, form_, layout().view(const_cast<float*>(parameters)),
                            memory_.tile, loss_, loss_parameter_, factor, has_slope,
                            samples.is_first, layout().view(gradient));
}

void DgtLearner::predict(const float* parameters, const SampleTile& samples, Purpose purpose,
                         float* prediction) {
  const Parameters<float> p = layout().view(const_cast<float*>(parameters));
  load(samples);
  if (purpose == Purpose::kStep) {
    kernels().dgt_predict(shape_, form_, p, memory_.tile);
  } else {
    for (int i = 0; i < shape_.n_nodes(); ++i) nodes_.nodes[i].bias = p.b[i];
    const Splits splits{
        shape_.n_nodes(), shape_.height, true, shape_.n_columns, p.W, nodes_.nodes.data(), 0,
        nullptr};
    kernels().route_plain(splits, {samples.X.data, samples.X.stride, nullptr, nullptr},
                          samples.capacity, memory_.tile.leaf);
    kernels().dgt_leaves(shape_, p, memory_.tile);
  }
  std::copy_n(memory_.tile.prediction,
              static_cast<std::size_t>(shape_.n_outputs) * memory_.tile.tile, prediction);
}

}  // namespace hardwood
