#include "learn/dgt_learner.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace hardwood {

namespace {

// Scores and means of a tile are (nodes, tile) arrays that three passes go over: small enough for
// the second-level cache (see benchmarks/speed/dgt_step.py).
constexpr int kLargestTile = 128;
constexpr int kDeepTreeTile = 64;
constexpr int kDeepHeight = 9;

std::vector<std::int32_t> perfect_children(const DgtShape& shape) {
  std::vector<std::int32_t> children;
  for (int child = 1; child <= 2 * shape.n_nodes(); ++child)
    children.push_back(child < shape.n_nodes() ? child : ~(child - shape.n_nodes()));
  return children;
}

}  // namespace

DgtLearner::DgtLearner(DgtShape shape, DgtForm form, Annealing annealing, Loss loss,
                       float loss_parameter, int batch_size)
    : shape_(shape),
      form_(form),
      annealing_(annealing),
      loss_(loss),
      loss_parameter_(loss_parameter),
      nodes_(route_nodes(perfect_children(shape), padded(shape.n_columns))) {
  const std::size_t n = tile_capacity(batch_size), d = shape.n_columns, m = shape.n_nodes(),
                    k = shape.n_outputs, leaves = shape.n_leaves();
  const bool linear = shape.has_linear_leaves;
  if (linear && is_soft()) throw std::invalid_argument("linear leaves need quantized routing");
  const std::size_t values = k > 1 || linear || is_soft() ? leaves * n : 0,
                    scores = linear || is_soft() ? leaves * n : 0, rights = is_soft() ? m * n : 0;
  memory_ = Buffer<float>(n * (d + 2 * m + 2 * k + 1) + values + scores + rights);
  leaf_.resize(n);
  float* next = memory_.data();
  const auto take = [&](std::size_t size) { return std::exchange(next, next + size); };
  tile_.tile = static_cast<int>(n);
  tile_.XT = take(d * n);
  tile_.score = take(m * n);
  tile_.below = take(m * n);
  tile_.leaf_value = take(values);
  tile_.leaf_score = take(scores);
  tile_.to_right = take(rights);
  tile_.mean = take(n);
  tile_.prediction = take(k * n);
  tile_.slope = take(k * n);
  tile_.leaf = leaf_.data();
  set_progress(0);
}

void DgtLearner::set_progress(double progress) {
  const double first = annealing_.first, last = annealing_.last;
  form_.sharpness =
      static_cast<float>(annealing_.is_logarithmic ? first * std::pow(last / first, progress)
                                                   : first + (last - first) * progress);
}

void DgtLearner::load(const SampleTile& samples) {
  tile_.n = samples.n;
  tile_.X = samples.X.data;
  tile_.target = samples.target;
  tile_.weight = samples.weight;
}

int DgtLearner::tile_capacity(int batch_size) const {
  const int largest = shape_.height >= kDeepHeight ? kDeepTreeTile : kLargestTile;
  return std::min(largest, rounded_up(batch_size, kTileStep));
}

// Uniform in +-1/sqrt(inputs) for the splits and the leaves, biases zero: the authors' code.
void DgtLearner::initialise(Random& random, float* parameters) const {
  const DgtParameters p = view(parameters);
  const float split_bound = 1.0f / std::sqrt(static_cast<float>(std::max(shape_.n_columns, 1)));
  for (int node = 0; node < shape_.n_nodes(); ++node)
    for (int j = 0; j < shape_.n_columns; ++j)
      p.W[static_cast<std::ptrdiff_t>(node) * padded(shape_.n_columns) + j] =
          random.uniform(-split_bound, split_bound);
  const float leaf_bound = 1.0f / std::sqrt(static_cast<float>(shape_.n_leaves()));
  for (int i = 0; i < shape_.n_leaves() * shape_.n_outputs; ++i)
    p.theta[i] = random.uniform(-leaf_bound, leaf_bound);
}

double DgtLearner::add_gradient(const float* parameters, const SampleTile& samples, float factor,
                                const float* slope, bool first, float* gradient) {
  load(samples);
  const int k = shape_.n_outputs;
  if (slope)
    for (int o = 0; o < k; ++o)
      for (int i = 0; i < tile_.tile; ++i)
        tile_.slope[static_cast<std::size_t>(o) * tile_.tile + i] =
            i < samples.n ? slope[i * k + o] : 0.0f;
  if (first) std::fill(gradient + leaf_weights_at(), gradient + n_parameters(), 0.0f);
  return kernels().dgt_tile(shape_, form_, view(const_cast<float*>(parameters)), tile_, loss_,
                            loss_parameter_, factor, slope != nullptr, first, view(gradient));
}

void DgtLearner::predict(const float* parameters, const SampleTile& samples, Purpose purpose,
                         float* prediction) {
  const DgtParameters p = view(const_cast<float*>(parameters));
  load(samples);
  if (purpose == Purpose::kStep) {
    kernels().dgt_predict(shape_, form_, p, tile_);
  } else {
    for (int i = 0; i < shape_.n_nodes(); ++i) nodes_.nodes[i].bias = p.b[i];
    const Splits splits{
        shape_.n_nodes(), shape_.height, true, shape_.n_columns, p.W, nodes_.nodes.data(), 0,
        nullptr};
    kernels().route_plain(splits, {samples.X.data, samples.X.stride, nullptr, nullptr},
                          samples.capacity, leaf_.data());
    kernels().dgt_leaves(shape_, p, tile_);
  }
  std::copy_n(tile_.prediction, static_cast<std::size_t>(shape_.n_outputs) * tile_.tile,
              prediction);
}

}  // namespace hardwood
