#include "explain/walk.hpp"

namespace hardwood {

Walks::Walks(MovingRows& rows, const std::atomic<bool>& stop) : rows_(rows), stop_(stop) {
  for (std::vector<double>* sums : {&gain_, &first_, &sum_, &squares_})
    sums->resize(rows.size() * rows.n_players() * rows.team().n_outputs);
}

void Walks::add(std::span<const std::int32_t> orders, double* values, double* variances) {
  const std::size_t n = rows_.n_players(), n_orders = n ? orders.size() / n : 0;
  std::fill(sum_.begin(), sum_.end(), 0.0);
  std::fill(squares_.begin(), squares_.end(), 0.0);
  for (std::size_t order = 0; order < n_orders && !stop_; ++order) {
    walk(orders.subspan(order * n, n));
    if (order == 0) {
      std::swap(first_, gain_);
      continue;
    }
    // Sums are of the differences from the first walk: equal walks have no variance to the last bit.
    for (std::size_t i = 0; i < gain_.size(); ++i) {
      const double more = gain_[i] - first_[i];
      sum_[i] += more;
      squares_[i] += more * more;
    }
  }
  // A gain is that of two walks.
  const double m = static_cast<double>(n_orders), half = 0.5;
  for (std::size_t i = 0; i < gain_.size(); ++i) {
    values[i] += half * (first_[i] + sum_[i] / m);
    variances[i] +=
        half * half * std::max(squares_[i] - sum_[i] * sum_[i] / m, 0.0) / (m * (m - 1.0));
  }
}

// One order, there and back.
void Walks::walk(std::span<const std::int32_t> order) {
  std::fill(gain_.begin(), gain_.end(), 0.0);
  rows_.restart();
  for (const std::int32_t player : order) {
    rows_.take(player, true);
    credit(player, 1.0);
  }
  for (const std::int32_t player : order) {
    rows_.take(player, false);
    credit(player, -1.0);
  }
}

void Walks::credit(std::int32_t player, double sign) {
  const std::size_t k = rows_.team().n_outputs, stride = rows_.n_players() * k;
  double* gain = gain_.data() + player * k;
  for (std::size_t r = 0; r < rows_.size(); ++r, gain += stride) {
    const double *now = rows_.now(r), *before = rows_.before(r);
    if (now == before) continue;
    for (std::size_t o = 0; o < k; ++o) gain[o] += sign * (now[o] - before[o]);
  }
}

}  // namespace hardwood
