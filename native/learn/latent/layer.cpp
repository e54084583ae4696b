#include "learn/latent/layer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/threads.hpp"

namespace hardwood {

namespace {

constexpr std::int64_t kRowsPerTask = 256;
constexpr int kDeepest = 20;

// Calls task(first, last) for ranges of rows, which do not depend on the number of threads.
template <class Task>
void over_rows(std::int64_t n, int n_threads, Task&& task) {
  const auto n_tasks = static_cast<int>((n + kRowsPerTask - 1) / kRowsPerTask);
  parallel_for(n_tasks, n_threads,
               [&](int k) { task(k, k * kRowsPerTask, std::min(n, (k + 1) * kRowsPerTask)); });
}

// The source of a node's q: an entry of the row, with its sign. The q of the root is a constant.
struct Source {
  int at = -1;
  int sign = 1;
};

// Calls visit(t, v, source) for the nodes of a row with v = q + 1/2 > 0 and 0 < a_parent: all
// others have z = 0 and no gradient. Without activities, all are 1.
template <class Real, class Visit>
void visit_scores(const Real* scores, int n_splits, const Real* activity, Visit&& visit) {
  struct Reached {
    int t;
    Real q;
    Source source;
  };
  Reached stack[kDeepest + 2];
  int top = 0;
  stack[top++] = {0, std::numeric_limits<Real>::infinity(), {}};
  while (top > 0) {
    const Reached now = stack[--top];
    const Real half = static_cast<Real>(0.5);
    visit(now.t, now.t == 0 ? static_cast<Real>(1.5) : now.q + half, now.source);
    if (now.t >= n_splits || (activity && !(activity[now.t] > 0))) continue;
    for (const int sign : {1, -1}) {  // right, left
      const Real own = sign * scores[now.t];
      if (!(std::min(own, now.q) > -half)) continue;
      const int child = 2 * now.t + (sign > 0 ? 2 : 1);
      stack[top++] =
          own < now.q ? Reached{child, own, {now.t, sign}} : Reached{child, now.q, now.source};
    }
  }
}

// The byte in memory that holds the k-th bit of a word.
constexpr int byte_of(int k) {
  return std::endian::native == std::endian::little ? k / 8 : 7 - k / 8;
}

// The same for a row of q. Finds the positive entries without branches, eight at a time.
template <class Real, class Visit>
void visit_rewards(const Real* q, int n_nodes, Visit&& visit) {
  constexpr int kBlock = 64;
  const Real half = static_cast<Real>(0.5);
  for (int first = 0; first < n_nodes; first += kBlock) {
    const int n = std::min(kBlock, n_nodes - first);
    alignas(8) unsigned char is_positive[kBlock] = {};
    for (int l = 0; l < n; ++l) is_positive[l] = q[first + l] > -half;
    for (int word = 0; word < n; word += 8) {
      std::uint64_t bytes;
      std::memcpy(&bytes, is_positive + word, 8);
      for (; bytes != 0; bytes &= bytes - 1) {
        const int t = first + word + byte_of(std::countr_zero(bytes));
        visit(t, q[t] + half, Source{t, 1});
      }
    }
  }
}

template <class Real, class Visit>
void visit_row(const LatentBatch<Real>& batch, std::int64_t i, const Real* activity,
               Visit&& visit) {
  if (batch.is_q)
    visit_rewards(batch.row(i), batch.n_nodes(), visit);
  else
    visit_scores(batch.row(i), batch.n_splits(), activity, visit);
}

template <class Real>
void cut(const Real* q, const Real* activity, int n_nodes, Real* z) {
  int n_nan = 0;  // counted, since gcc turns a count into vectors and a flag into branches
  for (int t = 0; t < n_nodes; ++t) {
    const Real v = q[t] + static_cast<Real>(0.5);
    const Real positive = v > 0 ? v : Real{0};
    z[t] = positive < activity[t] ? positive : activity[t];
    n_nan += v != v;
  }
  if (n_nan > 0) std::fill_n(z, n_nodes, std::numeric_limits<Real>::quiet_NaN());
}

template <class Real>
bool is_number(const LatentBatch<Real>& batch, std::int64_t i) {
  const Real* row = batch.row(i);
  int n_nan = 0;  // counted, as above
  for (int t = 0; t < batch.n_inputs(); ++t) n_nan += row[t] != row[t];
  return n_nan == 0;
}

}  // namespace

template <class Real>
Pruning latent_pruning(const LatentBatch<Real>& batch, double lambda) {
  const int n_nodes = batch.n_nodes();
  PruningProgram<Real> program(n_nodes);
  if (lambda == 0) return program.nothing_pruned();
  for (std::int64_t i = 0; i < batch.n; ++i)
    if (is_number(batch, i))
      visit_row<Real>(batch, i, nullptr, [&](int t, Real v, Source) { program.add(t, v); });
  return program.solve(lambda);
}

template <class Real>
void latent_traversal(const LatentBatch<Real>& batch, const Real* activity, int n_threads,
                      Real* z) {
  const int n_nodes = batch.n_nodes();
  over_rows(batch.n, n_threads, [&](int, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      Real* row = z + i * n_nodes;
      if (batch.is_q) {
        cut(batch.row(i), activity, n_nodes, row);
        continue;
      }
      const bool known = is_number(batch, i);
      std::fill_n(row, n_nodes, known ? Real{0} : std::numeric_limits<Real>::quiet_NaN());
      if (known)
        visit_row(batch, i, activity,
                  [&](int t, Real v, Source) { row[t] = std::min(v, activity[t]); });
    }
  });
}

template <class Real>
void latent_backward(const LatentBatch<Real>& batch, const Real* activity,
                     const std::int32_t* group, const double* curvature, const Real* slope_z,
                     const Real* slope_activity, int n_threads, Real* slope) {
  const int n_nodes = batch.n_nodes(), n_inputs = batch.n_inputs();
  // Where z is clipped to the activity of its node, its gradient goes to the activity.
  const std::int64_t n_tasks = (batch.n + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<double> parts(static_cast<std::size_t>(n_tasks) * n_nodes);
  over_rows(batch.n, n_threads, [&](int k, std::int64_t first, std::int64_t last) {
    double* part = parts.data() + static_cast<std::size_t>(k) * n_nodes;
    for (std::int64_t i = first; i < last; ++i)
      if (is_number(batch, i))
        visit_row(batch, i, activity, [&](int t, Real v, Source) {
          if (v > activity[t]) part[t] += static_cast<double>(slope_z[i * n_nodes + t]);
        });
  });
  // The gradient of a group, divided among its values.
  std::vector<double> of_group(n_nodes);
  for (int t = 0; t < n_nodes; ++t) {
    double sum = static_cast<double>(slope_activity[t]);
    for (std::int64_t k = 0; k < n_tasks; ++k) sum += parts[k * n_nodes + t];
    of_group[group[t]] += sum;
  }
  for (int t = 0; t < n_nodes; ++t) {
    const bool is_free = activity[t] > 0 && activity[t] < 1;
    if (group[t] == t) of_group[t] = is_free ? of_group[t] / curvature[t] : 0.0;
  }
  over_rows(batch.n, n_threads, [&](int, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      Real* row = slope + i * n_inputs;
      std::fill_n(row, n_inputs,
                  is_number(batch, i) ? Real{0} : std::numeric_limits<Real>::quiet_NaN());
      if (std::isnan(row[0])) continue;
      visit_row(batch, i, activity, [&](int t, Real v, Source source) {
        if (source.at < 0) return;
        const Real own =
            v > activity[t] ? static_cast<Real>(of_group[group[t]]) : slope_z[i * n_nodes + t];
        row[source.at] += source.sign * own;
      });
    }
  });
}

HARDWOOD_LATENT_LAYER(, float)
HARDWOOD_LATENT_LAYER(, double)

}  // namespace hardwood
