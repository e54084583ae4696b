#include <vector>

#include "bind/model/packed_rows.hpp"
#include "bind/model/router.hpp"
#include "tree/blocks.hpp"
#include "tree/policy_search.hpp"

namespace hardwood {

namespace {

// Encoded rows of a table, with memory for those of one block.
class PolicyRows {
 public:
  PolicyRows(const Encoding& encoding, std::ptrdiff_t stride, int n_rows)
      : encoding_(encoding),
        stride_(stride),
        values_(static_cast<std::size_t>(n_rows) * stride),
        active_(static_cast<std::size_t>(n_rows) * std::max(encoding.n_features, 1)),
        active_end_(n_rows) {}

  void encode(const Source& source, std::int64_t first, int n, BadEntry& bad) {
    kernels().encode_rows(encoding_, source, nullptr, first, n, rows(), bad);
  }

  EncodedRows rows() { return {values_.data(), stride_, active_.data(), active_end_.data()}; }

  PolicyRow row(int i) const {
    return {values_.data() + i * stride_, active_.data() + (i ? active_end_[i - 1] : 0),
            active_.data() + active_end_[i]};
  }

 private:
  const Encoding& encoding_;
  std::ptrdiff_t stride_;
  Buffer<float> values_;
  Buffer<std::int32_t> active_, active_end_;
};

// A policy tree, packed. Its splits are given by the children of each node, side by side.
class PolicyRouter {
 public:
  // weights (rows, columns), bias (rows,): how far each child but the first of a node is ahead of
  // the first, in units of 2^exponents[node]; rows are in the order of `child`. child (nodes - 1,):
  // siblings side by side. n_children, exponents (nodes,).
  PolicyRouter(const Encoder& encoder, Array2<double> weights, Array1<double> bias,
               Array1<std::int32_t> child, Array1<std::int32_t> n_children,
               Array1<std::int32_t> exponents)
      : encoder_(encoder),
        encoding_(encoder_.unscaled()),
        bias_(bias.data(), bias.data() + bias.size()),
        child_(child.data(), child.data() + child.size()),
        nodes_(n_children.size()) {
    require(exponents.size() == nodes_.size(), "n_children and exponents differ");
    number(n_children.data(), exponents.data());
    require(weights.shape(0) == bias.size() && bias.size() == n_rows_, "weights and bias differ");
    require(n_rows_ == 0 || weights.shape(1) == encoder_.columns(),
            "weights do not match the schema's columns");
    rows_ = PackedRows<float>(encoder_, weights.data(), n_rows_);
    splits_ = {static_cast<int>(nodes_.size()),
               n_leaves_,
               encoding_.n_numeric,
               rows_.stride,
               nodes_.data(),
               child_.data(),
               rows_.weights.data(),
               bias_.data(),
               encoding_.n_indicators,
               rows_.indicators.data()};
  }
  PolicyRouter(const PolicyRouter&) = delete;

  auto apply(const nb::object& X, bool most_probable, int n_threads) const {
    checked_threads(n_threads);
    const TableArrays table(encoder_, X);
    return answers<std::int32_t>({table.n_rows()}, [&](std::int32_t* out) {
      return find_leaves(table.source(), most_probable, n_threads, out);
    });
  }

  // The leaf of one row on the greedy path.
  template <class T>
  std::int32_t apply_one(Array1<T> x) const {
    std::int32_t leaf = 0;
    require_finite(find_leaves(row_source(encoding_, x), false, 1, &leaf));
    return leaf;
  }

  auto leaf_probabilities(const nb::object& X, int n_threads) const {
    checked_threads(n_threads);
    const TableArrays table(encoder_, X);
    const std::size_t n_leaves = n_leaves_;
    return answers<double>({table.n_rows(), n_leaves}, [&](double* out) {
      return encoded_blocks(
          table.source(), n_threads, [&](PolicyRows& block, std::int64_t first, int rows) {
            PolicySearch search(splits_);
            for (int i = 0; i < rows; ++i)
              search.leaf_probabilities(block.row(i), out + (first + i) * n_leaves_);
          });
    });
  }

 private:
  // Children come after their parent and have no other, so every descent ends.
  void number(const std::int32_t* n_children, const std::int32_t* exponents) {
    require(!nodes_.empty() && child_.size() == nodes_.size() - 1,
            "every node but the root is somebody's child");
    checked_size("n_children", nodes_.size());
    std::vector<bool> has_parent(nodes_.size());
    std::size_t first = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::int32_t n = n_children[i];
      require(n >= 0 && first + n <= child_.size(), "n_children and child differ");
      for (std::size_t q = first; q < first + n; ++q) {
        require(child_[q] > static_cast<std::int32_t>(i) &&
                    child_[q] < static_cast<std::int32_t>(nodes_.size()),
                "a child is out of range");
        require(!has_parent[child_[q]], "a child has two parents");
        has_parent[child_[q]] = true;
      }
      nodes_[i] = {static_cast<std::int32_t>(first), n, static_cast<std::int32_t>(n_rows_),
                   n ? -1 : n_leaves_, exponents[i]};
      first += n;
      n_leaves_ += n == 0;
      n_rows_ += n ? n - 1 : 0;
    }
    require(first == child_.size(), "n_children and child differ");
  }

  // Calls task(block, first, n) for all blocks of encoded rows; returns the first bad entry.
  template <class Task>
  BadEntry encoded_blocks(const Source& source, int n_threads, Task&& task) const {
    n_threads = std::max(n_threads, 1);
    const int rows = block_rows(rows_.stride, splits_.n_nodes, source.n_rows, n_threads);
    return in_blocks(
        rows, source.n_rows, n_threads, [&] { return PolicyRows(encoding_, rows_.stride, rows); },
        [&](PolicyRows& block, std::int64_t first, int n, BadEntry& bad) {
          block.encode(source, first, n, bad);
          if (bad.feature < 0) task(block, first, n);
        });
  }

  BadEntry find_leaves(const Source& source, bool most_probable, int n_threads,
                       std::int32_t* leaves) const {
    return encoded_blocks(source, n_threads, [&](PolicyRows& block, std::int64_t first, int n) {
      if (!most_probable) {
        kernels().greedy_leaves(splits_, block.rows(), n, leaves + first);
        return;
      }
      PolicySearch search(splits_);
      for (int i = 0; i < n; ++i) leaves[first + i] = search.most_probable(block.row(i));
    });
  }

  const Encoder& encoder_;  // kept alive by the binding
  Encoding encoding_;
  PackedRows<float> rows_;
  std::vector<float> bias_;
  std::vector<std::int32_t> child_;
  std::vector<PolicyNode> nodes_;
  std::int32_t n_leaves_ = 0;
  std::size_t n_rows_ = 0;
  PolicySplits splits_;
};

}  // namespace

void bind_policy(nb::module_& m) {
  nb::class_<PolicyRouter>(m, "PolicyRouter",
                           "A policy tree, packed. Weights and bias are in the schema's raw units.")
      .def(nb::init<const Encoder&, Array2<double>, Array1<double>, Array1<std::int32_t>,
                    Array1<std::int32_t>, Array1<std::int32_t>>(),
           nb::keep_alive<1, 2>(), nb::arg("encoder"), nb::arg("weights"), nb::arg("bias"),
           nb::arg("child"), nb::arg("n_children"), nb::arg("exponents"))
      .def("apply", &PolicyRouter::apply, nb::arg("X"), nb::arg("most_probable"),
           nb::arg("n_threads") = 1, "Leaf of every row: greedily, or the most probable one.")
      .def("apply_one", &PolicyRouter::apply_one<double>, nb::arg("x").noconvert(),
           "Leaf of one row, greedily.")
      .def("apply_one", &PolicyRouter::apply_one<float>, nb::arg("x").noconvert())
      .def("leaf_probabilities", &PolicyRouter::leaf_probabilities, nb::arg("X"),
           nb::arg("n_threads") = 1, "Probability of every leaf for every row, (n, leaves).");
}

}  // namespace hardwood
