#include <nanobind/stl/string.h>

#include <limits>

#include "bind/options.hpp"
#include "learn/non_greedy/learner.hpp"
#include "probes/encoded_tiles.hpp"
#include "probes/probes.hpp"

namespace hardwood {

namespace {

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

// Loss-augmented inference of rows that are encoded already.
nb::dict augment(Array2<float> X, Array2<float> target, Array2<std::int32_t> children,
                 const TreeArrays& tree, const std::string& inference, const std::string& loss,
                 double loss_parameter, std::optional<Array1<std::int32_t>> assigned) {
  require(children.shape(0) == 0 || children.shape(1) == 2, "children must have two columns");
  const TreeTopology topology({children.data(), children.size()});
  const std::size_t n = X.shape(0);
  const Problem problem =
      problem_of(X, target, loss_named(loss), loss_parameter, std::get<2>(tree).shape(1));
  NonGreedyOptions options;
  options.inference = inference_named(inference);
  options.nu = std::numeric_limits<float>::infinity();
  options.is_stable = assigned.has_value();
  NonGreedyLearner learner(topology, problem, options, static_cast<int>(n));
  if (assigned) {
    require(assigned->size() == n, "sizes differ");
    for (std::size_t i = 0; i < n; ++i)
      require(assigned->data()[i] >= 0 && assigned->data()[i] < topology.n_leaves(),
              "a leaf is out of range");
    learner.assign({assigned->data(), n});
  }
  Buffer<float> parameters = parameters_of(learner.layout(), tree);
  EncodedTiles tiles(X, target, std::nullopt, learner.tile_capacity(static_cast<int>(n)));
  {
    const nb::gil_scoped_release release;
    learner.prepare(parameters.data());
    learner.augment(parameters.data(), tiles[0]);
  }
  return found_of(learner, n);
}

}  // namespace

void bind_augmentation(nb::module_& m) {
  m.def("augment", &augment, nb::arg("X"), nb::arg("target"), nb::arg("children"), nb::arg("tree"),
        nb::arg("inference"), nb::arg("loss"), nb::arg("loss_parameter"),
        nb::arg("assigned").none(),
        "Loss-augmented inference of encoded rows: {natural, chosen, loss, bound, n_scored}, and "
        "where g - h is not zero: {move_row, move_split, move}.");
}

}  // namespace hardwood
