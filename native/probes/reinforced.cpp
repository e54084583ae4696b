#include "bind/learn/reinforced_options.hpp"
#include "probes/encoded_tiles.hpp"
#include "probes/probes.hpp"

namespace hardwood {

namespace {

// The gradient of one batch of encoded rows, by numbers that are given or drawn from a seed.
nb::dict policy_gradient(Array2<float> X, Array2<float> target, Array1<float> weight,
                         Array1<std::int32_t> parents, const TreeArrays& policy,
                         const std::string& loss, double loss_parameter,
                         std::optional<Array<float, 3>> uniforms,
                         std::optional<Array2<float>> values, std::uint64_t seed, int n_threads,
                         const nb::dict& options) {
  const PolicyTopology topology({parents.data(), parents.size()});
  const std::size_t n = X.shape(0);
  OptionReader reader(options);
  const ReinforcedOptions own = reinforced_options(reader);
  reader.refuse_others();
  Problem problem =
      problem_of(X, target, loss_named(loss), loss_parameter, std::get<2>(policy).shape(1));
  EncodedTiles tiles(X, target, weight, rounded_up(static_cast<int>(n), kTileStep));
  problem.train = tiles.rows();
  ReinforcedLearner learner(topology, problem, own, static_cast<int>(n), seed, n_threads);
  if (uniforms) {
    require(uniforms->shape(0) == n &&
                uniforms->shape(1) == static_cast<std::size_t>(topology.max_depth()) &&
                uniforms->shape(2) == static_cast<std::size_t>(own.n_samples),
            "uniforms must be (rows, depth, samples)");
    learner.set_uniforms({uniforms->data(), uniforms->size()});
  }
  if (values) {
    require(values->size() == learner.values().size(), "values have another size");
    std::copy_n(values->data(), values->size(), learner.values().data());
  }
  const Buffer<float> parameters = parameters_of(learner.layout(), policy);
  Buffer<float> gradient(parameters.size());
  double total = 0;
  {
    const nb::gil_scoped_release release;
    total = learner.add_gradient(parameters.data(), tiles[0], 1.0f / static_cast<float>(n),
                                 gradient.data());
  }
  nb::dict answer;
  const auto slopes = arrays_of(learner.layout(), gradient.data());
  answer["weights"] = std::get<0>(slopes);
  answer["bias"] = std::get<1>(slopes);
  answer["scores"] = std::get<2>(slopes);
  answer["loss"] = total / static_cast<double>(n);
  return answer;
}

}  // namespace

void bind_policy_gradient(nb::module_& m) {
  m.def("policy_gradient", &policy_gradient, nb::arg("X"), nb::arg("target"), nb::arg("weight"),
        nb::arg("parents"), nb::arg("policy"), nb::arg("loss"), nb::arg("loss_parameter"),
        nb::arg("uniforms").none(), nb::arg("values").none(), nb::arg("seed"), nb::arg("n_threads"),
        nb::arg("options"),
        "Gradient of the mean loss of encoded rows, sampled or exact: {weights, bias, scores, "
        "loss}.");
}

}  // namespace hardwood
