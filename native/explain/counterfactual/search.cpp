#include "explain/counterfactual/search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hardwood {

RowSearch::RowSearch(const Regions& regions, const SearchOptions& options,
                     const std::atomic<bool>& stop)
    : options_(options), row_(regions), branch_(row_, effort_), every_region_(regions.size()) {
  effort_.stop = &stop;
  std::iota(every_region_.begin(), every_region_.end(), 0);
}

bool RowSearch::find(const SearchRow& row, Nearest& nearest) {
  row_.meet(row, options_.margin);
  effort_.n_steps = 0;
  effort_.most_steps = options_.most_steps;
  effort_.is_proven = true;
  nearest = {};
  if (options_.norm == Norm::kCount) return fewest_features(nearest);
  branch_.search(every_region_, row_.all(), options_.norm, nearest);
  return effort_.is_proven;
}

bool RowSearch::fewest_features(Nearest& nearest) {
  const std::vector<Reachable> places = reachable();
  std::size_t most = 0;
  for (const Reachable& place : places) most = std::max(most, place.features.size());
  for (std::size_t size = 1; size <= most; ++size) {
    // A set of this size is enough; closer sets of the same size do not change the number.
    const bool is_whole = try_size(places, size, nearest);
    if (nearest.found) return true;
    if (!is_whole) {
      few_features(nearest);
      return false;
    }
  }
  return effort_.is_proven;
}

// Regions that the row can reach, the closest first.
std::vector<RowSearch::Reachable> RowSearch::reachable() {
  std::vector<Reachable> places;
  for (const std::int32_t region : every_region_) {
    if (std::isinf(row_.least_distance(region, row_.all(), Norm::kLength))) continue;
    const double distance = branch_.relaxed(region, row_.all(), Norm::kLength);
    if (!std::isinf(distance)) places.push_back({distance, region, features_of(region)});
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Reachable& a, const Reachable& b) { return a.distance < b.distance; });
  return places;
}

std::vector<std::int32_t> RowSearch::features_of(int region) const {
  const auto members = row_.regions().members_of(region);
  std::vector<std::int32_t> features;
  for (const std::vector<std::int32_t>* list : {&row_.all().numbers, &row_.all().categories})
    for (const std::int32_t f : *list)
      if (std::any_of(members.begin(), members.end(), [&](std::int32_t member) {
            if (!row_.is_category(f)) return row_.by_u(half_space_of(member), f) != 0.0;
            return row_.has_say(member, f);
          }))
        features.push_back(f);
  return features;
}

// Tries all sets of a size. Returns false if some were left out because the steps ran out.
bool RowSearch::try_size(const std::vector<Reachable>& places, std::size_t size, Nearest& nearest) {
  for (const Reachable& place : places) {
    if (place.distance >= nearest.distance) break;
    if (place.features.size() < size) continue;
    find_limits(place);
    chosen_.clear();
    if (!choose(place, 0, size, nearest)) return false;
  }
  return effort_.is_proven;
}

void RowSearch::find_limits(const Reachable& place) {
  const auto members = row_.regions().members_of(place.region);
  const std::size_t h = members.size(), n = place.features.size();
  missing_.resize(h);
  limits_.resize(n * h);
  later_.assign((n + 1) * h, 0.0);
  for (std::size_t k = 0; k < h; ++k) {
    const int i = half_space_of(members[k]);
    // A lower bound of what may be required.
    const double slack = 1e-8 * row_.regions().sizes[i];
    missing_[k] = row_.holds(members[k]) ? 0.0 : -sign_of(members[k]) * row_.score(i) - slack;
    for (std::size_t f = n; f-- > 0;) {
      limits_[f * h + k] = limit(members[k], place.features[f]);
      later_[f * h + k] = std::max(later_[(f + 1) * h + k], limits_[f * h + k]);
    }
  }
}

// The largest effect of a feature on a member's score.
double RowSearch::limit(std::int32_t member, std::int32_t feature) const {
  if (row_.is_category(feature)) return std::max(row_.most_gain(member, feature), 0.0);
  const double weight = sign_of(member) * row_.by_u(half_space_of(member), feature);
  if (weight == 0.0) return 0.0;
  return std::max(weight * (weight > 0.0 ? row_.highest_u(feature) : row_.lowest_u(feature)), 0.0);
}

// Adds `size` more features, from number `from` on, in all combinations. False if some were left out.
bool RowSearch::choose(const Reachable& place, std::size_t from, std::size_t size,
                       Nearest& nearest) {
  if (size == 0) {
    try_chosen(place.region, nearest);
    return true;
  }
  const std::size_t h = row_.regions().members_of(place.region).size(), depth = chosen_.size();
  missing_.resize((depth + 2) * h);
  for (std::size_t f = from; f + size <= place.features.size(); ++f) {
    if (effort_.is_over()) return false;
    if (!may_suffice(place, f, size)) return true;  // later features will not suffice either
    for (std::size_t k = 0; k < h; ++k)
      missing_[(depth + 1) * h + k] = missing_[depth * h + k] - limits_[f * h + k];
    chosen_.push_back(place.features[f]);
    const bool is_whole =
        !may_suffice(place, f + 1, size - 1) || choose(place, f + 1, size - 1, nearest);
    chosen_.pop_back();
    if (!is_whole) return false;
  }
  return true;
}

// Whether n more features, from number `from` on, could be enough for every half-space.
bool RowSearch::may_suffice(const Reachable& place, std::size_t from, std::size_t n_more) const {
  const std::size_t h = row_.regions().members_of(place.region).size();
  const double* missing = missing_.data() + chosen_.size() * h;
  const double n = static_cast<double>(n_more);
  for (std::size_t k = 0; k < h; ++k)
    if (missing[k] > 0.0 && (n_more == 0 || missing[k] > n * later_[from * h + k])) return false;
  return true;
}

void RowSearch::take(const std::vector<std::int32_t>& features) {
  movable_.numbers.clear();
  movable_.categories.clear();
  for (const std::int32_t f : features)
    (row_.is_category(f) ? movable_.categories : movable_.numbers).push_back(f);
}

void RowSearch::try_chosen(std::int32_t region, Nearest& nearest) {
  take(chosen_);
  row_.find_effects(region, movable_);
  branch_.search({&region, 1}, movable_, Norm::kLength, nearest);
}

// A change of few features, not proven to be the fewest.
void RowSearch::few_features(Nearest& nearest) {
  effort_.n_steps = 0;
  branch_.search(every_region_, row_.all(), Norm::kSum, nearest);
  if (!nearest.found) return;
  std::vector<std::int32_t> moved;
  for (int f = 0; f < row_.regions().n_features; ++f)
    if (nearest.x[f] != row_.row().x[f] && !std::isnan(nearest.x[f])) moved.push_back(f);
  for (std::size_t k = 0; k < moved.size();) {
    std::vector<std::int32_t> fewer = moved;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(k));
    Nearest without;
    effort_.n_steps = 0;
    search_with(fewer, without);
    if (without.found) {
      moved = std::move(fewer);
      nearest = std::move(without);
    } else {
      ++k;
    }
  }
}

void RowSearch::search_with(const std::vector<std::int32_t>& features, Nearest& nearest) {
  take(features);
  for (const std::int32_t region : every_region_) row_.find_effects(region, movable_);
  branch_.search(every_region_, movable_, Norm::kLength, nearest);
}

}  // namespace hardwood
