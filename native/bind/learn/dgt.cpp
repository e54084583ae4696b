#include "bind/learn/learning.hpp"
#include "learn/dgt/learner.hpp"

namespace hardwood {

namespace {

Annealing annealing_of(const nb::dict& options) {
  const auto [first, last] = nb::cast<std::pair<float, float>>(options["sharpness"]);
  require(first > 0 && last >= first, "sharpness must be positive and not fall");
  return {first, last,
          named<bool>(nb::cast<std::string>(options["annealing"]), "annealing",
                      {{"linear", false}, {"log", true}})};
}

using StartTree = std::tuple<Array2<float>, Array1<float>, Array2<float>,
                             std::optional<Array<float, 3>>>;  // W, b, theta, A

// Parameters of a start tree, whose columns are in the schema's order.
std::vector<float> start_parameters(const DgtLearner& learner, const Encoder& encoder,
                                    const nb::object& start) {
  if (start.is_none()) return {};
  const auto [W, b, theta, A] = nb::cast<StartTree>(start);
  const DgtShape shape = learner.shape();
  const std::size_t m = shape.n_nodes(), d = shape.n_columns, leaves = shape.n_leaves(),
                    k = shape.n_outputs;
  require(W.shape(0) == m && W.shape(1) == d && b.size() == m && theta.shape(0) == leaves &&
              theta.shape(1) == k && (!A || A->size() == leaves * k * d),
          "the start tree has another shape");
  std::vector<float> parameters(learner.n_parameters());
  const DgtParameters p = learner.view(parameters.data());
  take_columns(encoder, m, W.data(), p.W);
  if (A && p.A) take_columns(encoder, leaves * k, A->data(), p.A);
  std::copy_n(b.data(), m, p.b);
  std::copy_n(theta.data(), theta.size(), p.theta);
  return parameters;
}

nb::dict answer_of(const DgtLearner& learner, const Encoder& encoder, TrainingResult& result) {
  const DgtShape shape = learner.shape();
  const std::size_t m = shape.n_nodes(), d = shape.n_columns, leaves = shape.n_leaves(),
                    k = shape.n_outputs;
  const DgtParameters p = learner.view(result.parameters.data());
  nb::dict answer;
  answer["weights"] =
      new_array<float>({m, d}, [&](float* out) { give_columns(encoder, m, p.W, out); });
  answer["bias"] = new_array<float>({m}, [&](float* out) { std::copy_n(p.b, m, out); });
  answer["scores"] =
      new_array<float>({leaves, k}, [&](float* out) { std::copy_n(p.theta, leaves * k, out); });
  answer["leaf_weights"] = nb::none();
  if (p.A)
    answer["leaf_weights"] = new_array<float>(
        {leaves, k, d}, [&](float* out) { give_columns(encoder, leaves * k, p.A, out); });
  answer["best_epoch"] = result.best_epoch;
  answer["criterion"] = result.criterion;
  answer["soft_criterion"] = result.soft_criterion;
  return answer;
}

// Trains several trees over threads: restarts, of which the best is returned, or members of a forest
// (`keep_all`), each from a bootstrap sample of its own where there are `n_draws`.
nb::dict fit_dgt(const Encoder& encoder, const nb::object& X, Array2<float> target,
                 Array1<float> weight, Array1<std::int64_t> train_rows,
                 Array1<std::int64_t> valid_rows, int height, int n_outputs,
                 const std::string& loss, double loss_parameter, nb::object custom,
                 nb::object start, int first_run, int n_runs, std::optional<std::size_t> n_draws,
                 bool keep_all, std::uint64_t seed, int n_threads, nb::object callback,
                 const nb::dict& options) {
  const TableArrays table(encoder, X);
  const CustomLoss outside = custom_loss(custom, n_outputs, static_cast<int>(target.shape(1)));
  const Problem problem = problem_of(encoder, table.source(), target, weight, train_rows,
                                     valid_rows, n_outputs, loss, loss_parameter, outside);
  require(height >= 1 && height <= 20 && first_run >= 0 && n_runs >= 1 && n_draws != 0u,
          "options out of range");
  const TrainingOptions training = training_options(options);
  const DgtShape shape{height, problem.n_columns(), n_outputs,
                       nb::cast<bool>(options["linear_leaves"])};
  const DgtForm form = form_named(nb::cast<std::string>(options["path"]),
                                  nb::cast<std::string>(options["quantizer"]),
                                  nb::cast<std::string>(options["routing"]));
  const Annealing annealing = annealing_of(options);
  const auto new_learner = [&] {
    return DgtLearner(shape, form, annealing, problem.loss, problem.loss_parameter,
                      training.batch_size);
  };
  const Runs runs{first_run, n_runs, n_draws, seed, n_threads};
  const auto first = start_parameters(new_learner(), encoder, start);
  Monitor monitor;
  monitor.on_epoch = epoch_callback(callback);
  std::vector<TrainingResult> results =
      train_all(runs, problem, training, first, new_learner, monitor);
  const DgtLearner learner = new_learner();
  return answer_of_runs(runs, keep_all, results, [&](TrainingResult& result) {
    return answer_of(learner, encoder, result);
  });
}

}  // namespace

void bind_learn_dgt(nb::module_& m) {
  m.def("fit_dgt", &fit_dgt, nb::arg("encoder"), nb::arg("X"), nb::arg("target"), nb::arg("weight"),
        nb::arg("train_rows"), nb::arg("valid_rows"), nb::kw_only(), nb::arg("height"),
        nb::arg("n_outputs"), nb::arg("loss"), nb::arg("loss_parameter"), nb::arg("custom").none(),
        nb::arg("start").none(), nb::arg("first_run"), nb::arg("n_runs"), nb::arg("n_draws").none(),
        nb::arg("keep_all"), nb::arg("seed"), nb::arg("n_threads"), nb::arg("callback").none(),
        nb::arg("options"), "Trees learned side by side: {trees, history, best_run, interrupted}.");
  m.def("bootstrap_counts", &bootstrap_counts, nb::arg("n_rows"), nb::arg("n_draws"),
        nb::arg("seed"), nb::arg("member"),
        "How often each row is drawn for a member of a forest.");
}

}  // namespace hardwood
