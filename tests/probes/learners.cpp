// The learners of `fit` over one batch of rows that are encoded already.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>

#include "bind/learn/methods.hpp"
#include "bind/options.hpp"
#include "learn/loop/descent.hpp"
#include "learn/non_greedy/learner.hpp"
#include "learn/reinforced/learner.hpp"
#include "probes/encoded_tiles.hpp"
#include "probes/probes.hpp"

namespace hardwood {

namespace {

class LearnerProbe {
 public:
  LearnerProbe(const std::string& method, Array2<float> X, Array2<float> target,
               Array1<float> weight, int n_outputs, const std::string& loss, double loss_parameter,
               std::vector<int> hidden, std::uint64_t seed, int n_threads, const nb::dict& options)
      : n_(static_cast<int>(X.shape(0))) {
    require(target.shape(0) == X.shape(0) && weight.size() == X.shape(0) && n_threads >= 1,
            "sizes differ");
    for (const int size : hidden) require(size >= 1, "a hidden size is not positive");
    std::vector<std::int64_t> rows(n_);
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<std::int32_t> columns(X.shape(1));
    std::iota(columns.begin(), columns.end(), 0);
    Problem problem;
    problem.encoding.n_numeric = problem.encoding.n_features = static_cast<int>(columns.size());
    problem.source.n_rows = n_;
    problem.target = target.data();
    problem.n_targets = static_cast<int>(target.shape(1));
    problem.weight = weight.data();
    problem.train = rows;
    problem.loss = loss_named(loss);
    problem.loss_parameter = static_cast<float>(loss_parameter);
    problem.n_outputs = n_outputs;
    check(problem);
    training_.batch_size = n_;
    training_.hidden = std::move(hidden);
    const Runs runs{0, 1, std::nullopt, seed, n_threads};
    OptionReader reader(options);
    const FitCall call{columns, problem, training_, runs};
    learner_ = method_named(method, call, reader).new_learner(0);
    reader.refuse_others();
    tiles_.emplace(X, target, weight, learner_->tile_capacity(n_));
    start({});
  }
  LearnerProbe(const LearnerProbe&) = delete;

  void set(Array2<float> W, Array1<float> b, Array2<float> leaves,
           std::optional<Array<float, 3>> leaf_weights) {
    const auto parameters = parameters_of(learner_->layout(), W, b, leaves, leaf_weights);
    start({parameters.data(), parameters.size()});
  }

  auto gradient() {
    auto& learner = learner_of<GradientLearner>();
    double total = 0;
    for (std::size_t i = 0; i < tiles_->size(); ++i)
      total += learner.add_gradient(descent_->parameters(), (*tiles_)[i],
                                    1.0f / static_cast<float>(n_), descent_->gradient());
    return std::tuple_cat(std::tuple(total / n_),
                          arrays_of(learner_->layout(), descent_->gradient()));
  }

  auto parameters() const { return arrays_of(learner_->layout(), descent_->parameters()); }

  NewArray predict(bool soft) {
    const std::size_t k = learner_->layout().n_outputs;
    return new_array<float>({static_cast<std::size_t>(n_), k}, [&](float* out) {
      for (std::size_t i = 0; i < tiles_->size(); ++i) {
        const SampleTile tile = (*tiles_)[i];
        Buffer<float> prediction(k * tile.capacity);
        learner_->predict(descent_->parameters(), tile, soft ? Purpose::kStep : Purpose::kAnswer,
                          prediction.data());
        for (int r = 0; r < tile.n; ++r)
          for (std::size_t o = 0; o < k; ++o) *out++ = prediction[o * tile.capacity + r];
      }
    });
  }

  void steps(int n, double learning_rate) {
    const Tiles tiles = [&](const auto& each) {
      for (std::size_t i = 0; i < tiles_->size(); ++i) each((*tiles_)[i]);
    };
    for (int i = 0; i < n; ++i) learner_->step({n_, tiles, learning_rate}, *descent_);
  }

  void set_uniforms(Array<float, 3> uniforms) {
    auto& learner = learner_of<ReinforcedLearner>();
    require(uniforms.size() == n_ * learner.n_uniforms(),
            "uniforms must be (rows, depth, samples)");
    learner.set_uniforms({uniforms.data(), uniforms.size()});
  }

  void set_values(Array2<float> values) {
    const std::span<float> to = learner_of<ReinforcedLearner>().values();
    require(values.size() == to.size(), "values have another size");
    std::copy_n(values.data(), values.size(), to.data());
  }

  nb::dict augment(std::optional<Array1<std::int32_t>> assigned) {
    auto& learner = learner_of<NonGreedyLearner>();
    if (assigned) {
      require(static_cast<int>(assigned->size()) == n_, "sizes differ");
      for (int i = 0; i < n_; ++i)
        require(assigned->data()[i] >= 0 &&
                    assigned->data()[i] < static_cast<int>(learner.layout().n_leaves),
                "a leaf is out of range");
      learner.assign({assigned->data(), assigned->size()});
    }
    learner.prepare(descent_->parameters());
    learner.augment(descent_->parameters(), (*tiles_)[0]);
    return found_of(learner);
  }

 private:
  template <class L>
  L& learner_of() {
    auto* learner = dynamic_cast<L*>(learner_.get());
    require(learner, "learners of this method cannot do that");
    return *learner;
  }

  void start(std::span<const float> parameters) {
    Random random(0, 0);
    descent_.emplace(*learner_, training_);
    descent_->start(random, parameters);
  }

  nb::dict found_of(const NonGreedyLearner& learner) const {
    const std::size_t n = n_;
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
    const std::size_t m = learner.layout().n_splits;
    answer["moves"] = new_array<float>({n, m}, [&](float* out) {
      for (std::size_t i = 0; i < n; ++i)
        for (const SplitMove& move : learner.moves_of(static_cast<int>(i)))
          out[i * m + move.split] += move.factor;
    });
    return answer;
  }

  int n_;
  TrainingOptions training_;
  std::unique_ptr<Learner> learner_;
  std::optional<EncodedTiles> tiles_;
  std::optional<Descent> descent_;
};

}  // namespace

void bind_learners(nb::module_& m) {
  nb::class_<LearnerProbe>(m, "LearnerProbe", "A learner of `fit` over a batch of encoded rows.")
      .def(nb::init<const std::string&, Array2<float>, Array2<float>, Array1<float>, int,
                    const std::string&, double, std::vector<int>, std::uint64_t, int,
                    const nb::dict&>(),
           nb::arg("method"), nb::arg("X"), nb::arg("target"), nb::arg("weight"), nb::kw_only(),
           nb::arg("n_outputs"), nb::arg("loss"), nb::arg("loss_parameter") = 0.0,
           nb::arg("hidden") = std::vector<int>{}, nb::arg("seed") = 0, nb::arg("n_threads") = 1,
           nb::arg("options"))
      .def("set", &LearnerProbe::set, nb::arg("weights"), nb::arg("bias"), nb::arg("scores"),
           nb::arg("leaf_weights") = nb::none())
      .def("gradient", &LearnerProbe::gradient,
           "(mean loss, gradients by weights, bias, scores and leaf weights)")
      .def("parameters", &LearnerProbe::parameters, "(weights, bias, scores, leaf weights)")
      .def("predict", &LearnerProbe::predict, nb::arg("soft") = false,
           "By the model, or by the one that gradients are taken of.")
      .def("steps", &LearnerProbe::steps, nb::arg("n"), nb::arg("learning_rate"),
           "Steps of RMSprop on the whole batch.")
      .def("set_uniforms", &LearnerProbe::set_uniforms, nb::arg("uniforms"),
           "Of reinforced trees: the numbers (n, depth, samples) that trajectories go by.")
      .def("set_values", &LearnerProbe::set_values, nb::arg("values"),
           "Of reinforced trees: what was learned of the nodes, (T, classes or 1).")
      .def("augment", &LearnerProbe::augment, nb::arg("assigned") = nb::none(),
           "Of non-greedy trees: loss-augmented inference, {natural, chosen, loss, bound, "
           "n_scored} of each row and moves g - h (n, m).");
}

}  // namespace hardwood
