// The two halves of a split's improvement by TAO: a logistic regression and a threshold.
#include <algorithm>

#include "learn/tao/logistic.hpp"
#include "learn/tao/sweep.hpp"
#include "probes/encoded_tiles.hpp"
#include "probes/probes.hpp"

namespace hardwood {

namespace {

// The best place to part scores: (threshold, reduced loss, gap).
nb::tuple threshold_of(Array1<float> score, Array1<float> sign, Array1<double> cost) {
  const std::size_t n = score.size();
  require(n >= 1 && sign.size() == n && cost.size() == n, "sizes differ");
  ReducedProblem problem;
  problem.sign.assign(sign.data(), sign.data() + n);
  problem.cost.assign(cost.data(), cost.data() + n);
  for (const double c : problem.cost) problem.total_cost += c;
  const Threshold found = best_threshold({score.data(), n}, problem);
  return nb::make_tuple(found.at, found.loss, found.gap);
}

// Logistic regression over rows (n, d): (w, b, objective, passes).
nb::tuple solve(Array2<float> X, Array1<float> sign, Array1<float> weight, double l1, double l2,
                int max_passes, double tolerance, int n_threads,
                std::optional<std::tuple<Array1<float>, float>> start) {
  const std::size_t n = X.shape(0), d = X.shape(1);
  require(n >= 1 && d >= 1 && sign.size() == n && weight.size() == n, "sizes differ");
  const std::ptrdiff_t stride = rounded_up(static_cast<int>(d), 16);
  std::vector<float> w(d);
  float b = 0;
  if (start) {
    require(std::get<0>(*start).size() == d, "sizes differ");
    std::copy_n(std::get<0>(*start).data(), d, w.data());
    b = std::get<1>(*start);
  }
  Buffer<float> padded_X(n * stride);
  copy_rows(n, d, X.data(), d, padded_X.data(), stride);
  const std::atomic<bool> stop{false};
  LogisticSolution solution;
  {
    const nb::gil_scoped_release release;
    solution = solve_logistic(
        {static_cast<int>(n), stride, padded_X.data(), sign.data(), weight.data()},
        static_cast<int>(d), {l1, l2, max_passes, tolerance, n_threads}, std::move(w), b, stop);
  }
  return nb::make_tuple(
      new_array<float>({d}, [&](float* out) { std::ranges::copy(solution.w, out); }), solution.b,
      solution.objective, solution.passes);
}

}  // namespace

void bind_splits(nb::module_& m) {
  m.def("best_threshold", &threshold_of, nb::arg("score"), nb::arg("sign"), nb::arg("cost"),
        "The best place to part scores: (threshold, reduced loss, gap).");
  m.def("solve_logistic", &solve, nb::arg("X"), nb::arg("sign"), nb::arg("weight"), nb::kw_only(),
        nb::arg("l1"), nb::arg("l2") = 0.0, nb::arg("max_passes") = 1000,
        nb::arg("tolerance") = 1e-6, nb::arg("n_threads") = 1, nb::arg("start") = nb::none(),
        "L1-penalized logistic regression of weighted rows: (w, b, objective, passes).");
}

}  // namespace hardwood
