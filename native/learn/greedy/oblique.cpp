// Scores of rows along directions, thresholds on them, and random hyperplanes.
#include <cmath>
#include <numbers>

#include "core/kernels.hpp"
#include "core/threads.hpp"
#include "learn/greedy/level.hpp"

namespace hardwood {

namespace {

constexpr int kProjectRows = 128;
constexpr int kDirections = 16;  // random directions projected together

// Standard normal numbers, by the Box-Muller transform.
float normal(Random& random) {
  const double u = 1.0 - random.uniform(), v = random.uniform();
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

// B (columns, kDirections): random points on the sphere, which depend only on the node.
void draw_directions(const Level& level, const LevelNode& node, int first, Buffer<float>& B) {
  for (int d = 0; d < kDirections; ++d) {
    Random random(level.seed, node.number << 20 | static_cast<std::uint64_t>(first + d));
    for (int c = 0; c < level.data.n_columns(); ++c) B[c * kDirections + d] = normal(random);
  }
}

}  // namespace

void project(const Level& level, const LevelNode& node, const float* B, int n_directions,
             float* out) {
  const int columns = level.data.n_columns(), n = node.size();
  const std::ptrdiff_t stride = level.data.stride();
  Buffer<float> X(kProjectRows * stride), C(kProjectRows * static_cast<std::size_t>(n_directions));
  for (int first = 0; first < n; first += kProjectRows) {
    const int rows = std::min(kProjectRows, n - first);
    for (int i = 0; i < rows; ++i)
      std::copy_n(level.data.row(level.row[node.first + first + i]), stride, X.data() + i * stride);
    kernels().gemm({X.data(), rows, columns, stride}, {B, columns, n_directions, n_directions},
                   {C.data(), rows, n_directions, n_directions});
    for (int i = 0; i < rows; ++i)
      for (int d = 0; d < n_directions; ++d)
        out[static_cast<std::size_t>(d) * n + first + i] = C[i * n_directions + d];
  }
}

void project_one(const Level& level, const LevelNode& node, const float* weights, float* out) {
  constexpr int kWidth = 8;
  Buffer<float> B(static_cast<std::size_t>(level.data.n_columns()) * kWidth),
      all(static_cast<std::size_t>(node.size()) * kWidth);
  for (int c = 0; c < level.data.n_columns(); ++c) B[c * kWidth] = weights[c];
  project(level, node, B.data(), kWidth, all.data());
  std::copy_n(all.data(), node.size(), out);
}

ThresholdSearch::Best ThresholdSearch::search(const float* scores) {
  Best best;
  keys_.clear();
  for (int i = 0; i < node_.size(); ++i) {
    if (!std::isfinite(scores[i])) return best;
    keys_.push_back(std::uint64_t{ordered_bits(scores[i])} << 32 | static_cast<std::uint32_t>(i));
  }
  sort_by_upper_half(keys_, spare_, 4);
  sides_.start(node_.totals.data());
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    if (k > 0 && keys_[k] >> 32 != keys_[k - 1] >> 32 && level_.allows(sides_, node_)) {
      const double worth = sides_.worth();
      if (worth > best.worth)
        best = {worth, between(from_ordered_bits(static_cast<std::uint32_t>(keys_[k - 1] >> 32)),
                               from_ordered_bits(static_cast<std::uint32_t>(keys_[k] >> 32)))};
    }
    sides_.take(node_.first + (keys_[k] & 0xFFFFFFFFu));
  }
  return best;
}

ObliqueSplit along(const Level& level, const LevelNode& node,
                   const std::vector<double>& direction) {
  double norm = 0;
  for (const double w : direction) norm += w * w;
  norm = std::sqrt(norm);
  ObliqueSplit split;
  if (!(norm > 0) || !std::isfinite(norm)) return split;
  for (const double w : direction) split.weights.push_back(static_cast<float>(w / norm));
  std::vector<float> scores(node.size());
  project_one(level, node, split.weights.data(), scores.data());
  const auto best = ThresholdSearch(level, node).search(scores.data());
  split.worth = best.worth;
  split.bias = -best.threshold;
  return split;
}

std::vector<ObliqueSplit> search_random(const Level& level, std::span<const LevelNode> nodes) {
  const int columns = level.data.n_columns(), n_candidates = level.options.n_candidates;
  const int n_parts = (n_candidates + kDirections - 1) / kDirections;
  std::vector<ObliqueSplit> found(nodes.size() * n_parts);
  parallel_for(static_cast<int>(found.size()), level.n_threads, [&](int task) {
    if (level.stop) return;
    const LevelNode& node = nodes[task / n_parts];
    const int first = task % n_parts * kDirections;
    Buffer<float> B(static_cast<std::size_t>(columns) * kDirections),
        scores(static_cast<std::size_t>(node.size()) * kDirections);
    draw_directions(level, node, first, B);
    project(level, node, B.data(), kDirections, scores.data());
    ThresholdSearch thresholds(level, node);
    for (int d = 0; d < std::min(kDirections, n_candidates - first); ++d) {
      const auto best =
          thresholds.search(scores.data() + static_cast<std::size_t>(d) * node.size());
      if (!(best.worth > found[task].worth)) continue;
      found[task] = {best.worth, std::vector<float>(columns), -best.threshold};
      for (int c = 0; c < columns; ++c) found[task].weights[c] = B[c * kDirections + d];
    }
  });
  std::vector<ObliqueSplit> best(nodes.size());
  for (std::size_t task = 0; task < found.size(); ++task)
    if (found[task].worth > best[task / n_parts].worth)
      best[task / n_parts] = std::move(found[task]);
  return best;
}

}  // namespace hardwood
