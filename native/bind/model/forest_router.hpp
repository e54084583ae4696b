// A forest packed for the engine, as Python holds it.
#pragma once

#include <string_view>
#include <vector>

#include "bind/model/router.hpp"
#include "tree/forest.hpp"

namespace hardwood {

// Trees that were packed separately, for joint prediction.
class ForestRouter {
 public:
  // leaves: of each tree, its LeafModels or its values (L, k).
  ForestRouter(nb::list routers, nb::list leaves, std::string_view vote, bool is_sum)
      : routers_(nb::tuple(routers)), leaves_(nb::tuple(leaves)) {
    const std::size_t n_trees = nb::len(routers_);
    require(n_trees > 0, "a forest has at least one tree");
    require(n_trees == nb::len(leaves_), "a forest has leaves for each of its trees");
    const Router& first = router_of(0);
    encoder_ = &first.encoder();
    forest_.encoding = first.encoding();
    forest_.stride = first.stride();
    forest_.vote = vote_of(vote);
    forest_.is_sum = is_sum;
    for (std::size_t i = 0; i < n_trees; ++i) add(router_of(i), nb::borrow(leaves_[i]));
  }
  ForestRouter(const ForestRouter&) = delete;

  auto apply(const nb::object& X, int n_threads) const {
    checked_threads(n_threads);
    const TableArrays table(*encoder_, X);
    return answers<std::int32_t>({table.n_rows(), forest_.trees.size()}, [&](std::int32_t* out) {
      return leaves_of_rows(forest_, table.source(), n_threads, out);
    });
  }

  auto answer(const nb::object& X, int n_threads) const {
    checked_threads(n_threads);
    const TableArrays table(*encoder_, X);
    const std::size_t k = forest_.n_outputs;
    return answers<double>({table.n_rows(), k}, [&](double* out) {
      return answer_rows(forest_, table.source(), n_threads, out);
    });
  }

  // The same for one row, into an array of k: making one would take longer than the answer.
  template <class T>
  void answer_one(Array1<T> x, Result<double, 1> out) const {
    const Source row = row_source(forest_.encoding, x);
    require(out.size() == static_cast<std::size_t>(forest_.n_outputs),
            "out has another size than answers");
    std::fill_n(out.data(), out.size(), 0.0);
    require_finite(answer_rows(forest_, row, 1, out.data()));
  }

  const Encoder& encoder() const { return *encoder_; }
  const Forest& forest() const { return forest_; }

 private:
  const Router& router_of(std::size_t i) const {
    return checked_object<Router>(routers_[i], "the routers of a forest must be Router objects");
  }

  static Vote vote_of(std::string_view name) {
    if (name == "none") return Vote::kNone;
    if (name == "class") return Vote::kClass;
    require(name == "labels", "a vote is none, class or labels");
    return Vote::kLabels;
  }

  void add(const Router& router, nb::object leaves) {
    require(&router.encoder() == encoder_, "the trees of a forest have different encoders");
    ForestTree tree{&router.splits(), nullptr, nullptr};
    std::size_t n_leaves, n_outputs;
    if (nb::isinstance<LeafModels>(leaves)) {
      const LeafModels& models =
          checked_object<LeafModels>(leaves, "the leaves of a forest were never initialized");
      require(&models.encoder() == encoder_, "the leaves and the splits have different encoders");
      tree.linear = &models.leaves();
      n_leaves = tree.linear->n_leaves, n_outputs = tree.linear->n_outputs;
    } else {
      Array2<double> values;
      require(nb::try_cast(leaves, values), "leaves must be LeafModels or float64 values (L, k)");
      n_leaves = values.shape(0), n_outputs = values.shape(1);
      values_.push_back(voted(values));
      tree.values = values_.back().data();
    }
    require(n_leaves == static_cast<std::size_t>(router.n_leaves()),
            "a tree has one leaf more than it has splits");
    require(n_outputs > 0 && n_outputs <= kMany, "a tree has at least one output");
    require(forest_.trees.empty() || n_outputs == static_cast<std::size_t>(forest_.n_outputs),
            "the trees of a forest differ in their number of outputs");
    forest_.n_outputs = static_cast<int>(n_outputs);
    forest_.trees.push_back(tree);
  }

  Buffer<double> voted(const Array2<double>& values) const {
    const std::size_t k = values.shape(1);
    Buffer<double> copy(values.size());
    std::copy_n(values.data(), values.size(), copy.data());
    for (std::size_t leaf = 0; leaf < values.shape(0); ++leaf)
      vote(forest_.vote, static_cast<int>(k), copy.data() + leaf * k);
    return copy;
  }

  nb::tuple routers_, leaves_;  // keep the packed trees alive
  const Encoder* encoder_ = nullptr;
  std::vector<Buffer<double>> values_;
  Forest forest_;
};

}  // namespace hardwood
