// The splits of a hard oblique tree, packed for routing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hardwood {

struct Splits {
  int n_splits = 0;
  int n_values = 0;                        // numeric values of an encoded row
  std::ptrdiff_t stride = 0;               // padded length of a row of weights
  const float* weights = nullptr;          // (n_splits, stride), padding zero
  const float* bias = nullptr;             // (n_splits,)
  int n_indicators = 0;
  const float* indicators = nullptr;       // (n_splits, n_indicators): what an indicator adds when on
  const std::int32_t* children = nullptr;  // (n_splits, 2) left, right; >= 0 a split, < 0 the leaf ~child
};

}  // namespace hardwood
