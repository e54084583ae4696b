#include "bind/learn/learning.hpp"
#include "learn/tel/learner.hpp"

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

using StartEnsemble =
    std::tuple<Array<float, 3>, Array2<float>, Array<float, 3>>;  // weights, bias, scores

// Parameters to start from, whose columns are in the schema's order.
std::vector<float> start_parameters(const TelLearner& learner, const Encoder& encoder,
                                    const nb::object& start) {
  if (start.is_none()) return {};
  const auto [W, b, O] = nb::cast<StartEnsemble>(start);
  const SoftShape shape = learner.shape();
  const std::size_t rows = static_cast<std::size_t>(shape.n_trees) * shape.n_nodes();
  std::vector<float> parameters(learner.n_parameters());
  require(W.size() == rows * shape.n_columns && b.size() == rows && learner.n_values() == O.size(),
          "the start has another shape");
  take_columns(encoder, rows, W.data(), parameters.data());
  std::copy_n(b.data(), rows, parameters.data() + learner.n_penalized());
  std::copy_n(O.data(), O.size(), parameters.data() + (parameters.size() - O.size()));
  return parameters;
}

// Learns ensembles of soft trees from several starts; all are returned (`keep_all`), or the best.
nb::dict fit_tel(const Encoder& encoder, const nb::object& X, Array2<float> target,
                 Array1<float> weight, Array1<std::int64_t> train_rows,
                 Array1<std::int64_t> valid_rows, int n_trees, int depth, int n_outputs,
                 const std::string& activation, double gamma, bool batch_norm,
                 const std::string& loss, double loss_parameter, nb::object custom,
                 nb::object start, int n_runs, bool keep_all, std::uint64_t seed, int n_threads,
                 nb::object callback, std::size_t max_kept_scores, const nb::dict& options) {
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
                      problem.loss, problem.loss_parameter, training.batch_size, max_kept_scores);
  };
  const Runs runs{0, n_runs, std::nullopt, seed, n_threads};
  const TelLearner learner = new_learner();
  const auto first = start_parameters(learner, encoder, start);
  Monitor monitor;
  monitor.on_epoch = epoch_callback(callback);
  std::vector<TrainingResult> results =
      train_all(runs, problem, training, first, new_learner, monitor);
  return answer_of_runs(runs, keep_all, results, [&](const TrainingResult& result) {
    return answer_of(learner, encoder, result);
  });
}

}  // namespace

void bind_learn_tel(nb::module_& m) {
  m.def("fit_tel", &fit_tel, nb::arg("encoder"), nb::arg("X"), nb::arg("target"), nb::arg("weight"),
        nb::arg("train_rows"), nb::arg("valid_rows"), nb::kw_only(), nb::arg("n_trees"),
        nb::arg("depth"), nb::arg("n_outputs"), nb::arg("activation"), nb::arg("gamma"),
        nb::arg("batch_norm"), nb::arg("loss"), nb::arg("loss_parameter"), nb::arg("custom").none(),
        nb::arg("start").none(), nb::arg("n_runs"), nb::arg("keep_all"), nb::arg("seed"),
        nb::arg("n_threads"), nb::arg("callback").none(),
        nb::arg("max_kept_scores") = TelLearner::kKeptScores, nb::arg("options"),
        "Ensembles of soft trees: {trees, history, best_run, interrupted}, as fit_dgt. A step "
        "keeps at "
        "most max_kept_scores of its way down for its way back.");
}

}  // namespace hardwood
