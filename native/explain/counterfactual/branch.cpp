#include "explain/counterfactual/branch.hpp"

#include <algorithm>
#include <cmath>

namespace hardwood {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoGain = 1.0 - 1e-12;  // a distance must be below this share of the best to count

bool is_later(const std::pair<double, std::int64_t>& a, const std::pair<double, std::int64_t>& b) {
  return a > b;
}

}  // namespace

void BranchAndBound::search(std::span<const std::int32_t> regions, const Movable& movable,
                            Norm norm, Nearest& nearest) {
  movable_ = &movable;
  norm_ = norm;
  cases_.clear();
  queue_.clear();
  for (const std::int32_t region : regions) {
    const double bound = row_.least_distance(region, movable, norm);
    if (bound < nearest.distance) push(bound, {-1, region, -1, 0.0, 0.0});
  }
  while (!queue_.empty() && queue_.front().first < kNoGain * nearest.distance) {
    if (effort_.is_over()) {
      effort_.is_proven = false;
      return;
    }
    const std::int64_t which = pop();
    if (cases_[which].is_done) continue;
    nearest.found ? visit(which, nearest) : dive(which, nearest);
  }
}

// Follows a case depth first, to get a first row.
void BranchAndBound::dive(std::int64_t which, Nearest& nearest) {
  const std::int64_t enough =
      20 + 4 * (std::ssize(movable_->numbers) + std::ssize(movable_->categories));
  path_.assign(1, which);
  for (std::int64_t n = 0; n < enough && !path_.empty() && !nearest.found; ++n) {
    if (effort_.is_over()) return;
    const std::int64_t next = path_.back(), n_before = std::ssize(cases_);
    path_.pop_back();
    visit(next, nearest);
    for (std::int64_t child = std::ssize(cases_); child-- > n_before;) path_.push_back(child);
  }
}

double BranchAndBound::relaxed(int region, const Movable& movable, Norm norm) {
  movable_ = &movable;
  norm_ = norm;
  cases_.assign(1, {-1, region, -1, 0.0, 0.0});
  double total = 0.0;
  const Outcome outcome = close_in(0, kInfinity, total);
  // If the solver failed, only this bound is known.
  if (outcome == Outcome::kLost) return row_.least_distance(region, movable, norm);
  return outcome == Outcome::kFound ? total : kInfinity;
}

void BranchAndBound::push(double bound, const Case& one) {
  queue_.emplace_back(bound, static_cast<std::int64_t>(cases_.size()));
  std::push_heap(queue_.begin(), queue_.end(), is_later);
  cases_.push_back(one);
}

std::int64_t BranchAndBound::pop() {
  std::pop_heap(queue_.begin(), queue_.end(), is_later);
  const std::int64_t which = queue_.back().second;
  queue_.pop_back();
  return which;
}

void BranchAndBound::visit(std::int64_t which, Nearest& nearest) {
  cases_[which].is_done = true;
  double total = 0.0;
  const Outcome outcome = close_in(which, nearest.distance, total);
  if (outcome == Outcome::kLost) effort_.is_proven = false;
  if (outcome != Outcome::kFound || total >= kNoGain * nearest.distance) return;
  const std::int32_t category = open_category(cases_[which].region);
  if (category >= 0) return branch_category(which, category);
  const int place = fraction();
  if (place >= 0) return branch_number(which, place, total);
  keep(total, nearest);
}

// The closest point of the case's polyhedron, and its distance.
Outcome BranchAndBound::close_in(std::int64_t which, double cutoff, double& total) {
  ++effort_.n_steps;
  const int region = cases_[which].region;
  start_polyhedron(region);
  decide(which);
  for (const std::int32_t member : row_.regions().members_of(region))
    if (!add_half_space(member)) return Outcome::kEmpty;
  const double of_categories = cost_of_categories();
  double left = kInfinity;  // part of the distance that remains for the numbers
  if (cutoff < kInfinity) {
    left = norm_ == Norm::kSum ? cutoff - of_categories
                               : std::sqrt(std::max(cutoff * cutoff - of_categories, 0.0));
    if (left <= 0.0) return Outcome::kTooFar;
  }
  u_.resize(numbers_.size());
  const Polyhedron polyhedron{static_cast<int>(numbers_.size()),
                              static_cast<int>(least_.size()),
                              normals_.data(),
                              least_.data(),
                              low_.data(),
                              high_.data()};
  const Outcome outcome = norm_ == Norm::kSum ? least_sum_.solve(polyhedron, left, u_.data())
                                              : least_length_.solve(polyhedron, left, u_.data());
  if (outcome != Outcome::kFound) return outcome;
  of_numbers_ = 0.0;
  for (const double u : u_) of_numbers_ += norm_ == Norm::kSum ? std::fabs(u) : u * u;
  total = joined(of_numbers_, of_categories);
  return outcome;
}

// Coordinates are the movable numbers with a weight in a half-space of the region.
void BranchAndBound::start_polyhedron(int region) {
  const Regions& regions = row_.regions();
  place_.assign(regions.n_features, -1);
  level_.assign(regions.n_features, kOpen);
  for (std::vector<double>* part : {&normals_, &least_, &low_, &high_}) part->clear();
  numbers_.clear();
  for (const std::int32_t f : movable_->numbers)
    for (const std::int32_t member : regions.members_of(region))
      if (row_.by_u(half_space_of(member), f) != 0.0) {
        place_[f] = static_cast<std::int32_t>(numbers_.size());
        numbers_.push_back(f);
        low_.push_back(row_.lowest_u(f));
        high_.push_back(row_.highest_u(f));
        break;
      }
}

void BranchAndBound::decide(std::int64_t which) {
  for (; which >= 0; which = cases_[which].parent) {
    const Case& one = cases_[which];
    const int f = one.feature;
    if (f < 0) continue;
    if (row_.is_category(f)) {
      if (level_[f] == kOpen)
        level_[f] = static_cast<std::int32_t>(one.low);  // later decisions are more specific
      continue;
    }
    const double x = row_.row().x[f], cost = row_.regions().cost[f];
    low_[place_[f]] = std::max(low_[place_[f]], (one.low - x) * cost);
    high_[place_[f]] = std::min(high_[place_[f]], (one.high - x) * cost);
  }
}

// Returns false if the half-space cannot be reached.
bool BranchAndBound::add_half_space(std::int32_t member) {
  const double missing = row_.required(member, *movable_);
  if (missing == -kInfinity) return true;
  const double least = missing - gain_by_categories(member);
  const int i = half_space_of(member);
  const double length = movable_->effects[i].length;
  if (length == 0.0) return least <= 0.0;
  const double scale = sign_of(member) / length;
  for (const std::int32_t f : numbers_) normals_.push_back(scale * row_.by_u(i, f));
  least_.push_back(least / length);
  return true;
}

double BranchAndBound::gain_by_categories(std::int32_t member) const {
  double gain = 0.0;
  for (const std::int32_t f : movable_->categories) {
    if (level_[f] >= 0)
      gain += row_.gain(member, f, level_[f]);
    else if (level_[f] == kChanges)
      gain += row_.most_gain(member, f);
    else
      gain += std::max(row_.most_gain(member, f), 0.0);
  }
  return gain;
}

// The cost as a part of the sum, or of the squared length.
double BranchAndBound::cost_of(std::int32_t category) const {
  const double cost = row_.regions().cost[category];
  return norm_ == Norm::kSum ? cost : cost * cost;
}

double BranchAndBound::cost_of_categories() const {
  double total = 0.0;
  for (const std::int32_t f : movable_->categories)
    if (level_[f] != kOpen && level_[f] != row_.level_of(f)) total += cost_of(f);
  return total;
}

double BranchAndBound::joined(double of_numbers, double of_categories) const {
  const double sum = of_numbers + of_categories;
  return norm_ == Norm::kSum ? sum : std::sqrt(sum);
}

// The category to decide next, the one with the largest effect, -1 if none has an effect on the
// region. First all categories are decided to change or not, then their levels.
std::int32_t BranchAndBound::open_category(int region) const {
  std::int32_t chosen = -1;
  double most = 0.0;
  for (const std::int32_t open : {kOpen, kChanges}) {
    for (const std::int32_t f : movable_->categories) {
      if (level_[f] != open) continue;
      double say = 0.0;
      for (const std::int32_t member : row_.regions().members_of(region)) {
        if (!row_.has_say(member, f)) continue;
        const double range =
            std::max(row_.most_gain(member, f), 0.0) + std::max(row_.most_gain(~member, f), 0.0);
        say += range / row_.regions().sizes[half_space_of(member)];
      }
      if (say > most) {
        most = say;
        chosen = f;
      }
    }
    if (chosen >= 0) break;
  }
  return chosen;
}

double BranchAndBound::number(int place) const {
  const std::int32_t f = numbers_[place];
  return row_.row().x[f] + u_[place] / row_.regions().cost[f];
}

// The place of the integer that is farthest from a whole number; -1 if all are whole.
int BranchAndBound::fraction() const {
  int chosen = -1;
  double most = 0.0;
  for (std::size_t place = 0; place < numbers_.size(); ++place) {
    if (row_.regions().kind[numbers_[place]] != Regions::kWhole) continue;
    const double value = number(static_cast<int>(place)),
                 off = std::fabs(value - std::round(value));
    if (off > 1e-9 + 1e-12 * std::fabs(value) && off > most) {
      most = off;
      chosen = static_cast<int>(place);
    }
  }
  return chosen;
}

void BranchAndBound::branch_category(std::int64_t which, std::int32_t category) {
  const int region = cases_[which].region, present = row_.level_of(category);
  const double decided = cost_of_categories(), of_numbers = of_numbers_;
  const auto push_level = [&](std::int32_t level, double more) {
    push(joined(of_numbers, decided + more),
         {which, region, category, static_cast<double>(level), static_cast<double>(level)});
  };
  if (level_[category] == kOpen) {
    push_level(present, 0.0);
    push_level(kChanges, cost_of(category));
    return;
  }
  for (const std::int32_t level : best_levels(region, category))
    if (level != present) push_level(level, 0.0);
}

// Other levels improve no half-space of the region more than one of these does, at the same cost. If
// the current level is the one, the category need not change.
const std::vector<std::int32_t>& BranchAndBound::best_levels(int region, std::int32_t category) {
  const auto [place, is_new] = best_levels_.try_emplace({region, category});
  std::vector<std::int32_t>& best = place->second;
  if (!is_new) return best;
  for (int level = 0; level < row_.regions().n_levels[category]; ++level) {
    if (!row_.may_become(category, level)) continue;
    const auto surpasses = [&](int other) { return is_surpassed(region, category, level, other); };
    if (std::any_of(best.begin(), best.end(), surpasses)) continue;
    std::erase_if(best, [&](int other) { return is_surpassed(region, category, other, level); });
    best.push_back(level);
  }
  return best;
}

// Whether another level is at least as good for every half-space of a region.
bool BranchAndBound::is_surpassed(int region, std::int32_t category, int level, int other) const {
  const int first = row_.regions().first_column[category];
  for (const std::int32_t member : row_.regions().members_of(region)) {
    const double* weights = row_.regions().normal(half_space_of(member)) + first;
    if (sign_of(member) * weights[level] > sign_of(member) * weights[other]) return false;
  }
  return true;
}

void BranchAndBound::branch_number(std::int64_t which, int place, double total) {
  const std::int32_t region = cases_[which].region, f = numbers_[place];
  const double value = number(place), below = std::floor(value);
  const Case down{which, region, f, -kInfinity, below},
      up{which, region, f, below + 1.0, kInfinity};
  const bool is_nearer_up = value - below > 0.5;
  push(total, is_nearer_up ? up : down);
  push(total, is_nearer_up ? down : up);
}

void BranchAndBound::keep(double total, Nearest& nearest) const {
  const SearchRow& row = row_.row();
  nearest.found = true;
  nearest.distance = total;
  nearest.x.assign(row.x, row.x + row_.regions().n_features);
  for (std::size_t place = 0; place < numbers_.size(); ++place) {
    const std::int32_t f = numbers_[place];
    if (std::fabs(u_[place]) <= 1e-12 * total) continue;  // rounding errors
    const double value = number(static_cast<int>(place));
    const bool is_whole = row_.regions().kind[f] == Regions::kWhole;
    nearest.x[f] = std::clamp(is_whole ? std::round(value) : value, row.low[f], row.high[f]);
  }
  for (const std::int32_t f : movable_->categories)
    if (level_[f] >= 0) nearest.x[f] = level_[f];  // others have no effect
}

}  // namespace hardwood
