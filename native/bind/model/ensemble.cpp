#include "tree/ensemble.hpp"

#include <nanobind/stl/string_view.h>

#include <bit>

#include "bind/model/router.hpp"
#include "bind/options.hpp"

namespace hardwood {

namespace {

void apply_link(Result<double, 2> scores, std::string_view name, int n_threads) {
  constexpr std::int64_t kChunk = 4096;  // rows per task
  const Link link = link_of(name);
  const std::int64_t n = static_cast<std::int64_t>(scores.shape(0));
  const int k = checked_size("scores", scores.shape(1));
  checked_threads(n_threads);
  if (n == 0 || k == 0) return;
  double* data = scores.data();
  const nb::gil_scoped_release release;
  parallel_for(static_cast<int>((n + kChunk - 1) / kChunk), n_threads, [&](int chunk) {
    const std::int64_t first = chunk * kChunk;
    kernels().link_rows(link, std::min(kChunk, n - first), k, data + first * k);
  });
}

// Soft trees, packed: weights in float32, in the units of the encoded columns and of gamma.
class SoftRouter {
 public:
  SoftRouter(const Encoder& encoder, Array<double, 3> weights, Array2<double> bias,
             Array<double, 3> values, double gamma, std::string_view activation)
      : encoder_(encoder) {
    check(weights, bias, values, gamma);
    const int depth = std::bit_width(weights.shape(1));
    ensemble_.encoding = encoder_.unscaled();
    SoftTrees<float, double>& trees = ensemble_.trees;
    trees.shape = {static_cast<int>(weights.shape(0)), depth, encoder_.n_columns(),
                   static_cast<int>(values.shape(2))};
    trees.activation = activation_named(activation);
    trees.gamma = 1.0f;
    trees.stride = padded(std::max(encoder_.n_columns(), 1));
    pack(weights, bias, values, gamma);
  }
  SoftRouter(const SoftRouter&) = delete;

  auto scores(const nb::object& X, int n_threads) const {
    checked_threads(n_threads);
    const TableArrays table(encoder_, X);
    const std::size_t k = ensemble_.trees.shape.n_outputs;
    return answers<double>({table.n_rows(), k}, [&](double* out) {
      start(table.source().n_rows, out);
      return soft_scores(ensemble_, table.source(), n_threads, out);
    });
  }

  // The same for one row, into an array of k: making one would take longer than the answer.
  template <class T>
  void scores_one(Array1<T> x, Result<double, 1> out) const {
    const Source row = row_source(ensemble_.encoding, x);
    require(out.size() == static_cast<std::size_t>(ensemble_.trees.shape.n_outputs),
            "out has another size than scores");
    start(1, out.data());
    require_finite(soft_scores(ensemble_, row, 1, out.data()));
  }

  auto reachable(const nb::object& X, int n_threads) const {
    checked_threads(n_threads);
    const TableArrays table(encoder_, X);
    const std::size_t n_trees = ensemble_.trees.shape.n_trees;
    return answers<std::int32_t>({table.n_rows(), n_trees}, [&](std::int32_t* out) {
      return soft_leaves(ensemble_, table.source(), n_threads, out);
    });
  }

  auto leaf_weights(const nb::object& X, Array1<double> weight) const {
    const TableArrays table(encoder_, X);
    require(weight.size() == table.n_rows(), "there must be one weight per row");
    require_finite_entries("weight", weight);
    const std::size_t n_trees = ensemble_.trees.shape.n_trees,
                      n_leaves = ensemble_.trees.shape.n_leaves();
    return answers<double>({n_trees, n_leaves}, [&](double* out) {
      std::fill_n(out, n_trees * n_leaves, 0.0);
      return soft_leaf_weights(ensemble_, table.source(), weight.data(), out);
    });
  }

 private:
  void check(const Array<double, 3>& weights, const Array2<double>& bias,
             const Array<double, 3>& values, double gamma) const {
    const std::size_t n_trees = weights.shape(0), m = weights.shape(1);
    require(n_trees > 0 && n_trees <= kMany, "an ensemble has at least one tree");
    require(m > 0 && (m & (m + 1)) == 0 && m < (std::size_t{1} << kDeepestSoftTree),
            "the splits do not fill perfect trees of depth 1 to 20");
    require(weights.shape(2) == encoder_.columns(), "weights do not match the schema's columns");
    require(bias.shape(0) == n_trees && bias.shape(1) == m, "weights and bias differ");
    require(values.shape(0) == n_trees && values.shape(1) == m + 1 && values.shape(2) > 0 &&
                values.shape(2) <= kMany,
            "weights and values differ");
    require(gamma > 0 && std::isfinite(gamma), "gamma must be positive");
    require_finite_entries("weights", weights);
    require_finite_entries("bias", bias);
    require_finite_entries("values", values);
  }

  void pack(const Array<double, 3>& weights, const Array2<double>& bias,
            const Array<double, 3>& values, double gamma) {
    constexpr double kFurthest = 0x1p64;  // scales from the center; see MAX_STEEPNESS in the model
    const Encoding& e = ensemble_.encoding;
    const std::size_t rows = bias.size(), columns = weights.shape(2), stride = trees().stride;
    weights_ = Buffer<float>(rows * stride);
    bias_ = Buffer<float>(rows);
    values_ = Buffer<double>(values.size());
    limit_ = Buffer<float>(std::max(e.n_numeric, 1));
    for (std::size_t row = 0; row < rows; ++row) {
      const double* w = weights.data() + row * columns;
      for (std::size_t j = 0; j < columns; ++j) {
        const bool is_number = static_cast<int>(j) < e.n_numeric;
        const double factor = is_number ? encoder_.weight_factor(static_cast<int>(j)) : 1.0;
        weights_[row * stride + j] =
            static_cast<float>(w[encoder_.column_of()[j]] * factor / gamma);
      }
      bias_[row] = static_cast<float>(bias.data()[row] / gamma);
    }
    pack_values(values.data());
    for (int j = 0; j < e.n_numeric; ++j)
      limit_[j] = static_cast<float>(kFurthest * encoder_.scale(j) / encoder_.weight_factor(j));
    trees().W = weights_.data();
    trees().b = bias_.data();
    trees().O = values_.data();
    ensemble_.limit = limit_.data();
  }

  // The probabilities of a row add up to 1 except for rounding, which a large common part of a
  // tree's values would amplify: so values are relative to the middle of their range, and the
  // middles are added once.
  void pack_values(const double* values) {
    const std::size_t k = trees().shape.n_outputs, leaves = trees().shape.n_leaves();
    middle_ = Buffer<double>(k);
    for (int tree = 0; tree < trees().shape.n_trees; ++tree)
      for (std::size_t o = 0; o < k; ++o) {
        const double* from = values + tree * leaves * k + o;
        double low = from[0], high = from[0];
        for (std::size_t leaf = 1; leaf < leaves; ++leaf) {
          low = std::min(low, from[leaf * k]);
          high = std::max(high, from[leaf * k]);
        }
        const double middle = low / 2 + high / 2;
        for (std::size_t leaf = 0; leaf < leaves; ++leaf)
          values_[(tree * leaves + leaf) * k + o] = from[leaf * k] - middle;
        middle_[o] += middle;
      }
  }

  // The initial scores of every row.
  void start(std::int64_t n_rows, double* out) const {
    for (std::int64_t row = 0; row < n_rows; ++row)
      std::copy_n(middle_.data(), middle_.size(), out + row * middle_.size());
  }

  SoftTrees<float, double>& trees() { return ensemble_.trees; }

  const Encoder& encoder_;  // kept alive by the binding
  Buffer<float> weights_, bias_, limit_;
  Buffer<double> values_, middle_;
  Ensemble ensemble_;
};

}  // namespace

void bind_ensemble(nb::module_& m) {
  m.def("apply_link", &apply_link, nb::arg("scores").noconvert(), nb::arg("link"),
        nb::arg("n_threads") = 1,
        "Turn scores (n, k) into outputs, in place: identity, exp, softmax or logistic.");
  nb::class_<SoftRouter>(m, "SoftRouter",
                         "Soft trees, packed. Weights and bias are in the schema's raw units.")
      .def(nb::init<const Encoder&, Array<double, 3>, Array2<double>, Array<double, 3>, double,
                    std::string_view>(),
           nb::keep_alive<1, 2>(), nb::arg("encoder"), nb::arg("weights"), nb::arg("bias"),
           nb::arg("values"), nb::arg("gamma"), nb::arg("activation"))
      .def("scores", &SoftRouter::scores, nb::arg("X"), nb::arg("n_threads") = 1,
           "Sums of the trees' scores for every row, (n, k).")
      .def("scores_one", &SoftRouter::scores_one<double>, nb::arg("x").noconvert(),
           nb::arg("out").noconvert(), "The same for one row, written to out, (k,).")
      .def("scores_one", &SoftRouter::scores_one<float>, nb::arg("x").noconvert(),
           nb::arg("out").noconvert())
      .def("reachable", &SoftRouter::reachable, nb::arg("X"), nb::arg("n_threads") = 1,
           "Leaves that every row reaches in every tree, (n, trees).")
      .def("leaf_weights", &SoftRouter::leaf_weights, nb::arg("X"), nb::arg("weight"),
           "What arrives at leaves: weights times shares, (trees, leaves).");
}

}  // namespace hardwood
