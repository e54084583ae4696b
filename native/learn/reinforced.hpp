// Reinforced trees, for one row or sixteen. Compiled for each instruction set.
//
// Leon, Denoyer. Policy-gradient Methods for Decision Trees. ESANN 2016.
//
// A row goes from node to node by chance, with probabilities that a soft-max makes of linear scores.
// The derivative of its expected loss is estimated from M trajectories (Sec. 2.3):
//     1/M sum_h sum_j  d log pi(n_j -> n_j+1) (loss_h - baseline)  +  d loss_h
// Trajectories that meet at a node share its scores, and what they say of them is added up before
// it is multiplied by the row: a node that n of the M visit, with costs G_h, moves the score of way
// c by  sum_h (G_h - baseline) (1[h takes c] - pi_c). Costs run from the leaves upwards, so that one
// pass down and one pass up is all there is.
//
// Twin: reference/reinforced.py. What other code calls is ReinforcedLearner.
#pragma once

#include "learn/leaf_losses.hpp"
#include "learn/reinforced_tile.hpp"

namespace hardwood::HARDWOOD_ISA {

// Below this a probability is as good as none, and its logarithm is still a number.
inline constexpr float kLeastProbability = 1e-30f;

// pi of the ways of a node: exact zeros only where exp underflows.
HARDWOOD_INLINE void way_probabilities(const LearnedPolicy& tree, const PolicyNode& node,
                                       const float* x, float* pi) {
  float top = 0, sum = 0;
  pi[0] = 0;
  for (int c = 1; c < node.n_children; ++c) {
    const std::ptrdiff_t row = node.first_row + c - 1;
    pi[c] = tree.sharpness * (padded_dot(tree.W + row * tree.stride, x, tree.stride) + tree.b[row]);
    top = max_of(top, pi[c]);
  }
  for (int c = 0; c < node.n_children; ++c) sum += pi[c] = exponential(pi[c] - top);
  for (int c = 0; c < node.n_children; ++c) pi[c] /= sum;
}

HARDWOOD_INLINE float entropy_of(int n, const float* pi) {
  float sum = 0;
  for (int c = 0; c < n; ++c) sum -= pi[c] * __builtin_logf(max_of(pi[c], kLeastProbability));
  return sum;
}

// The way that a uniform number in [0, 1) stands for.
HARDWOOD_INLINE int drawn_way(int n, const float* pi, float u) {
  float sum = pi[0];
  int c = 0;
  while (u >= sum && c + 1 < n) sum += pi[++c];
  return c;
}

// Sends the trajectories of a visit down and adds the visits of the children that get some.
HARDWOOD_INLINE void part_ways(const LearnedPolicy& tree, const PolicyNode& node, const float* u,
                               Walk& walk, Visit& from, float entropy_price) {
  const float* pi = walk.pi + from.pi_at;
  std::int32_t* here = walk.sample + from.first;
  from.below = walk.n_visits;
  int n_sent = 0;
  for (int c = 0; c < node.n_children && n_sent < from.n; ++c) {
    int n_here = 0, n_left = 0;
    for (int s = n_sent; s < from.n; ++s) {  // a stable partition: those of way c first
      const std::int32_t sample = here[s];
      if (drawn_way(node.n_children, pi, u[sample]) == c)
        here[n_sent + n_here++] = sample;
      else
        walk.spare[n_left++] = sample;
    }
    for (int s = 0; s < n_left; ++s) here[n_sent + n_here + s] = walk.spare[s];
    if (n_here == 0) continue;
    Visit& to = walk.visit[walk.n_visits++];
    to = {};
    to.node = tree.child[node.first_child + c];
    to.way = c;
    to.first = from.first + n_sent;
    to.n = n_here;
    to.above = from.above - entropy_price * from.entropy;
    n_sent += n_here;
  }
  from.below_end = walk.n_visits;
}

// Down: M trajectories of a row. `uniform` (depth, M) draws them.
inline void policy_walk(const LearnedPolicy& tree, const float* x, const WalkOptions& o,
                        const float* uniform, Walk& walk) {
  for (int s = 0; s < o.n_samples; ++s) walk.sample[s] = s;
  walk.visit[0] = {};
  walk.visit[0].n = o.n_samples;
  walk.n_visits = 1;
  int pi_at = 0, depth_end = 1;
  for (int v = 0; v < walk.n_visits; ++v) {
    if (v == depth_end) {  // visits are in order of depth: the next depth begins here
      uniform += o.n_samples;
      depth_end = walk.n_visits;
    }
    Visit& visit = walk.visit[v];
    const PolicyNode& node = tree.nodes[visit.node];
    visit.pi_at = pi_at;
    if (node.n_children == 0) continue;
    way_probabilities(tree, node, x, walk.pi + pi_at);
    if (o.entropy > 0) visit.entropy = entropy_of(node.n_children, walk.pi + pi_at);
    pi_at += node.n_children;
    part_ways(tree, node, uniform, walk, visit, o.entropy);
  }
}

// What is held against the ways of a node: the sum over trajectories that took way c of their cost
// less the baseline.
HARDWOOD_INLINE float advantage(const WalkOptions& o, const Walk& walk, const Visit& at,
                                const Visit& below) {
  const float n = static_cast<float>(below.n);
  switch (o.baseline) {
    case Baseline::kNone:
      break;
    case Baseline::kLeaveOneOut: {
      // R_h - mean of the others' R = (M R_h - sum of all) / (M - 1), R the cost from the root on.
      const float M = static_cast<float>(o.n_samples);
      return (M * (below.cost + n * below.above) - n * walk.visit[0].cost) / (M - 1.0f);
    }
    case Baseline::kValue:
      return below.cost - n * o.value[at.node * o.value_step];
  }
  return below.cost;
}

// Up: from the costs of the leaves' visits to those of all, and from pi to the derivative of the
// summed cost by the scores of the ways, `scale` times.
inline void policy_return(const LearnedPolicy& tree, const WalkOptions& o, float scale,
                          Walk& walk) {
  for (int v = walk.n_visits - 1; v >= 0; --v) {
    Visit& at = walk.visit[v];
    if (at.below_end == at.below) continue;  // a leaf
    for (int w = at.below; w < at.below_end; ++w) at.cost += walk.visit[w].cost;
    at.cost -= o.entropy * at.entropy * static_cast<float>(at.n);
  }
  for (int v = 0; v < walk.n_visits; ++v) {
    const Visit& at = walk.visit[v];
    if (at.below_end == at.below) continue;
    float* pi = walk.pi + at.pi_at;
    float sum = 0;
    for (int w = at.below; w < at.below_end; ++w) sum += advantage(o, walk, at, walk.visit[w]);
    const int n_ways = tree.nodes[at.node].n_children;
    const float bonus = o.entropy * static_cast<float>(at.n);
    for (int c = 0; c < n_ways; ++c) {  // of the trajectories: -pi_c sum; of the entropy: its slope
      const float p = pi[c];
      pi[c] = -p * sum;
      if (bonus > 0)
        pi[c] += bonus * p * (__builtin_logf(max_of(p, kLeastProbability)) + at.entropy);
    }
    for (int w = at.below; w < at.below_end; ++w)
      pi[walk.visit[w].way] += advantage(o, walk, at, walk.visit[w]);
    for (int c = 0; c < n_ways; ++c) pi[c] *= scale * tree.sharpness;
  }
}

// sum += factor row
inline void add_scaled(std::ptrdiff_t n, float factor, const float* __restrict row,
                       float* __restrict sum) {
  for (std::ptrdiff_t j = 0; j < n; j += 8)
    store<8>(sum + j, load<8>(sum + j) + broadcast<8>(factor) * load<8>(row + j));
}

// The leaf at the end of the likeliest way at every node; of equal ways the last, as a split goes
// right at 0.
inline std::int32_t greedy_leaf(const LearnedPolicy& tree, const float* x) {
  const PolicyNode* node = tree.nodes;
  while (node->n_children > 0) {
    float top = 0;
    int chosen = 0;
    for (int c = 1; c < node->n_children; ++c) {
      const std::ptrdiff_t row = node->first_row + c - 1;
      const float score = padded_dot(tree.W + row * tree.stride, x, tree.stride) + tree.b[row];
      if (score >= top) {
        top = score;
        chosen = c;
      }
    }
    node = tree.nodes + tree.child[node->first_child + chosen];
  }
  return node->leaf;
}

// --- all trajectories ---------------------------------------------------------------------------

inline constexpr int kPolicyLanes = 16;

// Probabilities of the ways of a node and of its children, for sixteen rows.
HARDWOOD_INLINE void spread_lanes(const LearnedPolicy& tree, int t, const PolicyLanes& lanes) {
  const PolicyNode& node = tree.nodes[t];
  const std::int32_t* child = tree.child + node.first_child;
  float top[kPolicyLanes] = {}, sum[kPolicyLanes] = {};
  for (int c = 1; c < node.n_children; ++c) {
    const std::ptrdiff_t row = node.first_row + c - 1;
    float* s = lanes.score + row * lanes.stride;
    for (int l = 0; l < kPolicyLanes; ++l) {
      s[l] = tree.sharpness * (s[l] + tree.b[row]);
      top[l] = max_of(top[l], s[l]);
    }
  }
  for (int c = 0; c < node.n_children; ++c) {
    float* pi = lanes.pi + static_cast<std::ptrdiff_t>(child[c]) * kPolicyLanes;
    const float* s = lanes.score + (node.first_row + c - 1) * lanes.stride;
    for (int l = 0; l < kPolicyLanes; ++l) {
      pi[l] = exponential((c > 0 ? s[l] : 0.0f) - top[l]);
      sum[l] += pi[l];
    }
  }
  const float* reach = lanes.reach + static_cast<std::ptrdiff_t>(t) * kPolicyLanes;
  for (int c = 0; c < node.n_children; ++c) {
    float* pi = lanes.pi + static_cast<std::ptrdiff_t>(child[c]) * kPolicyLanes;
    float* to = lanes.reach + static_cast<std::ptrdiff_t>(child[c]) * kPolicyLanes;
    for (int l = 0; l < kPolicyLanes; ++l) {
      pi[l] /= sum[l];
      to[l] = reach[l] * pi[l];
    }
  }
}

// Cost of a leaf for sixteen rows, and what it adds to their expected losses.
HARDWOOD_INLINE void leaf_lanes(const LearnedPolicy& tree, const LeafLosses& losses, int t,
                                const PolicyLanes& lanes) {
  const int leaf = tree.nodes[t].leaf, k = losses.n_outputs;
  float* cost = lanes.cost + static_cast<std::ptrdiff_t>(t) * kPolicyLanes;
  if (losses.table) {
    const float* of_class = losses.table + static_cast<std::ptrdiff_t>(leaf) * k;
    for (int l = 0; l < kPolicyLanes; ++l) cost[l] = of_class[static_cast<int>(lanes.target[l])];
  } else {
    const float* alpha = tree.alpha + static_cast<std::ptrdiff_t>(leaf) * k;
    with_elementwise(losses.loss, losses.parameter, [&](auto&& of) {
      float sum[kPolicyLanes] = {};
      for (int o = 0; o < k; ++o)
        for (int l = 0; l < kPolicyLanes; ++l)
          sum[l] += of(alpha[o], lanes.target[o * lanes.stride + l]).value;
      for (int l = 0; l < kPolicyLanes; ++l) cost[l] = sum[l] / static_cast<float>(k);
      return 0.0;
    });
  }
  const float* reach = lanes.reach + static_cast<std::ptrdiff_t>(t) * kPolicyLanes;
  float* mass = lanes.mass + leaf * lanes.stride;
  for (int l = 0; l < kPolicyLanes; ++l) {
    lanes.loss[l] += reach[l] * cost[l];
    mass[l] = lanes.scale[l] * reach[l];
  }
}

// Expected cost from a node on, and the derivative by the scores of its ways:
//     d / d s_c = P(node) pi_c (A_c - sum_j pi_j A_j),   A_c = Q(child c) + entropy log pi_c
HARDWOOD_INLINE void gather_lanes(const LearnedPolicy& tree, float entropy, int t,
                                  const PolicyLanes& lanes) {
  const PolicyNode& node = tree.nodes[t];
  const std::int32_t* child = tree.child + node.first_child;
  const auto of = [&](float* array, std::int32_t at) {
    return array + static_cast<std::ptrdiff_t>(at) * kPolicyLanes;
  };
  float mean[kPolicyLanes] = {};
  for (int c = 0; c < node.n_children; ++c) {
    float *cost = of(lanes.cost, child[c]), *pi = of(lanes.pi, child[c]);
    if (entropy > 0)
      for (int l = 0; l < kPolicyLanes; ++l)
        cost[l] += entropy * __builtin_logf(max_of(pi[l], kLeastProbability));
    for (int l = 0; l < kPolicyLanes; ++l) mean[l] += pi[l] * cost[l];
  }
  const float* reach = of(lanes.reach, t);
  for (int c = 1; c < node.n_children; ++c) {
    const float *cost = of(lanes.cost, child[c]), *pi = of(lanes.pi, child[c]);
    float* slope = lanes.score + (node.first_row + c - 1) * lanes.stride;
    for (int l = 0; l < kPolicyLanes; ++l)
      slope[l] = tree.sharpness * lanes.scale[l] * reach[l] * pi[l] * (cost[l] - mean[l]);
  }
  float* own = of(lanes.cost, t);
  for (int l = 0; l < kPolicyLanes; ++l) own[l] = mean[l];
}

inline void policy_enumerate(const LearnedPolicy& tree, const LeafLosses& losses, float entropy,
                             const PolicyLanes& lanes) {
  for (int l = 0; l < kPolicyLanes; ++l) {
    lanes.reach[l] = 1.0f;
    lanes.loss[l] = 0.0f;
  }
  for (int t = 0; t < tree.n_nodes; ++t) {
    if (tree.nodes[t].n_children > 0)
      spread_lanes(tree, t, lanes);
    else
      leaf_lanes(tree, losses, t, lanes);
  }
  for (int t = tree.n_nodes - 1; t >= 0; --t)
    if (tree.nodes[t].n_children > 0) gather_lanes(tree, entropy, t, lanes);
}

}  // namespace hardwood::HARDWOOD_ISA
