#include <cstdlib>

#include "bind/bind.hpp"

NB_MODULE(_native, m) {
  // What another library keeps until the process ends (a test runner its tracebacks, say) is no leak of ours. Our own
  // tests ask to be told (tests/native/test_exit.py).
  nanobind::set_leak_warnings(std::getenv("HARDWOOD_LEAK_WARNINGS") != nullptr);
  m.doc() = "The engine of hardwood: encoding, routing and learning, in C++.";
  hardwood::bind_table(m);
  hardwood::bind_tree(m);
  hardwood::bind_forest(m);
  hardwood::bind_ensemble(m);
  hardwood::bind_policy(m);
  hardwood::bind_explain(m);
  hardwood::bind_fit(m);
  hardwood::bind_learn_greedy(m);
  hardwood::bind_learn_tao(m);
  hardwood::bind_learn_linear_tree(m);
  hardwood::bind_nn(m);
  hardwood::bind_latent(m);
  hardwood::bind_bandit(m);
  hardwood::bind_counterfactual(m);
  hardwood::bind_core(m);
}
