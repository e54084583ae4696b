#include "explain/counterfactual/closest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "explain/counterfactual/dot.hpp"

namespace hardwood {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-11;  // violations below this, relative to their terms, are ignored
constexpr double kParallel = 1e-9;   // sine of the angle below which normals count as dependent
constexpr double kSmallest = 1e-11;  // smallest coefficient to divide by

void add(double* to, double factor, const double* from, int n) {
  for (int j = 0; j < n; ++j) to[j] += factor * from[j];
}

}  // namespace

// Smallest length

Outcome LeastLength::solve(const Polyhedron& polyhedron, double cutoff, double* u) {
  p_ = polyhedron;
  u_ = u;
  length_ = 0.0;
  const int n_conditions = p_.h + 2 * p_.n;
  active_.clear();
  multipliers_.clear();
  basis_.clear();
  factor_.clear();
  is_active_.assign(n_conditions, 0);
  normal_.resize(p_.n);
  rest_.resize(p_.n);
  std::fill_n(u, p_.n, 0.0);
  for (int step = 0; step < 20 * (n_conditions + 10); ++step) {
    const int condition = most_violated();
    if (condition < 0) return Outcome::kFound;
    const Outcome outcome = take(condition);
    if (outcome != Outcome::kFound) return outcome;
    length_ = std::sqrt(dot_product(u, u, p_.n));
    if (length_ >= cutoff) return Outcome::kTooFar;
  }
  return Outcome::kLost;
}

int LeastLength::most_violated() const {
  int worst = -1;
  double most = 0.0;
  const auto consider = [&](int condition, double by, double size) {
    if (by <= kRounding * (size + length_) || by <= most || is_active_[condition]) return;
    most = by;
    worst = condition;
  };
  for (int i = 0; i < p_.h; ++i)
    consider(
        i, p_.least[i] - dot_product(p_.normals + static_cast<std::ptrdiff_t>(i) * p_.n, u_, p_.n),
        std::fabs(p_.least[i]));
  for (int j = 0; j < p_.n; ++j) {
    if (u_[j] < p_.low[j]) consider(p_.h + j, p_.low[j] - u_[j], std::fabs(p_.low[j]));
    if (u_[j] > p_.high[j]) consider(p_.h + p_.n + j, u_[j] - p_.high[j], std::fabs(p_.high[j]));
  }
  return worst;
}

double LeastLength::violation(int condition) const {
  if (condition < p_.h) return p_.least[condition] - dot_product(normal_.data(), u_, p_.n);
  const int j = condition - p_.h;
  return j < p_.n ? p_.low[j] - u_[j] : u_[j - p_.n] - p_.high[j - p_.n];
}

void LeastLength::load_normal(int condition) {
  if (condition < p_.h) {
    std::copy_n(p_.normals + static_cast<std::ptrdiff_t>(condition) * p_.n, p_.n, normal_.data());
    return;
  }
  const int j = condition - p_.h;
  std::fill(normal_.begin(), normal_.end(), 0.0);
  normal_[j % p_.n] = j < p_.n ? 1.0 : -1.0;
}

// Steps until the condition holds, dropping active conditions that block it.
Outcome LeastLength::take(int condition) {
  load_normal(condition);
  double multiplier = 0.0;
  for (;;) {
    split_normal();
    const double length = std::sqrt(dot_product(rest_.data(), rest_.data(), p_.n));
    const bool depends = length <= kParallel;
    double partial = kInfinity;
    const int place = blocking(partial);
    const double full =
        depends ? kInfinity : std::max(violation(condition), 0.0) / (length * length);
    const double step = std::min(partial, full);
    if (step == kInfinity) return Outcome::kEmpty;
    for (std::size_t k = 0; k < active_.size(); ++k) multipliers_[k] -= step * change_[k];
    multiplier += step;
    if (!depends) add(u_, step, rest_.data(), p_.n);
    if (full <= partial) {
      append(condition, length, multiplier);
      return Outcome::kFound;
    }
    drop(place);
  }
}

// normal = basis^T inside + rest, orthogonalized twice; change = factor^-1 inside.
void LeastLength::split_normal() {
  const int q = static_cast<int>(active_.size());
  inside_.assign(q, 0.0);
  rest_ = normal_;
  for (int turn = 0; turn < 2; ++turn)
    for (int k = 0; k < q; ++k) {
      const double part = dot_product(basis(k), rest_.data(), p_.n);
      inside_[k] += part;
      add(rest_.data(), -part, basis(k), p_.n);
    }
  change_ = inside_;
  for (int k = q - 1; k >= 0; --k) {
    change_[k] /= factor(k, k);
    for (int i = 0; i < k; ++i) change_[i] -= factor(i, k) * change_[k];
  }
}

// The active condition whose multiplier reaches zero first, and the step at which it does.
int LeastLength::blocking(double& step) const {
  int place = -1;
  for (std::size_t k = 0; k < active_.size(); ++k) {
    if (change_[k] <= kSmallest) continue;
    const double to_zero = std::max(multipliers_[k], 0.0) / change_[k];
    if (to_zero < step) {
      step = to_zero;
      place = static_cast<int>(k);
    }
  }
  return place;
}

void LeastLength::append(int condition, double length, double multiplier) {
  const int q = static_cast<int>(active_.size());
  basis_.resize(static_cast<std::size_t>(q + 1) * p_.n);
  for (int j = 0; j < p_.n; ++j) basis(q)[j] = rest_[j] / length;
  factor_.insert(factor_.end(), inside_.begin(), inside_.end());
  factor_.push_back(length);
  active_.push_back(condition);
  multipliers_.push_back(multiplier);
  is_active_[condition] = 1;
}

// Drops an active condition. Rotations make the factor without its column triangular again, and are
// applied to the basis, too.
void LeastLength::drop(int place) {
  const int q = static_cast<int>(active_.size());
  is_active_[active_[place]] = 0;
  active_.erase(active_.begin() + place);
  multipliers_.erase(multipliers_.begin() + place);
  for (int k = place; k + 1 < q; ++k) {
    // Column k + 1 has an element below the diagonal of its new place k: rotate it into the one above.
    const double above = factor(k, k + 1), below = factor(k + 1, k + 1);
    const double radius = std::hypot(above, below), c = above / radius, s = below / radius;
    for (int column = k + 1; column < q; ++column) {
      const double a = factor(k, column), b = factor(k + 1, column);
      factor(k, column) = c * a + s * b;
      factor(k + 1, column) = c * b - s * a;
    }
    double *a = basis(k), *b = basis(k + 1);
    for (int j = 0; j < p_.n; ++j) {
      const double first = a[j], second = b[j];
      a[j] = c * first + s * second;
      b[j] = c * second - s * first;
    }
    for (int row = 0; row <= k; ++row) factor(row, k) = factor(row, k + 1);
  }
  factor_.resize(static_cast<std::size_t>(q) * (q - 1) / 2);
  basis_.resize(static_cast<std::size_t>(q - 1) * p_.n);
}

// Smallest sum

Outcome LeastSum::solve(const Polyhedron& polyhedron, double cutoff, double* u) {
  p_ = polyhedron;
  for (int j = 0; j < p_.n; ++j)
    if (p_.low[j] > p_.high[j]) return Outcome::kEmpty;
  start();
  const int patience = 10 * (p_.h + p_.n + 10);
  for (int step = 0; step < 20 * patience; ++step) {
    // Choosing by number (Bland's rule) prevents cycles.
    const bool by_number = step > patience;
    bool rises = false;
    const int row = leaving(by_number, rises);
    if (row < 0) {
      for (int j = 0; j < p_.n; ++j) u[j] = values_[j] - values_[p_.n + j];
      return Outcome::kFound;
    }
    const int column = entering(row, rises, by_number);
    if (column < 0) return Outcome::kEmpty;
    const Bounds& bounds = bounds_[basic_[row]];
    exchange(row, column, rises ? bounds.low : bounds.high);
    if (total() >= cutoff) return Outcome::kTooFar;
  }
  return Outcome::kLost;
}

void LeastSum::start() {
  const int n = p_.n, h = p_.h;
  n_columns_ = 2 * n;
  bounds_.resize(2 * n + h);
  values_.assign(2 * n + h, 0.0);
  basic_.resize(h);
  outside_.resize(n_columns_);
  is_high_.assign(n_columns_, 0);
  costs_.assign(n_columns_, 1.0);
  cells_.resize(static_cast<std::size_t>(h) * n_columns_);
  for (int j = 0; j < n; ++j) {
    bounds_[j] = {std::max(p_.low[j], 0.0), std::max(p_.high[j], 0.0)};
    bounds_[n + j] = {std::max(-p_.high[j], 0.0), std::max(-p_.low[j], 0.0)};
  }
  for (int v = 0; v < n_columns_; ++v) {
    outside_[v] = v;
    values_[v] = bounds_[v].low;
  }
  for (int i = 0; i < h; ++i) {
    const double* normal = p_.normals + static_cast<std::ptrdiff_t>(i) * n;
    double value = -p_.least[i];
    for (int j = 0; j < n; ++j) {
      cell(i, j) = normal[j];
      cell(i, n + j) = -normal[j];
      value += normal[j] * (values_[j] - values_[n + j]);
    }
    basic_[i] = 2 * n + i;
    bounds_[2 * n + i] = {0.0, kInfinity};
    values_[2 * n + i] = value;
  }
}

// The basic variable farthest beyond a bound, or the first one beyond a bound; -1 if there is none.
int LeastSum::leaving(bool by_number, bool& rises) const {
  const double sum = total();
  int chosen = -1;
  double most = 0.0;
  for (int i = 0; i < p_.h; ++i) {
    const int v = basic_[i];
    const double below = bounds_[v].low - values_[v], above = values_[v] - bounds_[v].high;
    const double by = std::max(below, above);
    if (by <= rounding(v, below > above, sum)) continue;
    if (by_number ? chosen < 0 || v < basic_[chosen] : by > most) {
      most = by;
      chosen = i;
      rises = below > above;
    }
  }
  return chosen;
}

// How far beyond a bound a variable can be by rounding errors.
double LeastSum::rounding(int v, bool is_low, double sum) const {
  const double size = v >= n_columns_ ? p_.least[v - n_columns_]
                      : is_low        ? bounds_[v].low
                                      : bounds_[v].high;
  return kRounding * (std::fabs(size) + sum);
}

// The variable to enter for that of a row; -1 if none can help the row enough. Variables are visited
// in the order in which their reduced costs reach zero. A variable that cannot cover the row's
// shortage, even from bound to bound, is moved to its other bound, which keeps the costs on the right
// side.
int LeastSum::entering(int row, bool rises, bool by_number) {
  candidates_.clear();
  for (int j = 0; j < n_columns_; ++j) {
    const Bounds& bounds = bounds_[outside_[j]];
    const double pull = (is_high_[j] != 0) == rises ? -cell(row, j) : cell(row, j);
    if (pull <= kSmallest || bounds.low == bounds.high) continue;
    candidates_.push_back({std::fabs(costs_[j]) / pull, pull, j});
  }
  if (by_number) return first_by_number();
  std::make_heap(candidates_.begin(), candidates_.end(), is_later);
  const Bounds& goal = bounds_[basic_[row]];
  double short_of = rises ? goal.low - values_[basic_[row]] : values_[basic_[row]] - goal.high;
  const double reached = rounding(basic_[row], rises, total());
  passed_.clear();
  while (!candidates_.empty()) {
    const Candidate next = candidates_.front();
    const Bounds& bounds = bounds_[outside_[next.column]];
    short_of -= next.pull * (bounds.high - bounds.low);
    if (short_of <= reached) {
      for (const std::int32_t column : passed_) cross(column);
      return next.column;
    }
    passed_.push_back(next.column);
    std::pop_heap(candidates_.begin(), candidates_.end(), is_later);
    candidates_.pop_back();
  }
  return -1;
}

int LeastSum::first_by_number() const {
  const Candidate* first = nullptr;
  for (const Candidate& one : candidates_) {
    const bool is_tie = first && std::fabs(one.ratio - first->ratio) <= 1e-12 * (1.0 + one.ratio);
    if (!first ||
        (is_tie ? outside_[one.column] < outside_[first->column] : one.ratio < first->ratio))
      first = &one;
  }
  return first ? first->column : -1;
}

// Moves a variable from its bound to the other.
void LeastSum::cross(int column) {
  const int v = outside_[column];
  const double to = is_high_[column] ? bounds_[v].low : bounds_[v].high, change = to - values_[v];
  for (int i = 0; i < p_.h; ++i) values_[basic_[i]] += cell(i, column) * change;
  values_[v] = to;
  is_high_[column] = !is_high_[column];
}

// The basic variable of a row goes to a bound, and the variable of a column takes its place.
void LeastSum::exchange(int row, int column, double target) {
  const int out = basic_[row], in = outside_[column];
  const double pivot = cell(row, column), change = (target - values_[out]) / pivot;
  for (int i = 0; i < p_.h; ++i)
    if (i != row) values_[basic_[i]] += cell(i, column) * change;
  values_[in] += change;
  values_[out] = target;
  double* pivots = cells_.data() + static_cast<std::size_t>(row) * n_columns_;
  for (int j = 0; j < n_columns_; ++j) pivots[j] = j == column ? 1.0 / pivot : -pivots[j] / pivot;
  const auto substitute = [&](double* to) {
    const double factor = to[column];
    to[column] = 0.0;
    if (factor != 0.0) add(to, factor, pivots, n_columns_);
  };
  for (int i = 0; i < p_.h; ++i)
    if (i != row) substitute(cells_.data() + static_cast<std::size_t>(i) * n_columns_);
  substitute(costs_.data());
  basic_[row] = in;
  outside_[column] = out;
  is_high_[column] = target == bounds_[out].high && bounds_[out].low < bounds_[out].high;
}

double LeastSum::total() const {
  double sum = 0.0;
  for (int v = 0; v < n_columns_; ++v) sum += values_[v];
  return sum;
}

}  // namespace hardwood
