#include "learn/greedy/greedy.hpp"

#include <cmath>
#include <limits>

#include "bind/learn/learning.hpp"
#include "bind/learn/option_reader.hpp"

namespace hardwood {

namespace {

Measure measure_named(const std::string& criterion, const std::string& target) {
  return named<Measure>(criterion + " of " + target, "criterion",
                        {{"entropy of classes", Measure::kClassEntropy},
                         {"gini of classes", Measure::kClassGini},
                         {"entropy of labels", Measure::kLabelEntropy},
                         {"gini of labels", Measure::kLabelGini},
                         {"variance of numbers", Measure::kVariance}});
}

GreedyOptions greedy_options(const nb::dict& given) {
  // The counter of a random number has 20 bits per node.
  constexpr int kMostTries = (1 << 20) - 1;
  constexpr int kMost = std::numeric_limits<std::int32_t>::max();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  OptionReader options(given);
  GreedyOptions o;
  o.search = named<Search>(options.get<std::string>("splitter"), "splitter",
                           {{"axis", Search::kAxis},
                            {"random", Search::kRandom},
                            {"oc1", Search::kOc1},
                            {"co2", Search::kCo2}});
  o.measure =
      measure_named(options.get<std::string>("criterion"), options.get<std::string>("target"));
  o.max_depth = options.get<int>("max_depth", 1, kMost);
  o.min_samples_split = options.get<double>("min_samples_split", 0, kInfinity);
  o.min_samples_leaf = options.get<double>("min_samples_leaf", 0, kInfinity);
  o.min_weight_fraction_leaf = options.get<double>("min_weight_fraction_leaf", 0, 1);
  o.min_impurity_decrease = options.get<double>("min_impurity_decrease", 0, kInfinity);
  o.n_candidates = options.get<int>("n_candidates", 1, kMostTries);
  o.n_split_restarts = options.get<int>("n_split_restarts", 1, kMostTries);
  o.n_jumps = options.get<int>("n_jumps", 0, kMostTries);
  o.n_coordinates = options.get<int>("n_coordinates", 1, kMostTries);
  o.max_sweeps = options.get<int>("max_sweeps", 1, kMostTries);
  for (const double nu :
       options.list<double>("nu", OptionReader::kLeastPositive, OptionReader::kMost))
    o.co2.nu.push_back(static_cast<float>(nu));
  require(!o.co2.nu.empty(), "option 'nu' must have an entry");
  o.co2.learning_rate = options.number("learning_rate");
  o.co2.momentum = options.number("momentum", 0, 1);
  o.co2.batch_size = options.get<int>("batch_size", 1, kMost);
  o.co2.max_epochs = options.get<int>("max_epochs", 1, kMost);
  options.refuse_others();
  return o;
}

// Checks that the impurity can be computed for the targets. Sums of entropies are 64-bit integers,
// see impurity.hpp.
void check_targets(const Problem& problem, Measure measure) {
  constexpr double kMostWeight = 0x1p32;
  double weight = 0;
  for (const std::int64_t row : problem.train) {
    require(problem.weight[row] >= 0 && std::isfinite(problem.weight[row]),
            "a weight is negative or not finite");
    weight += problem.weight[row];
    for (int t = 0; t < problem.n_targets; ++t)
      require(std::isfinite(problem.target[row * problem.n_targets + t]), "a target is not finite");
  }
  require(weight * std::max(problem.n_targets, 1) <= kMostWeight, "weights are too large");
  if (measure == Measure::kLabelEntropy || measure == Measure::kLabelGini)
    for (const std::int64_t row : problem.train)
      for (int t = 0; t < problem.n_targets; ++t) {
        const float y = problem.target[row * problem.n_targets + t];
        require(y == 0 || y == 1, "a label is neither 0 nor 1");
      }
  if (!has_classes(measure)) return;
  require(problem.n_targets == 1, "classes are one column");
  for (const std::int64_t row : problem.train)
    require_class(problem.target[row], problem.n_outputs);
}

nb::dict answer_of(const GreedyTree& tree, const Encoder& encoder) {
  const std::size_t m = tree.splits.size(), d = encoder.n_columns();
  nb::dict answer;
  answer["weights"] = new_array<float>({m, d}, [&](float* out) {
    for (std::size_t i = 0; i < m; ++i)
      for (const SplitTerm& term : tree.splits[i].terms)
        out[i * d + encoder.column_of()[term.column]] = term.weight;
  });
  answer["bias"] = new_array<float>({m}, [&](float* out) {
    for (std::size_t i = 0; i < m; ++i) out[i] = tree.splits[i].bias;
  });
  answer["children"] = new_array<std::int32_t>({m, 2}, [&](std::int32_t* out) {
    for (std::size_t i = 0; i < m; ++i) std::copy_n(tree.children[i].begin(), 2, out + 2 * i);
  });
  answer["leaf"] = new_array<std::int32_t>({tree.leaf.size()}, [&](std::int32_t* out) {
    std::copy(tree.leaf.begin(), tree.leaf.end(), out);
  });
  answer["interrupted"] = tree.interrupted;
  return answer;
}

nb::dict fit_greedy(const Encoder& encoder, const nb::object& X, Array2<float> target,
                    Array1<float> weight, Array1<double> count, Array1<std::int64_t> train_rows,
                    int n_outputs, std::uint64_t seed, int n_threads, const nb::dict& options) {
  const TableArrays table(encoder, X);
  const GreedyOptions chosen = greedy_options(options);
  checked_threads(n_threads);
  checked_range("n_outputs", n_outputs, 1, kMany);
  require_not_negative("count", count);
  Problem problem;
  problem.encoding = encoder.encoding();
  problem.source = table.source();
  problem.target = target.data();
  problem.n_targets = checked_range("n_targets", checked_size("target", target.shape(1)), 1, kMany);
  problem.weight = weight.data();
  problem.n_outputs = n_outputs;
  const std::int64_t n = problem.source.n_rows;
  require(static_cast<std::int64_t>(target.shape(0)) == n &&
              static_cast<std::int64_t>(weight.size()) == n &&
              static_cast<std::int64_t>(count.size()) == n,
          "X, target, weight and count differ in length");
  problem.train = checked_rows(train_rows, n);
  require(!problem.train.empty(), "no rows to learn from");
  checked_size("train_rows", problem.train.size());
  check_targets(problem, chosen.measure);
  std::atomic<bool> stop{false};
  GreedyTree tree;
  run_interruptible(
      [&] { tree = grow_greedy(problem, count.data(), chosen, seed, n_threads, stop); },
      [&] { stop = true; });
  return answer_of(tree, encoder);
}

}  // namespace

void bind_learn_greedy(nb::module_& m) {
  m.def("fit_greedy", &fit_greedy, nb::arg("encoder"), nb::arg("X"), nb::arg("target"),
        nb::arg("weight"), nb::arg("count"), nb::arg("train_rows"), nb::kw_only(),
        nb::arg("n_outputs"), nb::arg("seed"), nb::arg("n_threads"), nb::arg("options"),
        "A tree grown greedily: {weights, bias, children, leaf, interrupted}.");
}

}  // namespace hardwood
