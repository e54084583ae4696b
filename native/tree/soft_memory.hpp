// The working memory of a tile of samples in soft trees.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/buffer.hpp"
#include "tree/soft_tree.hpp"

namespace hardwood {

// The purpose of a tile: prediction needs neither matrix products nor a backward pass.
enum class SoftPurpose { kAnswer, kForward, kGradient };

// The caller sets the pointers X, XT, out and tape.
template <class Real, class Value = Real>
class SoftMemory {
 public:
  SoftMemory(const SoftShape& shape, std::ptrdiff_t stride, int capacity, SoftPurpose purpose)
      : levels_(shape.depth + 1) {
    const std::size_t room = capacity + kRoomBehind, n_levels = levels_.size();
    const std::size_t per_level = purpose == SoftPurpose::kGradient ? 7 : 5;
    samples_ = Buffer<std::int32_t>(n_levels * room);
    reals_ = Buffer<Real>(n_levels * per_level * room);
    Real* next = reals_.data();
    const auto take = [&] { return std::exchange(next, next + room); };
    for (std::size_t i = 0; i < n_levels; ++i) {
      levels_[i] = {samples_.data() + i * room, take(), take(), take(), take(), take()};
      if (purpose == SoftPurpose::kGradient) {
        levels_[i].left_value = take();
        levels_[i].value = take();
      }
    }
    if (std::is_same_v<Real, float> && purpose != SoftPurpose::kAnswer)
      make_blocks(shape, stride, capacity);
    tile.capacity = capacity;
    tile.levels = levels_.data();
  }
  SoftMemory(SoftMemory&&) = default;  // vectors and buffers move without moving their entries

  SoftTile<Real, Value> tile;

 private:
  void make_blocks(const SoftShape& shape, std::ptrdiff_t stride, int capacity) {
    const int n_inner = most_inner_blocks(shape.depth);
    const int n_top = ((1 << top_height(shape.depth)) - 1) * shape.n_trees;
    const auto size = [&](int n_nodes) {
      return static_cast<std::size_t>(n_nodes) * (capacity + stride + 1);
    };
    of_blocks_ = Buffer<float>(size(n_top) + n_inner * size(kInnerNodes));
    float* next = of_blocks_.data();
    const auto take = [&](int n_nodes) -> SoftBlock {
      float* score = std::exchange(next, next + size(n_nodes));
      float* W = score + static_cast<std::size_t>(n_nodes) * capacity;
      return {score, W, W + n_nodes * stride};
    };
    tile.top = take(n_top);
    for (int i = 0; i < n_inner; ++i) inner_.push_back(take(kInnerNodes));
    tile.inner = inner_.data();
  }

  std::vector<SoftLevel<Real>> levels_;
  Buffer<std::int32_t> samples_;
  Buffer<Real> reals_;
  std::vector<SoftBlock> inner_;
  Buffer<float> of_blocks_;
};

}  // namespace hardwood
