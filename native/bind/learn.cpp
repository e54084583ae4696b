#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "bind/encoder.hpp"
#include "bind/interruptible.hpp"
#include "bind/options.hpp"
#include "core/threads.hpp"
#include "learn/dgt_learner.hpp"

namespace hardwood {

namespace {

// Options of the loop, by Python's keyword arguments.
TrainingOptions training_options(const nb::dict& options) {
  const auto number = [&](const char* key) { return nb::cast<double>(options[key]); };
  const auto text = [&](const char* key) { return nb::cast<std::string>(options[key]); };
  TrainingOptions o;
  o.max_epochs = nb::cast<int>(options["max_epochs"]);
  o.batch_size = nb::cast<int>(options["batch_size"]);
  o.schedule = schedule_named(text("schedule"));
  o.schedule_cycles = nb::cast<int>(options["schedule_cycles"]);
  o.clip_norm = static_cast<float>(number("clip_norm"));
  o.patience = nb::cast<int>(options["patience"]);
  o.step.optimiser = optimiser_named(text("optimizer"));
  o.step.learning_rate = static_cast<float>(number("learning_rate"));
  o.step.momentum = static_cast<float>(number("momentum"));
  o.step.decay = static_cast<float>(number("decay"));
  o.step.epsilon = static_cast<float>(number("epsilon"));
  o.step.l1 = static_cast<float>(number("l1"));
  o.step.l2 = static_cast<float>(number("l2"));
  require(o.max_epochs >= 0 && o.batch_size >= 1 && o.schedule_cycles >= 1, "options out of range");
  return o;
}

// A Python callable (prediction, target) -> (values or None, gradient).
CustomLoss custom_loss(nb::object function, int n_outputs, int n_targets) {
  return [function, n_outputs, n_targets](int n, const float* prediction, const float* target,
                                          float* gradient, float* values) {
    const nb::gil_scoped_acquire acquire;
    const std::size_t rows = n, k = n_outputs, t = n_targets;
    auto predictions =
        new_array<float>({rows, k}, [&](float* to) { std::copy_n(prediction, rows * k, to); });
    auto targets =
        new_array<float>({rows, t}, [&](float* to) { std::copy_n(target, rows * t, to); });
    nb::object answer = function(predictions, targets);
    const auto [given_values, given] =
        nb::cast<std::tuple<std::optional<Array1<float>>, Array2<float>>>(answer);
    require(given.shape(0) == rows && given.shape(1) == k,
            "the custom loss returned a gradient of another shape");
    std::copy_n(given.data(), rows * k, gradient);
    if (!given_values) return false;
    require(given_values->size() == rows, "the custom loss returned values of another length");
    std::copy_n(given_values->data(), rows, values);
    return true;
  };
}

// Calls back into Python once per epoch. Runs at once on several threads share the GIL, one call at
// a time.
std::function<bool(const EpochRecord&)> epoch_callback(nb::object callback) {
  if (callback.is_none()) return {};
  return [callback](const EpochRecord& r) {
    const nb::gil_scoped_acquire acquire;
    return nb::cast<bool>(
        callback(r.restart, r.epoch, r.train_loss, r.validation_loss, r.learning_rate));
  };
}

std::span<const std::int64_t> checked_rows(const Array1<std::int64_t>& rows, std::int64_t n) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    require(rows.data()[i] >= 0 && rows.data()[i] < n, "a row index is out of range");
  return {rows.data(), rows.size()};
}

// Parameters [W | b | theta] of a start tree. W is (m, columns) in the engine's order of columns.
std::vector<float> start_parameters(const DgtLearner& learner, const Encoder& encoder,
                                    const nb::object& start) {
  if (start.is_none()) return {};
  const auto [W, b, theta] =
      nb::cast<std::tuple<Array2<float>, Array1<float>, Array2<float>>>(start);
  const DgtShape shape = learner.shape();
  const std::size_t m = shape.n_nodes(), d = shape.n_columns, leaves = shape.n_leaves();
  require(W.shape(0) == m && W.shape(1) == d && b.size() == m && theta.shape(0) == leaves &&
              static_cast<int>(theta.shape(1)) == shape.n_outputs,
          "the start tree has another shape");
  std::vector<float> parameters(learner.n_parameters());
  const DgtParameters p = learner.view(parameters.data());
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t c = 0; c < d; ++c)
      p.W[i * padded(static_cast<int>(d)) + c] = W.data()[i * d + encoder.column_of()[c]];
  std::copy_n(b.data(), m, p.b);
  std::copy_n(theta.data(), theta.size(), p.theta);
  return parameters;
}

nb::list history_of(const TrainingResult& result) {
  nb::list history;
  for (const EpochRecord& r : result.history)
    history.append(
        nb::make_tuple(r.restart, r.epoch, r.train_loss, r.validation_loss, r.learning_rate));
  return history;
}

nb::dict answer_of(const DgtLearner& learner, const Encoder& encoder, TrainingResult& result) {
  const DgtShape shape = learner.shape();
  const std::size_t m = shape.n_nodes(), d = shape.n_columns, leaves = shape.n_leaves(),
                    k = shape.n_outputs;
  const DgtParameters p = learner.view(result.parameters.data());
  nb::dict answer;
  answer["weights"] = new_array<float>({m, d}, [&](float* out) {
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t c = 0; c < d; ++c)
        out[i * d + encoder.column_of()[c]] = p.W[i * padded(static_cast<int>(d)) + c];
  });
  answer["bias"] = new_array<float>({m}, [&](float* out) { std::copy_n(p.b, m, out); });
  answer["scores"] =
      new_array<float>({leaves, k}, [&](float* out) { std::copy_n(p.theta, leaves * k, out); });
  return answer;
}

nb::dict fit_dgt(const Encoder& encoder, const Source& source, Array2<float> target,
                 Array1<float> weight, Array1<std::int64_t> train_rows,
                 Array1<std::int64_t> valid_rows, int height, int n_outputs,
                 const std::string& loss, double loss_parameter, nb::object custom,
                 nb::object start, int restarts, std::uint64_t seed, int n_threads,
                 nb::object callback, const nb::dict& options) {
  Problem problem;
  problem.encoding = encoder.encoding();
  problem.source = source;
  problem.target = target.data();
  problem.n_targets = static_cast<int>(target.shape(1));
  problem.weight = weight.data();
  problem.loss = loss_named(loss);
  problem.loss_parameter = static_cast<float>(loss_parameter);
  problem.n_outputs = n_outputs;
  require(static_cast<std::int64_t>(target.shape(0)) == source.n_rows &&
              static_cast<std::int64_t>(weight.size()) == source.n_rows,
          "X, target and weight differ in length");
  require(problem.loss == Loss::kCustom ||
              problem.n_targets == (has_class_target(problem.loss) ? 1 : n_outputs),
          "the target has another number of columns than the loss expects");
  require(height >= 1 && height <= 20 && n_outputs >= 1 && restarts >= 1, "options out of range");
  problem.train = checked_rows(train_rows, source.n_rows);
  problem.valid = checked_rows(valid_rows, source.n_rows);
  require(!problem.train.empty(), "no rows to learn from");
  if (problem.loss == Loss::kCustom)
    problem.custom = custom_loss(custom, n_outputs, problem.n_targets);

  const TrainingOptions training = training_options(options);
  const DgtShape shape{height, problem.n_columns(), n_outputs};
  const auto new_learner = [&] {
    return DgtLearner(shape, problem.loss, problem.loss_parameter, training.batch_size);
  };
  const auto first = start_parameters(new_learner(), encoder, start);
  Monitor monitor;
  monitor.on_epoch = epoch_callback(callback);
  std::vector<TrainingResult> results(restarts);
  run_interruptible(
      [&] {
        parallel_for(restarts, n_threads, [&](int restart) {
          try {
            DgtLearner learner = new_learner();
            results[restart] = train(learner, problem, training, restart, seed, first, monitor);
          } catch (...) {
            monitor.stop = true;  // an error in one restart ends them all
            throw;
          }
        });
      },
      [&] { monitor.stop = true; });

  int best = 0;
  bool interrupted = false;
  nb::list histories;
  for (int r = 0; r < restarts; ++r) {
    if (results[r].criterion < results[best].criterion) best = r;
    interrupted |= results[r].interrupted;
    histories.append(history_of(results[r]));
  }
  nb::dict answer = answer_of(new_learner(), encoder, results[best]);
  answer["history"] = histories;
  answer["best_restart"] = best;
  answer["best_epoch"] = results[best].best_epoch;
  answer["interrupted"] = interrupted;
  return answer;
}

template <class T>
nb::dict fit_dgt_dense(const Encoder& encoder, Array2<T> X, Array2<float> target,
                       Array1<float> weight, Array1<std::int64_t> train_rows,
                       Array1<std::int64_t> valid_rows, int height, int n_outputs,
                       const std::string& loss, double loss_parameter, nb::object custom,
                       nb::object start, int restarts, std::uint64_t seed, int n_threads,
                       nb::object callback, const nb::dict& options) {
  return fit_dgt(encoder, source_of(encoder, X), target, weight, train_rows, valid_rows, height,
                 n_outputs, loss, loss_parameter, custom, start, restarts, seed, n_threads,
                 callback, options);
}

template <class T>
nb::dict fit_dgt_csr(const Encoder& encoder,
                     std::tuple<Array1<T>, Array1<std::int32_t>, Array1<std::int64_t>> X,
                     Array2<float> target, Array1<float> weight, Array1<std::int64_t> train_rows,
                     Array1<std::int64_t> valid_rows, int height, int n_outputs,
                     const std::string& loss, double loss_parameter, nb::object custom,
                     nb::object start, int restarts, std::uint64_t seed, int n_threads,
                     nb::object callback, const nb::dict& options) {
  return fit_dgt(encoder, source_of(encoder, std::get<0>(X), std::get<1>(X), std::get<2>(X)),
                 target, weight, train_rows, valid_rows, height, n_outputs, loss, loss_parameter,
                 custom, start, restarts, seed, n_threads, callback, options);
}

template <class Function>
void define_fit(nb::module_& m, Function function) {
  m.def("fit_dgt", function, nb::arg("encoder"), nb::arg("X").noconvert(), nb::arg("target"),
        nb::arg("weight"), nb::arg("train_rows"), nb::arg("valid_rows"), nb::kw_only(),
        nb::arg("height"), nb::arg("n_outputs"), nb::arg("loss"), nb::arg("loss_parameter"),
        nb::arg("custom").none(), nb::arg("start").none(), nb::arg("restarts"), nb::arg("seed"),
        nb::arg("n_threads"), nb::arg("callback").none(), nb::arg("options"));
}

}  // namespace

void bind_learn(nb::module_& m) {
  define_fit(m, &fit_dgt_dense<float>);
  define_fit(m, &fit_dgt_dense<double>);
  define_fit(m, &fit_dgt_csr<float>);
  define_fit(m, &fit_dgt_csr<double>);
}

}  // namespace hardwood
