#include "bind/learning.hpp"
#include "learn/tel_learner.hpp"

namespace hardwood {

namespace {

nb::dict answer_of(const TelLearner& learner, const Encoder& encoder,
                   const TrainingResult& result) {
  const SoftShape shape = learner.shape();
  const std::size_t trees = shape.n_trees, m = shape.n_nodes(), leaves = shape.n_leaves(),
                    d = shape.n_columns, k = shape.n_outputs;
  const float* p = result.parameters.data();
  nb::dict answer;
  answer["weights"] = new_array<float>({trees, m, d}, [&](float* out) {
    give_columns(encoder, trees * m, learner.weights(p), out);
  });
  answer["bias"] = new_array<float>(
      {trees, m}, [&](float* out) { std::copy_n(learner.biases(p), trees * m, out); });
  answer["scores"] = new_array<float>({trees, leaves, k}, [&](float* out) {
    std::copy_n(learner.values(p), trees * leaves * k, out);
  });
  answer["best_epoch"] = result.best_epoch;
  answer["criterion"] = result.criterion;
  return answer;
}

// Learns ensembles of soft trees from several starts; the best is returned.
nb::dict fit_tel(const Encoder& encoder, const nb::object& X, Array2<float> target,
                 Array1<float> weight, Array1<std::int64_t> train_rows,
                 Array1<std::int64_t> valid_rows, int n_trees, int depth, int n_outputs,
                 const std::string& activation, double gamma, bool batch_norm,
                 const std::string& loss, double loss_parameter, nb::object custom, int n_runs,
                 std::uint64_t seed, int n_threads, nb::object callback, const nb::dict& options) {
  const TableArrays table(encoder, X);
  const CustomLoss outside = custom_loss(custom, n_outputs, static_cast<int>(target.shape(1)));
  const Problem problem = problem_of(encoder, table.source(), target, weight, train_rows,
                                     valid_rows, n_outputs, loss, loss_parameter, outside);
  require(n_trees >= 1 && depth >= 1 && depth <= kDeepestSoftTree && gamma > 0 && n_runs >= 1,
          "options out of range");
  const TrainingOptions training = training_options(options);
  require(training.hidden.empty(), "soft trees have one layer of splits");
  const SoftShape shape{n_trees, depth, problem.n_columns(), n_outputs};
  const auto new_learner = [&] {
    return TelLearner(shape, activation_named(activation), static_cast<float>(gamma), batch_norm,
                      problem.loss, problem.loss_parameter, training.batch_size);
  };
  const Runs runs{0, n_runs, std::nullopt, seed, n_threads};
  Monitor monitor;
  monitor.on_epoch = epoch_callback(callback);
  std::vector<TrainingResult> results =
      train_all(runs, problem, training, {}, new_learner, monitor);
  const TelLearner learner = new_learner();
  return answer_of_runs(runs, false, results, [&](const TrainingResult& result) {
    return answer_of(learner, encoder, result);
  });
}

}  // namespace

void bind_learn_tel(nb::module_& m) {
  m.def("fit_tel", &fit_tel, nb::arg("encoder"), nb::arg("X"), nb::arg("target"), nb::arg("weight"),
        nb::arg("train_rows"), nb::arg("valid_rows"), nb::kw_only(), nb::arg("n_trees"),
        nb::arg("depth"), nb::arg("n_outputs"), nb::arg("activation"), nb::arg("gamma"),
        nb::arg("batch_norm"), nb::arg("loss"), nb::arg("loss_parameter"), nb::arg("custom").none(),
        nb::arg("n_runs"), nb::arg("seed"), nb::arg("n_threads"), nb::arg("callback").none(),
        nb::arg("options"),
        "An ensemble of soft trees: {trees, history, best_run, interrupted}, as fit_dgt.");
}

}  // namespace hardwood
