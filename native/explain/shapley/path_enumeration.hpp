// Shapley values by enumeration of cases.
//
// A case is a set P of features that are x's and a set Q of features that are z's, the others being
// open. A split whose side does not depend on the open features is passed; otherwise the open
// feature with the largest effect on it is decided, once for x and once for z. At a leaf, the
// output v of all rows of the case is a term
//     v [P is in S][Q is not in S]
// of the game, whose Shapley values are, with p = |P|, q = |Q| and g(p, q) = p! q! / (p + q)!,
//     v g(p, q) / p  for the features of P,    -v g(p, q) / q  for those of Q,
// and zero for others. For splits of one feature this is interventional TreeSHAP (Lundberg et al.,
// Nature Machine Intelligence 2020). The cases below a decision return the sums of v g / p and v g
// / q, so a case costs O(k), not O(k (p + q)).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "explain/shapley/group.hpp"

namespace hardwood {

// The memory and the methods of one thread.
class PathEnumerator {
 public:
  // largest: bounds of the values of all rows to come, (stride,).
  PathEnumerator(const Group& group, const FeatureMap& map, std::ptrdiff_t stride,
                 std::span<const std::int32_t> players, const std::vector<float>& largest,
                 const std::atomic<bool>& stop);

  // Adds the Shapley values of f for two rows, (players, outputs). Returns the number of cases, or
  // -1 if there are more than `most`; the sums are then useless.
  std::int64_t add(const Pair& pair, std::int64_t most, double* values);

 private:
  // The effect of a feature on a split, for the present pair.
  struct Say {
    std::int32_t player;
    double gain;
  };
  // For one tree: the players with a weight, split by split and, for linear leaves, leaf by leaf;
  // and their effects for the present pair, computed when a node is first visited.
  struct OfTree {
    std::vector<std::size_t> first;     // (nodes + 1,)
    std::vector<std::int32_t> players;  // of all nodes
    std::vector<Say> says;              // likewise
    std::vector<std::int32_t> n_says;   // (nodes,)
    std::vector<double> at_z;           // (splits,) score of z
    std::vector<std::int64_t> met;      // (nodes,) the pair for which the above is found
    std::vector<double> slack;          // (splits,)
  };
  // The open gains at a split: the sums of the negative and of the positive ones.
  struct Open {
    double score, low, high;
  };
  struct Sums {
    double* of_x;  // of v g / p, (outputs,)
    double* of_z;  // of v g / q
  };

  void list_players(const ForestTree& tree, OfTree& of) const;
  std::span<const Say> says_of(std::size_t tree, std::int32_t node);
  void find_says(std::size_t tree, std::int32_t node);
  void visit(std::size_t tree, std::int32_t node);
  void pass_split(std::size_t tree, std::int32_t node, std::span<const Say> says, Open open);
  void pass_leaf(std::size_t tree, std::int32_t leaf, std::span<const Say> says);
  void arrive(std::size_t tree, std::int32_t leaf);
  void end_case(const double* answer);
  void add_linear_terms(std::int32_t leaf, std::span<const Say> says);
  bool goes_right(const Splits& splits, std::int32_t node);
  Sums sums_at(std::size_t depth) {
    double* first = sums_.data() + depth * 2 * group_.n_outputs;
    return {first, first + group_.n_outputs};
  }
  template <class Then>
  void decide(std::int32_t player, Then&& then);
  template <class Then>
  void decide_as(std::int32_t player, bool is_x, double g, Then&& then);

  const Group& group_;
  const FeatureMap& map_;
  std::span<const std::int32_t> players_;
  const std::atomic<bool>& stop_;
  std::vector<OfTree> trees_;
  Buffer<float> values_of_row_;
  MixedRow row_;
  Pair pair_;
  double* values_ = nullptr;
  std::int64_t pair_number_ = 0, n_cases_ = 0, most_ = 0;
  bool is_over_ = false;
  enum State : char { kOpen, kX, kZ };
  std::vector<char> state_;     // (players,)
  double n_x_ = 0, n_z_ = 0;    // p and q
  double g_ = 1.0;              // g(p, q)
  std::vector<double> totals_;  // (trees + 1, outputs) what the trees up to each have said
  std::vector<double> at_start_, answer_;  // (outputs,)
  std::vector<double> sums_;               // (decisions, 2, outputs)
};

}  // namespace hardwood
