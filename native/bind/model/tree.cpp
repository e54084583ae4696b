#include <nanobind/stl/string_view.h>

#include "bind/model/router.hpp"

namespace hardwood {

void bind_tree(nb::module_& m) {
  nb::class_<LeafModels>(m, "LeafModels",
                         "The linear models of a tree's leaves, packed; in the schema's raw units.")
      .def(nb::init<const Encoder&, Array2<double>, Array<double, 3>, std::string_view>(),
           nb::keep_alive<1, 2>(), nb::arg("encoder"), nb::arg("values"), nb::arg("weights"),
           nb::arg("link"));
  nb::class_<Router>(m, "Router",
                     "A tree packed for routing. Weights and bias are in the schema's raw units.")
      .def(nb::init<const Encoder&, Array2<double>, Array1<double>, Array2<std::int32_t>, int>(),
           nb::keep_alive<1, 2>(), nb::arg("encoder"), nb::arg("weights"), nb::arg("bias"),
           nb::arg("children"), nb::arg("n_leaves"))
      .def("apply", &Router::apply, nb::arg("X"), nb::arg("n_threads") = 1, "Leaf of every row.")
      .def("apply_one", &Router::apply_one<double>, nb::arg("x").noconvert(), "Leaf of one row.")
      .def("apply_one", &Router::apply_one<float>, nb::arg("x").noconvert())
      .def("answer", &Router::answer, nb::arg("leaves"), nb::arg("X"), nb::arg("n_threads") = 1,
           "What linear leaves answer to every row, (n, k).")
      .def("answer_one", &Router::answer_one<double>, nb::arg("leaves"), nb::arg("x").noconvert(),
           nb::arg("out").noconvert(), "The same to one row, written to out, (k,).")
      .def("answer_one", &Router::answer_one<float>, nb::arg("leaves"), nb::arg("x").noconvert(),
           nb::arg("out").noconvert());
}

}  // namespace hardwood
