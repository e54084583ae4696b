// A tree packed for routing, as Python holds it.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "bind/model/leaf_models.hpp"
#include "bind/model/table_arrays.hpp"
#include "core/kernels.hpp"
#include "core/threads.hpp"
#include "tree/nodes.hpp"

namespace hardwood {

// Weights in float32, in the units of the encoded columns.
class Router {
 public:
  Router(const Encoder& encoder, Array2<double> weights, Array1<double> bias,
         Array2<std::int32_t> children, int n_leaves)
      : encoder_(encoder), encoding_(encoder_.unscaled()) {
    const int m = checked_size("weights", weights.shape(0));
    check(weights, bias, children, n_leaves);
    rows_ = PackedRows<float>(encoder_, weights.data(), m);
    nodes_ = route_nodes({children.data(), children.size()}, rows_.stride);
    for (int i = 0; i < m; ++i) nodes_.nodes[i].bias = static_cast<float>(bias.data()[i]);
    splits_ = {m,
               nodes_.depth,
               nodes_.is_perfect,
               encoding_.n_numeric,
               rows_.weights.data(),
               nodes_.nodes.data(),
               encoding_.n_indicators,
               rows_.indicators.data()};
  }

  auto apply(const nb::object& X, int n_threads) const {
    checked_threads(n_threads);
    const TableArrays table(encoder_, X);
    return answers<std::int32_t>({table.n_rows()}, [&](std::int32_t* leaves) {
      return in_chunks(
          table.source(), n_threads,
          [&](std::int64_t first, std::int64_t last, const EncodedRows& scratch, BadEntry& bad) {
            kernels().route(encoding_, splits_, table.source(), first, last, scratch,
                            leaves + first, bad);
          });
    });
  }

  template <class T>
  std::int32_t apply_one(Array1<T> x) const {
    std::int32_t leaf = 0;
    route_one_row(x, [&](const EncodedRows&, std::int32_t found) { leaf = found; });
    return leaf;
  }

  // The outputs of linear leaves, (n, k).
  auto answer(const LeafModels& models, const nb::object& X, int n_threads) const {
    checked_threads(n_threads);
    const TableArrays table(encoder_, X);
    const LinearLeaves& leaves = fitting(models);
    const std::size_t k = leaves.n_outputs;
    return answers<double>({table.n_rows(), k}, [&](double* out) {
      return in_chunks(
          table.source(), n_threads,
          [&](std::int64_t first, std::int64_t last, const EncodedRows& scratch, BadEntry& bad) {
            answer_chunk(leaves, table.source(), first, last, scratch, out, bad);
          });
    });
  }

  // The same for one row, into an array of k: making one would take longer than the answer.
  template <class T>
  void answer_one(const LeafModels& models, Array1<T> x, Result<double, 1> out) const {
    const LinearLeaves& leaves = fitting(models);
    require(out.size() == static_cast<std::size_t>(leaves.n_outputs),
            "out has another size than answers");
    route_one_row(x, [&](const EncodedRows& rows, std::int32_t leaf) {
      kernels().answer(leaves, rows, 1, &leaf, out.data());
    });
  }

  const Encoder& encoder() const { return encoder_; }
  const Encoding& encoding() const { return encoding_; }  // of the rows that the splits meet
  const Splits& splits() const { return splits_; }
  int n_leaves() const { return splits_.n_splits + 1; }
  std::ptrdiff_t stride() const { return rows_.stride; }  // floats from one encoded row to the next

 private:
  void check(const Array2<double>& weights, const Array1<double>& bias,
             const Array2<std::int32_t>& children, int n_leaves) const {
    const std::size_t m = weights.shape(0);
    require(n_leaves > 0 && static_cast<std::size_t>(n_leaves) == m + 1,
            "a tree has one leaf more than it has splits");
    require(m == 0 || weights.shape(1) == encoder_.columns(),
            "weights do not match the schema's columns");
    require(bias.size() == m && children.shape(0) == m && children.shape(1) == 2,
            "weights, bias and children differ");
    std::vector<bool> has_parent(m + n_leaves);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const std::int32_t child = children.data()[i], parent = static_cast<std::int32_t>(i / 2);
      // A child that comes after its parent cannot close a cycle, so every descent ends.
      require(
          child < 0 ? ~child < n_leaves : child > parent && child < static_cast<std::int32_t>(m),
          "a child is out of range");
      // Depths count on one parent each.
      const std::size_t place = child < 0 ? m + ~child : child;
      require(!has_parent[place], "a child has two parents");
      has_parent[place] = true;
    }
  }

  // Encodes one row, finds its leaf and calls done(rows, leaf), on the stack where the row fits.
  template <class T, class Done>
  void route_one_row(const Array1<T>& x, Done&& done) const {
    const Encoding& e = encoding_;
    const Source source = row_source(e, x);
    constexpr int kOnStack = 512;
    alignas(64) std::array<float, kOnStack> small;
    std::array<std::int32_t, kOnStack> small_active;
    Buffer<float> large;
    std::vector<std::int32_t> large_active;
    float* values = small.data();
    std::int32_t* active = small_active.data();
    if (rows_.stride > kOnStack) {
      large = Buffer<float>(rows_.stride);
      values = large.data();
    } else if (e.n_numeric < rows_.stride) {
      std::fill(values + e.n_numeric, values + rows_.stride, 0.0f);
    }
    if (e.n_features > kOnStack) {
      large_active.resize(e.n_features);
      active = large_active.data();
    }
    std::int32_t active_end = 0, leaf = 0;
    BadEntry bad;
    const EncodedRows rows{values, rows_.stride, active, &active_end};
    kernels().route(e, splits_, source, 0, 1, rows, &leaf, bad);
    require_finite(bad);
    done(rows, leaf);
  }

  // Block by block: the outputs of leaves are computed while the encoded rows are in the cache.
  void answer_chunk(const LinearLeaves& leaves, const Source& source, std::int64_t first,
                    std::int64_t last, const EncodedRows& scratch, double* out,
                    BadEntry& bad) const {
    std::array<std::int32_t, kRouteRows> leaf;
    for (std::int64_t row = first; row < last; row += kRouteRows) {
      const int n = static_cast<int>(std::min<std::int64_t>(kRouteRows, last - row));
      std::fill_n(scratch.active_end, n, 0);  // rows without indicators leave it alone
      kernels().route(encoding_, splits_, source, row, row + n, scratch, leaf.data(), bad);
      kernels().answer(leaves, scratch, n, leaf.data(), out + row * leaves.n_outputs);
    }
  }

  const LinearLeaves& fitting(const LeafModels& models) const {
    require(&models.encoder() == &encoder_, "the leaves and the splits have different encoders");
    require(models.leaves().n_leaves == n_leaves(), "a tree has one leaf more than it has splits");
    return models.leaves();
  }

  // Calls task(first, last, scratch, bad) for chunks of the rows; returns the first bad entry.
  template <class Task>
  BadEntry in_chunks(const Source& source, int n_threads, Task&& task) const {
    constexpr std::int64_t kChunk =
        16384;  // rows per task: enough to hide the cost of handing it out
    const int n_chunks = static_cast<int>((source.n_rows + kChunk - 1) / kChunk);
    std::vector<BadEntry> bad(n_chunks);
    parallel_for(n_chunks, n_threads, [&](int chunk) {
      Buffer<float> values(static_cast<std::size_t>(kRouteRows) * rows_.stride);
      Buffer<std::int32_t> active(static_cast<std::size_t>(kRouteRows) *
                                  std::max(source.n_features, 1));
      std::array<std::int32_t, kRouteRows> active_end{};
      const std::int64_t first = chunk * kChunk, last = std::min(first + kChunk, source.n_rows);
      task(first, last, EncodedRows{values.data(), rows_.stride, active.data(), active_end.data()},
           bad[chunk]);
    });
    const auto first_bad =
        std::find_if(bad.begin(), bad.end(), [](const BadEntry& b) { return b.feature >= 0; });
    return first_bad == bad.end() ? BadEntry{} : *first_bad;
  }

  const Encoder& encoder_;  // kept alive by the binding
  Encoding encoding_;
  PackedRows<float> rows_;
  RouteNodes nodes_;
  Splits splits_;
};

}  // namespace hardwood
