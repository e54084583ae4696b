#include <nanobind/stl/string_view.h>

#include "bind/leaf_models.hpp"
#include "core/kernels.hpp"
#include "core/threads.hpp"

namespace hardwood {

namespace {

using Output2 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void apply_link(Output2 scores, std::string_view name, int n_threads) {
  constexpr std::int64_t kChunk = 4096;  // rows per task
  const Link link = link_of(name);
  const std::int64_t n = static_cast<std::int64_t>(scores.shape(0));
  const int k = static_cast<int>(scores.shape(1));
  if (n == 0 || k == 0) return;
  double* data = scores.data();
  const nb::gil_scoped_release release;
  parallel_for(static_cast<int>((n + kChunk - 1) / kChunk), n_threads, [&](int chunk) {
    const std::int64_t first = chunk * kChunk;
    kernels().link_rows(link, std::min(kChunk, n - first), k, data + first * k);
  });
}

}  // namespace

void bind_ensemble(nb::module_& m) {
  m.def("apply_link", &apply_link, nb::arg("scores").noconvert(), nb::arg("link"),
        nb::arg("n_threads") = 1,
        "Turn scores (n, k) into outputs, in place: identity, exp, softmax or logistic.");
}

}  // namespace hardwood
