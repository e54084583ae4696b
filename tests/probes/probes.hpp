// Parts of the engine that tests and benchmarks call, in an extension of their own.
#pragma once

#include "bind/bind.hpp"

namespace hardwood {

void bind_kernels(nb::module_& m);
void bind_learners(nb::module_& m);
void bind_networks(nb::module_& m);
void bind_splits(nb::module_& m);
void bind_polyhedra(nb::module_& m);

}  // namespace hardwood
