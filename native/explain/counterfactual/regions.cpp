#include "explain/counterfactual/regions.hpp"

#include <algorithm>
#include <cmath>

#include "explain/counterfactual/dot.hpp"

namespace hardwood {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Relative to the size of a half-space. With levels and integers a score can be exactly zero, which is
// not negative; this keeps rounding errors of float64 from changing that.
constexpr double kExact = 1e-9;

}  // namespace

RowRegions::RowRegions(const Regions& regions)
    : regions_(regions),
      scaled_(static_cast<std::size_t>(regions.n_half_spaces) * regions.n_features) {
  bool has_categories = false;
  for (int f = 0; f < regions.n_features; ++f) {
    has_categories |= is_category(f);
    if (is_category(f)) continue;
    for (int i = 0; i < regions.n_half_spaces; ++i)
      scaled_[static_cast<std::size_t>(i) * regions.n_features + f] =
          regions.normal(i)[regions.first_column[f]] / regions.cost[f];
  }
  if (has_categories) gains_.resize(2 * scaled_.size());
}

void RowRegions::meet(const SearchRow& row, const Margin& margin) {
  row_ = row;
  margin_ = margin;
  find_scores();
  find_all();
  find_gains();
  all_.effects.resize(regions_.n_half_spaces);
  for (int i = 0; i < regions_.n_half_spaces; ++i) all_.effects[i] = effect(i, all_);
}

void RowRegions::find_scores() {
  scores_.resize(regions_.n_half_spaces);
  for (int i = 0; i < regions_.n_half_spaces; ++i)
    scores_[i] =
        regions_.bias[i] + dot_product(regions_.normal(i), row_.columns, regions_.n_columns);
}

void RowRegions::find_all() {
  all_.numbers.clear();
  all_.categories.clear();
  for (int f = 0; f < regions_.n_features; ++f) {
    if (std::isnan(row_.x[f])) continue;
    if (!is_category(f)) {
      if (row_.low[f] < row_.high[f]) all_.numbers.push_back(f);
      continue;
    }
    for (int level = 0; level < regions_.n_levels[f]; ++level)
      if (level != level_of(f) && may_become(f, level)) {
        all_.categories.push_back(f);
        break;
      }
  }
}

void RowRegions::find_gains() {
  for (const std::int32_t f : all_.categories)
    for (int i = 0; i < regions_.n_half_spaces; ++i) {
      double* most = gains_.data() + 2 * (static_cast<std::size_t>(i) * regions_.n_features + f);
      most[0] = most[1] = -kInfinity;
      for (int level = 0; level < regions_.n_levels[f]; ++level) {
        if (level == level_of(f) || !may_become(f, level)) continue;
        most[0] = std::max(most[0], gain(~i, f, level));
        most[1] = std::max(most[1], gain(i, f, level));
      }
    }
}

double RowRegions::gain(std::int32_t member, int category, int level) const {
  const double* weights = regions_.normal(half_space_of(member)) + regions_.first_column[category];
  return sign_of(member) * (weights[level] - weights[level_of(category)]);
}

double RowRegions::most_gain(std::int32_t member, int category) const {
  const std::size_t i = half_space_of(member);
  return gains_[2 * (i * regions_.n_features + category) + (member >= 0)];
}

Movable::Effect RowRegions::effect(int i, const Movable& movable) const {
  Movable::Effect effect;
  for (const std::int32_t f : movable.numbers) {
    const double size = std::fabs(by_u(i, f));
    if (size == 0.0) continue;
    effect.length += size * size;
    effect.largest = std::max(effect.largest, size);
    effect.is_continuous |= regions_.kind[f] == Regions::kContinuous;
    effect.is_any = true;
  }
  effect.length = std::sqrt(effect.length);
  for (const std::int32_t f : movable.categories) effect.is_any |= has_say(i, f);
  return effect;
}

void RowRegions::find_effects(int region, Movable& movable) const {
  movable.effects.resize(regions_.n_half_spaces);
  for (const std::int32_t member : regions_.members_of(region)) {
    const int i = half_space_of(member);
    movable.effects[i] = effect(i, movable);
  }
}

double RowRegions::required(std::int32_t member, const Movable& movable) const {
  const int i = half_space_of(member);
  const bool is_there = holds(member);
  const Movable::Effect& effect = movable.effects[i];
  if (!effect.is_any) return is_there ? -kInfinity : kInfinity;
  const double least = effect.is_continuous || margin_.everywhere ? margin_.width
                       : member >= 0                              ? -kExact
                                                                  : kExact;
  const double missing = least * regions_.sizes[i] - sign_of(member) * scores_[i];
  return is_there && !margin_.everywhere ? std::min(missing, 0.0) : missing;
}

double RowRegions::least_distance(int region, const Movable& movable, Norm norm) const {
  double distance = 0.0;
  for (const std::int32_t member : regions_.members_of(region)) {
    double missing = required(member, movable);
    if (missing <= 0.0) continue;
    for (const std::int32_t f : movable.categories) missing -= std::max(most_gain(member, f), 0.0);
    if (missing <= 0.0) continue;
    const Movable::Effect& effect = movable.effects[half_space_of(member)];
    const double reach = norm == Norm::kSum ? effect.largest : effect.length;
    if (reach == 0.0) return kInfinity;
    distance = std::max(distance, missing / reach);
  }
  return distance;
}

}  // namespace hardwood
