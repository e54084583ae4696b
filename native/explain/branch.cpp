#include "explain/branch.hpp"

#include <algorithm>
#include <cmath>

namespace hardwood {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoGain = 1.0 - 1e-12;  // what is not nearer than this share is not nearer

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
    visit(pop(), nearest.distance, nearest);
  }
}

double BranchAndBound::relaxed(int region, const Movable& movable, Norm norm) {
  movable_ = &movable;
  norm_ = norm;
  cases_.assign(1, {-1, region, -1, 0.0, 0.0});
  double total = 0.0;
  const Outcome outcome = close_in(0, kInfinity, total);
  // Where the solver is lost, nothing is known but this.
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

void BranchAndBound::visit(std::int64_t which, double cutoff, Nearest& nearest) {
  double total = 0.0;
  const Outcome outcome = close_in(which, cutoff, total);
  if (outcome == Outcome::kLost) effort_.is_proven = false;
  if (outcome != Outcome::kFound || total >= kNoGain * cutoff) return;
  const std::int32_t category = open_category(cases_[which].region);
  if (category >= 0) return branch_category(which, category);
  const int place = fraction();
  if (place >= 0) return branch_number(which, place, total);
  keep(total, nearest);
}

// The point of the case's polyhedron that is closest, and its distance.
Outcome BranchAndBound::close_in(std::int64_t which, double cutoff, double& total) {
  ++effort_.n_steps;
  const int region = cases_[which].region;
  start_polyhedron(region);
  decide(which);
  for (const std::int32_t member : row_.regions().members_of(region))
    if (!add_half_space(member)) return Outcome::kEmpty;
  const double of_categories = cost_of_categories();
  double left = kInfinity;  // of the distance, for the numbers
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

// Coordinates are the movable numbers with a weight in some half-space of the region.
void BranchAndBound::start_polyhedron(int region) {
  const Regions& regions = row_.regions();
  place_.assign(regions.n_features, -1);
  level_.assign(regions.n_features, -1);
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
      level_[f] = static_cast<std::int32_t>(one.low);
      continue;
    }
    const double x = row_.row().x[f], cost = row_.regions().cost[f];
    low_[place_[f]] = std::max(low_[place_[f]], (one.low - x) * cost);
    high_[place_[f]] = std::min(high_[place_[f]], (one.high - x) * cost);
  }
}

// False where the half-space is out of reach.
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
  for (const std::int32_t f : movable_->categories)
    gain += level_[f] < 0 ? row_.most_gain(member, f) : row_.gain(member, f, level_[f]);
  return gain;
}

// As a part of the sum, or of the squared length.
double BranchAndBound::cost_of_categories() const {
  double total = 0.0;
  for (const std::int32_t f : movable_->categories) {
    if (level_[f] < 0 || level_[f] == row_.level_of(f)) continue;
    const double cost = row_.regions().cost[f];
    total += norm_ == Norm::kSum ? cost : cost * cost;
  }
  return total;
}

double BranchAndBound::joined(double of_numbers, double of_categories) const {
  const double sum = of_numbers + of_categories;
  return norm_ == Norm::kSum ? sum : std::sqrt(sum);
}

// The undecided category with the largest say in the region, -1 where none has any.
std::int32_t BranchAndBound::open_category(int region) const {
  std::int32_t chosen = -1;
  double most = 0.0;
  for (const std::int32_t f : movable_->categories) {
    if (level_[f] >= 0) continue;
    double say = 0.0;
    for (const std::int32_t member : row_.regions().members_of(region)) {
      const double gain = row_.most_gain(member, f) + row_.most_gain(~member, f);
      if (gain > 0.0) say += gain / row_.regions().sizes[half_space_of(member)];
    }
    if (say > most) {
      most = say;
      chosen = f;
    }
  }
  return chosen;
}

double BranchAndBound::number(int place) const {
  const std::int32_t f = numbers_[place];
  return row_.row().x[f] + u_[place] / row_.regions().cost[f];
}

// The number farthest from the whole one that it should be, by its place; -1 where all are.
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
  const int region = cases_[which].region;
  const double decided = cost_of_categories(), cost = row_.regions().cost[category];
  const double more = norm_ == Norm::kSum ? cost : cost * cost;
  for (int level = 0; level < row_.regions().n_levels[category]; ++level) {
    if (!is_new_level(region, category, level)) continue;
    const bool is_kept = level == row_.level_of(category);
    push(joined(of_numbers_, decided + (is_kept ? 0.0 : more)),
         {which, region, category, static_cast<double>(level), static_cast<double>(level)});
  }
}

// Whether a level differs, in this region, from the present one and from those before it.
bool BranchAndBound::is_new_level(int region, std::int32_t category, int level) const {
  const int present = row_.level_of(category);
  if (level == present) return true;
  if (!row_.may_become(category, level)) return false;
  const auto members = row_.regions().members_of(region);
  const auto is_like = [&](int other) {
    return std::all_of(members.begin(), members.end(), [&](std::int32_t member) {
      return row_.gain(member, category, level) == row_.gain(member, category, other);
    });
  };
  if (is_like(present)) return false;
  for (int other = 0; other < level; ++other)
    if (other != present && row_.may_become(category, other) && is_like(other)) return false;
  return true;
}

void BranchAndBound::branch_number(std::int64_t which, int place, double total) {
  const std::int32_t region = cases_[which].region, f = numbers_[place];
  const double value = number(place);
  push(total, {which, region, f, -kInfinity, std::floor(value)});
  push(total, {which, region, f, std::ceil(value), kInfinity});
}

void BranchAndBound::keep(double total, Nearest& nearest) const {
  const AskedRow& row = row_.row();
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
    if (level_[f] >= 0) nearest.x[f] = level_[f];
}

}  // namespace hardwood
