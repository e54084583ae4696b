#include "bind/learning.hpp"
#include "learn/encoded_rows.hpp"
#include "learn/tao_logistic.hpp"
#include "learn/tao_sweep.hpp"

namespace hardwood {

namespace {

TaoOptions tao_options(const nb::dict& options) {
  TaoOptions o;
  o.l1 = nb::cast<std::vector<double>>(options["l1"]);
  o.l2 = nb::cast<double>(options["l2"]);
  o.weight_price = nb::cast<double>(options["weight_price"]);
  o.max_passes = nb::cast<int>(options["max_passes"]);
  o.tolerance = nb::cast<double>(options["tolerance"]);
  o.max_features = nb::cast<int>(options["max_features"]);
  o.from_the_root = nb::cast<bool>(options["from_the_root"]);
  require(!o.l1.empty() && std::ranges::all_of(o.l1, [](double v) { return v >= 0; }) &&
              o.l2 >= 0 && o.weight_price >= 0 && o.max_passes >= 1 && o.max_features >= 0,
          "options out of range");
  return o;
}

// Training rows, encoded once, over which the splits of trees are improved.
class TaoTable {
 public:
  TaoTable(const Encoder& encoder, const nb::object& X, Array1<std::int64_t> rows, int n_threads)
      : column_of_(encoder.column_of()),
        n_columns_(encoder.n_columns()),
        stride_(padded(encoder.n_columns())),
        n_(static_cast<int>(rows.size())) {
    const TableArrays table(encoder, X);
    const auto which = checked_rows(rows, table.source().n_rows);
    require(which.size() < 0x7FFFFFFF, "more rows than 31 bits count");
    const Encoding encoding = encoder.encoding();
    const nb::gil_scoped_release release;
    X_ = encode_all(encoding, table.source(), which, stride_, n_threads);
  }

  // (r, c): some rows in the schema's order of columns.
  auto columns(Array1<std::int64_t> rows) const {
    const std::size_t d = n_columns_;
    checked_rows(rows, n_);
    return new_array<float>({rows.size(), d}, [&](float* out) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        give(1, X_.data() + rows.data()[i] * stride_, out + i * d);
    });
  }

  auto leaves(Array2<std::int32_t> children, Array2<float> weights, Array1<float> bias,
              int n_threads) const {
    const TreeTopology topology = topology_of(children, weights, bias);
    const Buffer<float> W = taken(weights.data(), weights.shape(0));
    std::vector<std::int32_t> leaf;
    {
      const nb::gil_scoped_release release;
      leaf = leaves_of(topology, rows(), W.data(), bias.data(), n_threads);
    }
    return new_array<std::int32_t>({leaf.size()},
                                   [&](std::int32_t* out) { std::ranges::copy(leaf, out); });
  }

  nb::dict sweep(Array2<std::int32_t> children, Array2<float> weights, Array1<float> bias,
                 Array2<float> scores, std::optional<Array2<float>> leaf_weights,
                 std::optional<Array2<float>> class_losses, Array2<float> target,
                 Array1<float> weight, const std::string& loss, double loss_parameter,
                 const nb::dict& options, std::vector<std::int32_t> feature_of_column,
                 int n_threads) const {
    const TreeTopology topology = topology_of(children, weights, bias);
    const std::size_t m = topology.n_splits(), d = n_columns_;
    Buffer<float> W = taken(weights.data(), m), b(m), A;
    std::copy_n(bias.data(), m, b.data());
    TaoRows own = rows();
    own.target = target.data();
    own.n_targets = static_cast<int>(target.shape(1));
    own.weight = weight.data();
    TaoLeaves leaves;
    leaves.losses.loss = class_losses ? Loss::kCrossEntropy : loss_named(loss);
    leaves.losses.parameter = static_cast<float>(loss_parameter);
    leaves.losses.n_outputs = static_cast<int>((class_losses ? *class_losses : scores).shape(1));
    check(topology, own, leaves.losses, scores, target, weight, class_losses);
    if (class_losses) leaves.losses.table = class_losses->data();
    if (leaf_weights) {
      const std::size_t rows_of_A = (m + 1) * scores.shape(1);
      require(!class_losses && leaf_weights->shape(0) == rows_of_A && leaf_weights->shape(1) == d,
              "leaf weights have another shape");
      A = taken(leaf_weights->data(), rows_of_A);
      leaves.A = A.data();
    }
    TaoOptions chosen = tao_options(options);
    std::vector<std::int32_t> features(d);
    require(feature_of_column.size() == d, "options out of range");
    for (std::size_t c = 0; c < d; ++c) features[c] = feature_of_column[column_of_[c]];
    chosen.feature_of_column = features;
    std::atomic<bool> stop{false};
    TaoSweepResult result;
    run_interruptible(
        [&] {
          result = sweep_splits(topology, n_columns_, own, leaves,
                                {W.data(), b.data(), scores.data()}, chosen, n_threads, stop);
        },
        [&] { stop = true; });
    nb::dict answer;
    answer["weights"] = new_array<float>({m, d}, [&](float* out) { give(m, W.data(), out); });
    answer["bias"] = new_array<float>({m}, [&](float* out) { std::copy_n(b.data(), m, out); });
    answer["n_changed"] = result.n_changed;
    answer["gain"] = result.gain;
    answer["row_passes"] = result.passes;
    answer["interrupted"] = stop.load();
    return answer;
  }

 private:
  TaoRows rows() const {
    TaoRows rows;
    rows.n = n_;
    rows.stride = stride_;
    rows.X = X_.data();
    return rows;
  }

  TreeTopology topology_of(const Array2<std::int32_t>& children, const Array2<float>& weights,
                           const Array1<float>& bias) const {
    require(children.shape(0) == 0 || children.shape(1) == 2, "children must have two columns");
    TreeTopology topology({children.data(), children.size()});
    const std::size_t m = topology.n_splits();
    require(weights.shape(0) == m && (m == 0 || weights.shape(1) == n_columns_) && bias.size() == m,
            "the tree has another shape");
    return topology;
  }

  void check(const TreeTopology& topology, const TaoRows& own, const LeafLosses& losses,
             const Array2<float>& scores, const Array2<float>& target, const Array1<float>& weight,
             const std::optional<Array2<float>>& class_losses) const {
    const std::size_t n = n_, k = losses.n_outputs, n_leaves = topology.n_leaves();
    require(losses.loss != Loss::kCustom, "the loss must be one of the engine");
    require(k >= 1 && scores.shape(0) == n_leaves &&
                (!class_losses || class_losses->shape(0) == n_leaves),
            "leaves have another shape");
    const bool has_classes = has_class_target(losses.loss);
    require(target.shape(0) == n && weight.size() == n && target.shape(1) == (has_classes ? 1 : k),
            "rows, target and weight differ in size");
    for (std::size_t i = 0; i < n && has_classes; ++i)
      require(own.target[i] >= 0 && own.target[i] < static_cast<float>(k),
              "a class index is out of range");
  }

  // Rows of weights from the schema's order of columns to the engine's, padded; and back.
  Buffer<float> taken(const float* from, std::size_t n) const {
    Buffer<float> to(n * stride_);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < n_columns_; ++c)
        to[i * stride_ + c] = from[i * n_columns_ + column_of_[c]];
    return to;
  }
  void give(std::size_t n, const float* from, float* to) const {
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < n_columns_; ++c)
        to[i * n_columns_ + column_of_[c]] = from[i * stride_ + c];
  }

  std::vector<std::int32_t> column_of_;
  std::size_t n_columns_;
  std::ptrdiff_t stride_;
  int n_;
  Buffer<float> X_;
};

// Logistic regression over rows (n, d), for tests and comparisons: (w, b, objective, passes).
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
  for (std::size_t i = 0; i < n; ++i)
    std::copy_n(X.data() + i * d, d, padded_X.data() + i * stride);
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

void bind_learn_tao(nb::module_& m) {
  nb::class_<TaoTable>(m, "TaoTable", "Encoded rows over which the splits of trees are improved.")
      .def(nb::init<const Encoder&, const nb::object&, Array1<std::int64_t>, int>(),
           nb::arg("encoder"), nb::arg("X"), nb::arg("rows"), nb::arg("n_threads"))
      .def("columns", &TaoTable::columns, nb::arg("rows"), "Encoded rows (r, c), by their places.")
      .def("leaves", &TaoTable::leaves, nb::arg("children"), nb::arg("weights"), nb::arg("bias"),
           nb::arg("n_threads"), "The leaf of each row, (n,).")
      .def("sweep", &TaoTable::sweep, nb::arg("children"), nb::arg("weights"), nb::arg("bias"),
           nb::arg("scores"), nb::arg("leaf_weights").none(), nb::arg("class_losses").none(),
           nb::arg("target"), nb::arg("weight"), nb::kw_only(), nb::arg("loss"),
           nb::arg("loss_parameter"), nb::arg("options"), nb::arg("feature_of_column"),
           nb::arg("n_threads"),
           "Improves every split once: {weights, bias, n_changed, gain, row_passes, interrupted}.");
  m.def("solve_logistic", &solve, nb::arg("X"), nb::arg("sign"), nb::arg("weight"), nb::kw_only(),
        nb::arg("l1"), nb::arg("l2") = 0.0, nb::arg("max_passes") = 1000,
        nb::arg("tolerance") = 1e-6, nb::arg("n_threads") = 1, nb::arg("start") = nb::none(),
        "L1-penalised logistic regression of weighted rows: (w, b, objective, passes).");
}

}  // namespace hardwood
