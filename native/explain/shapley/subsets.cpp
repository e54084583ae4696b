#include "explain/shapley/subsets.hpp"

namespace hardwood {

Subsets::Subsets(const Game& game, const std::vector<FeatureRow>& rows,
                 const std::vector<float>& largest, const std::atomic<bool>& stop)
    : rows_(game, rows.size(), largest),
      stop_(stop),
      size_(rows.size() * game.group.n_outputs),
      is_x_(game.players.size()),
      g_(game.players.size() + 1, 1.0),
      at_start_(size_),
      sums_((game.players.size() + 1) * 2 * size_) {
  for (std::size_t r = 0; r < rows.size(); ++r) rows_.set_end(r, rows[r]);
  const double n = static_cast<double>(game.players.size());
  for (std::size_t p = 1; p < g_.size(); ++p)
    g_[p] = g_[p - 1] * static_cast<double>(p) / (n - static_cast<double>(p) + 1.0);
}

void Subsets::add(const FeatureRow& z, double* values) {
  const std::size_t k = rows_.group().n_outputs;
  for (std::size_t r = 0; r < rows_.size(); ++r) rows_.set_start(r, z);
  rows_.start();
  values_ = values;
  std::fill(is_x_.begin(), is_x_.end(), 0);
  for (std::size_t r = 0; r < rows_.size(); ++r)
    std::copy_n(rows_.now(r), k, at_start_.data() + r * k);
  decide(0, 0.0);
}

// First as given, then reversed.
void Subsets::decide(std::size_t player, double n_x) {
  if (player == rows_.n_players()) return end(n_x);
  if (stop_) return;
  const bool is_x = is_x_[player];
  decide_as(player, is_x, n_x);
  is_x_[player] = !is_x;
  rows_.take(static_cast<std::int32_t>(player), !is_x);
  decide_as(player, !is_x, n_x);
}

void Subsets::decide_as(std::size_t player, bool is_x, double n_x) {
  double *here = sums_at(player), *below = sums_at(player + 1);
  std::fill_n(below, 2 * size_, 0.0);
  decide(player + 1, n_x + (is_x ? 1.0 : 0.0));
  for (std::size_t i = 0; i < 2 * size_; ++i) here[i] += below[i];
  const std::size_t k = rows_.group().n_outputs, n = rows_.n_players();
  const double *part = is_x ? below : below + size_, sign = is_x ? 1.0 : -1.0;
  for (std::size_t r = 0; r < rows_.size(); ++r)
    for (std::size_t o = 0; o < k; ++o) values_[(r * n + player) * k + o] += sign * part[r * k + o];
}

void Subsets::end(double n_x) {
  const std::size_t k = rows_.group().n_outputs;
  const double g = g_[static_cast<std::size_t>(n_x)];
  const double n_z = static_cast<double>(rows_.n_players()) - n_x;
  const double per_x = n_x > 0 ? g / n_x : 0.0, per_z = n_z > 0 ? g / n_z : 0.0;
  double *of_x = sums_at(rows_.n_players()), *of_z = of_x + size_;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const double* answer = rows_.now(r);
    for (std::size_t o = 0; o < k; ++o) {
      const double v = answer[o] - at_start_[r * k + o];
      of_x[r * k + o] += v * per_x;
      of_z[r * k + o] += v * per_z;
    }
  }
}

}  // namespace hardwood
