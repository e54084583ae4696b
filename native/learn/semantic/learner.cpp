#include "learn/semantic/learner.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace hardwood {

namespace {

constexpr double kMixedUntil = 0.75;  // share of the steps that mix more than one leaf

Layout layout_of(const DgtShape& shape, bool is_dealt) {
  const std::size_t leaves = is_dealt ? 0 : shape.n_leaves();
  return {static_cast<std::size_t>(shape.n_nodes()), leaves, shape.n_columns, shape.n_outputs,
          shape.has_linear_leaves};
}

void check_classes(const DgtShape& shape, const std::vector<std::int32_t>& classes) {
  if (classes.empty()) return;
  if (shape.has_linear_leaves) throw std::invalid_argument("leaves of one class are not linear");
  if (static_cast<int>(classes.size()) != shape.n_leaves())
    throw std::invalid_argument("each leaf needs a class");
  std::vector<bool> has_leaf(n_class_scores(shape));
  for (const std::int32_t each : classes) {
    if (each < 0 || each >= n_class_scores(shape))
      throw std::invalid_argument("the class of a leaf is out of range");
    has_leaf[each] = true;
  }
  if (std::ranges::find(has_leaf, false) != has_leaf.end())
    throw std::invalid_argument("each class needs a leaf");
}

}  // namespace

SemanticLearner::SemanticLearner(DgtShape shape, std::vector<std::int32_t> classes, int n_mixed,
                                 Loss loss, float loss_parameter, int batch_size)
    : GradientLearner(layout_of(shape, !classes.empty())),
      shape_(shape),
      classes_(std::move(classes)),
      n_mixed_(n_mixed),
      mixed_(n_mixed),
      loss_(loss),
      loss_parameter_(loss_parameter),
      nodes_(route_nodes(perfect_children(shape), padded(shape.n_columns))),
      memory_(shape, false, dgt_tile_capacity(shape, batch_size)) {
  check_classes(shape_, classes_);
  const std::size_t n = memory_.tile.tile, of_leaves = shape.n_leaves() * n;
  const bool is_dealt = !classes_.empty();
  own_memory_ = Buffer<float>(2 * of_leaves + n_class_scores(shape) * n);
  static_cast<DgtTile&>(tile_) = memory_.tile;
  tile_.logit = own_memory_.data();
  if (!is_dealt) tile_.leaf_value = tile_.logit + of_leaves;
  tile_.class_score = tile_.logit + 2 * of_leaves;
}

// The number of leaves falls to 1 in equal parts of the steps.
void SemanticLearner::set_progress(double progress) {
  const double left = std::max(0.0, 1.0 - progress / kMixedUntil);
  mixed_ = 1 + static_cast<int>(std::ceil((n_mixed_ - 1) * left));
}

void SemanticLearner::initialize(Random& random, float* parameters) const {
  initialize_perfect_tree(shape_, layout(), random, parameters);
}

void SemanticLearner::load(const SampleTile& samples) {
  tile_.n = samples.n;
  tile_.X = samples.X.data;
  tile_.target = samples.target;
  tile_.weight = samples.weight;
}

double SemanticLearner::add_gradient(const float* parameters, const SampleTile& samples,
                                     float factor, float* gradient) {
  load(samples);
  const bool has_slope = samples.slope != nullptr;
  if (has_slope) memory_.take_slopes(shape_.n_outputs, samples.n, samples.slope);
  if (samples.is_first)
    std::fill(gradient + layout().weights_end(), gradient + layout().n_parameters(), 0.0f);
  return kernels().semantic_tile(shape_, leaves(), layout().view(const_cast<float*>(parameters)),
                                 tile_, loss_, loss_parameter_, factor, has_slope, samples.is_first,
                                 layout().view(gradient));
}

// The leaf that the router of all trees reaches.
void SemanticLearner::answer(const Parameters<float>& p, const SampleTile& samples) {
  for (int i = 0; i < shape_.n_nodes(); ++i) nodes_.nodes[i].bias = p.b[i];
  const Splits splits{
      shape_.n_nodes(), shape_.height, true, shape_.n_columns, p.W, nodes_.nodes.data(), 0,
      nullptr};
  kernels().route_plain(splits, {samples.X.data, samples.X.stride, nullptr, nullptr},
                        samples.capacity, tile_.leaf);
  kernels().dgt_leaves(shape_, p, tile_);
}

// Of dealt leaves the loss is that of the scores of classes, which prefer the tree's class.
void SemanticLearner::predict(const float* parameters, const SampleTile& samples, Purpose purpose,
                              float* prediction) {
  const Parameters<float> p = layout().view(const_cast<float*>(parameters));
  load(samples);
  if (purpose == Purpose::kStep || !classes_.empty())
    kernels().semantic_predict(shape_, leaves(), p, tile_);
  else
    answer(p, samples);
  std::copy_n(tile_.prediction, static_cast<std::size_t>(shape_.n_outputs) * tile_.tile,
              prediction);
}

}  // namespace hardwood
