// The smallest change of a row that takes it into a region, by branch and bound over all regions,
// best bound first.
//
// Once all categories are decided, every half-space is one in u, and the task is to find the point of
// a polyhedron that is closest to the origin (closest.hpp). For an undecided category, every
// half-space uses the level that is best for it, which is a bound on any decision. First it is
// decided whether the category changes, which has a cost, then to which level. An integer with a
// fractional value is branched below and above it. Until a row is found, the search goes depth first.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "explain/counterfactual/closest.hpp"
#include "explain/counterfactual/regions.hpp"

namespace hardwood {

// The best row so far; later ones must be closer.
struct Nearest {
  bool found = false;
  double distance = std::numeric_limits<double>::infinity();
  std::vector<double> x;  // (features,)
};

// The limit of the work for a row, and the work done.
struct Effort {
  std::int64_t n_steps = 0, most_steps = 0;  // polyhedra
  bool is_proven = true;                     // no case was left out
  const std::atomic<bool>* stop = nullptr;

  bool is_over() const { return n_steps >= most_steps || *stop; }
};

// The search of one thread, with its memory.
class BranchAndBound {
 public:
  BranchAndBound(const RowRegions& row, Effort& effort) : row_(row), effort_(effort) {}

  // Improves `nearest` by changes of the movable features only, whose effects on the regions are
  // known. The norm is length or sum.
  void search(std::span<const std::int32_t> regions, const Movable& movable, Norm norm,
              Nearest& nearest);
  // A lower bound of the distance to one region; infinite if it cannot be reached.
  double relaxed(int region, const Movable& movable, Norm norm);

 private:
  // A region with the decisions about features that lead to this case.
  struct Case {
    std::int64_t parent;  // -1: none
    std::int32_t region;
    std::int32_t feature;  // decided here, -1: none
    double low, high;      // bounds of a number; for a category both are its level, or kChanges
    bool is_done = false;
  };
  static constexpr std::int32_t kOpen = -1, kChanges = -2;  // of levels: still to be decided

  void push(double bound, const Case& one);
  std::int64_t pop();
  void dive(std::int64_t which, Nearest& nearest);
  void visit(std::int64_t which, Nearest& nearest);
  Outcome close_in(std::int64_t which, double cutoff, double& total);
  void start_polyhedron(int region);
  void decide(std::int64_t which);
  bool add_half_space(std::int32_t member);
  double gain_by_categories(std::int32_t member) const;
  double cost_of(std::int32_t category) const;
  double cost_of_categories() const;
  double joined(double of_numbers, double of_categories) const;
  std::int32_t open_category(int region) const;
  int fraction() const;
  double number(int place) const;
  void branch_category(std::int64_t which, std::int32_t category);
  void branch_number(std::int64_t which, int place, double total);
  const std::vector<std::int32_t>& best_levels(int region, std::int32_t category);
  bool is_surpassed(int region, std::int32_t category, int level, int other) const;
  void keep(double total, Nearest& nearest) const;

  const RowRegions& row_;
  Effort& effort_;
  const Movable* movable_ = nullptr;
  Norm norm_ = Norm::kLength;
  std::vector<Case> cases_;
  std::vector<std::pair<double, std::int64_t>> queue_;  // a heap, the smallest bound on top
  // The polyhedron of the current case.
  std::vector<std::int32_t> numbers_;  // features that are its coordinates
  std::vector<std::int32_t> place_;    // (features,) their places; -1 for others
  std::vector<std::int32_t> level_;    // (features,) decided levels, kOpen, kChanges
  std::vector<double> normals_, least_, low_, high_, u_;
  double of_numbers_ = 0.0;
  std::vector<std::int64_t> path_;  // cases of a depth-first search that remain
  // Levels of a category that are best for some half-space of a region, for any row.
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>> best_levels_;
  LeastLength least_length_;
  LeastSum least_sum_;
};

}  // namespace hardwood
