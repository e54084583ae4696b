// Kernels, random numbers, steps and products of layers, each on its own.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>

#include "bind/options.hpp"
#include "core/kernels.hpp"
#include "core/random.hpp"
#include "learn/loop/layers.hpp"
#include "probes/encoded_tiles.hpp"
#include "probes/probes.hpp"

namespace hardwood {

namespace {

NewArray gemm(Array2<float> A, Array2<float> B) {
  require(A.shape(1) == B.shape(0), "inner sizes differ");
  const int m = static_cast<int>(A.shape(0)), k = static_cast<int>(A.shape(1)),
            n = static_cast<int>(B.shape(1));
  Buffer<float> b(static_cast<std::size_t>(k) * padded(n));
  Buffer<float> c(static_cast<std::size_t>(m) * padded(n));
  copy_rows(k, n, B.data(), n, b.data(), padded(n));
  kernels().gemm({A.data(), m, k, k}, {b.data(), k, n, padded(n)}, {c.data(), m, n, padded(n)});
  return new_rows({A.shape(0), B.shape(1)}, m, c.data());
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

StepOptions step_options(const std::string& optimizer, double learning_rate, double momentum,
                         double decay, double epsilon, double l1, double l2) {
  StepOptions step;
  step.optimizer = optimizer_named(optimizer);
  step.learning_rate = static_cast<float>(learning_rate);
  step.momentum = static_cast<float>(momentum);
  step.decay = static_cast<float>(decay);
  step.epsilon = static_cast<float>(epsilon);
  step.l1 = static_cast<float>(l1);
  step.l2 = static_cast<float>(l2);
  return step;
}

// Parameters after steps against given gradients (steps, n), all of them penalized.
NewArray optimize(Array1<float> start, Array2<float> gradients, const std::string& optimizer,
                  double learning_rate, double momentum, double decay, double epsilon, double l1,
                  double l2, double clip_norm) {
  const std::size_t n = start.size();
  require(gradients.shape(1) == n, "sizes differ");
  StepOptions step = step_options(optimizer, learning_rate, momentum, decay, epsilon, l1, l2);
  Buffer<float> v(n), buf(n);
  return new_array<float>({n}, [&](float* w) {
    std::copy_n(start.data(), n, w);
    StepClock clock;
    for (std::size_t t = 0; t < gradients.shape(0); ++t) {
      const float* g = gradients.data() + t * n;
      clock.prepare(step, kernels().squared_norm(n, g), static_cast<float>(clip_norm));
      kernels().optimize(n, w, g, v.data(), buf.data(), step);
    }
  });
}

std::vector<double> schedule(const std::string& name, int n_steps, int cycles) {
  std::vector<double> factors;
  for (int t = 0; t < n_steps; ++t)
    factors.push_back(schedule_factor(schedule_named(name), t, n_steps, cycles));
  return factors;
}

// Overparameterized splits on their own: the product of the factors, and steps against gradients of
// the product.
class LayersProbe {
 public:
  LayersProbe(int n_nodes, int n_columns, std::vector<int> hidden)
      : m_(n_nodes),
        d_(n_columns),
        layers_(n_nodes, n_columns, hidden),
        weights_(static_cast<std::size_t>(n_nodes) * padded(n_columns)),
        bias_(n_nodes) {}

  void set(const std::vector<Array2<float>>& factors) {
    require(static_cast<int>(factors.size()) == layers_.n_layers(), "sizes differ");
    for (int i = 0; i < layers_.n_layers(); ++i) {
      const Matrix<float> W = layers_.factor(i);
      require(static_cast<int>(factors[i].shape(0)) == W.rows &&
                  static_cast<int>(factors[i].shape(1)) == W.cols,
              "sizes differ");
      copy_rows(W.rows, W.cols, factors[i].data(), W.cols, W.data, W.stride);
    }
  }

  std::vector<NewArray> factors() {
    std::vector<NewArray> all;
    for (int i = 0; i < layers_.n_layers(); ++i) {
      const Matrix<float> W = layers_.factor(i);
      const std::size_t m = W.rows, d = W.cols;
      all.push_back(
          new_array<float>({m, d}, [&](float* out) { copy_rows(m, d, W.data, W.stride, out, d); }));
    }
    return all;
  }

  void start_from(Array2<float> W, std::uint64_t seed) {
    require(static_cast<int>(W.shape(0)) == m_ && static_cast<int>(W.shape(1)) == d_ + 1,
            "sizes differ");
    split(W.data());
    Random random(seed, 0);
    layers_.start_from(random, view(), bias_.data());
  }

  NewArray weights() {
    layers_.collapse(view(), bias_.data());
    const std::size_t m = m_, d = d_;
    return new_array<float>({m, d + 1}, [&](float* out) {
      for (std::size_t i = 0; i < m; ++i) {
        std::copy_n(view().row(i), d, out + i * (d + 1));
        out[i * (d + 1) + d] = bias_[i];
      }
    });
  }

  void step(Array2<float> gradient, const std::string& optimizer, double learning_rate,
            double momentum, double decay, double epsilon, double l1, double l2, double clip_norm,
            double squared_norm_elsewhere) {
    require(
        static_cast<int>(gradient.shape(0)) == m_ && static_cast<int>(gradient.shape(1)) == d_ + 1,
        "sizes differ");
    layers_.collapse(view(), bias_.data());
    split(gradient.data());
    StepOptions step = step_options(optimizer, learning_rate, momentum, decay, epsilon, l1, l2);
    const double norm = layers_.spread(view(), bias_.data()) + squared_norm_elsewhere;
    clock_.prepare(step, norm, static_cast<float>(clip_norm));
    layers_.step(step);
  }

 private:
  Matrix<float> view() { return {weights_.data(), m_, d_, padded(d_)}; }
  void split(const float* with_bias) {
    for (int i = 0; i < m_; ++i, with_bias += d_ + 1) {
      std::copy_n(with_bias, d_, view().row(i));
      bias_[i] = with_bias[d_];
    }
  }

  int m_, d_;
  LinearLayers layers_;
  Buffer<float> weights_, bias_;
  StepClock clock_;
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

void bind_kernels(nb::module_& m) {
  m.def("instruction_sets", &instruction_sets, "The sets this machine can run, the best last.");
  m.def("philox", &philox, nb::arg("counter"), nb::arg("key"));
  m.def("gemm", &gemm, nb::arg("A"), nb::arg("B"));
  m.def("gemm_into", &gemm_into, nb::arg("A"), nb::arg("B"), nb::arg("C"), nb::arg("repeats") = 1);
  m.def("optimize", &optimize, nb::arg("start"), nb::arg("gradients"), nb::kw_only(),
        nb::arg("optimizer"), nb::arg("learning_rate"), nb::arg("momentum") = 0.0,
        nb::arg("decay") = 0.99, nb::arg("epsilon") = 1e-8, nb::arg("l1") = 0.0,
        nb::arg("l2") = 0.0, nb::arg("clip_norm") = 1e30);
  m.def("schedule", &schedule, nb::arg("name"), nb::arg("n_steps"), nb::arg("cycles") = 1);
  nb::class_<LayersProbe>(m, "LinearLayers", "Overparameterized splits: a product of factors.")
      .def(nb::init<int, int, std::vector<int>>(), nb::arg("n_nodes"), nb::arg("n_columns"),
           nb::kw_only(), nb::arg("hidden"))
      .def("set", &LayersProbe::set, nb::arg("factors"))
      .def("factors", &LayersProbe::factors)
      .def("start_from", &LayersProbe::start_from, nb::arg("W"), nb::arg("seed"))
      .def("weights", &LayersProbe::weights, "The product (m, d + 1), bias last.")
      .def("step", &LayersProbe::step, nb::arg("gradient"), nb::kw_only(), nb::arg("optimizer"),
           nb::arg("learning_rate"), nb::arg("momentum") = 0.0, nb::arg("decay") = 0.99,
           nb::arg("epsilon") = 1e-8, nb::arg("l1") = 0.0, nb::arg("l2") = 0.0,
           nb::arg("clip_norm") = 1e30, nb::arg("squared_norm_elsewhere") = 0.0);
}

}  // namespace hardwood
