// Nodes for routing, from the children arrays of the model.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "tree/splits.hpp"

namespace hardwood {

struct RouteNodes {
  std::vector<RouteNode> nodes;
  int depth = 0;
  bool is_perfect = true;
};

// children (n_splits, 2): >= 0 a split that comes after its parent, < 0 the leaf ~child. stride: of
// a row of weights.
inline RouteNodes route_nodes(std::span<const std::int32_t> children, std::ptrdiff_t stride) {
  const std::int32_t n_splits = static_cast<std::int32_t>(children.size() / 2);
  RouteNodes built;
  built.nodes.resize(2 * n_splits + 1);
  std::vector<int> level(built.nodes.size(), 0);
  int shallowest = n_splits ? n_splits : 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(built.nodes.size()); ++i) {
    RouteNode& node = built.nodes[i];
    if (i >= n_splits) {
      node.child[0] = node.child[1] = i;
      built.depth = std::max(built.depth, level[i]);
      shallowest = std::min(shallowest, level[i]);
      continue;
    }
    node.weights_vector = static_cast<std::uint32_t>(i * (stride / 8));
    for (int side = 0; side < 2; ++side) {
      const std::int32_t child = children[2 * i + side];
      node.child[side] = child < 0 ? n_splits + ~child : child;
      level[node.child[side]] = level[i] + 1;
    }
  }
  built.is_perfect = shallowest == built.depth;
  return built;
}

}  // namespace hardwood
