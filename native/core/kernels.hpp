// The kernels that are compiled once per instruction set, behind one table of functions.
//
// One binary runs on every machine of its architecture: the best instruction set of the machine is
// chosen at load time. The environment variable HARDWOOD_ISA (baseline, avx2, avx512) selects a
// smaller one, for tests and comparisons.
#pragma once

#include <string_view>
#include <vector>

#include "core/matrix.hpp"
#include "core/objective.hpp"
#include "explain/shapley/paths.hpp"
#include "learn/dgt/tile.hpp"
#include "learn/non_greedy/tile.hpp"
#include "learn/reinforced/tile.hpp"
#include "learn/semantic/tile.hpp"
#include "learn/tao/tile.hpp"
#include "table/encoding.hpp"
#include "tree/leaves.hpp"
#include "tree/policy_splits.hpp"
#include "tree/soft_tree.hpp"
#include "tree/splits.hpp"

namespace hardwood {

struct Kernels {
  const char* name;
  void (*gemm)(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);  // C = A B
  void (*gemm_transposed)(Matrix<const float> A, Matrix<const float> B,
                          Matrix<float> C);  // C = A^T B
  void (*transpose)(Matrix<const float> A, Matrix<float> B);
  void (*encode_rows)(const Encoding&, const Source&, const std::int64_t* rows, std::int64_t first,
                      int n, const EncodedRows& out, BadEntry&);
  void (*route)(const Encoding&, const Splits&, const Source&, std::int64_t first,
                std::int64_t last, const EncodedRows& scratch, std::int32_t* leaves, BadEntry&);
  void (*route_plain)(const Splits&, const EncodedRows&, int n, std::int32_t* leaves);
  void (*route_encoded)(const Splits&, const EncodedRows&, std::ptrdiff_t listed, int n,
                        std::int32_t* leaves);
  bool (*goes_right)(const Splits&, std::int32_t split, const float* x, const std::int32_t* active,
                     const std::int32_t* active_end);
  int (*change_value)(const float* weights, const Paths&, int n, const float* change,
                      Doubt* listed);
  void (*follow_rows)(const Splits&, const Paths&, const float* values, std::ptrdiff_t stride,
                      int n, const Doubt* doubts);
  void (*follow_row)(const Splits&, const Paths&, const float* x, const std::int32_t* active,
                     const std::int32_t* active_end, Doubt doubt);
  void (*answer)(const LinearLeaves&, const EncodedRows&, int n, const std::int32_t* leaf,
                 double* out);
  void (*policy_scores)(const PolicySplits&, std::int32_t node, const float* x,
                        const std::int32_t* active, const std::int32_t* active_end, float* out);
  void (*greedy_leaves)(const PolicySplits&, const EncodedRows&, int n, std::int32_t* leaves);
  void (*link_rows)(Link, std::int64_t n, int n_outputs, double* scores);
  double (*loss_and_gradient)(Loss, float parameter, const LossTile&, float factor);
  void (*optimize)(std::size_t n, float* w, const float* g, float* v, float* buf,
                   const StepOptions&);
  double (*squared_norm)(std::size_t n, const float* g);
  double (*dgt_tile)(const DgtShape&, const DgtForm&, const Parameters<float>&, DgtTile&, Loss,
                     float parameter, float factor, bool slope_given, bool first,
                     const Parameters<float>& gradient);
  void (*dgt_predict)(const DgtShape&, const DgtForm&, const Parameters<float>&, DgtTile&);
  void (*dgt_leaves)(const DgtShape&, const Parameters<float>&,
                     DgtTile&);  // from the leaves reached
  double (*semantic_tile)(const DgtShape&, const SemanticLeaves&, const Parameters<float>&,
                          SemanticTile&, Loss, float parameter, float factor, bool slope_given,
                          bool first, const Parameters<float>& gradient);
  void (*semantic_predict)(const DgtShape&, const SemanticLeaves&, const Parameters<float>&,
                           SemanticTile&);
  void (*soft_forward)(const SoftTrees<float>&, SoftTile<float>&);
  void (*soft_forward_double)(const SoftTrees<double>&, SoftTile<double>&);
  void (*soft_answer)(const SoftTrees<float, double>&, SoftTile<float, double>&);
  void (*tel_backward)(const SoftTrees<float>&, SoftTile<float>&, const SoftGradient<float>&);
  void (*tel_backward_double)(const SoftTrees<double>&, SoftTile<double>&,
                              const SoftGradient<double>&);
  AugmentedRow (*augment)(const LearnedTree&, const LeafLosses&, Inference, const float* x,
                          const float* y, std::int32_t assigned, const SearchMemory&,
                          SplitMove* moves);
  std::int32_t (*natural_leaf)(const LearnedTree&, std::int32_t node, const float* x);
  void (*add_leaf_slope)(const LearnedTree&, const LeafLosses&, std::int32_t leaf, const float* y,
                         float factor, float* slope);
  float (*leaf_loss)(const LearnedTree&, const LeafLosses&, std::int32_t leaf, const float* y);
  void (*class_losses)(Loss, int n_classes, const float* theta, float* losses);
  void (*add_class_slopes)(Loss, int n_classes, const float* theta, const float* losses,
                           const float* mass, float* slope);
  double (*move_split)(std::ptrdiff_t stride, const SplitStep&, int n, const float* const* rows,
                       const float* factors, const MovingSplit&);
  void (*policy_walk)(const LearnedPolicy&, const float* x, const WalkOptions&,
                      const float* uniform, Walk&);
  void (*policy_return)(const LearnedPolicy&, const WalkOptions&, float scale, Walk&);
  void (*policy_enumerate)(const LearnedPolicy&, const LeafLosses&, float entropy,
                           const PolicyLanes&);
  void (*policy_sample)(const LearnedPolicy&, const LeafLosses&, float entropy, const PolicyDraws&,
                        const PolicyLanes&);
  void (*uniform_lanes)(std::uint64_t seed, const std::uint64_t* stream, int n, float* out);
  void (*row_sums)(int n_rows, int n, const float* rows, std::ptrdiff_t stride, float* sums);
  std::int32_t (*greedy_leaf)(const LearnedPolicy&, const float* x);
  void (*add_scaled)(std::ptrdiff_t n, float factor, const float* row, float* sum);
  void (*score_rows)(const float* w, const TaoRows&, const std::int32_t* which, int n, float* out);
  void (*losses_below)(const LearnedTree&, const TaoLeaves&, std::int32_t node, const TaoRows&,
                       const std::int32_t* which, int n, float* scratch, float* out);
  double (*logistic_pass)(const LogisticRows&, const float* w, float b, float* g, double* slope);
};

// Number of rows that `route` encodes at a time, and the size of its scratch memory.
inline constexpr int kRouteRows = 8;

const Kernels& kernels();

// Names of the instruction sets of this machine, the best last.
std::vector<std::string_view> available_instruction_sets();

}  // namespace hardwood
