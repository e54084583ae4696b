// Regions where some half-spaces of the encoded columns hold, and what a row must change to enter one.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace hardwood {

enum class Norm { kLength, kSum, kCount };

// Features of the table, and regions; the same for all rows.
struct Regions {
  enum Kind : std::uint8_t { kContinuous, kWhole, kCategory };

  int n_features = 0;
  const std::uint8_t* kind = nullptr;          // (features,)
  const std::int32_t* first_column = nullptr;  // (features,)
  const std::int32_t* n_levels = nullptr;      // (features,) 0 for numbers
  const double* cost = nullptr;                // (features,) per unit, or of a change of level
  const std::uint8_t* may_become = nullptr;    // (columns,) levels that may be chosen
  int n_columns = 0;
  int n_half_spaces = 0;
  const double* normals = nullptr;      // (half-spaces, columns)
  const double* bias = nullptr;         // (half-spaces,) score = bias + normal . columns
  const double* sizes = nullptr;        // (half-spaces,) unit of the margin
  std::span<const std::int64_t> first;  // (regions + 1,)
  // Region r starts at first[r]: i where score i must be at least 0, ~i where it must be negative.
  const std::int32_t* members = nullptr;

  int size() const { return static_cast<int>(first.size()) - 1; }
  std::span<const std::int32_t> members_of(int region) const {
    return {members + first[region], members + first[region + 1]};
  }
  const double* normal(int i) const { return normals + static_cast<std::ptrdiff_t>(i) * n_columns; }
};

inline int half_space_of(std::int32_t member) {
  return member >= 0 ? member : ~member;
}

inline double sign_of(std::int32_t member) {
  return member >= 0 ? 1.0 : -1.0;
}

struct SearchRow {
  const double* x = nullptr;        // (features,) numbers and levels, NaN where missing
  const double* low = nullptr;      // (features,) bounds of numbers; low = high is fixed
  const double* high = nullptr;     // (features,)
  const double* columns = nullptr;  // (columns,) encoded, to multiply with the normals
  // (n_sides,) whether the model treats the first scores as at least 0; others by their sign.
  const std::uint8_t* sides = nullptr;
  int n_sides = 0;
};

struct Margin {
  double width = 0.0;       // in units of Regions::sizes
  bool everywhere = false;  // also where a row is already on the right side
};

// Features that may change, and their effects on the half-spaces.
struct Movable {
  struct Effect {
    double length = 0.0, largest = 0.0;  // of the normal by u, see RowRegions
    bool is_continuous = false;          // some continuous number has a weight
    bool is_any = false;                 // some feature has a weight
  };
  std::vector<std::int32_t> numbers, categories;
  std::vector<Effect> effects;  // (half-spaces,)
};

// The regions relative to a row. u_j is the change of number j times its cost.
class RowRegions {
 public:
  explicit RowRegions(const Regions& regions);

  void meet(const SearchRow& row, const Margin& margin);

  const Regions& regions() const { return regions_; }
  const SearchRow& row() const { return row_; }
  const Movable& all() const { return all_; }
  bool is_category(int feature) const { return regions_.kind[feature] == Regions::kCategory; }

  // The coefficient of u_j in score i.
  double by_u(int i, int feature) const {
    return scaled_[static_cast<std::size_t>(i) * regions_.n_features + feature];
  }
  double lowest_u(int feature) const {
    return (row_.low[feature] - row_.x[feature]) * regions_.cost[feature];
  }
  double highest_u(int feature) const {
    return (row_.high[feature] - row_.x[feature]) * regions_.cost[feature];
  }
  int level_of(int feature) const { return static_cast<int>(row_.x[feature]); }

  double score(int i) const { return scores_[i]; }
  // Whether a member's half-space holds according to the model.
  bool holds(std::int32_t member) const {
    const int i = half_space_of(member);
    return (i < row_.n_sides ? row_.sides[i] != 0 : scores_[i] >= 0.0) == (member >= 0);
  }

  // Computes the effects of the features of `movable` on the half-spaces of a region.
  void find_effects(int region, Movable& movable) const;
  // How much a member's score must increase in its direction; -infinity if it need not, and infinity
  // if it must but cannot.
  double required(std::int32_t member, const Movable& movable) const;
  // The gain of a member's score by a level of a category, and the largest gain by a new level.
  double gain(std::int32_t member, int category, int level) const;
  double most_gain(std::int32_t member, int category) const;
  // Whether another level would change the score.
  bool has_say(std::int32_t member, int category) const {
    return most_gain(member, category) > 0.0 || most_gain(~member, category) > 0.0;
  }
  bool may_become(int category, int level) const {
    return regions_.may_become[regions_.first_column[category] + level] != 0;
  }
  // A lower bound of the distance to a region, from each of its half-spaces alone.
  double least_distance(int region, const Movable& movable, Norm norm) const;

 private:
  void find_scores();
  void find_all();
  void find_gains();
  Movable::Effect effect(int i, const Movable& movable) const;

  const Regions& regions_;
  std::vector<double> scaled_;  // (half-spaces, features), 0 for categories
  SearchRow row_;
  std::vector<double> scores_;  // (half-spaces,)
  Margin margin_;
  Movable all_;
  // (half-spaces, features, 2) the most that a new level of a category that may change subtracts from
  // a score, and adds to it. Empty without categories.
  std::vector<double> gains_;
};

}  // namespace hardwood
