// Reinforced trees, for one row or sixteen. Compiled for each instruction set.
//
// Leon, Denoyer. Policy-gradient Methods for Decision Trees. ESANN 2016.
//
// A row moves from node to node at random, with the softmax of linear scores as probabilities. The
// derivative of its expected loss is estimated from M trajectories (Sec. 2.3):
//     1/M sum_h sum_j  d log pi(n_j -> n_j+1) (loss_h - baseline)  +  d loss_h
// Trajectories at the same node share its scores, and their gradients are added up before they are
// multiplied by the row: a node that n of the M trajectories visit, with costs G_h, changes the
// score of branch c by  sum_h (G_h - baseline) (1[h takes c] - pi_c). Costs are added from the
// leaves upwards, so one pass down and one pass up are enough.
//
// NumPy reference: tests/reference/reinforced.py. Other code calls ReinforcedLearner.
#pragma once

#include "learn/loop/leaf_losses.hpp"
#include "learn/reinforced/tile.hpp"

namespace hardwood::HARDWOOD_ISA {

// A smaller probability counts as 0; the logarithm of this one is still finite.
inline constexpr float kLeastProbability = 1e-30f;

// log of a probability with a relative error of about 1e-6. It has no branch, so it vectorizes.
HARDWOOD_INLINE float logarithm(float p) {
  p = max_of(p, kLeastProbability);
  const std::int32_t bits = __builtin_bit_cast(std::int32_t, p) - 0x3f3504f3;  // of sqrt(1/2)
  const std::int32_t exponent = bits >> 23;
  const float m = __builtin_bit_cast(float, (bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  float q = 7.0376836292e-2f;
  q = q * m - 1.1514610310e-1f;
  q = q * m + 1.1676998740e-1f;
  q = q * m - 1.2420140846e-1f;
  q = q * m + 1.4249322787e-1f;
  q = q * m - 1.6668057665e-1f;
  q = q * m + 2.0000714765e-1f;
  q = q * m - 2.4999993993e-1f;
  q = q * m + 3.3333331174e-1f;
  return (m - 0.5f * m * m + m * m * m * q) + static_cast<float>(exponent) * 0.693147181f;
}

// pi of the branches of a node: exact zeros only where exp underflows.
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
  for (int c = 0; c < n; ++c) sum -= pi[c] * logarithm(pi[c]);
  return sum;
}

// The branch that a uniform number in [0, 1) selects.
HARDWOOD_INLINE int drawn_branch(int n, const float* pi, float u) {
  float sum = pi[0];
  int c = 0;
  while (u >= sum && c + 1 < n) sum += pi[++c];
  return c;
}

// Moves the trajectories of a visit down and adds the visits of the children they reach.
HARDWOOD_INLINE void part_branches(const LearnedPolicy& tree, const PolicyNode& node,
                                   const float* u, Walk& walk, Visit& from, float entropy_price) {
  const float* pi = walk.pi + from.pi_at;
  std::int32_t* here = walk.sample + from.first;
  from.below = walk.n_visits;
  int n_sent = 0;
  for (int c = 0; c < node.n_children && n_sent < from.n; ++c) {
    int n_here = 0, n_left = 0;
    for (int s = n_sent; s < from.n; ++s) {  // a stable partition: those of branch c first
      const std::int32_t sample = here[s];
      if (drawn_branch(node.n_children, pi, u[sample]) == c)
        here[n_sent + n_here++] = sample;
      else
        walk.spare[n_left++] = sample;
    }
    for (int s = 0; s < n_left; ++s) here[n_sent + n_here + s] = walk.spare[s];
    if (n_here == 0) continue;
    Visit& to = walk.visit[walk.n_visits++];
    to = {};
    to.node = tree.child[node.first_child + c];
    to.branch = c;
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
    part_branches(tree, node, uniform, walk, visit, o.entropy);
  }
}

// The cost minus the baseline of each branch of a node, summed over the trajectories that took it.
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
// summed cost by the scores of the branches, `scale` times.
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
    const int n_branches = tree.nodes[at.node].n_children;
    const float bonus = o.entropy * static_cast<float>(at.n);
    // Of the trajectories: -pi_c sum; of the entropy: its slope.
    for (int c = 0; c < n_branches; ++c) {
      const float p = pi[c];
      pi[c] = -p * sum;
      if (bonus > 0) pi[c] += bonus * p * (logarithm(p) + at.entropy);
    }
    for (int w = at.below; w < at.below_end; ++w)
      pi[walk.visit[w].branch] += advantage(o, walk, at, walk.visit[w]);
    for (int c = 0; c < n_branches; ++c) pi[c] *= scale * tree.sharpness;
  }
}

// sum += factor row
inline void add_scaled(std::ptrdiff_t n, float factor, const float* __restrict row,
                       float* __restrict sum) {
  for (std::ptrdiff_t j = 0; j < n; j += 8)
    store<8>(sum + j, load<8>(sum + j) + broadcast<8>(factor) * load<8>(row + j));
}

// The leaf of the most probable branch at every node; the last of equals, as a split goes right at
// 0.
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

// --- sixteen rows, all nodes scored -----------------------------------------------------------

using Lanes = Vector<kPolicyLanes>;
using WholeLanes = WholeSixteen;

HARDWOOD_INLINE float* lanes_at(float* array, std::ptrdiff_t node) {
  return array + node * kPolicyLanes;
}
HARDWOOD_INLINE Lanes get(const float* p) {
  return load<kPolicyLanes>(p);
}
HARDWOOD_INLINE void put(float* p, Lanes v) {
  store<kPolicyLanes>(p, v);
}
HARDWOOD_INLINE Lanes all(float value) {
  return broadcast<kPolicyLanes>(value);
}

// `logarithm` of sixteen numbers.
HARDWOOD_INLINE Lanes logarithm(Lanes p) {
  p = p > all(kLeastProbability) ? p : all(kLeastProbability);
  const WholeLanes bits = reinterpret_cast<WholeLanes>(p) - 0x3f3504f3;
  const Lanes exponent = __builtin_convertvector(bits >> 23, Lanes);
  const Lanes m = reinterpret_cast<Lanes>((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  Lanes q = m * 7.0376836292e-2f - 1.1514610310e-1f;
  q = q * m + 1.1676998740e-1f;
  q = q * m - 1.2420140846e-1f;
  q = q * m + 1.4249322787e-1f;
  q = q * m - 1.6668057665e-1f;
  q = q * m + 2.0000714765e-1f;
  q = q * m - 2.4999993993e-1f;
  q = q * m + 3.3333331174e-1f;
  return (m - 0.5f * m * m + m * m * m * q) + exponent * 0.693147181f;
}

// pi of the branches of a node, for sixteen rows. Two branches are one logistic function.
HARDWOOD_INLINE void way_lanes(const LearnedPolicy& tree, const PolicyNode& node,
                               const PolicyLanes& lanes) {
  const std::int32_t* child = tree.child + node.first_child;
  const auto score = [&](int c) {
    const std::ptrdiff_t row = node.first_row + c - 1;
    return tree.sharpness * (get(lanes.score + row * lanes.stride) + tree.b[row]);
  };
  if (node.n_children == 2) {
    const Lanes e = exponential(-score(1)), second = 1.0f / (1.0f + e);
    put(lanes_at(lanes.pi, child[0]), e * second);
    put(lanes_at(lanes.pi, child[1]), second);
    return;
  }
  Lanes top = all(0), sum = all(0);
  for (int c = 1; c < node.n_children; ++c) top = score(c) > top ? score(c) : top;
  for (int c = 0; c < node.n_children; ++c) {
    const Lanes pi = exponential((c > 0 ? score(c) : all(0)) - top);
    put(lanes_at(lanes.pi, child[c]), pi);
    sum += pi;
  }
  for (int c = 0; c < node.n_children; ++c) {
    float* pi = lanes_at(lanes.pi, child[c]);
    put(pi, get(pi) / sum);
  }
}

// --- all trajectories ---------------------------------------------------------------------------

// Entries of a row of a table (k,), one for each of sixteen classes.
HARDWOOD_INLINE Lanes looked_up(const float* row, [[maybe_unused]] int k, Lanes classes) {
  Lanes found = all(0);
#if defined(__AVX512F__)  // 32 entries lie in two registers, of which one instruction picks
  const WholeLanes at = __builtin_convertvector(classes, WholeLanes);
  for (int c = 0; c < k; c += 32) {
    const Lanes picked =
        _mm512_permutex2var_ps(some_of(row + c, k - c, 0), reinterpret_cast<__m512i>(at),
                               some_of(row + c + 16, k - c - 16, 0));
    found = at >> 5 == c / 32 ? picked : found;
  }
#else
  for (int l = 0; l < kPolicyLanes; ++l) found[l] = row[static_cast<int>(classes[l])];
#endif
  return found;
}

// Cost of a leaf for sixteen rows, and what it adds to their expected losses.
HARDWOOD_INLINE void leaf_lanes(const LearnedPolicy& tree, const LeafLosses& losses, int t,
                                const PolicyLanes& lanes) {
  const int leaf = tree.nodes[t].leaf, k = losses.n_outputs;
  float* cost = lanes_at(lanes.cost, t);
  if (losses.table) {
    put(cost,
        looked_up(losses.table + static_cast<std::ptrdiff_t>(leaf) * k, k, get(lanes.target)));
  } else {
    const float* alpha = tree.alpha + static_cast<std::ptrdiff_t>(leaf) * k;
    with_elementwise(losses.loss, losses.parameter, [&](auto&& of) {
      float sum[kPolicyLanes] = {};
      for (int o = 0; o < k; ++o)
        for (int l = 0; l < kPolicyLanes; ++l)
          sum[l] += of(alpha[o], lanes.target[o * lanes.target_stride + l]).value;
      for (int l = 0; l < kPolicyLanes; ++l) cost[l] = sum[l] / static_cast<float>(k);
      return 0.0;
    });
  }
  const Lanes reach = get(lanes_at(lanes.reach, t));
  put(lanes.loss, get(lanes.loss) + reach * get(cost));
  put(lanes.mass + leaf * lanes.stride, get(lanes.scale) * reach);
}

// Expected cost from a node on, and the derivative by the scores of its branches:
//     d / d s_c = P(node) pi_c (A_c - sum_j pi_j A_j),   A_c = Q(child c) + entropy log pi_c
HARDWOOD_INLINE void gather_lanes(const LearnedPolicy& tree, float entropy, int t,
                                  const PolicyLanes& lanes) {
  const PolicyNode& node = tree.nodes[t];
  const std::int32_t* child = tree.child + node.first_child;
  Lanes mean = all(0);
  for (int c = 0; c < node.n_children; ++c) {
    float* cost = lanes_at(lanes.cost, child[c]);
    const Lanes pi = get(lanes_at(lanes.pi, child[c]));
    if (entropy > 0) put(cost, get(cost) + entropy * logarithm(pi));
    mean += pi * get(cost);
  }
  const Lanes factor = tree.sharpness * get(lanes.scale) * get(lanes_at(lanes.reach, t));
  for (int c = 1; c < node.n_children; ++c)
    put(lanes.score + (node.first_row + c - 1) * lanes.stride,
        factor * get(lanes_at(lanes.pi, child[c])) * (get(lanes_at(lanes.cost, child[c])) - mean));
  put(lanes_at(lanes.cost, t), mean);
}

inline void policy_enumerate(const LearnedPolicy& tree, const LeafLosses& losses, float entropy,
                             const PolicyLanes& lanes) {
  put(lanes.reach, all(1));
  put(lanes.loss, all(0));
  for (int t = 0; t < tree.n_nodes; ++t) {
    const PolicyNode& node = tree.nodes[t];
    if (node.n_children == 0) {
      leaf_lanes(tree, losses, t, lanes);
      continue;
    }
    way_lanes(tree, node, lanes);
    const Lanes reach = get(lanes_at(lanes.reach, t));
    for (int c = 0; c < node.n_children; ++c) {
      const std::int32_t to = tree.child[node.first_child + c];
      put(lanes_at(lanes.reach, to), reach * get(lanes_at(lanes.pi, to)));
    }
  }
  for (int t = tree.n_nodes - 1; t >= 0; --t)
    if (tree.nodes[t].n_children > 0) gather_lanes(tree, entropy, t, lanes);
}

// --- some trajectories --------------------------------------------------------------------------
//
// Trajectories of sixteen rows go down side by side: each waits for memory, so sixteen together
// take little longer than one. Their costs are stored at the leaves they reach, and added up over
// children, so no path is stored.

// Where a trajectory goes next; at a leaf it stays.
HARDWOOD_INLINE std::int32_t next_node(const LearnedPolicy& tree, const float* pi, int l,
                                       std::int32_t at, float u) {
  const PolicyNode& node = tree.nodes[at];
  if (node.n_children == 0) return at;
  const std::int32_t* child = tree.child + node.first_child;
  const auto of_branch = [&](int c) {
    return pi[static_cast<std::ptrdiff_t>(child[c]) * kPolicyLanes + l];
  };
  // No jump, because the branch cannot be predicted.
  if (node.n_children == 2) return child[static_cast<int>(u >= of_branch(0))];
  int c = 0;
  for (float sum = of_branch(0); u >= sum && c + 1 < node.n_children;) sum += of_branch(++c);
  return child[c];
}

// Down: the nodes where trajectories s of sixteen rows end, and their entropy bonuses.
HARDWOOD_INLINE void walk_lanes(const LearnedPolicy& tree, float entropy, const PolicyDraws& draws,
                                const PolicyLanes& lanes, int s) {
  std::int32_t at[kPolicyLanes] = {};
  float bonus[kPolicyLanes] = {};
  for (int d = 0; d < draws.max_depth; ++d) {
    const float* u = draws.uniform + (d * draws.n_samples + s) * kPolicyLanes;
    for (int l = 0; l < kPolicyLanes && entropy > 0; ++l)
      bonus[l] += entropy * lanes_at(draws.entropy, at[l])[l];
    for (int l = 0; l < kPolicyLanes; ++l) at[l] = next_node(tree, lanes.pi, l, at[l], u[l]);
  }
  for (int l = 0; l < kPolicyLanes; ++l) draws.end[s * kPolicyLanes + l] = at[l];
  put(lanes_at(draws.bonus, s), get(bonus));
}

// Losses of the trajectories at their leaves, and their mean over each row.
HARDWOOD_INLINE void loss_lanes(const LearnedPolicy& tree, const LeafLosses& losses,
                                const PolicyDraws& draws, const PolicyLanes& lanes) {
  LearnedTree leaves;
  leaves.theta = tree.alpha;
  Lanes total = all(0);
  for (int s = 0; s < draws.n_samples; ++s) {
    for (int l = 0; l < kPolicyLanes; ++l) {
      const int at = s * kPolicyLanes + l;
      draws.leaf[at] = tree.nodes[draws.end[at]].leaf;
      draws.drawn[at] = leaf_loss(leaves, losses, draws.leaf[at],
                                  draws.y + static_cast<std::ptrdiff_t>(l) * draws.n_targets);
    }
    total += get(lanes_at(draws.drawn, s));
  }
  put(lanes.loss, total / static_cast<float>(draws.n_samples));
}

// Whether the gradient needs more than the total costs of trajectories.
HARDWOOD_INLINE bool counts_visits(float entropy, const PolicyDraws& draws) {
  return entropy > 0 || draws.baseline != Baseline::kLeaveOneOut;
}

// At the leaves: the costs of trajectories minus the mean of the other trajectories of the row;
// and, if counts_visits, the number of trajectories and their costs.
HARDWOOD_INLINE void evaluate_lanes(const LearnedPolicy& tree, float entropy,
                                    const PolicyDraws& draws, const PolicyLanes& lanes) {
  const bool is_counted = counts_visits(entropy, draws);
  for (int t = 0; t < tree.n_nodes; ++t) {
    if (tree.nodes[t].n_children > 0) continue;
    put(lanes_at(draws.advantage, t), all(0));
    if (!is_counted) continue;
    put(lanes_at(lanes.reach, t), all(0));
    put(lanes_at(lanes.cost, t), all(0));
  }
  const float M = static_cast<float>(draws.n_samples);
  const auto whole = [&](int s) {
    return get(lanes_at(draws.drawn, s)) - get(lanes_at(draws.bonus, s));
  };
  Lanes sum = all(0);
  for (int s = 0; s < draws.n_samples; ++s) sum += whole(s);
  for (int s = 0; s < draws.n_samples; ++s) {
    const Lanes apart = M > 1 ? (M * whole(s) - sum) / (M - 1.0f) : all(0);
    for (int l = 0; l < kPolicyLanes; ++l) {
      const std::int32_t t = draws.end[s * kPolicyLanes + l];
      lanes_at(draws.advantage, t)[l] += apart[l];
      if (!is_counted) continue;
      lanes_at(lanes.reach, t)[l] += 1.0f;
      lanes_at(lanes.cost, t)[l] += draws.drawn[s * kPolicyLanes + l];
    }
  }
}

// Up, for one node: the number of its trajectories and their costs from here on, without its own
// entropy; and the cost minus the baseline of its branches, unless that is the total cost.
HARDWOOD_INLINE void return_lanes(const LearnedPolicy& tree, float entropy,
                                  const PolicyDraws& draws, int t, const PolicyLanes& lanes) {
  const PolicyNode& node = tree.nodes[t];
  Lanes value = all(0), reach = all(0), cost = all(0);
  if (draws.baseline == Baseline::kValue)
    for (int l = 0; l < kPolicyLanes; ++l) value[l] = draws.value[l][t * draws.value_step];
  for (int c = 0; c < node.n_children; ++c) {
    const std::int32_t to = tree.child[node.first_child + c];
    const Lanes n = get(lanes_at(lanes.reach, to));
    const Lanes to_go =
        get(lanes_at(lanes.cost, to)) - entropy * n * get(lanes_at(draws.entropy, to));
    reach += n;
    cost += to_go;
    if (draws.baseline != Baseline::kLeaveOneOut)
      put(lanes_at(draws.advantage, to), to_go - n * value);
  }
  put(lanes_at(lanes.reach, t), reach);
  put(lanes_at(lanes.cost, t), cost);
}

// The derivative by the scores of a node's branches, from their costs minus the baseline.
HARDWOOD_INLINE void slope_lanes(const LearnedPolicy& tree, float entropy, const PolicyDraws& draws,
                                 int t, const PolicyLanes& lanes) {
  const PolicyNode& node = tree.nodes[t];
  const std::int32_t* child = tree.child + node.first_child;
  Lanes sum = all(0);
  for (int c = 0; c < node.n_children; ++c) sum += get(lanes_at(draws.advantage, child[c]));
  put(lanes_at(draws.advantage, t), sum);
  const Lanes share = tree.sharpness / static_cast<float>(draws.n_samples) * get(lanes.scale);
  for (int c = 1; c < node.n_children; ++c) {
    const Lanes pi = get(lanes_at(lanes.pi, child[c]));
    Lanes slope = get(lanes_at(draws.advantage, child[c])) - pi * sum;
    if (entropy > 0)
      slope += entropy * get(lanes_at(lanes.reach, t)) * pi *
               (logarithm(pi) + get(lanes_at(draws.entropy, t)));
    put(lanes.score + (node.first_row + c - 1) * lanes.stride, share * slope);
  }
}

// The policies of all nodes, and their entropies if there is a bonus.
HARDWOOD_INLINE void policy_lanes(const LearnedPolicy& tree, float entropy,
                                  const PolicyDraws& draws, const PolicyLanes& lanes) {
  for (int t = 0; t < tree.n_nodes; ++t) {
    const PolicyNode& node = tree.nodes[t];
    Lanes H = all(0);
    if (node.n_children > 0) way_lanes(tree, node, lanes);
    if (!(entropy > 0)) continue;
    for (int c = 0; c < node.n_children; ++c) {
      const Lanes pi = get(lanes_at(lanes.pi, tree.child[node.first_child + c]));
      H -= pi * logarithm(pi);
    }
    put(lanes_at(draws.entropy, t), H);
  }
}

inline void policy_sample(const LearnedPolicy& tree, const LeafLosses& losses, float entropy,
                          const PolicyDraws& draws, const PolicyLanes& lanes) {
  policy_lanes(tree, entropy, draws, lanes);
  for (int s = 0; s < draws.n_samples; ++s) walk_lanes(tree, entropy, draws, lanes, s);
  loss_lanes(tree, losses, draws, lanes);
  evaluate_lanes(tree, entropy, draws, lanes);
  for (int t = tree.n_nodes - 1; t >= 0; --t) {
    if (tree.nodes[t].n_children == 0) continue;
    if (counts_visits(entropy, draws)) return_lanes(tree, entropy, draws, t, lanes);
    slope_lanes(tree, entropy, draws, t, lanes);
  }
}

typedef std::uint64_t Words __attribute__((vector_size(8 * kPolicyLanes), may_alias));

// Products of the lower halves of words.
HARDWOOD_INLINE Words half_product(std::uint32_t factor, Words words) {
  return (words & 0xffffffffu) * std::uint64_t{factor};
}

// Numbers of sixteen streams of Random, side by side: (n, 16). `stream` are their numbers. A word
// of the generator lies in the lower half of 64 bits: products need no shuffling then.
inline void uniform_lanes(std::uint64_t seed, const std::uint64_t* stream, int n, float* out) {
  Words number;
  for (int l = 0; l < kPolicyLanes; ++l) number[l] = stream[l];
  for (int block = 0; 4 * block < n; ++block) {
    Words c[4] = {Words{} + static_cast<std::uint64_t>(block), Words{}, number & 0xffffffffu,
                  number >> 32};
    std::uint32_t k0 = static_cast<std::uint32_t>(seed),
                  k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      const Words p0 = half_product(0xD2511F53, c[0]), p1 = half_product(0xCD9E8D57, c[2]);
      c[0] = p1 >> 32 ^ c[1] ^ k0;  // upper halves hold anything: products do not see them
      c[1] = p1 & 0xffffffffu;
      c[2] = p0 >> 32 ^ c[3] ^ k1;
      c[3] = p0 & 0xffffffffu;
    }
    for (int w = 0; w < 4 && 4 * block + w < n; ++w)
      for (int l = 0; l < kPolicyLanes; ++l)
        out[(4 * block + w) * kPolicyLanes + l] =
            static_cast<float>(static_cast<std::int32_t>(c[w][l] >> 8)) * 0x1p-24f;
  }
}

// The sum of each row, in sixteen running sums. n is a multiple of 16.
inline void row_sums(int n_rows, int n, const float* rows, std::ptrdiff_t stride, float* sums) {
  for (int r = 0; r < n_rows; ++r) {
    Lanes sum = all(0);
    for (int i = 0; i < n; i += kPolicyLanes) sum += get(rows + r * stride + i);
    sums[r] = 0;
    for (int l = 0; l < kPolicyLanes; ++l) sums[r] += sum[l];
  }
}

}  // namespace hardwood::HARDWOOD_ISA
