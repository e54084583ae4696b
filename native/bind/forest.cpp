#include <cstdlib>
#include "bind/router.hpp"
#include <nanobind/stl/vector.h>

namespace hardwood {

namespace {

class ForestRouter {
 public:
  ForestRouter(std::vector<nb::object> routers, Array2<double> values) : kept_(routers) {
    for (auto& r : kept_) trees_.push_back(&nb::cast<const Router&>(r));
    k_ = values.shape(1);
    values_.assign(values.data(), values.data() + values.size());
  }

  template <class T>
  nb::ndarray<nb::numpy, double> mean(Array2<T> X, int mode, int block) const {
    const Source source = source_of(trees_[0]->encoder(), X);
    return new_array<double>({static_cast<std::size_t>(source.n_rows), k_}, [&](double* out) {
      const nb::gil_scoped_release release;
      const auto stride = trees_[0]->stride();
      Buffer<float> values(static_cast<std::size_t>(block) * stride);
      Buffer<std::int32_t> active(static_cast<std::size_t>(block) * std::max(source.n_features, 1));
      Buffer<std::int32_t> active_end(block), leaves(block);
      BadEntry bad;
      for (std::int64_t first = 0; first < source.n_rows; first += block) {
        const std::int64_t last = std::min<std::int64_t>(first + block, source.n_rows);
        const int n = last - first;
        EncodedRows rows{values.data(), stride, active.data(), active_end.data()};
        if (mode == 1)
          kernels().encode_rows(trees_[0]->encoding(), source, nullptr, first, n, rows, bad);
        const double* v = values_.data();
        for (const Router* tree : trees_) {
          if (mode == 0)
            kernels().route(tree->encoding(), tree->splits(), source, first, last, rows,
                            leaves.data(), bad);
          else
            kernels().route_plain(tree->splits(), rows, n, leaves.data());
          for (int i = 0; i < n; ++i)
            for (std::size_t j = 0; j < k_; ++j)
              out[(first + i) * k_ + j] += v[leaves[i] * k_ + j];
          v += tree->n_leaves() * k_;
        }
      }
    });
  }

 private:
  std::vector<nb::object> kept_;
  std::vector<const Router*> trees_;
  std::vector<double> values_;
  std::size_t k_;
};

}  // namespace

void bind_forest(nb::module_& m) {
  nb::class_<ForestRouter>(m, "ForestRouter")
      .def(nb::init<std::vector<nb::object>, Array2<double>>())
      .def("mean", &ForestRouter::mean<float>)
      .def("mean", &ForestRouter::mean<double>);
}

}  // namespace hardwood
