// The network of a bandit, and what watches it, one call at a time.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>

#include "bind/bind.hpp"
#include "online/decider_comparison.hpp"
#include "online/page_hinkley.hpp"
#include "online/reward_network.hpp"
#include "probes/probes.hpp"

namespace hardwood {

namespace {

class NetworkProbe {
 public:
  NetworkProbe(int n_columns, int n_actions, int hidden, int batch_size, double rate, double decay)
      : network_(n_columns, n_actions, options(hidden, rate, decay), batch_size, 0) {}

  auto parameters() { return network_.state().parameters; }
  void set_parameters(const std::vector<float>& values) {
    RewardNetwork::State state = network_.state();
    require(values.size() == state.parameters.size(), "the network has another size");
    state.parameters = values;
    network_.set_state(state);
  }
  auto outputs(Array2<float> X) {
    const int n = load(X);
    network_.answer(n);
    const int k = network_.shape().n_outputs();
    return new_array<float>({X.shape(0), static_cast<std::size_t>(k)}, [&](float* to) {
      for (int i = 0; i < n; ++i)
        std::copy_n(network_.rows().outputs(n).row(i), k, to + static_cast<std::ptrdiff_t>(i) * k);
    });
  }
  std::vector<float> gradient(Array2<float> X, Array1<std::int32_t> action, Array1<float> reward,
                              Array1<float> weight, const std::string& loss) {
    load(X);
    const auto found = network_.gradient(wanted(action, reward, weight), named(loss));
    return {found.begin(), found.end()};
  }
  void step(Array2<float> X, Array1<std::int32_t> action, Array1<float> reward,
            Array1<float> weight, const std::string& loss) {
    load(X);
    network_.step(wanted(action, reward, weight), named(loss));
  }

 private:
  static NetworkOptions options(int hidden, double rate, double decay) {
    NetworkOptions o;
    o.hidden = hidden;
    o.weight_decay = static_cast<float>(decay);
    o.step.optimizer = Optimizer::kAdam;
    o.step.learning_rate = static_cast<float>(rate);
    o.step.momentum = 0.9f;
    o.step.decay = 0.999f;
    return o;
  }
  static RewardLoss named(const std::string& loss) {
    return loss == "logistic"  ? RewardLoss::kLogistic
           : loss == "squared" ? RewardLoss::kSquared
                               : RewardLoss::kHuber;
  }
  int load(const Array2<float>& X) {
    const int n = static_cast<int>(X.shape(0)), d = network_.shape().n_columns();
    require(X.shape(1) == static_cast<std::size_t>(d), "X has another number of columns");
    for (int i = 0; i < n; ++i)
      std::copy_n(X.data() + static_cast<std::ptrdiff_t>(i) * d, d,
                  network_.rows().inputs(n).row(i));
    return n;
  }
  static std::vector<ActionReward> wanted(const Array1<std::int32_t>& action,
                                          const Array1<float>& reward,
                                          const Array1<float>& weight) {
    std::vector<ActionReward> rows;
    for (std::size_t i = 0; i < action.size(); ++i)
      rows.push_back({action.data()[i], reward.data()[i], weight.data()[i]});
    return rows;
  }

  RewardNetwork network_;
};

// The numbers after which a fall was detected.
std::vector<int> falls(const std::vector<double>& values, double tolerated, double threshold) {
  PageHinkley detector({tolerated, threshold, 30});
  std::vector<int> found;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (detector.add(values[i])) found.push_back(static_cast<int>(i));
  return found;
}

// Effective rounds, agreement, and mean and standard error of tree, network and their difference.
std::vector<double> compared(Array2<float> expected, Array1<std::int32_t> by_tree,
                             Array1<std::int32_t> by_network, Array1<std::int32_t> action,
                             Array1<double> propensity, Array1<double> reward) {
  DeciderComparison sums;
  const std::size_t k = expected.shape(1);
  for (std::size_t i = 0; i < expected.shape(0); ++i)
    sums.add(std::span(expected.data() + i * k, k), by_tree.data()[i], by_network.data()[i],
             {action.data()[i], reward.data()[i], propensity.data()[i], 1.0f}, reward.data()[i]);
  std::vector<double> all{sums.n_effective(), sums.agreement()};
  for (const auto& of : {sums.tree(), sums.network(), sums.difference()})
    all.insert(all.end(), {of.mean, of.error});
  return all;
}

}  // namespace

void bind_networks(nb::module_& m) {
  nb::class_<NetworkProbe>(m, "RewardNetwork")
      .def(nb::init<int, int, int, int, double, double>())
      .def("parameters", &NetworkProbe::parameters)
      .def("set_parameters", &NetworkProbe::set_parameters)
      .def("outputs", &NetworkProbe::outputs)
      .def("gradient", &NetworkProbe::gradient)
      .def("step", &NetworkProbe::step);
  m.def("falls", &falls);
  m.def("compared_deciders", &compared);
}

}  // namespace hardwood
