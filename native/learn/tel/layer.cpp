#include "learn/tel/layer.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/buffer.hpp"
#include "core/kernels.hpp"
#include "core/threads.hpp"
#include "tree/soft_memory.hpp"

namespace hardwood {

namespace {

constexpr int kTileRows = 256;  // samples that walk together: lists long enough to pay for a node

// Every group of trees has its own gradient by X; these are added in order. The number of groups
// depends only on the sizes, so the sum is the same for every number of threads.
constexpr int kMostGroups = 8;
constexpr std::int64_t kMostInputGradients = std::int64_t{1} << 24;
constexpr std::int64_t kFewestProductsPerGroup = std::int64_t{1} << 25;  // a gradient costs, too

template <class Real>
std::ptrdiff_t stride_of(const SoftShape& shape) {
  return std::is_same_v<Real, float> ? padded(shape.n_columns) : shape.n_columns;
}

template <class Real>
void copy_rows(const Real* from, std::ptrdiff_t from_stride, std::ptrdiff_t rows, int cols,
               Real* to, std::ptrdiff_t to_stride) {
  for (std::ptrdiff_t i = 0; i < rows; ++i)
    std::copy_n(from + i * from_stride, cols, to + i * to_stride);
}

// Rows with padding behind each; rows that need none are used in place.
template <class Real>
class PaddedRows {
 public:
  PaddedRows(const Real* from, std::ptrdiff_t rows, int cols, std::ptrdiff_t stride) : data_(from) {
    if (stride == cols) return;
    copy_ = Buffer<Real>(rows * stride);
    copy_rows(from, cols, rows, cols, copy_.data(), stride);
    data_ = copy_.data();
  }
  const Real* data() const { return data_; }

 private:
  Buffer<Real> copy_;
  const Real* data_;
};

template <class Real>
SoftTrees<Real> trees_of(const TelLayer<Real>& layer, const Real* padded_W, int first, int last) {
  SoftShape shape = layer.shape;
  shape.n_trees = last - first;
  const std::ptrdiff_t m = shape.n_nodes(), stride = stride_of<Real>(shape);
  return {shape,
          layer.activation,
          layer.gamma,
          padded_W + first * m * stride,
          stride,
          layer.b + first * m,
          layer.O + first * (m + 1) * shape.n_outputs};
}

int tile_capacity(std::int64_t n) {
  return static_cast<int>(
      std::min<std::int64_t>(kTileRows, (n + kTileStep - 1) / kTileStep * kTileStep));
}

// The tiles of rows of one thread.
template <class Real>
class TileRows {
 public:
  TileRows(const SoftShape& shape, std::int64_t n, SoftPurpose purpose)
      : shape_(shape),
        stride_(stride_of<Real>(shape)),
        memory_(shape, stride_, tile_capacity(n), purpose) {
    const std::size_t capacity = memory_.tile.capacity;
    if (stride_ != shape.n_columns) X_ = Buffer<Real>(capacity * stride_);
    if constexpr (std::is_same_v<Real, float>) XT_ = Buffer<float>(capacity * shape.n_columns);
  }

  SoftTile<Real>& load(const Real* X, std::int64_t n) {
    SoftTile<Real>& tile = memory_.tile;
    tile.n = static_cast<int>(n);
    tile.X = X;
    const int d = shape_.n_columns;
    if (stride_ != d) {
      copy_rows(X, d, n, d, X_.data(), stride_);
      tile.X = X_.data();
    }
    if constexpr (std::is_same_v<Real, float>) {
      kernels().transpose({tile.X, tile.n, d, stride_},
                          {XT_.data(), d, tile.capacity, tile.capacity});
      tile.XT = XT_.data();
    }
    return tile;
  }

 private:
  SoftShape shape_;
  std::ptrdiff_t stride_;
  SoftMemory<Real> memory_;
  Buffer<Real> X_;    // (capacity, stride)
  Buffer<float> XT_;  // (d, capacity)
};

void forward(const SoftTrees<float>& trees, SoftTile<float>& tile) {
  kernels().soft_forward(trees, tile);
}
void forward(const SoftTrees<double>& trees, SoftTile<double>& tile) {
  kernels().soft_forward_double(trees, tile);
}
void backward(const SoftTrees<float>& trees, SoftTile<float>& tile,
              const SoftGradient<float>& gradient) {
  kernels().tel_backward(trees, tile, gradient);
}
void backward(const SoftTrees<double>& trees, SoftTile<double>& tile,
              const SoftGradient<double>& gradient) {
  kernels().tel_backward_double(trees, tile, gradient);
}

// The gradient of some trees over all rows.
template <class Real>
void group_backward(const SoftTrees<Real>& trees, int first_tree, std::int64_t n, const Real* X,
                    const Real* slope, const TelLayerGradient<Real>& gradient, Real* dX) {
  const SoftShape& shape = trees.shape;
  const std::ptrdiff_t m = shape.n_nodes(), k = shape.n_outputs, d = shape.n_columns,
                       stride = trees.stride, rows = m * shape.n_trees;
  TileRows<Real> tiles(shape, n, SoftPurpose::kGradient);
  Buffer<Real> dW(rows * stride), tile_dX;
  const std::int64_t capacity = tile_capacity(n);
  if (dX) tile_dX = Buffer<Real>(capacity * stride);
  const SoftGradient<Real> sums{nullptr, dW.data(), gradient.b + first_tree * m,
                                gradient.O + first_tree * (m + 1) * k, tile_dX.data()};
  for (std::int64_t row = 0; row < n; row += capacity) {
    const std::int64_t count = std::min(capacity, n - row);
    std::fill(tile_dX.begin(), tile_dX.end(), Real{0});
    SoftGradient<Real> of_tile = sums;
    of_tile.slope = slope + row * k;
    backward(trees, tiles.load(X + row * d, count), of_tile);
    if (dX) copy_rows(tile_dX.data(), stride, count, static_cast<int>(d), dX + row * d, d);
  }
  copy_rows(dW.data(), stride, rows, static_cast<int>(d), gradient.W + first_tree * m * d, d);
}

int n_groups(const SoftShape& shape, std::int64_t n, bool with_X) {
  if (!with_X) return std::min(shape.n_trees, kMostGroups);
  const std::int64_t inputs = std::max<std::int64_t>(n * shape.n_columns, 1),
                     products = inputs * shape.n_trees * shape.n_nodes();
  return static_cast<int>(std::clamp<std::int64_t>(
      std::min(products / kFewestProductsPerGroup, kMostInputGradients / inputs), 1,
      std::min(shape.n_trees, kMostGroups)));
}

}  // namespace

template <class Real>
void tel_layer_forward(const TelLayer<Real>& layer, std::int64_t n, const Real* X, int n_threads,
                       Real* out, std::int32_t* leaves_reached) {
  const SoftShape& shape = layer.shape;
  const std::ptrdiff_t d = shape.n_columns, k = shape.n_outputs, trees = shape.n_trees;
  const PaddedRows<Real> W(layer.W, trees * shape.n_nodes(), shape.n_columns,
                           stride_of<Real>(shape));
  const SoftTrees<Real> all = trees_of(layer, W.data(), 0, shape.n_trees);
  const int n_tasks = static_cast<int>((n + kTileRows - 1) / kTileRows);
  std::fill_n(out, n * k, Real{0});
  if (leaves_reached) std::fill_n(leaves_reached, n * trees, 0);
  parallel_for(n_tasks, n_threads, [&](int task) {
    const std::int64_t row = std::int64_t{task} * kTileRows,
                       count = std::min<std::int64_t>(kTileRows, n - row);
    TileRows<Real> tiles(shape, count, SoftPurpose::kForward);
    SoftTile<Real>& tile = tiles.load(X + row * d, count);
    tile.out = out + row * k;
    if (leaves_reached) tile.leaves_reached = leaves_reached + row * trees;
    forward(all, tile);
  });
}

template <class Real>
void tel_layer_backward(const TelLayer<Real>& layer, std::int64_t n, const Real* X,
                        const Real* slope, int n_threads, const TelLayerGradient<Real>& gradient) {
  const SoftShape& shape = layer.shape;
  const std::ptrdiff_t m = std::ptrdiff_t{shape.n_trees} * shape.n_nodes(), d = shape.n_columns,
                       leaves = std::ptrdiff_t{shape.n_trees} * shape.n_leaves();
  std::fill_n(gradient.W, m * d, Real{0});
  std::fill_n(gradient.b, m, Real{0});
  std::fill_n(gradient.O, leaves * shape.n_outputs, Real{0});
  if (n == 0) return;
  const PaddedRows<Real> W(layer.W, m, shape.n_columns, stride_of<Real>(shape));
  const int groups = n_groups(shape, n, gradient.X != nullptr);
  std::vector<Buffer<Real>> by_X(gradient.X ? groups : 0);
  parallel_for(groups, n_threads, [&](int group) {
    const int first = static_cast<int>(std::int64_t{shape.n_trees} * group / groups),
              last = static_cast<int>(std::int64_t{shape.n_trees} * (group + 1) / groups);
    if (gradient.X) by_X[group] = Buffer<Real>(n * d);
    group_backward(trees_of(layer, W.data(), first, last), first, n, X, slope, gradient,
                   gradient.X ? by_X[group].data() : nullptr);
  });
  if (!gradient.X) return;
  std::fill_n(gradient.X, n * d, Real{0});
  for (const Buffer<Real>& part : by_X)
    for (std::ptrdiff_t i = 0; i < n * d; ++i) gradient.X[i] += part[i];
}

template void tel_layer_forward(const TelLayer<float>&, std::int64_t, const float*, int, float*,
                                std::int32_t*);
template void tel_layer_forward(const TelLayer<double>&, std::int64_t, const double*, int, double*,
                                std::int32_t*);
template void tel_layer_backward(const TelLayer<float>&, std::int64_t, const float*, const float*,
                                 int, const TelLayerGradient<float>&);
template void tel_layer_backward(const TelLayer<double>&, std::int64_t, const double*,
                                 const double*, int, const TelLayerGradient<double>&);

}  // namespace hardwood
