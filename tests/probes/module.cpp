#include "probes/probes.hpp"

NB_MODULE(_probes, m) {
  m.doc() = "Parts of the engine, for tests against their NumPy reference and for benchmarks.";
  hardwood::bind_kernels(m);
  hardwood::bind_learners(m);
  hardwood::bind_networks(m);
  hardwood::bind_splits(m);
  hardwood::bind_polyhedra(m);
}
