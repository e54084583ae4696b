// One function for all gradient methods, whose parameters have a Layout.
#include <array>
#include <cmath>
#include <numeric>

#include "bind/learn/learning.hpp"
#include "bind/learn/methods.hpp"
#include "learn/loop/bootstrap.hpp"

namespace hardwood {

namespace {

TrainingOptions training_options(OptionReader& options, std::size_t n_train) {
  TrainingOptions o;
  o.max_epochs = options.get<int>("max_epochs", 0, std::numeric_limits<int>::max());
  // No batch has more rows than there are.
  o.batch_size = static_cast<int>(std::min<std::size_t>(
      options.get<int>("batch_size", 1, std::numeric_limits<int>::max()), n_train));
  o.schedule = schedule_named(options.get<std::string>("schedule"));
  o.schedule_cycles = options.get<int>("schedule_cycles", 1, std::numeric_limits<int>::max());
  o.clip_norm = options.number("clip_norm", 0, std::numeric_limits<double>::infinity());
  o.noise = options.number("noise");
  o.patience = options.get<int>("patience", 0, std::numeric_limits<int>::max());
  o.hidden = options.list<int>("hidden", 1, kMany);
  o.step.optimizer = optimizer_named(options.get<std::string>("optimizer"));
  o.step.momentum = options.number("momentum");
  o.step.decay = options.number("decay");
  o.step.epsilon = options.number("epsilon");
  o.step.l1 = options.number("l1");
  o.step.l2 = options.number("l2");
  return o;
}

// A number for all runs, or a list with one for each.
std::vector<double> learning_rates(OptionReader& options, std::size_t n_runs) {
  if (const auto rate = options.find<nb::object>("learning_rate");
      rate && nb::isinstance<nb::list>(*rate))
    return options.list<double>("learning_rate", 0, OptionReader::kMost, n_runs);
  return std::vector<double>(n_runs, options.get<double>("learning_rate", 0, OptionReader::kMost));
}

// A Python callable (prediction, target) -> (values or None, gradient).
CustomLoss custom_loss(const nb::object& function, int n_outputs, int n_targets) {
  return [function, n_outputs, n_targets](int n, const float* prediction, const float* target,
                                          float* gradient, float* values) {
    const nb::gil_scoped_acquire acquire;
    const std::size_t rows = n, k = n_outputs, t = n_targets;
    auto predictions =
        new_array<float>({rows, k}, [&](float* to) { std::copy_n(prediction, rows * k, to); });
    auto targets =
        new_array<float>({rows, t}, [&](float* to) { std::copy_n(target, rows * t, to); });
    nb::object answer = function(predictions, targets);
    std::tuple<std::optional<Array1<float>>, Array2<float>> parts;
    require(nb::try_cast(answer, parts),
            "the custom loss must return its values or None, and its gradient");
    const auto& [given_values, given] = parts;
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
std::function<bool(const EpochRecord&)> epoch_callback(const nb::object& callback) {
  if (callback.is_none()) return {};
  return [callback](const EpochRecord& r) {
    const nb::gil_scoped_acquire acquire;
    bool stops = false;
    require(nb::try_cast(callback(r.restart, r.epoch, r.train_loss, r.validation_loss,
                                  r.learning_rate, r.reachable_leaves, r.train_bound),
                         stops),
            "the callback must return whether to stop");
    return stops;
  };
}

nb::list history_of(const TrainingResult& result) {
  nb::list history;
  for (const EpochRecord& r : result.history)
    history.append(nb::make_tuple(r.restart, r.epoch, r.train_loss, r.validation_loss,
                                  r.learning_rate, r.reachable_leaves, r.train_bound));
  return history;
}

Problem problem_of(const Encoder& encoder, const Source& source, const Array2<float>& y,
                   const Array1<float>& weight, const Array1<std::int64_t>& train,
                   const Array1<std::int64_t>& valid, int n_outputs, const std::string& loss,
                   double loss_parameter) {
  Problem problem;
  problem.encoding = encoder.encoding();
  problem.source = source;
  problem.target = y.data();
  problem.n_targets = static_cast<int>(y.shape(1));
  problem.weight = weight.data();
  problem.loss = loss_named(loss);
  problem.loss_parameter = static_cast<float>(loss_parameter);
  problem.n_outputs = n_outputs;
  require(static_cast<std::int64_t>(y.shape(0)) == source.n_rows &&
              static_cast<std::int64_t>(weight.size()) == source.n_rows,
          "matrix, y and weight differ in length");
  problem.train = checked_rows(train, source.n_rows);
  problem.valid = checked_rows(valid, source.n_rows);
  check(problem);
  return problem;
}

constexpr std::int64_t kMostDraws = std::int64_t{1} << 40;
constexpr std::int64_t kMostRows = std::int64_t{1} << 30;

// For Python: the bootstrap samples of the trees of a forest.
auto counts_of_member(std::int64_t n_rows, std::int64_t n_draws, std::uint64_t seed, int member) {
  checked_range("n_rows", n_rows, 1, kMostRows);
  checked_range("n_draws", n_draws, 0, kMostDraws);
  checked_range("member", member, 0, kMany);
  std::vector<std::uint32_t> counts;
  run_whole([&](const std::atomic<bool>& stop) {
    counts = bootstrap_counts(n_rows, n_draws, seed, member, &stop);
  });
  return new_array<std::uint32_t>({counts.size()},
                                  [&](std::uint32_t* out) { std::ranges::copy(counts, out); });
}

// Copies of the indices and targets for the whole call, because a callback or a custom loss could
// change them after they were checked.
struct OwnArrays {
  std::vector<float> target, weight;
  std::vector<std::int64_t> train, valid, indptr;
  std::vector<std::int32_t> indices;

  explicit OwnArrays(Problem& problem)
      : target(problem.target, problem.target + problem.source.n_rows * problem.n_targets),
        weight(problem.weight, problem.weight + problem.source.n_rows),
        train(problem.train.begin(), problem.train.end()),
        valid(problem.valid.begin(), problem.valid.end()) {
    Source& source = problem.source;
    if (source.indptr) {
      indptr.assign(source.indptr, source.indptr + source.n_rows + 1);
      indices.assign(source.indices, source.indices + indptr.back());
      source.indptr = indptr.data();
      source.indices = indices.data();
    }
    problem.target = target.data();
    problem.weight = weight.data();
    problem.train = train;
    problem.valid = valid;
  }
  OwnArrays(const OwnArrays&) = delete;
};

Runs checked(const Runs& runs) {
  checked_range("first_run", runs.first, 0, kMany);
  checked_range("n_runs", runs.n, 1, kMany);
  if (runs.n_draws) checked_range("n_draws", *runs.n_draws, 1, kMostDraws);
  checked_threads(runs.n_threads);
  return runs;
}

// The training rows of one tree of a forest: the sampled rows, weighted by their counts.
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

// An array that Python has of the parameters; their rows of columns are padded here, and there in the
// schema's order.
template <class T>
struct ModelPart {
  const char* name;
  std::vector<std::size_t> shape;
  bool has_columns;
  T* values;  // null where the model has no such part

  std::size_t n_rows() const { return product(shape.size() - 1); }
  std::size_t size() const { return product(shape.size()); }

 private:
  std::size_t product(std::size_t n) const {
    return std::accumulate(shape.begin(), shape.begin() + n, std::size_t{1}, std::multiplies<>());
  }
};

template <class T>
std::array<ModelPart<T>, 4> parts_of(const Layout& layout, std::size_t n_trees, T* parameters) {
  const auto shape = [&](std::size_t n, std::initializer_list<std::size_t> rest) {
    std::vector<std::size_t> sizes{n};
    if (n_trees > 0) sizes = {n_trees, n / n_trees};
    sizes.insert(sizes.end(), rest);
    return sizes;
  };
  const std::size_t d = layout.n_columns, k = layout.n_outputs;
  const Parameters<T> p = layout.view(parameters);
  return {{{"weights", shape(layout.n_splits, {d}), true, p.W},
           {"bias", shape(layout.n_splits, {}), false, p.b},
           {"scores", shape(layout.n_leaves, {k}), false, p.leaves},
           {"leaf_weights", shape(layout.n_leaves, {k, d}), true, p.A}}};
}

nb::dict answer_of(const Encoder& encoder, const Layout& layout, std::size_t n_trees,
                   const TrainingResult& result) {
  nb::dict answer;
  for (const auto& part : parts_of(layout, n_trees, result.parameters.data())) {
    answer[part.name] = nb::none();
    if (!part.values) continue;
    answer[part.name] = new_array<float>(part.shape, [&](float* out) {
      if (part.has_columns)
        give_columns(encoder, part.n_rows(), part.values, out);
      else
        std::copy_n(part.values, part.size(), out);
    });
  }
  answer["best_epoch"] = result.best_epoch;
  answer["criterion"] = result.criterion;
  answer["soft_criterion"] = result.soft_criterion;
  return answer;
}

// A start (weights, bias, scores) and, if leaves can be linear, their weights or None.
std::vector<float> start_parameters(const Encoder& encoder, const Layout& layout,
                                    std::size_t n_trees, const nb::object& start) {
  if (start.is_none()) return {};
  const nb::tuple given(start);
  require(given.size() == 3 || given.size() == 4,
          "a start is weights, bias, scores and perhaps leaf weights");
  std::vector<float> parameters(layout.n_parameters());
  const auto parts = parts_of(layout, n_trees, parameters.data());
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (i == 3 && given[i].is_none()) break;
    const auto& part = parts[i];
    nb::ndarray<const float, nb::c_contig, nb::device::cpu> array;
    require(nb::try_cast(nb::object(given[i]), array), "a start has other things than arrays");
    require(part.values && array.ndim() == part.shape.size() &&
                std::equal(part.shape.begin(), part.shape.end(), array.shape_ptr()),
            "the start has another shape");
    if (part.has_columns)
      take_columns(encoder, part.n_rows(), array.data(), part.values);
    else
      std::copy_n(array.data(), part.size(), part.values);
  }
  return parameters;
}

// Trains the runs over threads; interrupts stop them, an error in one ends them all.
std::vector<TrainingResult> train_runs(const FitCall& call, const Method& method,
                                       std::span<const double> learning_rates,
                                       std::span<const float> start, Monitor& monitor) {
  std::vector<TrainingResult> results(call.runs.n);
  const auto train_one = [&](int i) {
    const int run = call.runs.first + i;
    TrainingOptions training = call.training;
    training.step.learning_rate = static_cast<float>(learning_rates[i]);
    const auto learner = method.new_learner(i);
    Problem problem = call.problem;
    std::optional<BootstrapSample> sample;
    if (call.runs.n_draws) {
      sample.emplace(problem, *call.runs.n_draws, call.runs.seed, run);
      problem.train = sample->rows;
      problem.weight = sample->weight.data();
    }
    return train(*learner, problem, training, run, call.runs.seed, start, monitor);
  };
  std::atomic<bool> failed{false};
  const auto work = [&] {
    parallel_for(call.runs.n, call.runs.n_threads, [&](int i) {
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

// Learns trees side by side: restarts, of which the best is returned, or all of them (`keep_all`),
// each from its own bootstrap sample if `n_draws` is given.
nb::dict fit(const std::string& method_name, const Encoder& encoder, const nb::object& matrix,
             Array2<float> y, Array1<float> weight, Array1<std::int64_t> train,
             Array1<std::int64_t> valid, int n_outputs, const std::string& loss,
             double loss_parameter, nb::object custom, nb::object start, int first_run, int n_runs,
             std::optional<std::int64_t> n_draws, bool keep_all, std::uint64_t seed, int n_threads,
             nb::object callback, const nb::dict& options) {
  const TableArrays table(encoder, matrix);
  Problem problem =
      problem_of(encoder, table.source(), y, weight, train, valid, n_outputs, loss, loss_parameter);
  const OwnArrays own(problem);
  require((problem.loss == Loss::kCustom) == nb::isinstance<nb::callable>(custom),
          "a function is given where the loss is custom, and there alone");
  const CustomLoss outside = custom_loss(custom, n_outputs, problem.n_targets);
  problem.custom = &outside;
  const Runs runs = checked({first_run, n_runs, n_draws, seed, n_threads});
  OptionReader reader(options);
  const TrainingOptions training = training_options(reader, problem.train.size());
  const auto rates = learning_rates(reader, n_runs);
  const FitCall call{encoder.column_of(), problem, training, runs};
  const Method method = method_named(method_name, call, reader);
  reader.refuse_others();
  const Layout layout = method.new_learner(0)->layout();
  const auto first = start_parameters(encoder, layout, method.n_trees, start);
  Monitor monitor;
  monitor.on_epoch = epoch_callback(callback);
  const auto results = train_runs(call, method, rates, first, monitor);

  int best = 0;
  bool interrupted = false;
  nb::list histories, kept;
  for (int i = 0; i < n_runs; ++i) {
    if (results[i].criterion < results[best].criterion) best = i;
    interrupted |= results[i].interrupted;
    histories.append(history_of(results[i]));
  }
  for (int i = 0; i < n_runs; ++i)
    if (keep_all || i == best) kept.append(answer_of(encoder, layout, method.n_trees, results[i]));
  nb::dict answer;
  answer["trees"] = kept;
  answer["history"] = histories;
  answer["best_run"] = runs.first + best;
  answer["interrupted"] = interrupted;
  return answer;
}

}  // namespace

void bind_fit(nb::module_& m) {
  m.def("fit", &fit, nb::arg("method"), nb::arg("encoder"), nb::arg("matrix"), nb::arg("y"),
        nb::arg("weight"), nb::arg("train"), nb::arg("valid"), nb::kw_only(), nb::arg("n_outputs"),
        nb::arg("loss"), nb::arg("loss_parameter"), nb::arg("custom").none(),
        nb::arg("start").none(), nb::arg("first_run"), nb::arg("n_runs"), nb::arg("n_draws").none(),
        nb::arg("keep_all"), nb::arg("seed"), nb::arg("n_threads"), nb::arg("callback").none(),
        nb::arg("options"),
        "Models learned by the method dgt, tel, non_greedy or reinforced, side by side: {trees, "
        "history, best_run, interrupted}; of each tree {weights, bias, scores, leaf_weights, "
        "best_epoch, criterion, soft_criterion}.");
  m.def("bootstrap_counts", &counts_of_member, nb::arg("n_rows"), nb::arg("n_draws"),
        nb::arg("seed"), nb::arg("member"),
        "How often each row is drawn for a member of a forest.");
}

}  // namespace hardwood
