// Sums of float64 products, in a fixed order.
#pragma once

namespace hardwood {

// Four running sums, because a single one would wait for every addition.
inline double dot_product(const double* a, const double* b, int n) {
  double sums[4] = {};
  int j = 0;
  for (; j + 4 <= n; j += 4)
    for (int k = 0; k < 4; ++k) sums[k] += a[j + k] * b[j + k];
  for (; j < n; ++j) sums[0] += a[j] * b[j];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

}  // namespace hardwood
