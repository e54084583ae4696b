#include "bind/learn/methods.hpp"

#include <cmath>

#include "bind/options.hpp"
#include "learn/dgt/learner.hpp"
#include "learn/non_greedy/learner.hpp"
#include "learn/reinforced/learner.hpp"
#include "learn/semantic/learner.hpp"
#include "learn/tel/learner.hpp"

namespace hardwood {

namespace {

void require_one_layer(const TrainingOptions& training) {
  require(training.hidden.empty(), "only the splits of dgt and semantic have layers");
}

Annealing annealing_of(OptionReader& options) {
  const auto ends =
      options.list<double>("sharpness", OptionReader::kLeastPositive, OptionReader::kMost, 2);
  require(ends[1] >= ends[0], "sharpness must not fall");
  return {static_cast<float>(ends[0]), static_cast<float>(ends[1]),
          named<bool>(options.get<std::string>("annealing"), "annealing",
                      {{"linear", false}, {"log", true}})};
}

Method dgt(const FitCall& call, OptionReader& options) {
  const DgtShape shape{options.get<int>("height", 1, 20), call.problem.n_columns(),
                       call.problem.n_outputs, options.get<bool>("linear_leaves")};
  const DgtForm form =
      form_named(options.get<std::string>("path"), options.get<std::string>("quantizer"),
                 options.get<std::string>("routing"));
  const Annealing annealing = annealing_of(options);
  return {[=, &call](int) {
    return std::make_unique<DgtLearner>(shape, form, annealing, call.problem.loss,
                                        call.problem.loss_parameter, call.training.batch_size);
  }};
}

// Leaves of one class each are for losses of one class per row, whose scores they are.
Method semantic(const FitCall& call, OptionReader& options) {
  const DgtShape shape{options.get<int>("height", 1, 20), call.problem.n_columns(),
                       call.problem.n_outputs, options.get<bool>("linear_leaves")};
  const auto classes = options.list<std::int32_t>("classes", 0, kMany);
  const int n_mixed = options.get<int>("n_mixed", 1, kMany);
  const Loss loss = call.problem.loss;
  require(classes.empty() || n_mixed == 1, "leaves of one class are not mixed");
  require(classes.empty() || loss == Loss::kCrossEntropy || loss == Loss::kCustom ||
              (loss == Loss::kLogistic && call.problem.n_outputs == 1),
          "leaves of one class need a loss of the scores of classes");
  return {[=, &call](int) {
    return std::make_unique<SemanticLearner>(shape, classes, n_mixed, loss,
                                             call.problem.loss_parameter, call.training.batch_size);
  }};
}

Method tel(const FitCall& call, OptionReader& options) {
  require_one_layer(call.training);
  const SoftShape shape{options.get<int>("n_trees", 1, kMany),
                        options.get<int>("depth", 1, kDeepestSoftTree), call.problem.n_columns(),
                        call.problem.n_outputs};
  const Activation activation = activation_named(options.get<std::string>("activation"));
  const float gamma = options.number("gamma", OptionReader::kLeastPositive);
  const bool normalizes = options.get<bool>("batch_norm");
  // Number of scores that the forward pass keeps for the backward pass.
  const std::size_t kept =
      options.find<std::size_t>("max_kept_scores").value_or(TelLearner::kKeptScores);
  return {[=, &call](int) {
            return std::make_unique<TelLearner>(shape, activation, gamma, normalizes,
                                                call.problem.loss, call.problem.loss_parameter,
                                                call.training.batch_size, kept);
          },
          shape.n_trees};
}

// Each run has a nu of its own.
Method non_greedy(const FitCall& call, OptionReader& options) {
  require(call.problem.loss != Loss::kCustom, "the loss must be one of the engine");
  require_one_layer(call.training);
  const auto children = options.get<Array2<std::int32_t>>("children");
  require(children.shape(0) == 0 || children.shape(1) == 2, "children must have two columns");
  const TreeTopology topology({children.data(), children.size()});
  const auto nu =
      options.list<double>("nu", OptionReader::kLeastPositive, OptionReader::kMost, call.runs.n);
  NonGreedyOptions shared;
  shared.inference = inference_named(options.get<std::string>("inference"));
  shared.is_stable = options.get<bool>("stable");
  shared.momentum = call.training.step.momentum;
  shared.l1 = call.training.step.l1;
  shared.max_features = options.get<int>("max_features", 0, kMany);
  const auto features = options.list<std::int32_t>(
      "feature_of_column", 0, call.problem.encoding.n_features - 1, call.problem.n_columns());
  for (const std::int32_t column : call.column_of)
    shared.feature_of_column.push_back(features[column]);
  return {[=, &call](int i) {
    NonGreedyOptions own = shared;
    own.nu = static_cast<float>(nu[i]);
    return std::make_unique<NonGreedyLearner>(topology, call.problem, own, call.training.batch_size,
                                              call.runs.threads_of_each());
  }};
}

ReinforcedOptions reinforced_options(OptionReader& options) {
  ReinforcedOptions o;
  o.estimator = named<PolicyEstimator>(
      options.get<std::string>("estimator"), "estimator",
      {{"sampled", PolicyEstimator::kSampled}, {"exact", PolicyEstimator::kExact}});
  o.baseline = named<Baseline>(options.get<std::string>("baseline"), "baseline",
                               {{"none", Baseline::kNone},
                                {"leave_one_out", Baseline::kLeaveOneOut},
                                {"value", Baseline::kValue}});
  o.n_samples =
      options.get<int>("n_samples", o.baseline == Baseline::kLeaveOneOut ? 2 : 1, 1 << 16);
  o.entropy = options.number("entropy");
  o.first_temperature = options.number("first_temperature", OptionReader::kLeastPositive);
  o.last_temperature = options.number("last_temperature", OptionReader::kLeastPositive);
  o.annealed_at = options.number("annealed_at", OptionReader::kLeastPositive);
  o.policy_scale = options.number("policy_scale");
  o.leaf_scale = options.number("leaf_scale");
  o.by_lanes = options.find<bool>("by_lanes");
  return o;
}

Method reinforced(const FitCall& call, OptionReader& options) {
  require_one_layer(call.training);
  ReinforcedOptions own = reinforced_options(options);
  own.n_actions = options.get<int>("n_actions", 0, kMany);
  require((call.problem.loss == Loss::kCustom) == own.learns_actions(),
          "the loss must be one of the engine, but for actions");
  require(!own.learns_actions() ||
              (own.estimator == PolicyEstimator::kSampled && own.baseline == Baseline::kNone &&
               call.problem.n_outputs == own.n_samples),
          "actions are sampled, and the custom loss is called with each");
  const auto parents = options.get<Array1<std::int32_t>>("parents");
  const PolicyTopology topology({parents.data(), parents.size()});
  return {[=, &call](int i) {
    const auto run = static_cast<std::uint64_t>(call.runs.first + i);
    return std::make_unique<ReinforcedLearner>(
        topology, call.problem, own, call.training.batch_size,
        call.runs.seed + run * 0x9E3779B97F4A7C15u, call.runs.threads_of_each());
  }};
}

// Checks the targets and weights of training and validation rows.
void check_rows(const Problem& problem, std::span<const std::int64_t> rows) {
  const bool has_classes = has_class_target(problem.loss);
  for (const std::int64_t row : rows) {
    require(problem.weight[row] >= 0 && std::isfinite(problem.weight[row]),
            "a weight is negative or not finite");
    for (int t = 0; t < problem.n_targets; ++t) {
      const float y = problem.target[row * problem.n_targets + t];
      require(std::isfinite(y), "a target is not finite");
      if (has_classes) require_class(y, problem.n_outputs);
    }
  }
}

}  // namespace

void check(const Problem& problem) {
  require(problem.n_outputs >= 1 && problem.n_outputs <= kMany, "n_outputs is out of range");
  require(std::isfinite(problem.loss_parameter), "loss_parameter is not finite");
  require(problem.n_targets >= 1 &&
              (problem.loss == Loss::kCustom ||
               problem.n_targets == (has_class_target(problem.loss) ? 1 : problem.n_outputs)),
          "y has another number of columns than the loss expects");
  require(!problem.train.empty(), "no rows to learn from");
  check_rows(problem, problem.train);
  check_rows(problem, problem.valid);
}

Method method_named(const std::string& name, const FitCall& call, OptionReader& options) {
  using Factory = Method (*)(const FitCall&, OptionReader&);
  return named<Factory>(name, "method",
                        {{"dgt", dgt},
                         {"semantic", semantic},
                         {"tel", tel},
                         {"non_greedy", non_greedy},
                         {"reinforced", reinforced}})(call, options);
}

}  // namespace hardwood
