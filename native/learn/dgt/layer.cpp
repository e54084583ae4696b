#include "learn/dgt/layer.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/buffer.hpp"
#include "core/kernels.hpp"
#include "core/threads.hpp"
#include "learn/dgt/memory.hpp"
#include "tree/nodes.hpp"

namespace hardwood {

namespace {

constexpr std::int64_t kRoutedTogether = 16384;  // rows per task of the forward pass
constexpr int kRoutedBlock = 64;                 // rows padded at a time

// Every task of the backward pass has its own gradient; these are added in order. The number of
// tasks depends only on the sizes, so the sum is the same for every number of threads.
constexpr std::int64_t kFewestRowsPerTask = 512;
constexpr std::int64_t kMostTasks = 16;
constexpr std::int64_t kMostGradientFloats = std::int64_t{1} << 24;

void copy_rows(const float* from, std::ptrdiff_t from_stride, int rows, int cols, float* to,
               std::ptrdiff_t to_stride) {
  for (int i = 0; i < rows; ++i) std::copy_n(from + i * from_stride, cols, to + i * to_stride);
}

Buffer<float> padded_rows(const float* from, int rows, int cols) {
  Buffer<float> to(static_cast<std::size_t>(rows) * padded(cols));
  copy_rows(from, cols, rows, cols, to.data(), padded(cols));
  return to;
}

RouteNodes perfect_nodes(const DgtLayer& layer) {
  const int m = layer.shape.n_nodes();
  RouteNodes nodes = route_nodes(perfect_children(layer.shape), padded(layer.shape.n_columns));
  for (int i = 0; i < m; ++i) nodes.nodes[i].bias = layer.b[i];
  return nodes;
}

// Working memory of one thread of the backward pass.
class Worker {
 public:
  Worker(const DgtLayer& layer, const float* padded_W, int tile)
      : layer_(layer),
        stride_(padded(layer.shape.n_columns)),
        W_(const_cast<float*>(padded_W)),
        memory_(layer.shape, false, tile),
        tile_(memory_.tile),
        X_(tile * stride_),
        dX_(tile * stride_),
        unused_(static_cast<std::size_t>(layer.shape.n_leaves()) * layer.shape.n_outputs) {
    tile_.X = X_.data();
  }

  // The rows [first, last) of X and of their slopes; gradient [W (m, stride) | b (m,)], b zero.
  void run(std::int64_t first, std::int64_t last, const float* X, const float* slope,
           float* gradient, float* dX) {
    const std::int64_t d = layer_.shape.n_columns, k = layer_.shape.n_outputs;
    const Parameters<float> parameters = {W_, nullptr, const_cast<float*>(layer_.b),
                                          const_cast<float*>(layer_.theta)};
    const Parameters<float> sums = {gradient, nullptr, gradient + layer_.shape.n_nodes() * stride_,
                                    unused_.data()};
    for (std::int64_t row = first; row < last; row += tile_.tile) {
      load(static_cast<int>(std::min<std::int64_t>(tile_.tile, last - row)), X + row * d,
           slope + row * k);
      kernels().dgt_tile(layer_.shape, {}, parameters, tile_, Loss::kCustom, 0, 1, true,
                         row == first, sums);
      if (dX) input_gradient(dX + row * d);
    }
  }

 private:
  void load(int n, const float* X, const float* slope) {
    const int d = layer_.shape.n_columns, k = layer_.shape.n_outputs;
    tile_.n = n;
    copy_rows(X, d, n, d, tile_.X, stride_);
    std::fill(tile_.X + n * stride_, tile_.X + tile_.tile * stride_, 0.0f);
    memory_.take_slopes(k, n, slope);
  }

  // The scores a = W x + b have been replaced by their gradients.
  void input_gradient(float* dX) {
    const int d = layer_.shape.n_columns, m = layer_.shape.n_nodes();
    kernels().gemm_transposed({tile_.score, m, tile_.tile, tile_.tile}, {W_, m, d, stride_},
                              {dX_.data(), tile_.tile, d, stride_});
    copy_rows(dX_.data(), stride_, tile_.n, d, dX, d);
  }

  const DgtLayer& layer_;
  std::ptrdiff_t stride_;
  float* W_;
  DgtTileMemory memory_;
  DgtTile& tile_;
  Buffer<float> X_, dX_;  // (tile, stride)
  Buffer<float> unused_;  // (leaves, k): the kernel's own idea of the leaves' gradient
};

void add(const float* from, std::size_t size, float* to) {
  for (std::size_t i = 0; i < size; ++i) to[i] += from[i];
}

std::int64_t rows_per_task(const DgtShape& shape, std::int64_t n, int tile) {
  const std::int64_t floats = std::int64_t{shape.n_nodes()} * padded(shape.n_columns);
  const std::int64_t most = std::clamp<std::int64_t>(kMostGradientFloats / floats, 1, kMostTasks);
  const std::int64_t rows = std::max(kFewestRowsPerTask, (n + most - 1) / most);
  return (rows + tile - 1) / tile * tile;
}

void split_gradient(const DgtLayer& layer, std::int64_t n, const float* X, const float* slope,
                    int n_threads, const DgtLayerGradient& gradient) {
  const int d = layer.shape.n_columns, m = layer.shape.n_nodes(), stride = padded(d);
  constexpr int kMany = 1 << 20;
  const int largest = dgt_tile_capacity(layer.shape, kMany);
  const int tile =
      dgt_tile_capacity(layer.shape, static_cast<int>(std::min<std::int64_t>(n, kMany)));
  const std::int64_t rows = rows_per_task(layer.shape, n, largest);
  const int n_tasks = static_cast<int>((n + rows - 1) / rows);
  const Buffer<float> W = padded_rows(layer.W, m, d);
  std::vector<Buffer<float>> sums(n_tasks);
  parallel_for(n_tasks, n_threads, [&](int i) {
    sums[i] = Buffer<float>(static_cast<std::size_t>(m) * (stride + 1));
    Worker(layer, W.data(), tile)
        .run(i * rows, std::min((i + 1) * rows, n), X, slope, sums[i].data(), gradient.X);
  });
  for (const Buffer<float>& sum : sums) {
    for (int i = 0; i < m; ++i)
      add(sum.data() + static_cast<std::ptrdiff_t>(i) * stride, d,
          gradient.W + static_cast<std::ptrdiff_t>(i) * d);
    add(sum.data() + static_cast<std::ptrdiff_t>(m) * stride, m, gradient.b);
  }
}

}  // namespace

void dgt_layer_forward(const DgtLayer& layer, std::int64_t n, const float* X, int n_threads,
                       float* prediction, std::int32_t* leaf) {
  const int d = layer.shape.n_columns, k = layer.shape.n_outputs, m = layer.shape.n_nodes();
  const Buffer<float> W = padded_rows(layer.W, m, d);
  const RouteNodes nodes = perfect_nodes(layer);
  const Splits splits{m, layer.shape.height, true, d, W.data(), nodes.nodes.data(), 0, nullptr};
  const int n_tasks = static_cast<int>((n + kRoutedTogether - 1) / kRoutedTogether);
  parallel_for(n_tasks, n_threads, [&](int task) {
    Buffer<float> block(static_cast<std::size_t>(kRoutedBlock) * padded(d));
    const std::int64_t first = task * kRoutedTogether, last = std::min(first + kRoutedTogether, n);
    for (std::int64_t row = first; row < last; row += kRoutedBlock) {
      const int rows = static_cast<int>(std::min<std::int64_t>(kRoutedBlock, last - row));
      copy_rows(X + row * d, d, rows, d, block.data(), padded(d));
      kernels().route_plain(splits, {block.data(), padded(d), nullptr, nullptr}, rows, leaf + row);
    }
    for (std::int64_t i = first; i < last; ++i)
      std::copy_n(layer.theta + static_cast<std::ptrdiff_t>(leaf[i]) * k, k, prediction + i * k);
  });
}

void dgt_layer_backward(const DgtLayer& layer, std::int64_t n, const float* X,
                        const std::int32_t* leaf, const float* slope, int n_threads,
                        const DgtLayerGradient& gradient) {
  const std::size_t d = layer.shape.n_columns, k = layer.shape.n_outputs;
  std::fill_n(gradient.W, layer.shape.n_nodes() * d, 0.0f);
  std::fill_n(gradient.b, layer.shape.n_nodes(), 0.0f);
  std::fill_n(gradient.theta, layer.shape.n_leaves() * k, 0.0f);
  for (std::int64_t i = 0; i < n; ++i)  // Algorithm 2, line 5
    add(slope + i * k, k, gradient.theta + leaf[i] * k);
  if (n > 0) split_gradient(layer, n, X, slope, n_threads, gradient);
}

}  // namespace hardwood
