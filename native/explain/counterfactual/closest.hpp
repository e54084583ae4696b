// The point of a polyhedron that is closest to the origin: by length, or by the sum of absolute
// values. Both solvers start at the origin, add violated conditions one by one, and have a lower bound
// of the distance in every step, so that a search can stop them.
#pragma once

#include <cstdint>
#include <vector>

namespace hardwood {

// {u: normals u >= least, low <= u <= high}; bounds may be infinite.
struct Polyhedron {
  int n = 0;                        // coordinates
  int h = 0;                        // half-spaces
  const double* normals = nullptr;  // (h, n), each of length 1
  const double* least = nullptr;    // (h,)
  const double* low = nullptr;      // (n,)
  const double* high = nullptr;     // (n,)
};

enum class Outcome {
  kFound,
  kEmpty,   // no such point
  kTooFar,  // every such point is at least `cutoff` away
  kLost,    // rounding errors prevent a result; seen only in artificial cases
};

// The point of least length, by the dual active set method: D. Goldfarb, A. Idnani, "A numerically
// stable dual method for solving strictly convex quadratic programs", Mathematical Programming 27,
// 1983, with the identity as Hessian.
class LeastLength {
 public:
  // Writes the point to u, (n,).
  Outcome solve(const Polyhedron& polyhedron, double cutoff, double* u);

 private:
  // Conditions are numbered: half-spaces, then lower bounds, then upper bounds.
  int most_violated() const;
  double violation(int condition) const;
  void load_normal(int condition);
  Outcome take(int condition);
  void split_normal();
  int blocking(double& step) const;
  void append(int condition, double length, double multiplier);
  void drop(int place);
  double* basis(int k) { return basis_.data() + static_cast<std::ptrdiff_t>(k) * p_.n; }
  double& factor(int row, int column) {
    return factor_[static_cast<std::ptrdiff_t>(column) * (column + 1) / 2 + row];
  }

  Polyhedron p_;
  double* u_ = nullptr;
  double length_ = 0.0;
  std::vector<std::int32_t> active_;     // (q,) conditions that hold with equality
  std::vector<char> is_active_;          // (conditions,)
  std::vector<double> multipliers_;      // (q,)
  std::vector<double> basis_;            // (q, n) orthonormal, of the active normals
  std::vector<double> factor_;           // upper triangle by columns: normals = factor^T basis
  std::vector<double> normal_, rest_;    // (n,) of the condition to add; its part outside the basis
  std::vector<double> inside_, change_;  // (q,) its part inside; change of multipliers per step
};

// The point with the smallest sum of absolute values, by the dual simplex method with bounded
// variables on a dense dictionary. It changes at most as many coordinates as there are half-spaces.
class LeastSum {
 public:
  Outcome solve(const Polyhedron& polyhedron, double cutoff, double* u);

 private:
  // Variables: positive parts of u (n), negative parts (n), and slacks of half-spaces (h).
  struct Bounds {
    double low, high;
  };
  struct Candidate {
    double ratio, pull;  // where its reduced cost is zero; its effect on the row
    std::int32_t column;
  };
  // The order of a heap with the smallest ratio on top, and among equal ones the largest pull.
  static bool is_later(const Candidate& a, const Candidate& b) {
    return a.ratio != b.ratio ? a.ratio > b.ratio : a.pull < b.pull;
  }
  void start();
  int leaving(bool by_number, bool& rises) const;
  double rounding(int v, bool is_low, double sum) const;
  int entering(int row, bool rises, bool by_number);
  int first_by_number() const;
  void cross(int column);
  void exchange(int row, int column, double target);
  double total() const;
  double& cell(int row, int column) {
    return cells_[static_cast<std::size_t>(row) * n_columns_ + column];
  }
  double cell(int row, int column) const {
    return cells_[static_cast<std::size_t>(row) * n_columns_ + column];
  }

  Polyhedron p_;
  int n_columns_ = 0;
  std::vector<Bounds> bounds_;         // (variables,)
  std::vector<double> values_;         // (variables,)
  std::vector<std::int32_t> basic_;    // (h,) the variable of each row
  std::vector<std::int32_t> outside_;  // (columns,) the variable of each column, at a bound
  std::vector<char> is_high_;          // (columns,) whether at the upper bound
  std::vector<double> cells_;          // (h, columns) basic variables as functions of the others
  std::vector<double> costs_;          // (columns,)
  std::vector<Candidate> candidates_;
  std::vector<std::int32_t> passed_;  // columns
};

}  // namespace hardwood
