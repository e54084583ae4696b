// What bindings of all learners share: options, tables, problems, and runs over threads.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <tuple>

#include "bind/interruptible.hpp"
#include "bind/model/table_arrays.hpp"
#include "bind/options.hpp"
#include "core/threads.hpp"
#include "learn/loop/bootstrap.hpp"
#include "learn/loop/training.hpp"

namespace hardwood {

// Options of the loop, by Python's keyword arguments.
inline TrainingOptions training_options(const nb::dict& options) {
  const auto number = [&](const char* key) { return nb::cast<double>(options[key]); };
  const auto text = [&](const char* key) { return nb::cast<std::string>(options[key]); };
  TrainingOptions o;
  o.max_epochs = nb::cast<int>(options["max_epochs"]);
  o.batch_size = nb::cast<int>(options["batch_size"]);
  o.schedule = schedule_named(text("schedule"));
  o.schedule_cycles = nb::cast<int>(options["schedule_cycles"]);
  o.clip_norm = static_cast<float>(number("clip_norm"));
  o.patience = nb::cast<int>(options["patience"]);
  o.hidden = nb::cast<std::vector<int>>(options["hidden"]);
  o.step.optimizer = optimizer_named(text("optimizer"));
  o.step.learning_rate = static_cast<float>(number("learning_rate"));
  o.step.momentum = static_cast<float>(number("momentum"));
  o.step.decay = static_cast<float>(number("decay"));
  o.step.epsilon = static_cast<float>(number("epsilon"));
  o.step.l1 = static_cast<float>(number("l1"));
  o.step.l2 = static_cast<float>(number("l2"));
  require(o.max_epochs >= 0 && o.batch_size >= 1 && o.schedule_cycles >= 1 &&
              std::ranges::all_of(o.hidden, [](int size) { return size >= 1; }),
          "options out of range");
  return o;
}

// A Python callable (prediction, target) -> (values or None, gradient).
inline CustomLoss custom_loss(nb::object function, int n_outputs, int n_targets) {
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
inline std::function<bool(const EpochRecord&)> epoch_callback(nb::object callback) {
  if (callback.is_none()) return {};
  return [callback](const EpochRecord& r) {
    const nb::gil_scoped_acquire acquire;
    return nb::cast<bool>(callback(r.restart, r.epoch, r.train_loss, r.validation_loss,
                                   r.learning_rate, r.reachable_leaves, r.train_bound));
  };
}

inline std::span<const std::int64_t> checked_rows(const Array1<std::int64_t>& rows,
                                                  std::int64_t n) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    require(rows.data()[i] >= 0 && rows.data()[i] < n, "a row index is out of range");
  return {rows.data(), rows.size()};
}

// Weights (rows, columns) from the schema's order of columns to the engine's, whose rows are padded.
inline void take_columns(const Encoder& encoder, std::size_t rows, const float* from, float* to) {
  const std::size_t d = encoder.n_columns(), stride = padded(static_cast<int>(d));
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t c = 0; c < d; ++c) to[i * stride + c] = from[i * d + encoder.column_of()[c]];
}

inline void give_columns(const Encoder& encoder, std::size_t rows, const float* from, float* to) {
  const std::size_t d = encoder.n_columns(), stride = padded(static_cast<int>(d));
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t c = 0; c < d; ++c) to[i * d + encoder.column_of()[c]] = from[i * stride + c];
}

// Which feature each of the engine's columns is of, from those of the schema's columns.
inline std::vector<std::int32_t> features_of(const Encoder& encoder,
                                             const std::vector<std::int32_t>& given) {
  require(static_cast<int>(given.size()) == encoder.n_columns() &&
              std::ranges::all_of(given, [](std::int32_t f) { return f >= 0; }),
          "options out of range");
  std::vector<std::int32_t> features(given.size());
  for (std::size_t c = 0; c < given.size(); ++c) features[c] = given[encoder.column_of()[c]];
  return features;
}

inline nb::list history_of(const TrainingResult& result) {
  nb::list history;
  for (const EpochRecord& r : result.history)
    history.append(nb::make_tuple(r.restart, r.epoch, r.train_loss, r.validation_loss,
                                  r.learning_rate, r.reachable_leaves, r.train_bound));
  return history;
}

// What one member of a forest learns from: the rows drawn for it, weighted by how often.
struct BootstrapSample {
  std::vector<std::int64_t> rows;
  std::vector<float> weight;

  BootstrapSample(const Problem& problem, std::size_t n_draws, std::uint64_t seed, int member)
      : weight(problem.weight, problem.weight + problem.source.n_rows) {
    const std::size_t n = problem.train.size();
    const auto counts = bootstrap_counts(n, n_draws, seed, member);
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (counts[i] == 0) continue;
      const std::int64_t row = problem.train[i];
      rows.push_back(row);
      total += weight[row] *= static_cast<float>(counts[i]);
    }
    if (!(total > 0)) return;  // weights too small for float32: all rows drawn count nothing
    const auto to_mean_one = static_cast<float>(static_cast<double>(rows.size()) / total);
    for (const std::int64_t row : rows) weight[row] *= to_mean_one;
  }
};

inline Problem problem_of(const Encoder& encoder, const Source& source, const Array2<float>& target,
                          const Array1<float>& weight, const Array1<std::int64_t>& train_rows,
                          const Array1<std::int64_t>& valid_rows, int n_outputs,
                          const std::string& loss, double loss_parameter,
                          const CustomLoss& custom) {
  Problem problem;
  problem.encoding = encoder.encoding();
  problem.source = source;
  problem.target = target.data();
  problem.n_targets = static_cast<int>(target.shape(1));
  problem.weight = weight.data();
  problem.loss = loss_named(loss);
  problem.loss_parameter = static_cast<float>(loss_parameter);
  problem.n_outputs = n_outputs;
  require(n_outputs >= 1, "options out of range");
  require(static_cast<std::int64_t>(target.shape(0)) == source.n_rows &&
              static_cast<std::int64_t>(weight.size()) == source.n_rows,
          "X, target and weight differ in length");
  require(problem.loss == Loss::kCustom ||
              problem.n_targets == (has_class_target(problem.loss) ? 1 : n_outputs),
          "the target has another number of columns than the loss expects");
  problem.train = checked_rows(train_rows, source.n_rows);
  problem.valid = checked_rows(valid_rows, source.n_rows);
  require(!problem.train.empty(), "no rows to learn from");
  problem.custom = &custom;
  return problem;
}

// Trees that are learned side by side: restarts, or members of a forest.
struct Runs {
  int first = 0;
  int n = 1;
  std::optional<std::size_t> n_draws;  // of a bootstrap sample for each; none: all rows, once
  std::uint64_t seed = 0;
  int n_threads = 1;
};

// Calls train_one(i) for each run, over threads; interrupts stop them, an error in one ends them all.
template <class TrainOne>
std::vector<TrainingResult> train_each(const Runs& runs, Monitor& monitor, TrainOne&& train_one) {
  std::vector<TrainingResult> results(runs.n);
  std::atomic<bool> failed{false};
  const auto work = [&] {
    parallel_for(runs.n, runs.n_threads, [&](int i) {
      if (failed) return;  // nobody will see the results
      try {
        results[i] = train_one(i);
      } catch (...) {
        failed = monitor.stop = true;
        throw;
      }
    });
  };
  run_interruptible(work, [&] { monitor.stop = true; });
  return results;
}

template <class NewLearner>
std::vector<TrainingResult> train_all(const Runs& runs, const Problem& problem,
                                      const TrainingOptions& training, std::span<const float> start,
                                      NewLearner&& new_learner, Monitor& monitor) {
  return train_each(runs, monitor, [&](int i) {
    auto learner = new_learner();
    const int run = runs.first + i;
    if (!runs.n_draws) return train(learner, problem, training, run, runs.seed, start, monitor);
    const BootstrapSample sample(problem, *runs.n_draws, runs.seed, run);
    Problem own = problem;
    own.train = sample.rows;
    own.weight = sample.weight.data();
    return train(learner, own, training, run, runs.seed, start, monitor);
  });
}

// What Python gets of all runs; answer_of(result) makes the answer of one.
template <class AnswerOf>
nb::dict answer_of_runs(const Runs& runs, bool keep_all, std::vector<TrainingResult>& results,
                        AnswerOf&& answer_of) {
  int best = 0;
  bool interrupted = false;
  nb::list histories, kept;
  for (int i = 0; i < runs.n; ++i) {
    if (results[i].criterion < results[best].criterion) best = i;
    interrupted |= results[i].interrupted;
    histories.append(history_of(results[i]));
  }
  for (int i = 0; i < runs.n; ++i)
    if (keep_all || i == best) kept.append(answer_of(results[i]));
  nb::dict answer;
  answer["trees"] = kept;
  answer["history"] = histories;
  answer["best_run"] = runs.first + best;
  answer["interrupted"] = interrupted;
  return answer;
}

}  // namespace hardwood
