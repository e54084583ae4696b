// The best threshold of every candidate column, where both sides get a linear model of their own.
//
// A node has a model, with the slope g and the curvature h of the loss at each row's score. If a side
// moves its model by one Newton step on the columns z, the loss falls by
//
//   1/2 g_S' (H_S + diag(l2))^-1 g_S,    g_S = sum over rows of S of g z,    H_S = sum of h z z'
//
// and a split is worth what its two sides gain together, less what the node gains unsplit. Sums are
// kept per bin of the candidate, so that all thresholds cost one pass over the rows.
#pragma once

#include <cstdint>
#include <vector>

namespace hardwood {

// Rows of one node.
struct LinearSplitRows {
  std::int64_t n = 0;
  int n_columns = 0;                  // q, the last of which is the intercept
  int n_outputs = 0;                  // k
  const double* z = nullptr;          // (n, q)
  const double* slope = nullptr;      // (n, k)
  const double* curvature = nullptr;  // (n, k)
  const double* count = nullptr;      // (n,) what each row counts for min_count
  const double* l2 = nullptr;         // (q,)
  double min_count = 0;               // of either side
};

// A column to split on, in bins 0, ..., n_bins - 1. Missing entries have a bin of their own, the last.
struct SplitCandidate {
  const std::uint16_t* bin = nullptr;  // (n,)
  int n_bins = 0;
  bool has_missing = false;
};

struct LinearSplit {
  double gain = 0;             // 0 where no threshold gains
  int first_right = -1;        // the first bin that goes right
  bool missing_right = false;  // where missing entries go
};

// For each candidate its best split: the first of equally good ones.
std::vector<LinearSplit> search_linear_splits(const LinearSplitRows& rows,
                                              const std::vector<SplitCandidate>& candidates,
                                              int n_threads);

}  // namespace hardwood
