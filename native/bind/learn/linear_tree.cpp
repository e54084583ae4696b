#include "learn/linear_tree/split_search.hpp"

#include "bind/learn/learning.hpp"

namespace hardwood {

namespace {

constexpr int kMostBins = 1 << 16;  // of 16-bit numbers
constexpr std::size_t kMostColumns = 4096, kMostSums = std::size_t{1} << 31;

nb::tuple linear_splits(Array2<double> columns, Array2<double> slope, Array2<double> curvature,
                        Array1<double> count, Array2<std::uint16_t> bins,
                        const std::vector<int>& n_bins, const std::vector<bool>& has_missing,
                        Array1<double> l2, double min_count, int n_threads) {
  const std::size_t n = columns.shape(0), q = columns.shape(1), k = slope.shape(1),
                    f = bins.shape(0);
  require(q >= 1 && k >= 1, "a model has an intercept and an output at least");
  require(slope.shape(0) == n && curvature.shape(0) == n && curvature.shape(1) == k &&
              count.size() == n && bins.shape(1) == n && l2.size() == q,
          "rows differ in number");
  require(n_bins.size() == f && has_missing.size() == f, "candidates differ in number");
  checked_range("the number of columns", q, 1, kMostColumns);
  checked_range("the number of outputs", k, 1, kMany);
  checked_threads(n_threads);
  require_finite_entries("columns", columns);
  require_finite_entries("slope", slope);
  require_not_negative("curvature", curvature);
  require_not_negative("count", count);
  require_not_negative("l2", l2);
  require(min_count >= 0, "min_count must not be negative");
  std::vector<SplitCandidate> candidates(f);
  for (std::size_t c = 0; c < f; ++c) {
    candidates[c] = {bins.data() + c * n, n_bins[c], has_missing[c]};
    checked_range("n_bins", n_bins[c], 1, kMostBins);
    const std::size_t n_sums = k * (q + q * (q + 1) / 2);
    require(n_sums * n_bins[c] <= kMostSums, "sums of a candidate's bins would be too large");
    for (std::size_t i = 0; i < n; ++i)
      require(candidates[c].bin[i] < n_bins[c], "a bin is out of range");
  }
  LinearSplitRows rows;
  rows.n = static_cast<std::int64_t>(n);
  rows.n_columns = static_cast<int>(q);
  rows.n_outputs = static_cast<int>(k);
  rows.z = columns.data();
  rows.slope = slope.data();
  rows.curvature = curvature.data();
  rows.count = count.data();
  rows.l2 = l2.data();
  rows.min_count = min_count;
  std::vector<LinearSplit> found;
  {
    const nb::gil_scoped_release release;
    found = search_linear_splits(rows, candidates, n_threads);
  }
  const auto gain = new_array<double>({f}, [&](double* out) {
    for (std::size_t c = 0; c < f; ++c) out[c] = found[c].gain;
  });
  const auto first_right = new_array<std::int32_t>({f}, [&](std::int32_t* out) {
    for (std::size_t c = 0; c < f; ++c) out[c] = found[c].first_right;
  });
  const auto missing_right = new_array<bool>({f}, [&](bool* out) {
    for (std::size_t c = 0; c < f; ++c) out[c] = found[c].missing_right;
  });
  return nb::make_tuple(gain, first_right, missing_right);
}

}  // namespace

void bind_learn_linear_tree(nb::module_& m) {
  m.def("linear_splits", &linear_splits, nb::arg("columns"), nb::arg("slope"), nb::arg("curvature"),
        nb::arg("count"), nb::kw_only(), nb::arg("bins"), nb::arg("n_bins"), nb::arg("has_missing"),
        nb::arg("l2"), nb::arg("min_count"), nb::arg("n_threads"),
        "The best threshold of each candidate, where both sides get a linear model: "
        "(gain, first_right, missing_right).");
}

}  // namespace hardwood
