#include <nanobind/stl/string_view.h>

#include "bind/interruptible.hpp"
#include "bind/model/forest_router.hpp"
#include "explain/shapley/shapley.hpp"

namespace hardwood {

namespace {

// The groups of a forest, whose explanations add up. `column` holds the values of constant leaves
// for a single requested output, if there is one.
std::vector<Group> groups_of(const Forest& forest, Link link, int output,
                             std::vector<Buffer<double>>& column) {
  const int first = std::max(output, 0);
  if (link != Link::kIdentity)
    return {{forest.trees, forest.n_outputs, forest.vote, link, 1.0, first}};
  const double share = forest.is_sum ? 1.0 : 1.0 / static_cast<double>(forest.trees.size());
  std::vector<Group> groups;
  for (ForestTree tree : forest.trees) {
    const bool is_cut = output >= 0 && !tree.linear;
    if (is_cut) {
      Buffer<double>& values = column.emplace_back(tree.splits->n_splits + 1);
      for (std::size_t leaf = 0; leaf < values.size(); ++leaf)
        values[leaf] = tree.values[leaf * forest.n_outputs + output];
      tree.values = values.data();
    }
    groups.push_back({{tree},
                      is_cut ? 1 : forest.n_outputs,
                      forest.vote,
                      Link::kIdentity,
                      share,
                      is_cut ? 0 : first});
  }
  return groups;
}

FeatureRows encoded(const ForestRouter& router, const FeatureMap& map, const nb::object& X) {
  const TableArrays table(router.encoder(), X);
  BadEntry bad;
  FeatureRows rows(router.forest().encoding, map, router.forest().stride, table.source(), bad);
  require_finite(bad);
  return rows;
}

nb::tuple shapley_values(const ForestRouter& router, std::string_view link, const nb::object& X,
                         const nb::object& background, int output, int n_orders,
                         std::int64_t most_cases, std::uint64_t seed, int n_threads) {
  const Forest& forest = router.forest();
  const Link known_link = link_of(link);
  require(known_link == Link::kIdentity || forest.is_sum, "only a sum of trees has a link");
  require(-1 <= output && output < forest.n_outputs, "no such output");
  checked_range("n_orders", n_orders, 2, kMany);  // variances need two
  checked_range("most_cases", most_cases, 0, std::int64_t{1} << 40);
  checked_threads(n_threads);
  std::vector<Buffer<double>> column;
  const std::vector<Group> groups = groups_of(forest, known_link, output, column);
  const FeatureMap map(forest.encoding);
  const FeatureRows rows = encoded(router, map, X);
  const FeatureRows others = encoded(router, map, background);
  require(others.size() > 0, "the background has no rows");
  const std::size_t n = rows.size(), p = forest.encoding.n_features,
                    k = output < 0 ? forest.n_outputs : 1;
  ShapleyAnswers answers{nullptr, nullptr, nullptr, static_cast<int>(k)};
  auto values = new_array<double>({n, p, k}, [&](double* out) { answers.values = out; });
  auto variances = new_array<double>({n, p, k}, [&](double* out) { answers.variances = out; });
  auto is_exact = new_array<bool>({n}, [&](bool* out) {
    std::fill_n(out, n, true);
    answers.is_exact = out;
  });
  run_whole([&](const std::atomic<bool>& stop) {
    shapley(groups, map, forest.stride, rows, others, {n_orders, most_cases, seed, n_threads}, stop,
            answers);
  });
  return nb::make_tuple(values, variances, is_exact);
}

}  // namespace

void bind_explain(nb::module_& m) {
  m.def(
      "shapley", &shapley_values, nb::arg("forest"), nb::arg("link"), nb::arg("X"),
      nb::arg("background"), nb::kw_only(), nb::arg("output"), nb::arg("n_orders"),
      nb::arg("most_cases"), nb::arg("seed"), nb::arg("n_threads"),
      "Shapley values (n, p, k) of a forest's answers, their variances, and which rows are exact. "
      "output: one of the k, or -1 for all. most_cases: per background row, 0 to sample always.");
}

}  // namespace hardwood
