// Latent trees for the torch layer: arrays come by DLPack, and results go into memory that the
// caller has allocated.
#include <algorithm>
#include <cmath>

#include "bind/bind.hpp"
#include "learn/latent/layer.hpp"

namespace hardwood {

namespace {

constexpr int kDeepestLatentTree = 16;

// `is_q`: whether the rows hold q of every node, or scores of the splits.
template <class Real>
LatentBatch<Real> batch_of(const Array2<Real>& rows, bool is_q) {
  LatentBatch<Real> batch{static_cast<std::int64_t>(rows.shape(0)), 1, rows.data(), is_q};
  while (batch.depth < kDeepestLatentTree &&
         static_cast<std::size_t>(batch.n_inputs()) < rows.shape(1))
    ++batch.depth;
  require(static_cast<std::size_t>(batch.n_inputs()) == rows.shape(1),
          is_q ? "a tree of depth 1 to 16 has 2^(depth + 1) - 1 nodes"
               : "a tree of depth 1 to 16 has 2^depth - 1 splits");
  return batch;
}

template <class T>
bool has_size(const T& array, int n) {
  return array.size() == static_cast<std::size_t>(n);
}

template <class Real>
void prune(Array2<Real> rows, bool is_q, double pruning, Result<Real, 1> activity,
           Result<std::int32_t, 1> group, Result<double, 1> curvature) {
  const LatentBatch<Real> batch = batch_of(rows, is_q);
  const int n = batch.n_nodes();
  require(pruning >= 0 && std::isfinite(pruning), "pruning must be finite and at least 0");
  require(has_size(activity, n) && has_size(group, n) && has_size(curvature, n), "sizes differ");
  const nb::gil_scoped_release release;
  const Pruning found = latent_pruning(batch, pruning);
  std::transform(found.activity.begin(), found.activity.end(), activity.data(),
                 [](double a) { return static_cast<Real>(a); });
  std::copy(found.group.begin(), found.group.end(), group.data());
  std::copy(found.curvature.begin(), found.curvature.end(), curvature.data());
}

template <class Real>
void traverse(Array2<Real> rows, bool is_q, Array1<Real> activity, Result<Real, 2> z,
              int n_threads) {
  const LatentBatch<Real> batch = batch_of(rows, is_q);
  checked_threads(n_threads);
  require(has_size(activity, batch.n_nodes()) && z.shape(0) == rows.shape(0) &&
              z.shape(1) == activity.size(),
          "sizes differ");
  const nb::gil_scoped_release release;
  latent_traversal(batch, activity.data(), n_threads, z.data());
}

template <class Real>
void backward(Array2<Real> rows, bool is_q, Array1<Real> activity, Array1<std::int32_t> group,
              Array1<double> curvature, Array2<Real> slope_z, Array1<Real> slope_activity,
              Result<Real, 2> slope, int n_threads) {
  const LatentBatch<Real> batch = batch_of(rows, is_q);
  const int n = batch.n_nodes();
  checked_threads(n_threads);
  require(has_size(activity, n) && has_size(group, n) && has_size(curvature, n) &&
              has_size(slope_activity, n) && slope_z.shape(0) == rows.shape(0) &&
              slope_z.shape(1) == activity.size() && slope.shape(0) == rows.shape(0) &&
              slope.shape(1) == rows.shape(1),
          "sizes differ");
  for (int t = 0; t < n; ++t)
    require(group.data()[t] >= 0 && group.data()[t] <= t, "a group is out of range");
  const nb::gil_scoped_release release;
  latent_backward(batch, activity.data(), group.data(), curvature.data(), slope_z.data(),
                  slope_activity.data(), n_threads, slope.data());
}

template <class Real>
void bind(nb::module_& m) {
  const auto taken = [](const char* name) { return nb::arg(name).noconvert(); };
  m.def("latent_prune", &prune<Real>, taken("rows"), nb::arg("is_q"), nb::arg("pruning"),
        taken("activity"), taken("group"), taken("curvature"),
        "Write the activities of a tree's nodes for a batch, the topmost node that each is pooled "
        "with, and the curvature of its group. Rows are scores of splits, or q of nodes.");
  m.def("latent_traverse", &traverse<Real>, taken("rows"), nb::arg("is_q"), taken("activity"),
        taken("z"), nb::arg("n_threads") = 1, "Write the traversals (n, nodes) of a batch.");
  m.def("latent_backward", &backward<Real>, taken("rows"), nb::arg("is_q"), taken("activity"),
        taken("group"), taken("curvature"), taken("slope_z"), taken("slope_activity"),
        taken("slope"), nb::arg("n_threads") = 1,
        "Write the slopes by the rows, from those by traversals and activities.");
}

}  // namespace

void bind_latent(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
}

}  // namespace hardwood
