#include "bind/learn/learning.hpp"
#include "bind/learn/methods.hpp"
#include "learn/reinforced/learner.hpp"

namespace hardwood {

namespace {

using StartPolicy = std::tuple<Array2<float>, Array1<float>, Array2<float>>;  // W, b, alpha

PolicyTopology topology_of(const Array1<std::int32_t>& parents) {
  return PolicyTopology({parents.data(), parents.size()});
}

void check_start(const StartPolicy& start, const PolicyTopology& topology, std::size_t n_columns,
                 std::size_t n_outputs) {
  const auto& [W, b, alpha] = start;
  const std::size_t m = topology.n_rows();
  require(W.shape(0) == m && W.shape(1) == n_columns && b.size() == m && alpha.shape(0) == m + 1 &&
              alpha.shape(1) == n_outputs,
          "the start has another shape");
}

// Rows that are encoded already, (n, d) and (n, t), as a tile.
class PolicyRows {
 public:
  PolicyRows(const Array2<float>& X, const Array2<float>& target, const Array1<float>& weight)
      : n_(static_cast<int>(X.shape(0))),
        d_(static_cast<int>(X.shape(1))),
        capacity_(rounded_up(n_, kTileStep)),
        X_(static_cast<std::size_t>(capacity_) * padded(d_)),
        target_(static_cast<std::size_t>(capacity_) * target.shape(1)),
        weight_(capacity_),
        rows_(n_) {
    const std::size_t t = target.shape(1);
    require(n_ >= 1 && target.shape(0) == X.shape(0) && weight.size() == X.shape(0),
            "sizes differ");
    for (int i = 0; i < n_; ++i) {
      std::copy_n(X.data() + static_cast<std::size_t>(i) * d_, d_,
                  X_.data() + static_cast<std::size_t>(i) * padded(d_));
      for (std::size_t o = 0; o < t; ++o) target_[o * capacity_ + i] = target.data()[i * t + o];
      weight_[i] = weight.data()[i];
      rows_[i] = i;
    }
  }

  SampleTile tile() {
    return {capacity_,      n_,   {X_.data(), capacity_, d_, padded(d_)}, target_.data(),
            weight_.data(), rows_};
  }
  std::span<const std::int64_t> rows() const { return rows_; }

 private:
  int n_, d_, capacity_;
  Buffer<float> X_, target_, weight_;
  std::vector<std::int64_t> rows_;
};

nb::dict slopes_of(const ReinforcedLearner& learner, std::size_t d, const Buffer<float>& gradient,
                   double total) {
  const std::size_t m = learner.layout().n_splits, k = learner.layout().n_outputs,
                    stride = padded(static_cast<int>(d));
  const Parameters<const float> p = learner.layout().view(gradient.data());
  nb::dict answer;
  answer["weights"] = new_array<float>({m, d}, [&](float* out) {
    for (std::size_t r = 0; r < m; ++r) std::copy_n(p.W + r * stride, d, out + r * d);
  });
  answer["bias"] = new_array<float>({m}, [&](float* out) { std::copy_n(p.b, m, out); });
  answer["scores"] =
      new_array<float>({m + 1, k}, [&](float* out) { std::copy_n(p.leaves, (m + 1) * k, out); });
  answer["loss"] = total;
  return answer;
}

// The gradient of one batch of encoded rows, by numbers that are given or drawn from a seed.
nb::dict policy_gradient(Array2<float> X, Array2<float> target, Array1<float> weight,
                         Array1<std::int32_t> parents, const StartPolicy& policy,
                         const std::string& loss, double loss_parameter,
                         std::optional<Array<float, 3>> uniforms,
                         std::optional<Array2<float>> values, std::uint64_t seed, int n_threads,
                         const nb::dict& options) {
  const PolicyTopology topology = topology_of(parents);
  const std::size_t n = X.shape(0), d = X.shape(1), k = std::get<2>(policy).shape(1);
  check_start(policy, topology, d, k);
  OptionReader reader(options);
  const ReinforcedOptions own = reinforced_options(reader);
  reader.refuse_others();
  const Loss named_loss = loss_named(loss);
  require(named_loss != Loss::kCustom && target.shape(1) == (has_class_target(named_loss) ? 1 : k),
          "the target has another number of columns than the loss expects");
  for (std::size_t i = 0; i < n && has_class_target(named_loss); ++i)
    require(target.data()[i] >= 0 && target.data()[i] < static_cast<float>(k),
            "a class is out of range");
  PolicyRows rows(X, target, weight);
  Problem problem;
  problem.encoding.n_numeric = static_cast<int>(d);
  problem.source.n_rows = static_cast<std::int64_t>(n);
  problem.train = rows.rows();
  problem.n_targets = static_cast<int>(target.shape(1));
  problem.n_outputs = static_cast<int>(k);
  problem.loss = named_loss;
  problem.loss_parameter = static_cast<float>(loss_parameter);
  ReinforcedLearner learner(topology, problem, own, static_cast<int>(n), seed, n_threads);
  if (uniforms) {
    require(uniforms->shape(0) == n &&
                uniforms->shape(1) == static_cast<std::size_t>(topology.max_depth()) &&
                uniforms->shape(2) == static_cast<std::size_t>(own.n_samples),
            "uniforms must be (rows, depth, samples)");
    learner.set_uniforms({uniforms->data(), uniforms->size()});
  }
  if (values) {
    require(values->size() == learner.values().size(), "values have another size");
    std::copy_n(values->data(), values->size(), learner.values().data());
  }
  const auto& [W, b, alpha] = policy;
  const Layout& layout = learner.layout();
  Buffer<float> parameters(layout.n_parameters()), gradient(parameters.size());
  const Parameters<float> p = layout.view(parameters.data());
  for (std::size_t r = 0; r < b.size(); ++r)
    std::copy_n(W.data() + r * d, d, p.W + r * padded(static_cast<int>(d)));
  std::copy_n(b.data(), b.size(), p.b);
  std::copy_n(alpha.data(), alpha.size(), p.leaves);
  double total = 0;
  {
    const nb::gil_scoped_release release;
    total = learner.add_gradient(parameters.data(), rows.tile(), 1.0f / static_cast<float>(n),
                                 gradient.data());
  }
  return slopes_of(learner, d, gradient, total / static_cast<double>(n));
}

}  // namespace

void bind_learn_reinforced(nb::module_& m) {
  m.def("policy_gradient", &policy_gradient, nb::arg("X"), nb::arg("target"), nb::arg("weight"),
        nb::arg("parents"), nb::arg("policy"), nb::arg("loss"), nb::arg("loss_parameter"),
        nb::arg("uniforms").none(), nb::arg("values").none(), nb::arg("seed"), nb::arg("n_threads"),
        nb::arg("options"),
        "Gradient of the mean loss of encoded rows, sampled or exact: {weights, bias, scores, "
        "loss}.");
}

}  // namespace hardwood
