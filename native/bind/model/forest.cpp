#include "bind/model/forest_router.hpp"

#include <nanobind/stl/string_view.h>

namespace hardwood {

void bind_forest(nb::module_& m) {
  nb::class_<ForestRouter>(m, "ForestRouter", "Packed trees of one schema, asked together.")
      .def(nb::init<nb::list, nb::list, std::string_view, bool>(), nb::arg("routers"),
           nb::arg("leaves"), nb::arg("vote"), nb::arg("is_sum") = false,
           "leaves: of each tree its LeafModels, or its values (L, k); vote: "
           "none, class, labels; is_sum: answers are added up, not averaged.")
      .def("apply", &ForestRouter::apply, nb::arg("X"), nb::arg("n_threads") = 1,
           "Leaves of every row, (n, trees).")
      .def("answer", &ForestRouter::answer, nb::arg("X"), nb::arg("n_threads") = 1,
           "Mean or sum of the trees' answers or votes for every row, (n, k).")
      .def("answer_one", &ForestRouter::answer_one<double>, nb::arg("x").noconvert(),
           nb::arg("out").noconvert(), "The same for one row, written to out, (k,).")
      .def("answer_one", &ForestRouter::answer_one<float>, nb::arg("x").noconvert(),
           nb::arg("out").noconvert());
}

}  // namespace hardwood
