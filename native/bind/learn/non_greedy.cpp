#include "bind/learn/learning.hpp"
#include "learn/non_greedy/learner.hpp"

namespace hardwood {

namespace {

using StartTree = std::tuple<Array2<float>, Array1<float>, Array2<float>>;  // W, b, theta

TreeTopology topology_of(const Array2<std::int32_t>& children) {
  require(children.shape(0) == 0 || children.shape(1) == 2, "children must have two columns");
  return TreeTopology({children.data(), children.size()});
}

void check_start(const StartTree& start, const TreeTopology& topology, std::size_t n_columns,
                 std::size_t n_outputs) {
  const auto& [W, b, theta] = start;
  const std::size_t m = topology.n_splits();
  require(W.shape(0) == m && W.shape(1) == n_columns && b.size() == m && theta.shape(0) == m + 1 &&
              theta.shape(1) == n_outputs,
          "the start tree has another shape");
}

// [W | b | theta] of a start tree, whose columns are in the schema's order.
std::vector<float> start_parameters(const NonGreedyLearner& learner, const Encoder& encoder,
                                    const StartTree& start) {
  const auto& [W, b, theta] = start;
  std::vector<float> parameters(learner.n_parameters());
  take_columns(encoder, b.size(), W.data(), parameters.data());
  std::copy_n(b.data(), b.size(), parameters.data() + learner.n_penalized());
  std::copy_n(theta.data(), theta.size(), parameters.data() + (parameters.size() - theta.size()));
  return parameters;
}

nb::dict answer_of(const NonGreedyLearner& learner, const Encoder& encoder,
                   const TrainingResult& result) {
  const std::size_t m = learner.topology().n_splits(), d = encoder.n_columns();
  const float* p = result.parameters.data();
  const std::size_t k = (learner.n_parameters() - (learner.thetas(p) - p)) / (m + 1);
  nb::dict answer;
  answer["weights"] = new_array<float>(
      {m, d}, [&](float* out) { give_columns(encoder, m, learner.weights(p), out); });
  answer["bias"] =
      new_array<float>({m}, [&](float* out) { std::copy_n(learner.biases(p), m, out); });
  answer["scores"] = new_array<float>(
      {m + 1, k}, [&](float* out) { std::copy_n(learner.thetas(p), (m + 1) * k, out); });
  answer["best_epoch"] = result.best_epoch;
  answer["criterion"] = result.criterion;
  return answer;
}

NonGreedyOptions shared_options(const nb::dict& options, const TrainingOptions& training) {
  NonGreedyOptions shared;
  shared.inference = inference_named(nb::cast<std::string>(options["inference"]));
  shared.is_stable = nb::cast<bool>(options["stable"]);
  shared.momentum = training.step.momentum;
  shared.l1 = training.step.l1;
  shared.max_features = nb::cast<int>(options["max_features"]);
  require(shared.max_features >= 0, "options out of range");
  return shared;
}

// One run per pair of nu and learning rate, side by side; the best is returned. One run alone has
// the threads for its batches.
nb::dict fit_non_greedy(const Encoder& encoder, const nb::object& X, Array2<float> target,
                        Array1<float> weight, Array1<std::int64_t> train_rows,
                        Array1<std::int64_t> valid_rows, Array2<std::int32_t> children,
                        const StartTree& start, int n_outputs, const std::string& loss,
                        double loss_parameter, const std::vector<double>& nu,
                        const std::vector<double>& learning_rate, std::uint64_t seed, int n_threads,
                        nb::object callback, const nb::dict& options) {
  const TableArrays table(encoder, X);
  const CustomLoss outside;
  const Problem problem = problem_of(encoder, table.source(), target, weight, train_rows,
                                     valid_rows, n_outputs, loss, loss_parameter, outside);
  require(problem.loss != Loss::kCustom, "the loss must be one of the engine");
  require(!nu.empty() && nu.size() == learning_rate.size() &&
              std::ranges::all_of(nu, [](double v) { return v > 0; }),
          "options out of range");
  const TreeTopology topology = topology_of(children);
  check_start(start, topology, encoder.n_columns(), n_outputs);
  const TrainingOptions training = training_options(options);
  require(training.hidden.empty(), "non-greedy trees have one layer of splits");
  const std::vector<std::int32_t> feature_of_column =
      features_of(encoder, nb::cast<std::vector<std::int32_t>>(options["feature_of_column"]));
  NonGreedyOptions shared = shared_options(options, training);
  shared.feature_of_column = feature_of_column;
  const int n_runs = static_cast<int>(nu.size());
  const auto new_learner = [&](int run) {
    NonGreedyOptions own = shared;
    own.nu = static_cast<float>(nu[run]);
    return NonGreedyLearner(topology, problem.n_columns(), n_outputs, problem.n_targets,
                            problem.loss, problem.loss_parameter, own, training.batch_size,
                            problem.source.n_rows, n_runs == 1 ? n_threads : 1);
  };
  const NonGreedyLearner layout = new_learner(0);
  const auto first = start_parameters(layout, encoder, start);
  Monitor monitor;
  monitor.on_epoch = epoch_callback(callback);
  const Runs runs{0, n_runs, std::nullopt, seed, n_threads};
  std::vector<TrainingResult> results = train_each(runs, monitor, [&](int run) {
    TrainingOptions own = training;
    own.step.learning_rate = static_cast<float>(learning_rate[run]);
    NonGreedyLearner learner = new_learner(run);
    return train(learner, problem, own, run, seed, first, monitor);
  });
  return answer_of_runs(runs, false, results, [&](const TrainingResult& result) {
    return answer_of(layout, encoder, result);
  });
}

// Rows that are encoded already, (n, d) and (n, t), as a tile.
class EncodedTile {
 public:
  EncodedTile(const Array2<float>& X, const Array2<float>& target)
      : n_(X.shape(0)),
        d_(X.shape(1)),
        stride_(padded(static_cast<int>(d_))),
        X_(n_ * stride_),
        target_(target.size()),
        rows_(n_) {
    const std::size_t t = target.shape(1);
    for (std::size_t i = 0; i < n_; ++i) {
      std::copy_n(X.data() + i * d_, d_, X_.data() + i * stride_);
      for (std::size_t o = 0; o < t; ++o) target_[o * n_ + i] = target.data()[i * t + o];
      rows_[i] = static_cast<std::int64_t>(i);
    }
  }

  SampleTile tile() {
    const int n = static_cast<int>(n_);
    return {n,
            n,
            {X_.data(), n, static_cast<int>(d_), static_cast<std::ptrdiff_t>(stride_)},
            target_.data(),
            nullptr,
            rows_};
  }

 private:
  std::size_t n_, d_, stride_;
  Buffer<float> X_, target_;
  std::vector<std::int64_t> rows_;
};

// [W | b | theta] of a tree whose columns are in the engine's order.
Buffer<float> parameters_of(const NonGreedyLearner& learner, const StartTree& tree) {
  const auto& [W, b, theta] = tree;
  const std::size_t m = b.size(), d = W.shape(1), stride = padded(static_cast<int>(d));
  Buffer<float> parameters(learner.n_parameters());
  for (std::size_t i = 0; i < m; ++i)
    std::copy_n(W.data() + i * d, d, parameters.data() + i * stride);
  std::copy_n(b.data(), m, parameters.data() + learner.n_penalized());
  std::copy_n(theta.data(), theta.size(), parameters.data() + (parameters.size() - theta.size()));
  return parameters;
}

nb::dict found_of(const NonGreedyLearner& learner, std::size_t n) {
  const auto found = learner.found();
  const auto column = [&]<class T>(T AugmentedRow::* of_row) {
    return new_array<T>({n}, [&](T* out) {
      for (std::size_t i = 0; i < n; ++i) out[i] = found[i].*of_row;
    });
  };
  nb::dict answer;
  answer["natural"] = column(&AugmentedRow::natural);
  answer["chosen"] = column(&AugmentedRow::chosen);
  answer["loss"] = column(&AugmentedRow::loss);
  answer["bound"] = column(&AugmentedRow::bound);
  answer["n_scored"] = column(&AugmentedRow::n_scored);
  std::size_t n_moves = 0;
  for (std::size_t i = 0; i < n; ++i) n_moves += found[i].n_moves;
  const auto of_moves = [&]<class T>(auto&& entry) {
    return new_array<T>({n_moves}, [&](T* out) {
      for (std::size_t i = 0; i < n; ++i)
        for (const Move& move : learner.moves_of(static_cast<int>(i)))
          *out++ = static_cast<T>(entry(i, move));
    });
  };
  answer["move_row"] =
      of_moves.template operator()<std::int32_t>([](std::size_t i, const Move&) { return i; });
  answer["move_split"] = of_moves.template operator()<std::int32_t>(
      [](std::size_t, const Move& move) { return move.split; });
  answer["move"] = of_moves.template operator()<float>(
      [](std::size_t, const Move& move) { return move.factor; });
  return answer;
}

void check_rows(const Array2<float>& X, const Array2<float>& target, Loss loss, std::size_t k) {
  const std::size_t n = X.shape(0);
  require(loss != Loss::kCustom, "the loss must be one of the engine");
  require(n >= 1 && target.shape(0) == n && target.shape(1) == (has_class_target(loss) ? 1 : k),
          "sizes differ");
  for (std::size_t i = 0; i < n && has_class_target(loss); ++i)
    require(target.data()[i] >= 0 && target.data()[i] < static_cast<float>(k),
            "a class is out of range");
}

// Loss-augmented inference of rows that are encoded already.
nb::dict augment(Array2<float> X, Array2<float> target, Array2<std::int32_t> children,
                 const StartTree& tree, const std::string& inference, const std::string& loss,
                 double loss_parameter, std::optional<Array1<std::int32_t>> assigned) {
  const TreeTopology topology = topology_of(children);
  const std::size_t n = X.shape(0), k = std::get<2>(tree).shape(1);
  check_start(tree, topology, X.shape(1), k);
  check_rows(X, target, loss_named(loss), k);
  NonGreedyOptions options;
  options.inference = inference_named(inference);
  options.nu = std::numeric_limits<float>::infinity();
  options.is_stable = assigned.has_value();
  NonGreedyLearner learner(topology, static_cast<int>(X.shape(1)), static_cast<int>(k),
                           static_cast<int>(target.shape(1)), loss_named(loss),
                           static_cast<float>(loss_parameter), options, static_cast<int>(n),
                           static_cast<std::int64_t>(n));
  if (assigned) {
    require(assigned->size() == n, "sizes differ");
    for (std::size_t i = 0; i < n; ++i)
      require(assigned->data()[i] >= 0 && assigned->data()[i] < topology.n_leaves(),
              "a leaf is out of range");
    learner.assign({assigned->data(), n});
  }
  Buffer<float> parameters = parameters_of(learner, tree);
  EncodedTile rows(X, target);
  {
    const nb::gil_scoped_release release;
    learner.prepare(parameters.data());
    learner.augment(parameters.data(), rows.tile());
  }
  return found_of(learner, n);
}

}  // namespace

void bind_learn_non_greedy(nb::module_& m) {
  m.def("fit_non_greedy", &fit_non_greedy, nb::arg("encoder"), nb::arg("X"), nb::arg("target"),
        nb::arg("weight"), nb::arg("train_rows"), nb::arg("valid_rows"), nb::kw_only(),
        nb::arg("children"), nb::arg("start"), nb::arg("n_outputs"), nb::arg("loss"),
        nb::arg("loss_parameter"), nb::arg("nu"), nb::arg("learning_rate"), nb::arg("seed"),
        nb::arg("n_threads"), nb::arg("callback").none(), nb::arg("options"),
        "The best of the trees learned with each nu and learning rate: {trees, history, best_run, "
        "interrupted}.");
  m.def("augment", &augment, nb::arg("X"), nb::arg("target"), nb::arg("children"), nb::arg("tree"),
        nb::arg("inference"), nb::arg("loss"), nb::arg("loss_parameter"),
        nb::arg("assigned").none(),
        "Loss-augmented inference of encoded rows: {natural, chosen, loss, bound, n_scored}, and "
        "where g - h is not zero: {move_row, move_split, move}.");
}

}  // namespace hardwood
