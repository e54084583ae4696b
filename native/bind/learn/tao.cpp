#include <chrono>
#include <cmath>
#include <limits>

#include "bind/learn/learning.hpp"
#include "bind/learn/option_reader.hpp"
#include "learn/loop/encoded_rows.hpp"
#include "learn/tao/logistic.hpp"
#include "learn/tao/sweep.hpp"

namespace hardwood {

namespace {

TaoOptions tao_options(const nb::dict& given) {
  constexpr double kMost = std::numeric_limits<double>::max();
  OptionReader options(given);
  TaoOptions o;
  o.l1 = options.list<double>("l1", 0, kMost);
  require(!o.l1.empty(), "option 'l1' must have an entry");
  o.l2 = options.get<double>("l2", 0, kMost);
  o.l0 = options.get<double>("l0", 0, kMost);
  o.logistic_passes = options.get<int>("logistic_passes", 1, kMany);
  o.logistic_tolerance = options.get<double>("logistic_tolerance", 0, kMost);
  o.max_features = options.get<int>("max_features", 0, kMany);
  o.from_the_root = options.get<bool>("from_the_root");
  options.refuse_others();
  return o;
}

// Training rows, encoded once, on which the splits of trees are improved.
class TaoTable {
 public:
  TaoTable(const Encoder& encoder, const nb::object& X, Array1<std::int64_t> rows, int n_threads)
      : encoder_(encoder),
        n_columns_(encoder.n_columns()),
        stride_(padded(encoder.n_columns())),
        n_(checked_size("rows", rows.size())) {
    checked_threads(n_threads);
    const TableArrays table(encoder, X);
    const auto which = checked_rows(rows, table.source().n_rows);
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
        give_columns(encoder_, 1, X_.data() + rows.data()[i] * stride_, out + i * d);
    });
  }

  auto leaves(Array2<std::int32_t> children, Array2<float> weights, Array1<float> bias,
              int n_threads) const {
    checked_threads(n_threads);
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

  // A tree with leaves, over the rows with their targets and weights.
  struct TreeArrays {
    Array2<std::int32_t> children;
    Array2<float> weights;
    Array1<float> bias;
    Array2<float> scores;
    std::optional<Array2<float>> leaf_weights;  // (L k, c) of linear leaves
    std::optional<Array2<float>> class_losses;  // (L, k) of constant leaves for classes
    Array2<float> target;
    Array1<float> weight;
    std::string loss;
    double loss_parameter;
  };

  // Rows at a node whose loss depends on the side: (rows, sign, cost).
  nb::tuple reduced(Array2<std::int32_t> children, Array2<float> weights, Array1<float> bias,
                    Array2<float> scores, std::optional<Array2<float>> leaf_weights,
                    std::optional<Array2<float>> class_losses, Array2<float> target,
                    Array1<float> weight, const std::string& loss, double loss_parameter, int node,
                    Array1<std::int32_t> rows_at_node) const {
    Ready ready(*this, {children, weights, bias, scores, leaf_weights, class_losses, target, weight,
                        loss, loss_parameter});
    require(node >= 0 && node < ready.topology.n_splits(), "there is no such split");
    require_indices("a row index", rows_at_node, n_);
    checked_size("rows_at_node", rows_at_node.size());
    const ReducedProblem found =
        reduced_problem(view_of(ready.topology, ready.rows, ready.leaves, ready.parameters()), node,
                        {rows_at_node.data(), rows_at_node.size()}, 1);
    const auto given = []<class T>(const std::vector<T>& values) {
      return new_array<T>({values.size()}, [&](T* out) { std::ranges::copy(values, out); });
    };
    return nb::make_tuple(given(found.rows), given(found.sign), given(found.cost));
  }

  nb::dict sweep(Array2<std::int32_t> children, Array2<float> weights, Array1<float> bias,
                 Array2<float> scores, std::optional<Array2<float>> leaf_weights,
                 std::optional<Array2<float>> class_losses, Array2<float> target,
                 Array1<float> weight, const std::string& loss, double loss_parameter,
                 const nb::dict& options, const std::vector<std::int32_t>& feature_of_column,
                 int n_threads, double seconds) const {
    checked_threads(n_threads);
    require(!std::isnan(seconds), "seconds is not a number");
    const auto begun = std::chrono::steady_clock::now();
    Ready ready(*this, {children, weights, bias, scores, leaf_weights, class_losses, target, weight,
                        loss, loss_parameter});
    TaoOptions chosen = tao_options(options);
    const auto features = features_of(encoder_, feature_of_column);
    chosen.feature_of_column = features;
    std::atomic<bool> stop{!(seconds > 0)};
    bool interrupted = false;
    TaoSweepResult result;
    run_interruptible(
        [&] {
          result = sweep_splits(ready.topology, static_cast<int>(n_columns_), ready.rows,
                                ready.leaves, ready.parameters(), chosen, n_threads, stop);
        },
        [&] { stop = interrupted = true; },
        [&] {
          const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
          if (spent.count() > seconds) stop = true;
        });
    const std::size_t m = ready.b.size();
    nb::dict answer;
    answer["weights"] = new_array<float>(
        {m, n_columns_}, [&](float* out) { give_columns(encoder_, m, ready.W.data(), out); });
    answer["bias"] =
        new_array<float>({m}, [&](float* out) { std::copy_n(ready.b.data(), m, out); });
    answer["n_changed"] = result.n_changed;
    answer["gain"] = result.gain;
    answer["row_passes"] = result.passes;
    answer["interrupted"] = interrupted;
    answer["is_whole"] = !stop;
    return answer;
  }

 private:
  // Checked arguments from Python, in the engine's order of columns.
  struct Ready {
    Ready(const TaoTable& table, const TreeArrays& given)
        : topology(table.topology_of(given.children, given.weights, given.bias)),
          W(table.taken(given.weights.data(), topology.n_splits())),
          b(topology.n_splits()),
          scores(given.scores),
          rows(table.rows()) {
      std::copy_n(given.bias.data(), b.size(), b.data());
      rows.target = given.target.data();
      rows.n_targets = checked_size("target", given.target.shape(1));
      rows.weight = given.weight.data();
      const auto& table_of_classes = given.class_losses;
      leaves.losses.loss = table_of_classes ? Loss::kCrossEntropy : loss_named(given.loss);
      leaves.losses.parameter = static_cast<float>(given.loss_parameter);
      leaves.losses.n_outputs =
          checked_size("scores", (table_of_classes ? *table_of_classes : scores).shape(1));
      table.check(topology, rows, leaves.losses, given);
      if (table_of_classes) leaves.losses.table = table_of_classes->data();
      if (!given.leaf_weights) return;
      const std::size_t n = topology.n_leaves() * scores.shape(1);
      require(!table_of_classes && given.leaf_weights->shape(0) == n &&
                  given.leaf_weights->shape(1) == table.n_columns_,
              "leaf weights have another shape");
      A = table.taken(given.leaf_weights->data(), n);
      leaves.A = A.data();
    }
    TaoParameters parameters() { return {W.data(), b.data(), scores.data()}; }

    TreeTopology topology;
    Buffer<float> W, b, A;
    Array2<float> scores;
    TaoRows rows;
    TaoLeaves leaves;
  };

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
             const TreeArrays& given) const {
    const std::size_t n = n_, k = losses.n_outputs, n_leaves = topology.n_leaves();
    require(losses.loss != Loss::kCustom, "the loss must be one of the engine");
    require(k >= 1 && given.scores.shape(0) == n_leaves &&
                (!given.class_losses || given.class_losses->shape(0) == n_leaves),
            "leaves have another shape");
    const bool has_classes = has_class_target(losses.loss);
    require(has_classes == given.class_losses.has_value() || given.leaf_weights.has_value(),
            "constant leaves for classes need their losses");
    require(given.target.shape(0) == n && given.weight.size() == n &&
                given.target.shape(1) == (has_classes ? 1 : k),
            "rows, target and weight differ in size");
    for (std::size_t i = 0; i < n && has_classes; ++i)
      require_class(own.target[i], losses.n_outputs);
    require_not_negative("weight", given.weight);
    require_finite_entries("target", given.target);
    require_finite_entries("weights", given.weights);
    require_finite_entries("bias", given.bias);
    require(std::isfinite(given.loss_parameter), "loss_parameter is not finite");
  }

  Buffer<float> taken(const float* from, std::size_t n) const {
    Buffer<float> to(n * stride_);
    take_columns(encoder_, n, from, to.data());
    return to;
  }

  const Encoder& encoder_;
  std::size_t n_columns_;
  std::ptrdiff_t stride_;
  int n_;
  Buffer<float> X_;
};

}  // namespace

void bind_learn_tao(nb::module_& m) {
  nb::class_<TaoTable>(m, "TaoTable", "Encoded rows over which the splits of trees are improved.")
      .def(nb::init<const Encoder&, const nb::object&, Array1<std::int64_t>, int>(),
           nb::keep_alive<1, 2>(), nb::arg("encoder"), nb::arg("X"), nb::arg("rows"),
           nb::arg("n_threads"))
      .def("columns", &TaoTable::columns, nb::arg("rows"), "Encoded rows (r, c), by their places.")
      .def("leaves", &TaoTable::leaves, nb::arg("children"), nb::arg("weights"), nb::arg("bias"),
           nb::arg("n_threads"), "The leaf of each row, (n,).")
      .def("reduced", &TaoTable::reduced, nb::arg("children"), nb::arg("weights"), nb::arg("bias"),
           nb::arg("scores"), nb::arg("leaf_weights").none(), nb::arg("class_losses").none(),
           nb::arg("target"), nb::arg("weight"), nb::kw_only(), nb::arg("loss"),
           nb::arg("loss_parameter"), nb::arg("node"), nb::arg("rows_at_node"),
           "Which of a node's rows care for the side they go to: (rows, sign, cost).")
      .def("sweep", &TaoTable::sweep, nb::arg("children"), nb::arg("weights"), nb::arg("bias"),
           nb::arg("scores"), nb::arg("leaf_weights").none(), nb::arg("class_losses").none(),
           nb::arg("target"), nb::arg("weight"), nb::kw_only(), nb::arg("loss"),
           nb::arg("loss_parameter"), nb::arg("options"), nb::arg("feature_of_column"),
           nb::arg("n_threads"), nb::arg("seconds") = std::numeric_limits<double>::infinity(),
           "Improves every split once, or as many as there are seconds for: {weights, bias, "
           "n_changed, gain, row_passes, interrupted, is_whole}.");
}

}  // namespace hardwood
