// Everything that is compiled once per instruction set, with HARDWOOD_ISA naming the set.
#include "core/kernels.hpp"

#include "core/gemm.hpp"
#include "core/loss.hpp"
#include "core/optimizer.hpp"
#include "explain/shapley/row_steps.hpp"
#include "learn/dgt/soft_step.hpp"
#include "learn/non_greedy/step.hpp"
#include "learn/reinforced/step.hpp"
#include "learn/semantic/step.hpp"
#include "learn/tao/step.hpp"
#include "learn/tel/step.hpp"
#include "table/encode.hpp"
#include "tree/answer.hpp"
#include "tree/policy.hpp"
#include "tree/route.hpp"

#define HARDWOOD_TEXT_OF(x) #x
#define HARDWOOD_TEXT(x) HARDWOOD_TEXT_OF(x)

namespace hardwood::HARDWOOD_ISA {

static_assert(kRouteRows == kRowsTogether);

extern const Kernels table;
const Kernels table = {
    HARDWOOD_TEXT(HARDWOOD_ISA),
    [](Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
      gemm(A, B, C, Start::kZero);
    },
    [](Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
      gemm_transposed(A, B, C, Start::kZero);
    },
    transpose,
    encode_rows,
    route,
    route_plain,
    route_encoded,
    goes_right,
    change_value,
    follow_rows,
    follow_row,
    answer,
    policy_scores,
    greedy_leaves,
    link_rows,
    loss_and_gradient,
    optimize,
    squared_norm,
    dgt_tile,
    dgt_predict,
    predict_leaves,
    semantic_tile,
    semantic_predict,
    soft_forward<float, float>,
    soft_forward<double, double>,
    soft_forward<float, double>,
    tel_backward<float>,
    tel_backward<double>,
    augment,
    natural_leaf,
    add_leaf_slope,
    leaf_loss,
    class_losses,
    add_class_slopes,
    move_split,
    policy_walk,
    policy_return,
    policy_enumerate,
    policy_sample,
    uniform_lanes,
    row_sums,
    greedy_leaf,
    add_scaled,
    score_rows,
    losses_below,
    logistic_pass,
};

}  // namespace hardwood::HARDWOOD_ISA
