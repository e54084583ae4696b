// Linear leaves, packed for the engine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hardwood {

// From the score of a leaf to its output.
enum class Link { kIdentity, kExp, kSoftmax, kLogistic };

// Weights stay in float64, because the score of a leaf is an output, not a decision. Its terms are
// products with the encoded row, whose values are float32 after the centers are subtracted.
struct LinearLeaves {
  int n_leaves = 0;
  int n_outputs = 0;
  int n_indicators = 0;
  std::ptrdiff_t stride = 0;           // of an output's weights, and least of a row's values
  const double* values = nullptr;      // (n_leaves, n_outputs): scores at the centers
  const double* weights = nullptr;     // (n_leaves, n_outputs, stride), padding zero
  const double* indicators = nullptr;  // (n_leaves, n_outputs, n_indicators)
  Link link = Link::kIdentity;
};

}  // namespace hardwood
