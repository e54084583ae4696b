#include "bind/learn/learning.hpp"
#include "learn/reinforced/learner.hpp"

namespace hardwood {

namespace {

using StartPolicy = std::tuple<Array2<float>, Array1<float>, Array2<float>>;  // W, b, alpha

PolicyTopology topology_of(const Array1<std::int32_t>& parents) {
  return PolicyTopology({parents.data(), parents.size()});
}

Baseline baseline_named(std::string_view name) {
  return named<Baseline>(name, "baseline",
                         {{"none", Baseline::kNone},
                          {"leave-one-out", Baseline::kLeaveOneOut},
                          {"value", Baseline::kValue}});
}

ReinforcedOptions reinforced_options(const nb::dict& options) {
  const auto number = [&](const char* key) {
    return static_cast<float>(nb::cast<double>(options[key]));
  };
  ReinforcedOptions o;
  o.estimator = named<PolicyEstimator>(
      nb::cast<std::string>(options["estimator"]), "estimator",
      {{"sampled", PolicyEstimator::kSampled}, {"exact", PolicyEstimator::kExact}});
  o.n_samples = nb::cast<int>(options["n_samples"]);
  o.baseline = baseline_named(nb::cast<std::string>(options["baseline"]));
  o.entropy = number("entropy");
  o.first_temperature = number("first_temperature");
  o.last_temperature = number("last_temperature");
  o.annealed_at = number("annealed_at");
  o.policy_scale = number("policy_scale");
  o.leaf_scale = number("leaf_scale");
  if (options.contains("by_lanes")) o.by_lanes = nb::cast<bool>(options["by_lanes"]);
  require(o.n_samples >= (o.baseline == Baseline::kLeaveOneOut ? 2 : 1) && o.entropy >= 0 &&
              o.first_temperature > 0 && o.last_temperature > 0 && o.annealed_at > 0,
          "options out of range");
  return o;
}

void check_start(const StartPolicy& start, const PolicyTopology& topology, std::size_t n_columns,
                 std::size_t n_outputs) {
  const auto& [W, b, alpha] = start;
  const std::size_t m = topology.n_rows();
  require(W.shape(0) == m && W.shape(1) == n_columns && b.size() == m && alpha.shape(0) == m + 1 &&
              alpha.shape(1) == n_outputs,
          "the start has another shape");
}

// [W | b | alpha] of a start, whose columns are in the schema's order.
std::vector<float> start_parameters(const ReinforcedLearner& learner, const Encoder& encoder,
                                    const nb::object& start) {
  if (start.is_none()) return {};
  const auto given = nb::cast<StartPolicy>(start);
  check_start(given, learner.topology(), encoder.n_columns(), learner.n_outputs());
  const auto& [W, b, alpha] = given;
  std::vector<float> parameters(learner.n_parameters());
  take_columns(encoder, b.size(), W.data(), parameters.data());
  std::copy_n(b.data(), b.size(), parameters.data() + learner.n_penalized());
  std::copy_n(alpha.data(), alpha.size(), parameters.data() + (parameters.size() - alpha.size()));
  return parameters;
}

nb::dict answer_of(const ReinforcedLearner& learner, const Encoder& encoder,
                   const TrainingResult& result) {
  const std::size_t m = learner.topology().n_rows(), d = encoder.n_columns(),
                    k = learner.n_outputs();
  const float* p = result.parameters.data();
  nb::dict answer;
  answer["weights"] = new_array<float>(
      {m, d}, [&](float* out) { give_columns(encoder, m, learner.weights(p), out); });
  answer["bias"] =
      new_array<float>({m}, [&](float* out) { std::copy_n(learner.biases(p), m, out); });
  answer["scores"] = new_array<float>(
      {m + 1, k}, [&](float* out) { std::copy_n(learner.alphas(p), (m + 1) * k, out); });
  answer["best_epoch"] = result.best_epoch;
  answer["criterion"] = result.criterion;
  return answer;
}

// Trees from several starts, side by side; the best is returned. One run alone has the threads for
// its batches. `n_actions` > 0: `custom` gets what trajectories did, (n, M) actions, and returns what
// each of them costs.
nb::dict fit_reinforced(const Encoder& encoder, const nb::object& X, Array2<float> target,
                        Array1<float> weight, Array1<std::int64_t> train_rows,
                        Array1<std::int64_t> valid_rows, Array1<std::int32_t> parents,
                        int n_outputs, int n_actions, const std::string& loss,
                        double loss_parameter, nb::object custom, nb::object start, int n_runs,
                        std::uint64_t seed, int n_threads, nb::object callback,
                        const nb::dict& options) {
  const TableArrays table(encoder, X);
  ReinforcedOptions own = reinforced_options(options);
  own.learns_actions = n_actions > 0;
  require(!own.learns_actions || (own.estimator == PolicyEstimator::kSampled &&
                                  own.baseline == Baseline::kNone && n_outputs == own.n_samples),
          "actions are sampled, and outside is told of each");
  const CustomLoss outside = custom_loss(custom, n_outputs, static_cast<int>(target.shape(1)));
  const Problem problem = problem_of(encoder, table.source(), target, weight, train_rows,
                                     valid_rows, n_outputs, loss, loss_parameter, outside);
  require((problem.loss == Loss::kCustom) == own.learns_actions && n_runs >= 1,
          "the loss must be one of the engine, but for actions");
  const PolicyTopology topology = topology_of(parents);
  const TrainingOptions training = training_options(options);
  require(training.hidden.empty(), "policies have one layer");
  const auto new_learner = [&](int run) {
    return ReinforcedLearner(topology, problem.n_columns(), n_actions > 0 ? n_actions : n_outputs,
                             problem.n_targets, problem.loss, problem.loss_parameter, own,
                             training.batch_size, problem.train, problem.source.n_rows,
                             seed + static_cast<std::uint64_t>(run) * 0x9E3779B97F4A7C15u,
                             n_runs == 1 ? n_threads : 1);
  };
  const ReinforcedLearner layout = new_learner(0);
  const auto first = start_parameters(layout, encoder, start);
  Monitor monitor;
  monitor.on_epoch = epoch_callback(callback);
  const Runs runs{0, n_runs, std::nullopt, seed, n_threads};
  std::vector<TrainingResult> results = train_each(runs, monitor, [&](int run) {
    ReinforcedLearner learner = new_learner(run);
    return train(learner, problem, training, run, seed, first, monitor);
  });
  return answer_of_runs(runs, false, results, [&](const TrainingResult& result) {
    return answer_of(layout, encoder, result);
  });
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
  const std::size_t m = learner.topology().n_rows(), k = learner.n_outputs(),
                    stride = padded(static_cast<int>(d));
  nb::dict answer;
  answer["weights"] = new_array<float>({m, d}, [&](float* out) {
    for (std::size_t r = 0; r < m; ++r) std::copy_n(gradient.data() + r * stride, d, out + r * d);
  });
  answer["bias"] = new_array<float>(
      {m}, [&](float* out) { std::copy_n(learner.biases(gradient.data()), m, out); });
  answer["scores"] = new_array<float>({m + 1, k}, [&](float* out) {
    std::copy_n(learner.alphas(gradient.data()), (m + 1) * k, out);
  });
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
  const ReinforcedOptions own = reinforced_options(options);
  const Loss named_loss = loss_named(loss);
  require(named_loss != Loss::kCustom && target.shape(1) == (has_class_target(named_loss) ? 1 : k),
          "the target has another number of columns than the loss expects");
  for (std::size_t i = 0; i < n && has_class_target(named_loss); ++i)
    require(target.data()[i] >= 0 && target.data()[i] < static_cast<float>(k),
            "a class is out of range");
  PolicyRows rows(X, target, weight);
  ReinforcedLearner learner(topology, static_cast<int>(d), static_cast<int>(k),
                            static_cast<int>(target.shape(1)), named_loss,
                            static_cast<float>(loss_parameter), own, static_cast<int>(n),
                            rows.rows(), static_cast<std::int64_t>(n), seed, n_threads);
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
  Buffer<float> parameters(learner.n_parameters()), gradient(learner.n_parameters());
  for (std::size_t r = 0; r < b.size(); ++r)
    std::copy_n(W.data() + r * d, d, parameters.data() + r * padded(static_cast<int>(d)));
  std::copy_n(b.data(), b.size(), parameters.data() + learner.n_penalized());
  std::copy_n(alpha.data(), alpha.size(), parameters.data() + (parameters.size() - alpha.size()));
  double total = 0;
  {
    const nb::gil_scoped_release release;
    total = learner.add_gradient(parameters.data(), rows.tile(), 1.0f / static_cast<float>(n),
                                 nullptr, true, gradient.data());
  }
  return slopes_of(learner, d, gradient, total / static_cast<double>(n));
}

}  // namespace

void bind_learn_reinforced(nb::module_& m) {
  m.def("fit_reinforced", &fit_reinforced, nb::arg("encoder"), nb::arg("X"), nb::arg("target"),
        nb::arg("weight"), nb::arg("train_rows"), nb::arg("valid_rows"), nb::kw_only(),
        nb::arg("parents"), nb::arg("n_outputs"), nb::arg("n_actions"), nb::arg("loss"),
        nb::arg("loss_parameter"), nb::arg("custom").none(), nb::arg("start").none(),
        nb::arg("n_runs"), nb::arg("seed"), nb::arg("n_threads"), nb::arg("callback").none(),
        nb::arg("options"),
        "The best of the reinforced trees learned from several starts: {trees, history, best_run, "
        "interrupted}.");
  m.def("policy_gradient", &policy_gradient, nb::arg("X"), nb::arg("target"), nb::arg("weight"),
        nb::arg("parents"), nb::arg("policy"), nb::arg("loss"), nb::arg("loss_parameter"),
        nb::arg("uniforms").none(), nb::arg("values").none(), nb::arg("seed"), nb::arg("n_threads"),
        nb::arg("options"),
        "Gradient of the mean loss of encoded rows, sampled or exact: {weights, bias, scores, "
        "loss}.");
}

}  // namespace hardwood
