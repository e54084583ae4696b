// The smallest change of a row that takes it into a region, by branch and bound over all regions, the
// most promising case first.
//
// Once the categories are decided, every half-space is one of u, and the question is for the point of
// a polyhedron that is closest to the origin (closest.hpp). An undecided category grants every
// half-space the level it likes best, which no decision can surpass. It is first decided whether it
// changes, which has its cost, then to which level. A whole number that comes out as a fraction is cut
// off below and above it. Until a row is found, a case is followed into its depth.
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

// The best row so far; further ones must be nearer.
struct Nearest {
  bool found = false;
  double distance = std::numeric_limits<double>::infinity();
  std::vector<double> x;  // (features,)
};

// How much may be done for a row, and what came of it.
struct Effort {
  std::int64_t n_steps = 0, most_steps = 0;  // polyhedra
  bool is_proven = true;                     // nothing was left out
  const std::atomic<bool>* stop = nullptr;

  bool is_over() const { return n_steps >= most_steps || *stop; }
};

// Memory and methods of one thread.
class BranchAndBound {
 public:
  BranchAndBound(const RowRegions& row, Effort& effort) : row_(row), effort_(effort) {}

  // Improves on `nearest` by changes of the movable features only, whose effects on the regions are
  // known. norm: length or sum.
  void search(std::span<const std::int32_t> regions, const Movable& movable, Norm norm,
              Nearest& nearest);
  // A lower bound of the distance to one region, infinite where it cannot be reached.
  double relaxed(int region, const Movable& movable, Norm norm);

 private:
  // A region, less what was decided about features on the way from it.
  struct Case {
    std::int64_t parent;  // -1: none
    std::int32_t region;
    std::int32_t feature;  // decided here, -1: none
    double low, high;      // of a number; of a category both are its level, or kChanges
    bool is_done = false;
  };
  static constexpr std::int32_t kOpen = -1, kChanges = -2;  // of levels: to be decided

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
  std::vector<std::pair<double, std::int64_t>> queue_;  // a heap, the least bound on top
  // The polyhedron of the present case.
  std::vector<std::int32_t> numbers_;  // features that are its coordinates
  std::vector<std::int32_t> place_;    // (features,) their places; -1 for others
  std::vector<std::int32_t> level_;    // (features,) decided levels, kOpen, kChanges
  std::vector<double> normals_, least_, low_, high_, u_;
  double of_numbers_ = 0.0;
  std::vector<std::int64_t> path_;  // cases of a dive that are still to be followed
  // Levels of a category that no other surpasses in a region, whatever the row.
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>> best_levels_;
  LeastLength least_length_;
  LeastSum least_sum_;
};

}  // namespace hardwood
