// The tree, the walks and the options of a step of a reinforced tree; the maths is in step.hpp.
#pragma once

#include <cstdint>

#include "core/matrix.hpp"
#include "learn/non_greedy/tile.hpp"
#include "tree/policy_splits.hpp"

namespace hardwood {

// The baseline, which is subtracted from the cost of a trajectory.
enum class Baseline { kNone, kLeaveOneOut, kValue };

// Trajectories drawn from the policy, or the expectation over all of them.
enum class PolicyEstimator { kSampled, kExact };

// A tree, any number of branches at each node, and the parameters of its policies. The first branch
// of a node has the score 0, the others a row each: siblings' rows lie side by side.
struct LearnedPolicy {
  int n_nodes = 0;                      // T, parents before their children
  int n_rows = 0;                       // m
  int n_leaves = 0;                     // L
  int n_outputs = 0;                    // k
  const PolicyNode* nodes = nullptr;    // (T,)
  const std::int32_t* child = nullptr;  // (T - 1,)
  std::ptrdiff_t stride = 0;            // floats per row of W and of X, a multiple of 8
  const float* W = nullptr;             // (m, stride)
  const float* b = nullptr;             // (m,)
  const float* alpha = nullptr;         // (L, k) scores of the leaves
  float sharpness = 1;                  // 1 / temperature: pi = softmax(sharpness (W x + b))
};

// Trajectories of one row that reached the same node.
struct Visit {
  std::int32_t node = 0;
  std::int32_t branch = 0;        // of its parent, by which they came
  std::int32_t first = 0, n = 0;  // in Walk::sample
  std::int32_t pi_at = 0;         // where the probabilities of its branches begin
  std::int32_t below = 0;         // its children's visits begin here, and end where the next begin
  std::int32_t below_end = 0;
  float above = 0;    // what entropy has cost on the way here
  float entropy = 0;  // of its policy
  float cost = 0;     // sum over its trajectories of what they cost from here on
};

// All trajectories of one row. Visits are in order of depth.
struct Walk {
  std::int32_t n_visits = 0;
  Visit* visit = nullptr;  // (room for visits)
  float* pi = nullptr;  // (room for branches) then: derivative of the cost by the branches' scores
  std::int32_t* sample = nullptr;  // (M,) numbers of trajectories, those of a visit side by side
  std::int32_t* spare = nullptr;   // (M,)
};

struct WalkOptions {
  int n_samples = 1;  // M
  Baseline baseline = Baseline::kNone;
  float entropy = 0;  // what one nat of a policy's entropy is worth
  // Of Baseline::kValue, for the row's target: expected cost from node t on, at value[t value_step].
  const float* value = nullptr;
  std::ptrdiff_t value_step = 0;
};

inline constexpr int kPolicyLanes = 16;

// Sixteen rows, side by side, for which all nodes are scored.
struct PolicyLanes {
  float* score = nullptr;         // (m, stride) of these rows; then the cost's derivative by it
  std::ptrdiff_t stride = 0;      // also of mass
  const float* target = nullptr;  // (t, target_stride)
  std::ptrdiff_t target_stride = 0;
  const float* scale = nullptr;  // (16,) what each row's derivatives are multiplied by
  float* pi = nullptr;           // (T, 16) scratch: of the branch to each node
  float* cost = nullptr;         // (T, 16) scratch; of trajectories: what they cost from a node on
  float* reach = nullptr;        // (T, 16) scratch; of trajectories: how many came to a node
  float* mass = nullptr;         // (L, stride) scale times the probability of each leaf, if exact
  float* loss = nullptr;         // (16,) expected, or mean, loss
};

// Trajectories of sixteen rows.
struct PolicyDraws {
  int n_samples = 1;  // M
  Baseline baseline = Baseline::kNone;
  const float* uniform = nullptr;  // (depth, M, 16)
  const float* y = nullptr;        // (16, t) targets
  int n_targets = 1;
  // Of Baseline::kValue: at value[l][t value_step], as WalkOptions has it.
  const float* value[kPolicyLanes] = {};
  std::ptrdiff_t value_step = 0;
  int max_depth = 0;
  std::int32_t* leaf = nullptr;  // (M, 16) where they end, to be found
  std::int32_t* end = nullptr;   // (M, 16) scratch: the same as nodes
  float* drawn = nullptr;        // (M, 16) scratch: losses
  float* bonus = nullptr;        // (M, 16) scratch: what entropy was worth on the way
  float* advantage = nullptr;    // (T, 16) scratch: sums over those that came to a node
  float* entropy = nullptr;      // (T, 16) scratch: of policies
};

}  // namespace hardwood
