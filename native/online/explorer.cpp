#include "online/explorer.hpp"

#include <optional>
#include <utility>

namespace hardwood {

namespace {

// In standard deviations. Farther ones count as this far: a network extrapolates without bound.
constexpr float kFarthestInput = 10.0f;

void limit(float* z, int n) {
  for (int c = 0; c < n; ++c) z[c] = std::clamp(z[c], -kFarthestInput, kFarthestInput);
}

}  // namespace

Explorer::Explorer(int n_columns, int n_actions, const ExplorerOptions& options, std::uint64_t seed)
    : options_(options),
      n_steps_(static_cast<int>(std::lround(options.updates_per_round * kShortest))),
      network_(n_columns, n_actions, options.network, 2 * options.batch_size, seed),
      other_(n_columns) {}

void Explorer::standardize(const OnlineTree& tree, const float* x, float* z) {
  tree.standardize(x, z);
  limit(z, tree.shape().n_columns);
}

void Explorer::values(const float* x, std::span<float> out) const {
  const std::shared_ptr<const Served> served = [&] {
    const std::lock_guard lock(serving_);
    return served_;
  }();
  if (!served->has_learned) {
    std::ranges::fill(out, 0.0f);
    return;
  }
  thread_local std::optional<std::pair<NetworkShape, Activations>> scratch;
  if (!scratch || scratch->first != network_.shape())
    scratch.emplace(network_.shape(), Activations(network_.shape(), 1));
  Activations& rows = scratch->second;
  float* z = rows.inputs(1).row(0);
  served->scale.standardize(x, z);
  limit(z, network_.shape().n_columns());
  forward(network_.shape(), served->parameters.data(), 1, rows);
  for (std::size_t k = 0; k < out.size(); ++k)
    out[k] = expected_reward(served->loss, rows.outputs(1).row(0)[k]);
}

// A step of the tree on the network's answers for all actions: for stored contexts, and for mixtures of
// two, which lie up to half way between them.
void Explorer::teach(const ReplayBuffer<Outcome>& stored, OnlineTree& tree, RewardLoss loss,
                     Random& random) {
  const int n_own = static_cast<int>(std::min<std::size_t>(stored.size(), options_.batch_size));
  const int size = 2 * n_own, n_columns = tree.shape().n_columns;
  SampleTile& tile = tree.batch().tile;
  const auto draw = [&](float* z) {
    tree.standardize(stored.context(random.below(stored.size())), z);
  };
  tree.step_on(size, 1.0f / static_cast<float>(size), [&](int first) {
    const Matrix<float> inputs = network_.rows().inputs(tile.n);
    for (int i = 0; i < tile.n; ++i) {
      float* z = tile.X.row(i);
      draw(z);
      if (first + i >= n_own) {
        draw(other_.data());
        const float share = 0.5f * random.uniform();
        for (int c = 0; c < n_columns; ++c) z[c] += share * (other_[c] - z[c]);
      }
      std::copy_n(z, n_columns, inputs.row(i));
      limit(inputs.row(i), n_columns);
      tile.weight[i] = 1.0f;
    }
    network_.answer(tile.n);
    for (int i = 0; i < tile.n; ++i)
      for (int k = 0; k < tree.shape().n_outputs; ++k)
        tile.target[static_cast<std::ptrdiff_t>(k) * tile.capacity + i] =
            expected_reward(loss, network_.rows().outputs(tile.n).row(i)[k]);
  });
}

void Explorer::publish(const ColumnScale& scale, RewardLoss loss) {
  Buffer<float> parameters(network_.parameters().size());
  std::copy(network_.parameters().begin(), network_.parameters().end(), parameters.begin());
  std::shared_ptr<const Served> next(new Served{std::move(parameters), scale, loss, has_learned_});
  const std::lock_guard lock(serving_);
  served_.swap(next);
}

}  // namespace hardwood
