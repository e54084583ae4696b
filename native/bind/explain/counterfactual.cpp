#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string_view>
#include <vector>

#include "bind/bind.hpp"
#include "bind/interruptible.hpp"
#include "core/threads.hpp"
#include "explain/counterfactual/search.hpp"

namespace hardwood {

namespace {

Norm norm_of(std::string_view name) {
  if (name == "l2") return Norm::kLength;
  if (name == "l1") return Norm::kSum;
  require(name == "l0", "norm must be l2, l1 or l0");
  return Norm::kCount;
}

// The regions of one goal. Owns the arrays that they point to.
class CounterfactualSearch {
 public:
  CounterfactualSearch(Array1<std::uint8_t> kind, Array1<std::int32_t> first_column,
                       Array1<std::int32_t> n_levels, Array1<double> cost,
                       Array1<std::uint8_t> may_become, Array2<double> normals, Array1<double> bias,
                       Array1<double> sizes, Array1<std::int64_t> first,
                       Array1<std::int32_t> members)
      : kind_(copied(kind)),
        first_column_(copied(first_column)),
        n_levels_(copied(n_levels)),
        cost_(copied(cost)),
        may_become_(copied(may_become)),
        normals_(copied(normals)),
        bias_(copied(bias)),
        sizes_(copied(sizes)),
        first_(copied(first)),
        members_(copied(members)),
        n_half_spaces_(normals.shape(0)),
        n_columns_(normals.shape(1)) {
    check();
    regions_ = {static_cast<int>(kind_.size()),
                kind_.data(),
                first_column_.data(),
                n_levels_.data(),
                cost_.data(),
                may_become_.data(),
                static_cast<int>(n_columns_),
                static_cast<int>(n_half_spaces_),
                normals_.data(),
                bias_.data(),
                sizes_.data(),
                {first_.data(), first_.size()},
                members_.data()};
  }

  nb::tuple search(Array2<double> X, Array2<double> low, Array2<double> high,
                   Array2<double> columns, Array2<std::uint8_t> sides, std::string_view norm,
                   double margin, bool everywhere, std::int64_t most_steps, int n_threads) const {
    const std::size_t n = X.shape(0), p = kind_.size();
    check_rows(X, low, high, columns, sides);
    require(margin >= 0 && std::isfinite(margin), "margin must be finite and not negative");
    checked_threads(n_threads);
    const SearchOptions options{norm_of(norm), {margin, everywhere}, most_steps};
    double* changed = nullptr;
    bool *found = nullptr, *is_proven = nullptr;
    auto changed_array = new_array<double>({n, p}, [&](double* out) { changed = out; });
    auto found_array = new_array<bool>({n}, [&](bool* out) { found = out; });
    auto proven_array = new_array<bool>({n}, [&](bool* out) { is_proven = out; });
    std::copy_n(X.data(), n * p, changed);
    const auto find_row = [&](RowSearch& row_search, Nearest& nearest, std::size_t r) {
      const std::size_t c = columns.shape(1), n_sides = sides.shape(1);
      is_proven[r] = row_search.find(
          {X.data() + r * p, low.data() + r * p, high.data() + r * p, columns.data() + r * c,
           sides.data() + r * n_sides, static_cast<int>(n_sides)},
          nearest);
      found[r] = nearest.found;
      if (nearest.found) std::copy(nearest.x.begin(), nearest.x.end(), changed + r * p);
    };
    run(n, n_threads, options, find_row);
    return nb::make_tuple(changed_array, found_array, proven_array);
  }

 private:
  template <class FindRow>
  void run(std::size_t n, int n_threads, const SearchOptions& options, FindRow&& find_row) const {
    constexpr std::size_t kChunk = 64;  // rows; one may take a thousand times longer than another
    run_whole([&](const std::atomic<bool>& stop) {
      parallel_for(static_cast<int>((n + kChunk - 1) / kChunk), n_threads, [&](int chunk) {
        RowSearch search(regions_, options, stop);
        Nearest nearest;
        const std::size_t begin = chunk * kChunk;
        for (std::size_t r = begin; r < std::min(n, begin + kChunk) && !stop; ++r)
          find_row(search, nearest, r);
      });
    });
  }

  void check() const {
    const std::size_t p = kind_.size(), c = n_columns_, h = n_half_spaces_;
    checked_size("kind", p);
    checked_size("normals", c);
    checked_size("normals", h);
    checked_size("first", first_.size());
    require_positive("cost", cost_);
    require_finite_entries("normals", normals_);
    require_finite_entries("bias", bias_);
    require_not_negative("sizes", sizes_);
    std::vector<bool> is_taken(c);
    require(first_column_.size() == p && n_levels_.size() == p && cost_.size() == p,
            "the arrays of features differ in size");
    require(may_become_.size() == c && sizes_.size() == h && bias_.size() == h,
            "normals, bias, sizes and levels differ");
    for (std::size_t f = 0; f < p; ++f) {
      const bool is_category = kind_[f] == Regions::kCategory;
      const std::int64_t first = first_column_[f], n = n_levels_[f];
      require(kind_[f] <= Regions::kCategory && is_category == (n > 0) && n >= 0, "no such kind");
      require(first >= 0 && first + std::max<std::int64_t>(n, 1) <= static_cast<std::int64_t>(c),
              "a column is out of range");
      for (std::int64_t column = first; column < first + std::max<std::int64_t>(n, 1); ++column) {
        require(!is_taken[column], "two features have the same column");
        is_taken[column] = true;
      }
    }
    require(!first_.empty() && first_.front() == 0, "the first region starts at 0");
    require(std::ranges::is_sorted(first_), "regions are out of order");
    require(first_.back() == static_cast<std::int64_t>(members_.size()),
            "the last region ends with the members");
    for (const std::int32_t member : members_)
      require(half_space_of(member) < static_cast<int>(h), "no such half-space");
  }

  void check_rows(const Array2<double>& X, const Array2<double>& low, const Array2<double>& high,
                  const Array2<double>& columns, const Array2<std::uint8_t>& sides) const {
    const std::size_t n = X.shape(0), p = kind_.size(), h = n_half_spaces_;
    for (const Array2<double>* part : {&X, &low, &high})
      require(part->shape(0) == n && part->shape(1) == p, "rows do not match the features");
    require(columns.shape(0) == n && columns.shape(1) == n_columns_,
            "columns do not match the half-spaces");
    require(sides.shape(0) == n && sides.shape(1) <= h, "sides do not match the half-spaces");
    for (std::size_t i = 0; i < n * p; ++i) {
      const double x = X.data()[i];
      const std::int32_t n_levels = n_levels_[i % p];
      require(!(x < 0 || x >= n_levels) || n_levels == 0, "a level is out of range");
      require(!std::isinf(x), "a number is infinite");
    }
    require_finite_entries("columns", columns);
  }

  const std::vector<std::uint8_t> kind_;
  const std::vector<std::int32_t> first_column_, n_levels_;
  const std::vector<double> cost_;
  const std::vector<std::uint8_t> may_become_;
  const std::vector<double> normals_, bias_, sizes_;
  const std::vector<std::int64_t> first_;
  const std::vector<std::int32_t> members_;
  const std::size_t n_half_spaces_, n_columns_;
  Regions regions_;
};

}  // namespace

void bind_counterfactual(nb::module_& m) {
  nb::class_<CounterfactualSearch>(
      m, "CounterfactualSearch",
      "Regions of a table's rows, each where some half-spaces of the schema's columns hold.")
      .def(nb::init<Array1<std::uint8_t>, Array1<std::int32_t>, Array1<std::int32_t>,
                    Array1<double>, Array1<std::uint8_t>, Array2<double>, Array1<double>,
                    Array1<double>, Array1<std::int64_t>, Array1<std::int32_t>>(),
           nb::arg("kind"), nb::arg("first_column"), nb::arg("n_levels"), nb::arg("cost"),
           nb::arg("may_become"), nb::arg("normals"), nb::arg("bias"), nb::arg("sizes"),
           nb::arg("first"), nb::arg("members"))
      .def("search", &CounterfactualSearch::search, nb::arg("X"), nb::arg("low"), nb::arg("high"),
           nb::arg("columns"), nb::arg("sides"), nb::kw_only(), nb::arg("norm"), nb::arg("margin"),
           nb::arg("everywhere"), nb::arg("most_steps"), nb::arg("n_threads"),
           "The nearest row in a region for each row (n, p), which were found, and which are "
           "proven.");
}

}  // namespace hardwood
