// The smallest change of a row that takes it into one of several regions: by the length of the change,
// the sum of its sizes (branch.hpp), or the number of features that change (here).
//
// Fewest features: sets of features are tried by increasing size, each for all regions that they could
// reach. Among the changes with the smallest set, the shortest is taken. If that is too much work, the
// features of the change with the smallest sum are used, which are few, without those that are not
// needed; the result is then not proven to be the best.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "explain/counterfactual/branch.hpp"

namespace hardwood {

struct SearchOptions {
  Norm norm = Norm::kLength;
  Margin margin;
  std::int64_t most_steps = 0;  // largest number of polyhedra to solve for one row
};

// The search of one thread, with its memory.
class RowSearch {
 public:
  RowSearch(const Regions& regions, const SearchOptions& options, const std::atomic<bool>& stop);

  // Returns whether the result is proven: the change is the smallest, or there is none.
  bool find(const SearchRow& row, Nearest& nearest);

 private:
  struct Reachable {
    double distance;  // a lower bound
    std::int32_t region;
    std::vector<std::int32_t> features;  // with an effect on the region
  };

  bool fewest_features(Nearest& nearest);
  std::vector<Reachable> reachable();
  std::vector<std::int32_t> features_of(int region) const;
  bool try_size(const std::vector<Reachable>& reachable, std::size_t size, Nearest& nearest);
  void find_limits(const Reachable& place);
  bool choose(const Reachable& place, std::size_t from, std::size_t size, Nearest& nearest);
  bool may_suffice(const Reachable& place, std::size_t from, std::size_t n_more) const;
  void take(const std::vector<std::int32_t>& features);
  void try_chosen(std::int32_t region, Nearest& nearest);
  double limit(std::int32_t member, std::int32_t feature) const;
  void few_features(Nearest& nearest);
  void search_with(const std::vector<std::int32_t>& features, Nearest& nearest);

  Effort effort_;
  const SearchOptions options_;
  RowRegions row_;
  BranchAndBound branch_;
  std::vector<std::int32_t> every_region_;
  std::vector<std::int32_t> chosen_;
  Movable movable_;
  // (chosen + 1, members) what the half-spaces of the current region lack, without a margin, after
  // the largest effects of the first 0, 1, ... chosen features.
  std::vector<double> missing_;
  std::vector<double> limits_;  // (features, members) largest effect of each feature
  std::vector<double> later_;   // the same, the largest of this feature and all after it
};

}  // namespace hardwood
