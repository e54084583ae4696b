// The instruction set in use, and the losses of the learners.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bind/options.hpp"
#include "core/kernels.hpp"

namespace hardwood {

namespace {

// Mean loss and its gradient by the prediction, each sample weighted.
std::tuple<double, nb::ndarray<nb::numpy, float>> loss(const std::string& name,
                                                       Array2<float> prediction,
                                                       Array2<float> target, Array1<float> weight,
                                                       double parameter) {
  const std::size_t n = prediction.shape(0), k = prediction.shape(1), t = target.shape(1);
  const Loss which = loss_named(name);
  require(which != Loss::kCustom, "the loss must be one of the engine");
  require(n >= 1 && k >= 1 && target.shape(0) == n && weight.size() == n &&
              t == (has_class_target(which) ? 1 : k),
          "sizes differ");
  if (has_class_target(which))
    for (const float y : entries(target)) require_class(y, checked_size("prediction", k));
  checked_size("prediction", k);
  const std::size_t stride = rounded_up(checked_size("prediction", n), kTileStep);
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

}  // namespace

void bind_core(nb::module_& m) {
  m.def(
      "instruction_set", [] { return std::string(kernels().name); }, "The instruction set in use.");
  m.def("loss", &loss, nb::arg("name"), nb::arg("prediction"), nb::arg("target"), nb::arg("weight"),
        nb::arg("parameter") = 0.0,
        "Weighted mean of a loss over the samples, and its gradient by the prediction.");
}

}  // namespace hardwood
