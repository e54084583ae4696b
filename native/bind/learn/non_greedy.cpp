#include "bind/learn/learning.hpp"
#include "learn/non_greedy/learner.hpp"

namespace hardwood {

namespace {

using StartTree = std::tuple<Array2<float>, Array1<float>, Array2<float>>;  // W, b, theta

TreeTopology topology_of(const Array2<std::int32_t>& children) {
  require(children.shape(0) == 0 || children.shape(1) == 2, "children must have two columns");
  return TreeTopology({children.data(), children.size()});
}

void check_start(const StartTree& start, const TreeTopology& topology, std::size_t n_columns,
                 std::size_t n_outputs) {
  const auto& [W, b, theta] = start;
  const std::size_t m = topology.n_splits();
  require(W.shape(0) == m && W.shape(1) == n_columns && b.size() == m && theta.shape(0) == m + 1 &&
              theta.shape(1) == n_outputs,
          "the start tree has another shape");
}

// Rows that are encoded already, (n, d) and (n, t), as a tile.
class EncodedTile {
 public:
  EncodedTile(const Array2<float>& X, const Array2<float>& target)
      : n_(X.shape(0)),
        d_(X.shape(1)),
        stride_(padded(static_cast<int>(d_))),
        X_(n_ * stride_),
        target_(target.size()),
        rows_(n_) {
    const std::size_t t = target.shape(1);
    for (std::size_t i = 0; i < n_; ++i) {
      std::copy_n(X.data() + i * d_, d_, X_.data() + i * stride_);
      for (std::size_t o = 0; o < t; ++o) target_[o * n_ + i] = target.data()[i * t + o];
      rows_[i] = static_cast<std::int64_t>(i);
    }
  }

  SampleTile tile() {
    const int n = static_cast<int>(n_);
    return {n,
            n,
            {X_.data(), n, static_cast<int>(d_), static_cast<std::ptrdiff_t>(stride_)},
            target_.data(),
            nullptr,
            rows_};
  }

 private:
  std::size_t n_, d_, stride_;
  Buffer<float> X_, target_;
  std::vector<std::int64_t> rows_;
};

// [W | b | theta] of a tree whose columns are in the engine's order.
Buffer<float> parameters_of(const NonGreedyLearner& learner, const StartTree& tree) {
  const auto& [W, b, theta] = tree;
  const std::size_t m = b.size(), d = W.shape(1), stride = padded(static_cast<int>(d));
  Buffer<float> parameters(learner.layout().n_parameters());
  const Parameters<float> p = learner.layout().view(parameters.data());
  for (std::size_t i = 0; i < m; ++i) std::copy_n(W.data() + i * d, d, p.W + i * stride);
  std::copy_n(b.data(), m, p.b);
  std::copy_n(theta.data(), theta.size(), p.leaves);
  return parameters;
}

nb::dict found_of(const NonGreedyLearner& learner, std::size_t n) {
  const auto found = learner.found();
  const auto column = [&]<class T>(T AugmentedRow::* of_row) {
    return new_array<T>({n}, [&](T* out) {
      for (std::size_t i = 0; i < n; ++i) out[i] = found[i].*of_row;
    });
  };
  nb::dict answer;
  answer["natural"] = column(&AugmentedRow::natural);
  answer["chosen"] = column(&AugmentedRow::chosen);
  answer["loss"] = column(&AugmentedRow::loss);
  answer["bound"] = column(&AugmentedRow::bound);
  answer["n_scored"] = column(&AugmentedRow::n_scored);
  std::size_t n_moves = 0;
  for (std::size_t i = 0; i < n; ++i) n_moves += found[i].n_moves;
  const auto of_moves = [&]<class T>(auto&& entry) {
    return new_array<T>({n_moves}, [&](T* out) {
      for (std::size_t i = 0; i < n; ++i)
        for (const SplitMove& move : learner.moves_of(static_cast<int>(i)))
          *out++ = static_cast<T>(entry(i, move));
    });
  };
  answer["move_row"] =
      of_moves.template operator()<std::int32_t>([](std::size_t i, const SplitMove&) { return i; });
  answer["move_split"] = of_moves.template operator()<std::int32_t>(
      [](std::size_t, const SplitMove& move) { return move.split; });
  answer["move"] = of_moves.template operator()<float>(
      [](std::size_t, const SplitMove& move) { return move.factor; });
  return answer;
}

void check_rows(const Array2<float>& X, const Array2<float>& target, Loss loss, std::size_t k) {
  const std::size_t n = X.shape(0);
  require(loss != Loss::kCustom, "the loss must be one of the engine");
  require(n >= 1 && target.shape(0) == n && target.shape(1) == (has_class_target(loss) ? 1 : k),
          "sizes differ");
  for (std::size_t i = 0; i < n && has_class_target(loss); ++i)
    require(target.data()[i] >= 0 && target.data()[i] < static_cast<float>(k),
            "a class is out of range");
}

// Loss-augmented inference of rows that are encoded already.
nb::dict augment(Array2<float> X, Array2<float> target, Array2<std::int32_t> children,
                 const StartTree& tree, const std::string& inference, const std::string& loss,
                 double loss_parameter, std::optional<Array1<std::int32_t>> assigned) {
  const TreeTopology topology = topology_of(children);
  const std::size_t n = X.shape(0), k = std::get<2>(tree).shape(1);
  check_start(tree, topology, X.shape(1), k);
  check_rows(X, target, loss_named(loss), k);
  NonGreedyOptions options;
  options.inference = inference_named(inference);
  options.nu = std::numeric_limits<float>::infinity();
  options.is_stable = assigned.has_value();
  Problem problem;
  problem.encoding.n_numeric = static_cast<int>(X.shape(1));
  problem.source.n_rows = static_cast<std::int64_t>(n);
  problem.n_targets = static_cast<int>(target.shape(1));
  problem.n_outputs = static_cast<int>(k);
  problem.loss = loss_named(loss);
  problem.loss_parameter = static_cast<float>(loss_parameter);
  NonGreedyLearner learner(topology, problem, options, static_cast<int>(n));
  if (assigned) {
    require(assigned->size() == n, "sizes differ");
    for (std::size_t i = 0; i < n; ++i)
      require(assigned->data()[i] >= 0 && assigned->data()[i] < topology.n_leaves(),
              "a leaf is out of range");
    learner.assign({assigned->data(), n});
  }
  Buffer<float> parameters = parameters_of(learner, tree);
  EncodedTile rows(X, target);
  {
    const nb::gil_scoped_release release;
    learner.prepare(parameters.data());
    learner.augment(parameters.data(), rows.tile());
  }
  return found_of(learner, n);
}

}  // namespace

void bind_learn_non_greedy(nb::module_& m) {
  m.def("augment", &augment, nb::arg("X"), nb::arg("target"), nb::arg("children"), nb::arg("tree"),
        nb::arg("inference"), nb::arg("loss"), nb::arg("loss_parameter"),
        nb::arg("assigned").none(),
        "Loss-augmented inference of encoded rows: {natural, chosen, loss, bound, n_scored}, and "
        "where g - h is not zero: {move_row, move_split, move}.");
}

}  // namespace hardwood
