#include "explain/shapley/walk.hpp"

namespace hardwood {

Walks::Walks(const Game& game, const std::vector<FeatureRow>& rows,
             const std::vector<float>& largest, const std::atomic<bool>& stop)
    : n_(rows.size()), perturbed_(game, 2 * n_, largest), stop_(stop) {
  for (std::size_t r = 0; r < n_; ++r) {
    perturbed_.set_end(r, rows[r]);
    perturbed_.set_start(n_ + r, rows[r]);
  }
  for (std::vector<double>* sums : {&gain_, &first_, &sum_, &squares_})
    sums->resize(n_ * game.players.size() * game.group.n_outputs);
}

void Walks::add(const FeatureRow& z, std::span<const std::int32_t> orders, double* values,
                double* variances) {
  const std::size_t n = perturbed_.n_players(), n_orders = n ? orders.size() / n : 0;
  for (std::size_t r = 0; r < n_; ++r) {
    perturbed_.set_start(r, z);
    perturbed_.set_end(n_ + r, z);
  }
  std::fill(sum_.begin(), sum_.end(), 0.0);
  std::fill(squares_.begin(), squares_.end(), 0.0);
  for (std::size_t order = 0; order < n_orders && !stop_; ++order) {
    walk(orders.subspan(order * n, n));
    if (order == 0) {
      std::swap(first_, gain_);
      continue;
    }
    // Sums are of differences from the first walk, so equal walks have a variance of exactly 0.
    for (std::size_t i = 0; i < gain_.size(); ++i) {
      const double more = gain_[i] - first_[i];
      sum_[i] += more;
      squares_[i] += more * more;
    }
  }
  // A gain is the sum over two walks.
  const double m = static_cast<double>(n_orders), half = 0.5;
  for (std::size_t i = 0; i < gain_.size(); ++i) {
    values[i] += half * (first_[i] + sum_[i] / m);
    variances[i] +=
        half * half * std::max(squares_[i] - sum_[i] * sum_[i] / m, 0.0) / (m * (m - 1.0));
  }
}

// One order, forward and backward.
void Walks::walk(std::span<const std::int32_t> order) {
  std::fill(gain_.begin(), gain_.end(), 0.0);
  perturbed_.start();
  for (const std::int32_t player : order) {
    perturbed_.take(player, true);
    credit(player);
  }
}

void Walks::credit(std::int32_t player) {
  const std::size_t k = perturbed_.group().n_outputs, stride = perturbed_.n_players() * k;
  for (const std::size_t row : perturbed_.touched()) {
    const bool is_back = row >= n_;
    const double *now = perturbed_.now(row), *before = perturbed_.before(row);
    const double sign = is_back ? -1.0 : 1.0;
    double* gain = gain_.data() + (is_back ? row - n_ : row) * stride + player * k;
    for (std::size_t o = 0; o < k; ++o) gain[o] += sign * (now[o] - before[o]);
  }
}

}  // namespace hardwood
