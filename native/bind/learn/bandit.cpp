// Python bindings of the learners from bandit feedback.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "bind/bind.hpp"
#include "bind/interruptible.hpp"
#include "bind/learn/option_reader.hpp"
#include "bind/options.hpp"
#include "online/bandit.hpp"
#include "online/bandit_regression.hpp"

namespace hardwood {
namespace {

using Masks = std::optional<Array2<std::uint8_t>>;

constexpr int kMost = std::numeric_limits<std::int32_t>::max();
constexpr double kMostNumber = std::numeric_limits<double>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMostBatch = 1 << 20;   // rows of a step
constexpr double kMostUpdates = 1e4;  // steps per round
constexpr int kMostHidden = 1 << 16;  // width of a layer
constexpr float kMostRoundWeight = 1e6f;
constexpr double kMostCompared = 1e30;  // of sums in units of rewards, in size

// By default all columns are numeric values, in their own order.
ColumnOrder column_order(OptionReader& options, int n_columns) {
  if (!options.find<std::vector<std::int32_t>>("column_order")) return {};
  const ColumnOrder order{options.list<std::int32_t>("column_order", 0, n_columns - 1, n_columns),
                          options.get<int>("n_values", 0, n_columns)};
  std::vector<std::int32_t> sorted = order.column;
  std::ranges::sort(sorted);
  require(std::ranges::adjacent_find(sorted) == sorted.end(),
          "column_order must hold each column once");
  return order;
}

OnlineStep online_step(OptionReader& options, int n_columns) {
  OnlineStep o;
  o.order = column_order(options, n_columns);
  o.step.optimizer = optimizer_named(options.get<std::string>("optimizer"));
  o.step.learning_rate = options.number("learning_rate");
  o.step.momentum = options.number("momentum", 0, 1);
  o.step.decay = options.number("decay", 0, 1);
  o.step.epsilon = options.number("epsilon");
  o.split_rate = options.number("split_rate");
  o.slowing = options.get<double>("slowing", OptionReader::kLeastPositive, kInfinity);
  o.hidden = options.list<int>("hidden", 1, kMostHidden);
  o.starts_level = options.get<bool>("starts_level");
  if (const auto path = options.find<std::string>("path"))
    o.path = form_named(*path, "sign", "quantized").path;
  if (const auto quantizer = options.find<std::string>("quantizer"))
    o.quantizer = form_named("sum", *quantizer, "quantized").quantizer;
  o.shares_bias = options.find<bool>("shares_bias").value_or(false);
  o.clip = static_cast<float>(options.find<double>("clip", 0.0, kInfinity).value_or(kInfinity));
  o.step.l2 = static_cast<float>(options.find<double>("l2", 0.0, OptionReader::kMost).value_or(0));
  o.averaging = options.find<double>("averaging", 0.0, 1.0).value_or(0);
  return o;
}

// What both kinds of bandits have.
template <class Options>
void read_shared(Options& o, int n_columns, int height, OptionReader& options) {
  o.height = checked_range("height", height, 1, 12);
  o.is_paper = options.get<bool>("is_paper");
  o.batch_size = options.get<int>("batch_size", 1, kMostBatch);
  o.updates_per_round = options.get<double>("updates_per_round", 0, kMostUpdates);
  o.buffer_size = options.get<std::int64_t>("buffer_size", 1, kMost);
  o.input_noise = options.get<double>("input_noise", 0, kMostNumber);
  o.n_first = options.get<int>("n_first", 1, kMost);
  o.step = online_step(options, n_columns);
}

RewardLoss reward_loss_named(const std::string& name) {
  if (name == "logistic") return RewardLoss::kLogistic;
  if (name == "squared") return RewardLoss::kSquared;
  require(name == "huber", "loss must be auto, logistic, squared or huber");
  return RewardLoss::kHuber;
}

WhoDecides decider_named(const std::string& name) {
  if (name == "network") return WhoDecides::kNetwork;
  if (name == "tree") return WhoDecides::kTree;
  require(name == "auto", "who_decides must be network, tree or auto");
  return WhoDecides::kAuto;
}

void read_explorer(BanditOptions& o, OptionReader& options) {
  ExplorerOptions e;
  e.network.hidden = options.get<int>("hidden_size", 1, kMostHidden);
  e.network.weight_decay = options.number("weight_decay", 0, 1);
  e.network.step = o.step.step;
  e.network.step.learning_rate = options.number("network_rate", 0, 1);
  e.batch_size = o.batch_size;
  e.updates_per_round = o.updates_per_round;
  o.explorer = e;
  const auto loss = options.get<std::string>("loss");
  if (loss != "auto") o.loss = reward_loss_named(loss);
  o.who_decides = decider_named(options.get<std::string>("who_decides"));
  o.detects_change = options.get<bool>("detects_change");
}

BanditOptions bandit_options(int n_columns, int height, const nb::dict& given) {
  OptionReader options(given);
  BanditOptions o;
  read_shared(o, n_columns, height, options);
  o.explores_by_gaps = options.get<bool>("explores_by_gaps");
  o.exploration = options.get<double>("exploration", 0, o.explores_by_gaps ? kMostNumber : 1.0);
  o.min_propensity = options.get<double>("min_propensity", 0, 1);
  o.keeps_recent = options.get<bool>("keeps_recent");
  if (options.find<int>("hidden_size", 1, kMostHidden)) read_explorer(o, options);
  options.refuse_others();
  return o;
}

void check_context(const Array1<float>& x, int n_columns) {
  require(x.size() == static_cast<std::size_t>(n_columns),
          "a context has another number of columns");
  require_no_infinity("a context", x);
}

void check_contexts(const Array2<float>& X, int n_columns) {
  require(X.shape(1) == static_cast<std::size_t>(n_columns), "X has another number of columns");
  require_no_infinity("X", X);
}

void check_mask(ActionMask mask, int n_actions) {
  require(n_allowed(n_actions, mask) >= 1, "a mask allows no action");
}

void check_outcome(const Outcome& o, int n_actions) {
  require(o.action >= 0 && o.action < n_actions, "an action is out of range");
  require(std::isfinite(o.reward), "a reward is not finite");
  require(o.propensity > 0 && o.propensity <= 1, "a propensity is not in (0, 1]");
  require(o.weight >= 0 && o.weight <= kMostRoundWeight, "the weight of a round is out of range");
}

// Masks of n rows, or null.
ActionMask checked_masks(const Masks& masks, std::size_t n, int n_actions) {
  if (!masks) return nullptr;
  require(masks->shape(0) == n && masks->shape(1) == static_cast<std::size_t>(n_actions),
          "masks have another shape");
  for (std::size_t i = 0; i < n; ++i) check_mask(masks->data() + i * n_actions, n_actions);
  return masks->data();
}

template <class T>
nb::ndarray<nb::numpy, T> given(const std::vector<T>& values,
                                std::initializer_list<std::size_t> shape) {
  return new_array<T>(shape, [&](T* to) { std::copy(values.begin(), values.end(), to); });
}

nb::dict raw_tree(const OnlineTree::RawTree& raw, std::size_t n_columns, std::size_t n_outputs) {
  const std::size_t m = raw.bias.size();
  nb::dict tree;
  tree["weights"] = given(raw.weights, {m, n_columns});
  tree["bias"] = given(raw.bias, {m});
  tree["values"] = given(raw.values, {m + 1, n_outputs});
  tree["leaf_weights"] = nb::none();
  tree["scale"] = given(raw.scale, {n_columns});
  tree["version"] = raw.version;
  return tree;
}

template <class Engine>
void start_from(Engine& engine, Array2<double> weights, Array1<double> bias, Array2<double> values,
                Array1<double> center, Array1<double> scale, double trust) {
  const std::size_t d = engine.learner().n_columns(), m = engine.n_nodes();
  require(weights.shape(0) == m && weights.shape(1) == d && bias.size() == m &&
              values.shape(0) == m + 1 && values.shape(1) == engine.n_outputs() &&
              center.size() == d && scale.size() == d,
          "the tree to start from has another shape");
  require_finite_entries("weights", weights);
  require_finite_entries("bias", bias);
  require_finite_entries("values", values);
  require_finite_entries("center", center);
  require_positive("scale", scale);
  require(trust > 0 && std::isfinite(trust), "trust must be positive and finite");
  const auto all = [](const auto& a) { return std::span<const double>(a.data(), a.size()); };
  engine.learner().start_from(all(weights), all(bias), all(values), all(center), all(scale), trust);
}

template <class Engine>
nb::dict tree_of(Engine& engine) {
  return raw_tree(engine.learner().raw_tree(), engine.learner().n_columns(), engine.n_outputs());
}

// Calls work(i) for every row until Ctrl-C; returns the number of completed rows.
template <class Work>
std::size_t each_row(std::size_t n, Work&& work) {
  std::atomic<bool> stop{false};
  std::size_t done = 0;
  run_interruptible(
      [&] {
        for (; done < n && !stop; ++done) work(done);
      },
      [&] { stop = true; });
  return done;
}

// What the values of an entry may be.
template <class T>
struct Range {
  T low = std::numeric_limits<T>::lowest(), high = std::numeric_limits<T>::max();
  static Range not_negative() { return {0, std::numeric_limits<T>::max()}; }
};

// Conversion of a state to Python or back, as arrays by name. `visit` lists the entries once for both.
class StateEntries {
 public:
  StateEntries() = default;  // to Python
  explicit StateEntries(const nb::dict& given) : state(given), is_given_(true) {}

  // Must have the size that `values` has.
  template <class T>
  void array(const char* key, std::vector<T>& values, Range<T> range = {}) {
    pass(key, values, false);
    check(key, values, range);
  }
  // Any number of values, as many as the state says.
  template <class T>
  void list(const char* key, std::vector<T>& values) {
    pass(key, values, true);
  }
  // Any number of values; NaN is a missing value.
  void contexts(std::vector<float>& values) {
    pass("contexts", values, true);
    require_no_infinity("entry 'contexts' of the state", values);
  }
  template <class T, class Row>
  void column(const char* key, std::vector<Row>& rows, T Row::* of_row, Range<T> range = {}) {
    std::vector<T> values;
    for (const Row& row : rows) values.push_back(row.*of_row);
    array(key, values, range);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].*of_row = values[i];
  }
  template <class T, class... Rest>
  void numbers(const char* key, Range<T> range, T& first, Rest&... rest) {
    std::vector<T> values{first, static_cast<T>(rest)...};
    pass(key, values, false);
    check(key, values, range);
    const T* value = values.data();
    first = *value;
    ((rest = static_cast<Rest>(*++value)), ...);
  }

  nb::dict state;

 private:
  static std::string named(const char* key) {
    return "entry '" + std::string(key) + "' of the state";
  }

  template <class T>
  void check(const char* key, const std::vector<T>& values, Range<T> range) const {
    if (!is_given_) return;
    const std::string name = named(key);
    for (const T value : values) checked_range(name.c_str(), value, range.low, range.high);
  }

  template <class T>
  void pass(const char* key, std::vector<T>& values, bool of_any_size) {
    if (!is_given_) {
      state[key] = given(values, {values.size()});
      return;
    }
    Array1<T> found;
    if (!state.contains(key)) throw std::invalid_argument(named(key) + " is missing");
    if (!nb::try_cast(nb::object(state[key]), found))
      throw std::invalid_argument(named(key) + " has another type");
    if (!of_any_size && found.size() != values.size())
      throw std::invalid_argument(named(key) + " must have " + shown(values.size()) +
                                  " values, found " + shown(found.size()));
    values.assign(found.data(), found.data() + found.size());
  }

  bool is_given_ = false;
};

void visit(StateEntries& entries, OnlineTree::State& s) {
  entries.array("parameters", s.parameters);
  entries.array("first_moment", s.first_moment);
  entries.array("second_moment", s.second_moment, Range<float>::not_negative());
  entries.array("layers", s.layers);
  entries.array("mean", s.mean);
  entries.array("columns", s.columns);
  entries.numbers("steps", {}, s.n_steps);
  entries.numbers("powers", {0.0, 1.0}, s.powers.first, s.powers.second);
}

void visit(StateEntries& entries, const char* key, RewardScale::State& r) {
  entries.numbers(key, {-kInfinity, kInfinity}, r.mean, r.squares, r.lowest, r.highest, r.center,
                  r.scale);
}

// Only of a learner with a network, whose parameters are never empty.
void visit(StateEntries& entries, Bandit::State::OfNetwork& s) {
  if (s.network.parameters.empty()) return;
  entries.array("network", s.network.parameters, {-kMostNetworkWeight, kMostNetworkWeight});
  entries.array("network_first_moment", s.network.first_moment);
  entries.array("network_second_moment", s.network.second_moment, Range<float>::not_negative());
  entries.numbers("network_powers", {0.0, 1.0}, s.network.powers.first, s.network.powers.second);
  std::vector<double> sums(s.comparison.begin(), s.comparison.end());
  entries.array("compared", sums);
  std::ranges::copy(sums, s.comparison.begin());
  entries.numbers("expected", {}, s.detector.mean, s.detector.sum, s.detector.highest);
  entries.numbers("network_counters", {}, s.detector.count, s.next_hand_over, s.version,
                  s.explored_from, s.has_other_rewards, s.has_learned, s.tree_decides);
  entries.list("changes", s.changes);
}

void visit(StateEntries& entries, Bandit::State& s, std::size_t n_columns) {
  visit(entries, s.tree);
  visit(entries, s.of_network);
  RewardScale::State& r = s.rewards;
  visit(entries, "rewards_seen", r);
  entries.numbers("counters", {}, s.n_decided, s.n_learned, s.stored.n_added, r.count, r.next_look,
                  r.is_known);
  entries.numbers("due", {0.0, 1.0}, s.due);
  entries.contexts(s.stored.contexts);
  s.stored.outcomes.resize(s.stored.contexts.size() / n_columns);
  entries.column("actions", s.stored.outcomes, &Outcome::action);
  entries.column("rewards", s.stored.outcomes, &Outcome::reward);
  entries.column("propensities", s.stored.outcomes, &Outcome::propensity);
  entries.column("weights", s.stored.outcomes, &Outcome::weight, {0.0f, kMostRoundWeight});
}

void visit(StateEntries& entries, BanditRegression::State& s, std::size_t n_columns) {
  visit(entries, s.tree);
  RewardScale::State &t = s.targets, &e = s.expected;
  visit(entries, "targets_seen", t);
  visit(entries, "costs_seen", e);
  auto& sums = s.losses.sums;
  entries.numbers("losses_seen", {}, sums[0], sums[1], sums[2], sums[3], sums[4], s.losses.square);
  entries.numbers("counters", {}, s.n_drawn, s.n_learned, s.stored.n_added, t.count, t.next_look,
                  t.is_known, e.count, e.next_look, e.is_known, s.losses.count);
  entries.numbers("due", {0.0, 1.0}, s.due);
  entries.contexts(s.stored.contexts);
  s.stored.outcomes.resize(s.stored.contexts.size() / n_columns);
  entries.column("predictions", s.stored.outcomes, &Trial::prediction);
  entries.column("losses", s.stored.outcomes, &Trial::loss);
  entries.column("slopes", s.stored.outcomes, &Trial::slope);
  entries.column("variances", s.stored.outcomes, &Trial::variance, Range<double>::not_negative());
}

void check_scale(const RewardScale::State& r) {
  require(!std::isnan(r.lowest) && !std::isnan(r.highest) && std::isfinite(r.mean) &&
              std::isfinite(r.squares) && std::isfinite(r.center),
          "the rewards of the state are not finite");
  require(r.scale > 0 && std::isfinite(r.scale) && r.next_look >= 1,
          "the scale of rewards in the state is out of range");
}

void require_float32(const char* name, std::span<const double> values) {
  for (const double value : values)
    checked_range(name, value, -OptionReader::kMost, OptionReader::kMost);
}

// Counts, means, sums of squares, centers and factors of the columns, then two numbers of rows, then
// the centers and factors that decisions use.
void check_columns(std::span<const double> state, std::size_t n_columns) {
  const auto part = [&](std::size_t i) { return state.subspan(i * n_columns, n_columns); };
  require_not_negative("counts of columns in the state", part(0));
  require_not_negative("squares of columns in the state", part(2));
  require_not_negative("factors of columns in the state", part(4));
  for (const std::size_t i : {1, 3, 4})  // float32 where they are used; squares may be larger
    require_float32("columns of the state", part(i));
  require_float32("columns of the state", state.last(2 * n_columns));
  require_not_negative("numbers of rows in the state", state.subspan(5 * n_columns, 2));
  require_not_negative("factors of columns in the state", state.last(n_columns));
}

template <class Engine>
nb::dict state_of(Engine& engine) {
  auto s = [&] {
    const nb::gil_scoped_release release;  // it may wait for an update to end
    return engine.learner().state();
  }();
  StateEntries entries;
  visit(entries, s, engine.learner().n_columns());
  return entries.state;
}

template <class Engine>
void set_state(Engine& engine, const nb::dict& state) {
  auto& learner = engine.learner();
  auto s = learner.state();
  StateEntries entries(state);
  visit(entries, s, learner.n_columns());
  const std::size_t n_rows = s.stored.outcomes.size();
  check_columns(s.tree.columns, learner.n_columns());
  require(s.due < 1, "the state's steps due are out of range");
  require(s.stored.contexts.size() == n_rows * learner.n_columns(),
          "contexts of the state have another number of columns");
  require(n_rows <= engine.most_rounds() && n_rows <= s.stored.n_added,
          "the state holds more rounds than there is room for");
  engine.check(s);
  learner.set_state(std::move(s));
}

// Methods of both engines.
template <class Engine>
void bind_model(nb::class_<Engine>& engine) {
  engine
      .def("tree", &tree_of<Engine>,
           "The perfect tree, with columns and rewards in their original units.")
      .def("start_from", &start_from<Engine>, nb::arg("weights"), nb::arg("bias"),
           nb::arg("values"), nb::arg("center"), nb::arg("scale"), nb::arg("trust"))
      .def("state", &state_of<Engine>, "The complete state, as arrays.")
      .def("set_state", &set_state<Engine>, nb::arg("state"))
      .def_prop_ro("n_learned", [](Engine& of) { return of.learner().n_learned(); });
}

template <class Options>
std::size_t most_rounds(const Options& options) {
  return options.is_paper ? options.batch_size - 1 : options.buffer_size;
}

class BanditEngine {
 public:
  BanditEngine(int n_columns, int n_actions, int height, const nb::dict& options,
               std::uint64_t seed)
      : options_(bandit_options(checked_range("n_columns", n_columns, 1, kMany), height, options)),
        bandit_(n_columns, checked_range("n_actions", n_actions, 1, kMany), options_, seed) {}

  nb::tuple decide(Array1<float> x, std::optional<Array1<std::uint8_t>> mask) {
    check_context(x, bandit_.n_columns());
    const Bandit::Choice choice = bandit_.decide(x.data(), checked_mask(mask));
    return nb::make_tuple(choice.action, choice.propensity, choice.by.leaf, choice.by.version);
  }

  void learn(Array1<float> x, int action, double reward, double propensity) {
    check_context(x, bandit_.n_columns());
    const Outcome outcome{action, reward, propensity, 1.0f};
    check_outcome(outcome, bandit_.n_actions());
    const nb::gil_scoped_release release;
    bandit_.learn(x.data(), outcome, false);
  }

  void learn_many(Array2<float> X, Array1<std::int32_t> actions, Array1<double> rewards,
                  Array1<double> propensities, Array1<float> weights) {
    const std::size_t n = X.shape(0);
    check_contexts(X, bandit_.n_columns());
    require(actions.size() == n && rewards.size() == n && propensities.size() == n &&
                weights.size() == n,
            "X, actions, rewards, propensities and weights differ in length");
    const auto outcome = [&](std::size_t i) {
      return Outcome{actions.data()[i], rewards.data()[i], propensities.data()[i],
                     weights.data()[i]};
    };
    for (std::size_t i = 0; i < n; ++i) check_outcome(outcome(i), bandit_.n_actions());
    each_row(n, [&](std::size_t i) { bandit_.learn(X.data() + i * X.shape(1), outcome(i), true); });
  }

  // Rewards (n, K), or labels (n,), with reward 1 for the action that is the label.
  nb::tuple replay(Array2<float> X, const nb::object& feedback, Masks masks) {
    const std::size_t n = X.shape(0), k = bandit_.n_actions();
    check_contexts(X, bandit_.n_columns());
    const ActionMask mask = checked_masks(masks, n, static_cast<int>(k));
    Array1<std::int32_t> labels;
    Array2<double> rewards;
    const bool has_labels = nb::try_cast(feedback, labels, false);
    require(has_labels || nb::try_cast(feedback, rewards, true),  // float32 is converted
            "feedback must be labels int32 (n,) or rewards float64 (n, K)");
    require(has_labels ? labels.size() == n : rewards.shape(0) == n && rewards.shape(1) == k,
            "feedback has another shape");
    if (!has_labels) require_finite_entries("rewards", rewards);
    std::vector<std::int32_t> actions(n);
    std::vector<double> propensities(n), received(n);
    const std::size_t done = each_row(n, [&](std::size_t i) {
      const float* x = X.data() + i * X.shape(1);
      const Bandit::Choice choice = bandit_.decide(x, mask ? mask + i * k : nullptr);
      actions[i] = choice.action;
      propensities[i] = choice.propensity;
      received[i] =
          has_labels ? choice.action == labels.data()[i] : rewards.data()[i * k + choice.action];
      bandit_.learn(x, {choice.action, received[i], choice.propensity, 1.0f}, false);
    });
    actions.resize(done), propensities.resize(done), received.resize(done);
    return nb::make_tuple(given(actions, {done}), given(propensities, {done}),
                          given(received, {done}));
  }

  auto leaves(Array2<float> X) {
    check_contexts(X, bandit_.n_columns());
    const std::size_t n = X.shape(0);
    return new_array<std::int32_t>({n}, [&](std::int32_t* to) {
      for (std::size_t i = 0; i < n; ++i) to[i] = bandit_.leaf(X.data() + i * X.shape(1));
    });
  }

  auto values(Array2<float> X) {
    return of_rows(X, [&](std::size_t i, std::span<double> out) {
      bandit_.values(X.data() + i * X.shape(1), out);
    });
  }

  auto probabilities(Array2<float> X, Masks masks) {
    const ActionMask mask = checked_masks(masks, X.shape(0), bandit_.n_actions());
    return of_rows(X, [&](std::size_t i, std::span<double> out) {
      bandit_.probabilities(X.data() + i * X.shape(1), mask ? mask + i * out.size() : nullptr, out);
    });
  }

  auto leaf_probabilities(std::optional<Array1<std::uint8_t>> mask) {
    const std::size_t n = n_nodes() + 1, k = n_outputs();
    const ActionMask allowed = checked_mask(mask);
    return new_array<double>({n, k}, [&](double* to) {
      bandit_.leaf_probabilities(allowed, std::span<double>(to, n * k));
    });
  }

  nb::dict report() const {
    const Bandit::Report found = bandit_.report();
    nb::dict all;
    const auto put = [&](const char* name, DeciderComparison::Estimate of) {
      all[name] = nb::make_tuple(of.mean, of.error);
    };
    all["n_effective"] = found.n_effective;
    all["agreement"] = found.agreement;
    put("tree", found.tree), put("network", found.network), put("difference", found.difference);
    return all;
  }
  std::vector<std::uint64_t> changes() const { return bandit_.changes(); }
  bool tree_decides() const { return bandit_.tree_decides(); }

  Bandit& learner() { return bandit_; }
  std::size_t n_nodes() const { return (std::size_t{1} << options_.height) - 1; }
  std::size_t n_outputs() const { return bandit_.n_actions(); }
  std::size_t most_rounds() const { return hardwood::most_rounds(options_); }
  void check(const Bandit::State& s) const {
    check_scale(s.rewards);
    if (options_.explorer) check(s.of_network, s.n_decided, s.n_learned);
    for (const Outcome& outcome : s.stored.outcomes) check_outcome(outcome, bandit_.n_actions());
  }

 private:
  static void check(const Bandit::State::OfNetwork& s, std::uint64_t n_decided,
                    std::uint64_t n_learned) {
    for (const double sum : s.comparison)
      checked_range("a sum of compared rounds in the state", sum, -kMostCompared, kMostCompared);
    for (const int i : {0, 1, 2})  // weights
      checked_range("a weight of compared rounds in the state", s.comparison[i], 0.0,
                    DeciderComparison::kMemory);
    for (const double sum : {s.detector.mean, s.detector.sum, s.detector.highest})
      checked_range("an expectation in the state", sum, -kMostCompared, kMostCompared);
    require(s.version <= n_learned && s.detector.count <= n_learned,
            "the state's network has learned from more rounds than there were");
    require(s.next_hand_over <= n_learned + Explorer::interval(n_learned),
            "the state's next hand-over is too far away");
    require(s.explored_from <= n_decided, "the state explores from a round that has not been");
    require(s.changes.size() <= Bandit::kMostChanges && std::ranges::is_sorted(s.changes) &&
                (s.changes.empty() || s.changes.back() <= n_learned),
            "the changes in the state are not in order");
  }

  ActionMask checked_mask(const std::optional<Array1<std::uint8_t>>& mask) const {
    if (!mask) return nullptr;
    require(mask->size() == static_cast<std::size_t>(bandit_.n_actions()),
            "a mask has another length");
    check_mask(mask->data(), bandit_.n_actions());
    return mask->data();
  }

  template <class Of>
  nb::ndarray<nb::numpy, double> of_rows(const Array2<float>& X, Of&& of) {
    check_contexts(X, bandit_.n_columns());
    const std::size_t n = X.shape(0), k = bandit_.n_actions();
    return new_array<double>({n, k}, [&](double* to) {
      for (std::size_t i = 0; i < n; ++i) of(i, std::span<double>(to + i * k, k));
    });
  }

  BanditOptions options_;
  Bandit bandit_;
};

BanditRegressionOptions regression_options(int n_columns, int height, const nb::dict& given) {
  constexpr double kLeast = std::numeric_limits<double>::min();
  constexpr int kMostDrawn = 1 << 10;
  OptionReader options(given);
  BanditRegressionOptions o;
  read_shared(o, n_columns, height, options);
  o.has_two_points = options.get<bool>("has_two_points");
  o.perturbation = options.get<double>("perturbation", kLeast, kMostNumber);
  o.start = options.get<double>("start", -kMostNumber, kMostNumber);
  o.scale = options.get<double>("scale", kLeast, kMostNumber);
  o.reach = options.get<double>("reach", kLeast, kMostNumber);
  o.recency = options.get<int>("recency", 1, kMostDrawn);
  options.refuse_others();
  return o;
}

class BanditRegressionEngine {
 public:
  BanditRegressionEngine(int n_columns, int height, const nb::dict& options, std::uint64_t seed)
      : options_(
            regression_options(checked_range("n_columns", n_columns, 1, kMany), height, options)),
        engine_(n_columns, options_, seed) {}

  void count_context(Array1<float> x) {
    check_context(x, engine_.n_columns());
    engine_.count_context(x.data());
  }
  nb::tuple predict_one(Array1<float> x) const {
    check_context(x, engine_.n_columns());
    const BanditRegression::Prediction found = engine_.predict(x.data());
    return nb::make_tuple(found.number, found.by.leaf, found.by.version);
  }
  int direction() { return engine_.direction(); }
  void learn_two(Array1<float> x, double prediction, double below, double above) {
    check_context(x, engine_.n_columns());
    require(options_.has_two_points, "one number is tried per round");
    require(std::isfinite(prediction) && std::isfinite(above) && std::isfinite(below),
            "a loss is not finite");
    const nb::gil_scoped_release release;
    engine_.learn_two(x.data(), prediction, below, above);
  }
  void learn_one(Array1<float> x, double prediction, int direction, double loss) {
    check_context(x, engine_.n_columns());
    require(!options_.has_two_points, "two numbers are tried per round");
    const int farthest = options_.is_paper ? 1 : 2;
    require(direction != 0, "a direction is 0");
    checked_range("direction", direction, -farthest, farthest);
    require(std::isfinite(prediction) && std::isfinite(loss), "a loss is not finite");
    const nb::gil_scoped_release release;
    engine_.learn_one(x.data(), prediction, direction, loss);
  }
  auto predict(Array2<float> X) const {
    check_contexts(X, engine_.n_columns());
    const std::size_t n = X.shape(0);
    return new_array<double>({n}, [&](double* to) {
      for (std::size_t i = 0; i < n; ++i) to[i] = engine_.predict(X.data() + i * X.shape(1)).number;
    });
  }

  // Rounds whose losses are known functions of y. Returns the loss of every round: of the number that
  // was tried, or the mean of two.
  auto replay(Array2<float> X, Array1<double> y, const std::string& loss, double parameter) {
    const std::size_t n = X.shape(0);
    check_contexts(X, engine_.n_columns());
    require(y.size() == n, "X and y differ in length");
    require_finite_entries("y", y);
    require(parameter >= 0 && std::isfinite(parameter), "parameter must be finite, not negative");
    const auto of = loss_function(loss, parameter);
    std::vector<double> losses(n);
    const std::size_t done = each_row(n, [&](std::size_t i) {
      const float* x = X.data() + i * X.shape(1);
      const double target = y.data()[i], delta = engine_.distance();
      engine_.count_context(x);
      const double prediction = engine_.predict(x).number;
      if (options_.has_two_points) {
        const double above = of(prediction + delta - target),
                     below = of(prediction - delta - target);
        losses[i] = 0.5 * (above + below);
        engine_.learn_two(x, prediction, below, above);
      } else {
        const int u = engine_.direction();
        losses[i] = of(prediction + delta * u - target);
        engine_.learn_one(x, prediction, u, losses[i]);
      }
    });
    losses.resize(done);
    return given(losses, {done});
  }

  BanditRegression& learner() { return engine_; }
  std::size_t n_nodes() const { return (std::size_t{1} << options_.height) - 1; }
  std::size_t n_outputs() const { return 1; }
  std::size_t most_rounds() const { return hardwood::most_rounds(options_); }
  void check(const BanditRegression::State& s) const {
    check_scale(s.targets);
    check_scale(s.expected);
    require(s.losses.square >= 0, "the losses of the state are out of range");
  }

 private:
  static std::function<double(double)> loss_function(const std::string& name, double xi) {
    if (name == "squared") return [](double r) { return r * r; };
    require(name == "huber", "loss must be squared or huber");
    return [xi](double r) {
      const double size = std::fabs(r);
      return size <= xi ? 0.5 * r * r : xi * size - 0.5 * xi * xi;
    };
  }

  BanditRegressionOptions options_;
  BanditRegression engine_;
};

}  // namespace

void bind_bandit(nb::module_& m) {
  nb::class_<BanditEngine> bandit(m, "BanditEngine",
                                  "A tree that learns from the rewards of its actions.");
  bandit
      .def(nb::init<int, int, int, const nb::dict&, std::uint64_t>(), nb::arg("n_columns"),
           nb::arg("n_actions"), nb::arg("height"), nb::arg("options"), nb::arg("seed"))
      .def("decide", &BanditEngine::decide, nb::arg("x"), nb::arg("mask").none(),
           "An action, its propensity, the leaf of the context, and the version of the tree.")
      .def("learn", &BanditEngine::learn, nb::arg("x"), nb::arg("action"), nb::arg("reward"),
           nb::arg("propensity"), "Learn from one round whose decision was made here.")
      .def("learn_many", &BanditEngine::learn_many, nb::arg("X"), nb::arg("actions"),
           nb::arg("rewards"), nb::arg("propensities"), nb::arg("weights"),
           "Learn from the rounds of another policy.")
      .def("replay", &BanditEngine::replay, nb::arg("X"), nb::arg("feedback"),
           nb::arg("masks").none(),
           "Decide and learn, row by row; returns actions, propensities and rewards.")
      .def("leaves", &BanditEngine::leaves, nb::arg("X"), "Leaves of the contexts (n,).")
      .def("values", &BanditEngine::values, nb::arg("X"), "Expected rewards (n, K).")
      .def("probabilities", &BanditEngine::probabilities, nb::arg("X"), nb::arg("masks").none(),
           "Current probabilities of the actions (n, K).")
      .def("leaf_probabilities", &BanditEngine::leaf_probabilities, nb::arg("mask").none(),
           "Current probabilities of the actions in every leaf (leaves, K).")
      .def(
          "report", &BanditEngine::report,
          "Means and standard errors of the rewards of tree and network, and how often they agree.")
      .def_prop_ro("changes", &BanditEngine::changes, "Rounds learned at each detected change.")
      .def_prop_ro("tree_decides", &BanditEngine::tree_decides)
      .def_prop_ro("n_decided", [](BanditEngine& of) { return of.learner().n_decided(); });
  bind_model(bandit);
  nb::class_<BanditRegressionEngine> regression(
      m, "BanditRegressionEngine", "A tree that learns from the losses of its numbers.");
  regression
      .def(nb::init<int, int, const nb::dict&, std::uint64_t>(), nb::arg("n_columns"),
           nb::arg("height"), nb::arg("options"), nb::arg("seed"))
      .def("count_context", &BanditRegressionEngine::count_context, nb::arg("x"),
           "Update the moments of the columns with a context.")
      .def("predict_one", &BanditRegressionEngine::predict_one, nb::arg("x"),
           "A prediction, the leaf of the context, and the version of the tree.")
      .def("direction", &BanditRegressionEngine::direction,
           "Draw +1 or -1, or with replay also +2 or -2.")
      .def("learn_two", &BanditRegressionEngine::learn_two, nb::arg("x"), nb::arg("prediction"),
           nb::arg("below"), nb::arg("above"))
      .def("learn_one", &BanditRegressionEngine::learn_one, nb::arg("x"), nb::arg("prediction"),
           nb::arg("direction"), nb::arg("loss"))
      .def("predict", &BanditRegressionEngine::predict, nb::arg("X"))
      .def("replay", &BanditRegressionEngine::replay, nb::arg("X"), nb::arg("y"), nb::arg("loss"),
           nb::arg("parameter"), "Decide and learn, row by row; returns the losses.");
  bind_model(regression);
}

}  // namespace hardwood
