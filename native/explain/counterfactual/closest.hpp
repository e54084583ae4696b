// The point of a polyhedron that is closest to the origin: of least length, or with the least sum of
// sizes. Both solvers start at the origin, take in violated conditions one by one, and know in every
// step a lower bound of the answer, so that a search may call them off.
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
  kLost,    // rounding errors keep the solver from an end; not seen outside of made-up cases
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
  std::vector<double> normal_, rest_;    // (n,) of the condition to take in; its part outside
  std::vector<double> inside_, change_;  // (q,) its part inside; change of multipliers per step
};

// The point with the least sum of sizes, by the dual simplex method with bounded variables on a dense
// dictionary. It moves few coordinates: no more than there are half-spaces.
class LeastSum {
 public:
  Outcome solve(const Polyhedron& polyhedron, double cutoff, double* u);

 private:
  // Variables: the parts of u above zero (n), those below (n), and what half-spaces have to spare (h).
  struct Bounds {
    double low, high;
  };
  struct Candidate {
    double ratio, pull;  // when its reduced cost is zero; what it does for the row
    std::int32_t column;
  };
  // The order of a heap with the least ratio on top, and of equal ones the strongest.
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
  std::vector<char> is_high_;          // (columns,) which bound
  std::vector<double> cells_;          // (h, columns) basic variables by the others
  std::vector<double> costs_;          // (columns,)
  std::vector<Candidate> candidates_;
  std::vector<std::int32_t> passed_;  // columns
};

}  // namespace hardwood
