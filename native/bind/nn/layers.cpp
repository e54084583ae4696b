// Functions for the torch layers. Arrays come by DLPack and results go into memory that the caller
// has allocated, so nothing here needs NumPy.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "bind/bind.hpp"
#include "bind/options.hpp"
#include "learn/dgt/layer.hpp"
#include "learn/tel/layer.hpp"

namespace hardwood {

namespace {

DgtLayer layer_of(const Array2<float>& X, const Array2<float>& W, const Array1<float>& b,
                  const Array2<float>& theta) {
  constexpr int kMaxHeight = 20;
  DgtShape shape{0, checked_size("X", X.shape(1)), checked_size("theta", theta.shape(1))};
  while (shape.height < kMaxHeight && static_cast<std::size_t>(shape.n_leaves()) < theta.shape(0))
    ++shape.height;
  const std::size_t m = shape.n_nodes();
  require(shape.height > 0 && theta.shape(0) == m + 1 && W.shape(0) == m && b.size() == m,
          "a tree of height h, 1 to 20, has 2^h - 1 splits and 2^h leaves");
  require(W.shape(1) == X.shape(1) && X.shape(1) > 0 && theta.shape(1) > 0,
          "the rows of X and W must have one length, at least 1, and leaves a value");
  return {shape, W.data(), b.data(), theta.data()};
}

template <class T>
bool has_shape(const T& array, std::size_t rows, std::size_t cols) {
  return array.shape(0) == rows && array.shape(1) == cols;
}

void forward(Array2<float> X, Array2<float> W, Array1<float> b, Array2<float> theta,
             Result<float, 2> prediction, Result<std::int32_t, 1> leaf, int n_threads) {
  const DgtLayer layer = layer_of(X, W, b, theta);
  const std::size_t n = X.shape(0);
  checked_threads(n_threads);
  require(has_shape(prediction, n, theta.shape(1)) && leaf.size() == n, "sizes differ");
  const nb::gil_scoped_release release;
  dgt_layer_forward(layer, static_cast<std::int64_t>(n), X.data(), n_threads, prediction.data(),
                    leaf.data());
}

void backward(Array2<float> X, Array2<float> W, Array1<float> b, Array2<float> theta,
              Array1<std::int32_t> leaf, Array2<float> slope, std::optional<Result<float, 2>> dX,
              Result<float, 2> dW, Result<float, 1> db, Result<float, 2> dtheta, int n_threads) {
  const DgtLayer layer = layer_of(X, W, b, theta);
  checked_threads(n_threads);
  const std::size_t n = X.shape(0), d = X.shape(1), k = theta.shape(1);
  require(leaf.size() == n && has_shape(slope, n, k) && (!dX || has_shape(*dX, n, d)) &&
              has_shape(dW, W.shape(0), d) && db.size() == b.size() &&
              has_shape(dtheta, theta.shape(0), k),
          "sizes differ");
  require_indices("a leaf", leaf, layer.shape.n_leaves());
  const nb::gil_scoped_release release;
  dgt_layer_backward(layer, static_cast<std::int64_t>(n), X.data(), leaf.data(), slope.data(),
                     n_threads, {dX ? dX->data() : nullptr, dW.data(), db.data(), dtheta.data()});
}

template <class T>
bool has_shape(const T& array, std::size_t trees, std::size_t rows, std::size_t cols) {
  return array.shape(0) == trees && array.shape(1) == rows && array.shape(2) == cols;
}

// W (T, m, d) and b (T, m) of perfect trees, without their leaves.
template <class Real>
TelLayer<Real> splits_of(const Array2<Real>& X, const Array<Real, 3>& W, const Array2<Real>& b,
                         double gamma, const std::string& activation) {
  SoftShape shape{checked_size("W", W.shape(0)), 0, checked_size("X", X.shape(1)), 0};
  while (shape.depth < kDeepestSoftTree && static_cast<std::size_t>(shape.n_nodes()) < W.shape(1))
    ++shape.depth;
  const std::size_t m = shape.n_nodes();
  require(shape.n_trees > 0 && shape.depth > 0 && W.shape(1) == m && has_shape(b, W.shape(0), m),
          "trees of depth h, 1 to 20, have 2^h - 1 splits each");
  require(W.shape(2) == X.shape(1) && X.shape(1) > 0,
          "the rows of X and W must have one length, at least 1");
  require(std::isfinite(static_cast<Real>(gamma)) && std::isfinite(1 / static_cast<Real>(gamma)) &&
              gamma > 0,
          "gamma must be a positive number, and so must its inverse, in the type of the arrays");
  return {shape,  activation_named(activation), static_cast<Real>(gamma), W.data(), b.data(),
          nullptr};
}

template <class Real>
TelLayer<Real> ensemble_of(const Array2<Real>& X, const Array<Real, 3>& W, const Array2<Real>& b,
                           const Array<Real, 3>& O, double gamma, const std::string& activation) {
  TelLayer<Real> layer = splits_of(X, W, b, gamma, activation);
  layer.shape.n_outputs = checked_size("O", O.shape(2));
  layer.O = O.data();
  require(has_shape(O, layer.shape.n_trees, layer.shape.n_leaves(), O.shape(2)) && O.shape(2) > 0,
          "trees of depth h have 2^h leaves each, and leaves a value");
  return layer;
}

template <class Real>
void soft_forward(Array2<Real> X, Array<Real, 3> W, Array2<Real> b, Array<Real, 3> O,
                  Result<Real, 2> out, double gamma, const std::string& activation, int n_threads) {
  const TelLayer<Real> layer = ensemble_of(X, W, b, O, gamma, activation);
  const std::size_t n = X.shape(0);
  checked_threads(n_threads);
  require(has_shape(out, n, O.shape(2)), "sizes differ");
  const nb::gil_scoped_release release;
  tel_layer_forward(layer, static_cast<std::int64_t>(n), X.data(), n_threads, out.data(), nullptr);
}

template <class Real>
void soft_backward(Array2<Real> X, Array<Real, 3> W, Array2<Real> b, Array<Real, 3> O,
                   Array2<Real> slope, std::optional<Result<Real, 2>> dX, Result<Real, 3> dW,
                   Result<Real, 2> db, Result<Real, 3> dO, double gamma,
                   const std::string& activation, int n_threads) {
  const TelLayer<Real> layer = ensemble_of(X, W, b, O, gamma, activation);
  checked_threads(n_threads);
  const std::size_t n = X.shape(0), d = X.shape(1);
  require(has_shape(slope, n, O.shape(2)) && (!dX || has_shape(*dX, n, d)) &&
              has_shape(dW, W.shape(0), W.shape(1), d) && has_shape(db, b.shape(0), b.shape(1)) &&
              has_shape(dO, O.shape(0), O.shape(1), O.shape(2)),
          "sizes differ");
  const nb::gil_scoped_release release;
  tel_layer_backward(layer, static_cast<std::int64_t>(n), X.data(), slope.data(), n_threads,
                     {dX ? dX->data() : nullptr, dW.data(), db.data(), dO.data()});
}

template <class Real>
void reachable(Array2<Real> X, Array<Real, 3> W, Array2<Real> b, Result<std::int32_t, 2> leaves,
               double gamma, const std::string& activation, int n_threads) {
  const TelLayer<Real> layer = splits_of(X, W, b, gamma, activation);
  const std::size_t n = X.shape(0);
  checked_threads(n_threads);
  require(has_shape(leaves, n, W.shape(0)), "sizes differ");
  const nb::gil_scoped_release release;
  if (layer.activation == Activation::kLogistic) {
    // All of them, also where a share is too small for its type.
    std::fill_n(leaves.data(), leaves.size(), layer.shape.n_leaves());
    return;
  }
  tel_layer_forward(layer, static_cast<std::int64_t>(n), X.data(), n_threads,
                    static_cast<Real*>(nullptr), leaves.data());
}

template <class Real>
void bind_tel(nb::module_& m) {
  m.def("tel_forward", &soft_forward<Real>, nb::arg("X").noconvert(), nb::arg("W").noconvert(),
        nb::arg("b").noconvert(), nb::arg("O").noconvert(), nb::arg("out").noconvert(),
        nb::arg("gamma"), nb::arg("activation"), nb::arg("n_threads") = 1,
        "Write what soft trees answer together (n, k).");
  m.def("tel_backward", &soft_backward<Real>, nb::arg("X").noconvert(), nb::arg("W").noconvert(),
        nb::arg("b").noconvert(), nb::arg("O").noconvert(), nb::arg("slope").noconvert(),
        nb::arg("dX").noconvert().none(), nb::arg("dW").noconvert(), nb::arg("db").noconvert(),
        nb::arg("dO").noconvert(), nb::arg("gamma"), nb::arg("activation"),
        nb::arg("n_threads") = 1,
        "Write the gradients by X (unless None), W, b and O, for the slopes (n, k) of a loss by "
        "the answers.");
  m.def("tel_reachable", &reachable<Real>, nb::arg("X").noconvert(), nb::arg("W").noconvert(),
        nb::arg("b").noconvert(), nb::arg("leaves").noconvert(), nb::arg("gamma"),
        nb::arg("activation"), nb::arg("n_threads") = 1,
        "Write how many leaves of each tree each row reaches (n, T).");
}

}  // namespace

void bind_nn(nb::module_& m) {
  bind_tel<float>(m);
  bind_tel<double>(m);
  m.def("dgt_layer_forward", &forward, nb::arg("X").noconvert(), nb::arg("W").noconvert(),
        nb::arg("b").noconvert(), nb::arg("theta").noconvert(), nb::arg("prediction").noconvert(),
        nb::arg("leaf").noconvert(), nb::arg("n_threads") = 1,
        "Write each row's leaf (n,) and its values (n, k).");
  m.def("dgt_layer_backward", &backward, nb::arg("X").noconvert(), nb::arg("W").noconvert(),
        nb::arg("b").noconvert(), nb::arg("theta").noconvert(), nb::arg("leaf").noconvert(),
        nb::arg("slope").noconvert(), nb::arg("dX").noconvert().none(), nb::arg("dW").noconvert(),
        nb::arg("db").noconvert(), nb::arg("dtheta").noconvert(), nb::arg("n_threads") = 1,
        "Write the gradients of Algorithm 2 by X (unless None), W, b and theta, for the slopes "
        "(n, k) of a loss by the predictions.");
}

}  // namespace hardwood
