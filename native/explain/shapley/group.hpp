// Trees that are explained together, and the features that can change their output.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "explain/shapley/rows.hpp"
#include "tree/forest.hpp"

namespace hardwood {

// The output of a group is link(sum of the outputs of its trees). The output of the model is the
// sum over all groups of share times that. Each tree of a mean is a group of its own, because
// Shapley values of a sum are the sums of the Shapley values; the trees of a sum with a link are
// one group.
struct Group {
  std::vector<ForestTree> trees;
  int n_outputs = 0;
  Vote vote = Vote::kNone;  // of linear leaves; constant ones are votes already
  Link link = Link::kIdentity;
  double share = 1.0;
  int first_output = 0;  // of those that are asked for

  // Whether the output is linear in the features within a leaf.
  bool is_linear_at_leaves() const {
    return trees.size() == 1 && link == Link::kIdentity && vote == Vote::kNone &&
           (!trees[0].linear || trees[0].linear->link == Link::kIdentity);
  }

  // The output of one tree for a row at a leaf.
  void say(const ForestTree& tree, std::int32_t leaf, MixedRow& row, double* out) const {
    if (!tree.linear) {
      std::copy_n(tree.values + static_cast<std::ptrdiff_t>(leaf) * n_outputs, n_outputs, out);
      return;
    }
    kernels().answer(*tree.linear, row.encoded(), 1, &leaf, out);
    hardwood::vote(vote, n_outputs, out);
  }
};

inline const float* weights_of(const Splits& splits, std::int32_t split) {
  return splits.weights + std::size_t{splits.nodes[split].weights_vector} * 8;
}
inline const float* indicators_of(const Splits& splits, std::int32_t split) {
  return splits.indicators + static_cast<std::ptrdiff_t>(split) * splits.n_indicators;
}

// Weights of one output of a linear leaf: of the values, and of the indicators.
inline const double* weights_of(const LinearLeaves& leaves, std::int32_t leaf, int output) {
  return leaves.weights +
         (static_cast<std::ptrdiff_t>(leaf) * leaves.n_outputs + output) * leaves.stride;
}
inline const double* indicators_of(const LinearLeaves& leaves, std::int32_t leaf, int output) {
  return leaves.indicators +
         (static_cast<std::ptrdiff_t>(leaf) * leaves.n_outputs + output) * leaves.n_indicators;
}

// Sets marks[feature] for every feature with a nonzero weight.
template <class Weight>
void mark_weighed(const FeatureMap& map, const Weight* weights, const Weight* indicators,
                  std::vector<char>& marks) {
  for (int f = 0; f < map.n_features; ++f)
    if (map.column[f] >= 0 && weights[map.column[f]] != 0) marks[f] = 1;
  for (std::size_t q = 0; q < map.feature_of.size(); ++q)
    if (indicators[q] != 0) marks[map.feature_of[q]] = 1;
}

// The features that can change the output of a group.
inline std::vector<std::int32_t> players_of(const Group& group, const FeatureMap& map) {
  std::vector<char> marks(map.n_features, 0);
  for (const ForestTree& tree : group.trees) {
    for (int i = 0; i < tree.splits->n_splits; ++i)
      mark_weighed(map, weights_of(*tree.splits, i), indicators_of(*tree.splits, i), marks);
    if (!tree.linear) continue;
    for (int leaf = 0; leaf < tree.linear->n_leaves; ++leaf)
      for (int o = 0; o < group.n_outputs; ++o)
        mark_weighed(map, weights_of(*tree.linear, leaf, o), indicators_of(*tree.linear, leaf, o),
                     marks);
  }
  std::vector<std::int32_t> players;
  for (int f = 0; f < map.n_features; ++f)
    if (marks[f]) players.push_back(f);
  return players;
}

// Two rows and their differences.
struct Pair {
  FeatureRow x, z;

  bool differs(const FeatureMap& map, int feature) const {
    const std::int32_t column = map.column[feature];
    return x.on[feature] != z.on[feature] || (column >= 0 && x.values[column] != z.values[column]);
  }

  // The gain of a weighted sum when a feature changes from z to x.
  template <class Weight>
  double gain(const FeatureMap& map, int feature, const Weight* weights,
              const Weight* indicators) const {
    const std::int32_t column = map.column[feature];
    double sum = 0.0;
    if (column >= 0) {
      const double weight = weights[column];
      sum = weight * x.values[column] - weight * z.values[column];
    }
    if (x.on[feature] != z.on[feature]) {
      if (x.on[feature] >= 0) sum += indicators[x.on[feature]];
      if (z.on[feature] >= 0) sum -= indicators[z.on[feature]];
    }
    return sum;
  }
};

// Bounds on the sum of absolute terms of a split, for rows whose values are at most `largest`
// (stride). Each value counts twice: for what it adds and for what it replaces.
inline std::vector<float> term_sizes(const Splits& splits, const FeatureMap& map,
                                     const std::vector<float>& largest) {
  std::vector<float> sizes(splits.n_splits), of_feature(map.n_features);
  for (int i = 0; i < splits.n_splits; ++i) {
    const float *weights = weights_of(splits, i), *indicators = indicators_of(splits, i);
    float size = std::abs(splits.nodes[i].bias);
    for (int j = 0; j < splits.n_values; ++j) size += 2.0f * std::abs(weights[j]) * largest[j];
    if (splits.n_indicators) {
      std::fill(of_feature.begin(), of_feature.end(), 0.0f);
      for (int q = 0; q < splits.n_indicators; ++q) {
        float& most = of_feature[map.feature_of[q]];
        most = std::max(most, std::abs(indicators[q]));
      }
      for (const float most : of_feature) size += 2.0f * most;
    }
    sizes[i] = size;
  }
  return sizes;
}

// Bound on the error of the router's float32 score, relative to the term_sizes of the split.
// Sixteen running sums, folds, indicators; doubled.
inline float score_error(const Splits& splits, const FeatureMap& map) {
  constexpr float kRounding = 0x1p-24f;
  return kRounding * 2.0f *
         (static_cast<float>(splits.n_values) / 16.0f + static_cast<float>(map.listed.size()) +
          16.0f);
}

}  // namespace hardwood
