// The point of a polyhedron that is closest to the origin, which counterfactuals are made of.
#include <nanobind/stl/string_view.h>

#include <limits>

#include "explain/counterfactual/closest.hpp"
#include "probes/probes.hpp"

namespace hardwood {

namespace {

// None where the polyhedron is empty.
nb::object closest_point(Array2<double> normals, Array1<double> least, Array1<double> low,
                         Array1<double> high, std::string_view norm) {
  const std::size_t n = low.size();
  require(normals.shape(1) == n && high.size() == n && normals.shape(0) == least.size(),
          "sizes differ");
  require(norm == "l2" || norm == "l1", "norm must be l2 or l1");
  const Polyhedron polyhedron{static_cast<int>(n), static_cast<int>(least.size()),
                              normals.data(),      least.data(),
                              low.data(),          high.data()};
  const double cutoff = std::numeric_limits<double>::infinity();
  Outcome outcome = Outcome::kLost;
  auto point = new_array<double>({n}, [&](double* u) {
    outcome = norm == "l1" ? LeastSum().solve(polyhedron, cutoff, u)
                           : LeastLength().solve(polyhedron, cutoff, u);
  });
  if (outcome == Outcome::kLost) throw std::runtime_error("rounding errors kept it from an end");
  return outcome == Outcome::kFound ? nb::cast(point) : nb::none();
}

}  // namespace

void bind_polyhedra(nb::module_& m) {
  m.def("closest_point", &closest_point, nb::arg("normals"), nb::arg("least"), nb::arg("low"),
        nb::arg("high"), nb::arg("norm"),
        "The point with normals u >= least and low <= u <= high that is closest to the origin; "
        "normals have length 1. None where there is none.");
}

}  // namespace hardwood
