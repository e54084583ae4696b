// Single parts of the engine, for tests against their NumPy twins and for benchmarks.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "bind/bind.hpp"
#include "bind/options.hpp"
#include "core/kernels.hpp"
#include "core/random.hpp"
#include "learn/dgt_learner.hpp"

namespace hardwood {

namespace {

using NewArray = nb::ndarray<nb::numpy, float>;

Buffer<float> padded_copy(const Array2<float>& A, std::size_t rows, std::size_t stride) {
  Buffer<float> to(rows * stride);
  for (std::size_t i = 0; i < A.shape(0); ++i)
    std::copy_n(A.data() + i * A.shape(1), A.shape(1), to.data() + i * stride);
  return to;
}

NewArray gemm(Array2<float> A, Array2<float> B) {
  require(A.shape(1) == B.shape(0), "inner sizes differ");
  const int m = static_cast<int>(A.shape(0)), k = static_cast<int>(A.shape(1)),
            n = static_cast<int>(B.shape(1));
  const Buffer<float> b = padded_copy(B, k, padded(n));
  Buffer<float> c(static_cast<std::size_t>(m) * padded(n));
  kernels().gemm({A.data(), m, k, k}, {b.data(), k, n, padded(n)}, {c.data(), m, n, padded(n)});
  return new_array<float>({A.shape(0), B.shape(1)}, [&](float* out) {
    for (int i = 0; i < m; ++i)
      std::copy_n(c.data() + static_cast<std::size_t>(i) * padded(n), n,
                  out + static_cast<std::size_t>(i) * n);
  });
}

// C = A B into given memory, `repeats` times, for timing. B and C have columns in multiples of 8.
void gemm_into(Array2<float> A, Array2<float> B,
               nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> C, int repeats) {
  require(A.shape(1) == B.shape(0) && C.shape(0) == A.shape(0) && C.shape(1) == B.shape(1) &&
              C.shape(1) % 8 == 0,
          "sizes differ");
  const int m = static_cast<int>(A.shape(0)), k = static_cast<int>(A.shape(1)),
            n = static_cast<int>(B.shape(1));
  for (int i = 0; i < repeats; ++i)
    kernels().gemm({A.data(), m, k, k}, {B.data(), k, n, n}, {C.data(), m, n, n});
}

// Mean loss and its gradient by the prediction, each sample weighted.
std::tuple<double, NewArray> loss(const std::string& name, Array2<float> prediction,
                                  Array2<float> target, Array1<float> weight, double parameter) {
  const std::size_t n = prediction.shape(0), k = prediction.shape(1), t = target.shape(1);
  const Loss which = loss_named(name);
  require(n >= 1 && target.shape(0) == n && weight.size() == n &&
              t == (has_class_target(which) ? 1 : k),
          "sizes differ");
  const std::size_t stride = rounded_up(static_cast<int>(n), kTileStep);
  Buffer<float> f(k * stride), y(t * stride), w(stride), g(k * stride);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t o = 0; o < k; ++o) f[o * stride + i] = prediction.data()[i * k + o];
    for (std::size_t o = 0; o < t; ++o) y[o * stride + i] = target.data()[i * t + o];
    w[i] = weight.data()[i];
  }
  const float factor = 1.0f / static_cast<float>(n);
  const double total =
      kernels().loss_and_gradient(which, static_cast<float>(parameter),
                                  {static_cast<int>(k), static_cast<std::ptrdiff_t>(stride),
                                   f.data(), y.data(), w.data(), g.data()},
                                  factor);
  return {total / n, new_array<float>({n, k}, [&](float* out) {
            for (std::size_t i = 0; i < n; ++i)
              for (std::size_t o = 0; o < k; ++o) out[i * k + o] = g[o * stride + i];
          })};
}

// Parameters after steps against given gradients (steps, n), all of them penalised.
NewArray optimise(Array1<float> start, Array2<float> gradients, const std::string& optimizer,
                  double learning_rate, double momentum, double decay, double epsilon, double l1,
                  double l2, double clip_norm) {
  const std::size_t n = start.size();
  require(gradients.shape(1) == n, "sizes differ");
  StepOptions step;
  step.optimiser = optimiser_named(optimizer);
  step.learning_rate = static_cast<float>(learning_rate);
  step.momentum = static_cast<float>(momentum);
  step.decay = static_cast<float>(decay);
  step.epsilon = static_cast<float>(epsilon);
  step.l1 = static_cast<float>(l1);
  step.l2 = static_cast<float>(l2);
  Buffer<float> v(n), buf(n);
  return new_array<float>({n}, [&](float* w) {
    std::copy_n(start.data(), n, w);
    StepClock clock;
    for (std::size_t t = 0; t < gradients.shape(0); ++t) {
      const float* g = gradients.data() + t * n;
      clock.prepare(step, kernels().squared_norm(n, g), static_cast<float>(clip_norm));
      kernels().optimise(n, w, g, v.data(), buf.data(), step);
    }
  });
}

std::vector<double> schedule(const std::string& name, int n_steps, int cycles) {
  std::vector<double> factors;
  for (int t = 0; t < n_steps; ++t)
    factors.push_back(schedule_factor(schedule_named(name), t, n_steps, cycles));
  return factors;
}

// A DGT learner over encoded samples, to take the gradient of a batch or steps of RMSprop.
class DgtProbe {
 public:
  DgtProbe(Array2<float> X, Array2<float> target, Array1<float> weight, int height, int n_outputs,
           const std::string& loss_name, double parameter)
      : n_(static_cast<int>(X.shape(0))),
        stride_(padded(static_cast<int>(X.shape(1)))),
        n_targets_(static_cast<int>(target.shape(1))),
        learner_({height, static_cast<int>(X.shape(1)), n_outputs}, loss_named(loss_name),
                 static_cast<float>(parameter), n_),
        X_(padded_copy(X, rounded_up(n_, learner_.tile_capacity(n_)), stride_)),
        gradient_(learner_.n_parameters()),
        parameters_(learner_.n_parameters()),
        moment_(learner_.n_parameters()) {
    require(
        n_ >= 1 && static_cast<int>(target.shape(0)) == n_ && static_cast<int>(weight.size()) == n_,
        "sizes differ");
    const int capacity = learner_.tile_capacity(n_);
    for (int first = 0; first < n_; first += capacity) {
      Tile& tile = tiles_.emplace_back(Tile{
          Buffer<float>(static_cast<std::size_t>(n_targets_) * capacity), Buffer<float>(capacity)});
      for (int i = 0; i < std::min(capacity, n_ - first); ++i) {
        tile.weight[i] = weight.data()[first + i];
        for (int t = 0; t < n_targets_; ++t)
          tile.target[static_cast<std::size_t>(t) * capacity + i] =
              target.data()[(first + i) * n_targets_ + t];
      }
    }
  }

  void set(Array2<float> W, Array1<float> b, Array2<float> theta) {
    const DgtShape s = learner_.shape();
    require(static_cast<int>(W.shape(0)) == s.n_nodes() &&
                static_cast<int>(W.shape(1)) == s.n_columns &&
                static_cast<int>(b.size()) == s.n_nodes() &&
                static_cast<int>(theta.shape(0)) == s.n_leaves() &&
                static_cast<int>(theta.shape(1)) == s.n_outputs,
            "sizes differ");
    const DgtParameters p = learner_.view(parameters_.data());
    for (int i = 0; i < s.n_nodes(); ++i)
      std::copy_n(W.data() + i * s.n_columns, s.n_columns, p.W + i * stride_);
    std::copy_n(b.data(), b.size(), p.b);
    std::copy_n(theta.data(), theta.size(), p.theta);
  }

  std::tuple<double, NewArray, NewArray, NewArray> gradient() {
    const double total = add_gradient();
    const auto [dW, db, dtheta] = parts(gradient_);
    return {total / n_, dW, db, dtheta};
  }

  std::tuple<NewArray, NewArray, NewArray> parameters() { return parts(parameters_); }

  void steps(int n, double learning_rate) {
    StepOptions step;
    step.learning_rate = static_cast<float>(learning_rate);
    for (int i = 0; i < n; ++i) {
      add_gradient();
      kernels().optimise(gradient_.size(), parameters_.data(), gradient_.data(), moment_.data(),
                         nullptr, step);
    }
  }

 private:
  struct Tile {
    Buffer<float> target, weight;
  };

  double add_gradient() {
    const int capacity = learner_.tile_capacity(n_);
    double total = 0;
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      const int first = static_cast<int>(i) * capacity;
      const SampleTile tile{
          capacity,
          std::min(capacity, n_ - first),
          {X_.data() + first * stride_, capacity, learner_.shape().n_columns, stride_},
          tiles_[i].target.data(),
          tiles_[i].weight.data()};
      total += learner_.add_gradient(parameters_.data(), tile, 1.0f / static_cast<float>(n_),
                                     nullptr, i == 0, gradient_.data());
    }
    return total;
  }

  std::tuple<NewArray, NewArray, NewArray> parts(Buffer<float>& from) {
    const DgtShape s = learner_.shape();
    const DgtParameters p = learner_.view(from.data());
    const std::size_t m = s.n_nodes(), d = s.n_columns, leaves = s.n_leaves(), k = s.n_outputs;
    return {
        new_array<float>({m, d},
                         [&](float* out) {
                           for (std::size_t i = 0; i < m; ++i)
                             std::copy_n(p.W + i * stride_, d, out + i * d);
                         }),
        new_array<float>({m}, [&](float* out) { std::copy_n(p.b, m, out); }),
        new_array<float>({leaves, k}, [&](float* out) { std::copy_n(p.theta, leaves * k, out); })};
  }

  int n_;
  std::ptrdiff_t stride_;
  int n_targets_;
  DgtLearner learner_;
  Buffer<float> X_, gradient_, parameters_, moment_;
  std::vector<Tile> tiles_;
};

std::vector<std::uint32_t> philox(std::vector<std::uint32_t> counter,
                                  std::vector<std::uint32_t> key) {
  require(counter.size() == 4 && key.size() == 2,
          "philox takes a counter of 4 words and a key of 2");
  const auto words =
      Random::philox({counter[0], counter[1], counter[2], counter[3]}, {key[0], key[1]});
  return {words.begin(), words.end()};
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const auto name : available_instruction_sets()) names.emplace_back(name);
  return names;
}

}  // namespace

void bind_parts(nb::module_& m) {
  m.def(
      "instruction_set", [] { return std::string(kernels().name); }, "The instruction set in use.");
  m.def("instruction_sets", &instruction_sets, "The sets this machine can run, the best last.");
  m.def("philox", &philox, nb::arg("counter"), nb::arg("key"));
  m.def("gemm", &gemm, nb::arg("A"), nb::arg("B"));
  m.def("gemm_into", &gemm_into, nb::arg("A"), nb::arg("B"), nb::arg("C"), nb::arg("repeats") = 1);
  m.def("loss", &loss, nb::arg("name"), nb::arg("prediction"), nb::arg("target"), nb::arg("weight"),
        nb::arg("parameter") = 0.0,
        "Weighted mean of a loss over the samples, and its gradient by the prediction.");
  m.def("optimise", &optimise, nb::arg("start"), nb::arg("gradients"), nb::kw_only(),
        nb::arg("optimizer"), nb::arg("learning_rate"), nb::arg("momentum") = 0.0,
        nb::arg("decay") = 0.99, nb::arg("epsilon") = 1e-8, nb::arg("l1") = 0.0,
        nb::arg("l2") = 0.0, nb::arg("clip_norm") = 1e30);
  m.def("schedule", &schedule, nb::arg("name"), nb::arg("n_steps"), nb::arg("cycles") = 1);
  nb::class_<DgtProbe>(m, "DgtProbe", "One DGT tree over a fixed batch of encoded samples.")
      .def(nb::init<Array2<float>, Array2<float>, Array1<float>, int, int, const std::string&,
                    double>(),
           nb::arg("X"), nb::arg("target"), nb::arg("weight"), nb::kw_only(), nb::arg("height"),
           nb::arg("n_outputs"), nb::arg("loss"), nb::arg("parameter") = 0.0)
      .def("set", &DgtProbe::set, nb::arg("W"), nb::arg("b"), nb::arg("theta"))
      .def("gradient", &DgtProbe::gradient, "(mean loss, dW, db, dtheta)")
      .def("parameters", &DgtProbe::parameters, "(W, b, theta)")
      .def("steps", &DgtProbe::steps, nb::arg("n"), nb::arg("learning_rate"),
           "Steps of RMSprop on the whole batch.");
}

}  // namespace hardwood
