#include "learn/greedy/greedy.hpp"
#include "bind/learn/learning.hpp"

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

GreedyOptions greedy_options(const nb::dict& options) {
  GreedyOptions o;
  o.search = named<Search>(nb::cast<std::string>(options["splitter"]), "splitter",
                           {{"axis", Search::kAxis},
                            {"random", Search::kRandom},
                            {"oc1", Search::kOc1},
                            {"co2", Search::kCo2}});
  o.measure = measure_named(nb::cast<std::string>(options["criterion"]),
                            nb::cast<std::string>(options["target"]));
  o.max_depth = nb::cast<int>(options["max_depth"]);
  o.min_samples_split = nb::cast<double>(options["min_samples_split"]);
  o.min_samples_leaf = nb::cast<double>(options["min_samples_leaf"]);
  o.min_weight_fraction_leaf = nb::cast<double>(options["min_weight_fraction_leaf"]);
  o.min_impurity_decrease = nb::cast<double>(options["min_impurity_decrease"]);
  o.n_candidates = nb::cast<int>(options["n_candidates"]);
  o.n_split_restarts = nb::cast<int>(options["n_split_restarts"]);
  o.n_jumps = nb::cast<int>(options["n_jumps"]);
  o.n_coordinates = nb::cast<int>(options["n_coordinates"]);
  o.max_sweeps = nb::cast<int>(options["max_sweeps"]);
  o.co2.nu = nb::cast<std::vector<float>>(options["nu"]);
  o.co2.learning_rate = nb::cast<float>(options["learning_rate"]);
  o.co2.momentum = nb::cast<float>(options["momentum"]);
  o.co2.batch_size = nb::cast<int>(options["batch_size"]);
  o.co2.max_epochs = nb::cast<int>(options["max_epochs"]);
  require(!o.co2.nu.empty() && std::ranges::all_of(o.co2.nu, [](float nu) { return nu > 0; }) &&
              o.co2.batch_size >= 1 && o.co2.max_epochs >= 1,
          "options out of range");
  constexpr int kMany = 1 << 20;  // random numbers of a node are kept apart by 20 bits
  for (const int n : {o.n_candidates, o.n_split_restarts, o.n_coordinates, o.max_sweeps})
    require(n >= 1 && n < kMany, "options out of range");
  require(o.max_depth >= 1 && o.n_jumps >= 0, "options out of range");
  return o;
}

void check_targets(const Problem& problem, Measure measure) {
  if (measure == Measure::kLabelEntropy || measure == Measure::kLabelGini)
    for (const std::int64_t row : problem.train)
      for (int t = 0; t < problem.n_targets; ++t) {
        const float y = problem.target[row * problem.n_targets + t];
        require(y == 0 || y == 1, "a label is neither 0 nor 1");
      }
  if (!has_classes(measure)) return;
  require(problem.n_targets == 1, "classes are one column");
  for (const std::int64_t row : problem.train)
    require(problem.target[row] >= 0 && problem.target[row] < problem.n_outputs,
            "a class index is out of range");
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
  Problem problem;
  problem.encoding = encoder.encoding();
  problem.source = table.source();
  problem.target = target.data();
  problem.n_targets = static_cast<int>(target.shape(1));
  problem.weight = weight.data();
  problem.n_outputs = n_outputs;
  const std::int64_t n = problem.source.n_rows;
  require(static_cast<std::int64_t>(target.shape(0)) == n &&
              static_cast<std::int64_t>(weight.size()) == n &&
              static_cast<std::int64_t>(count.size()) == n,
          "X, target, weight and count differ in length");
  problem.train = checked_rows(train_rows, n);
  require(!problem.train.empty(), "no rows to learn from");
  require(problem.train.size() < 0x7FFFFFFF, "more rows than 31 bits count");
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
