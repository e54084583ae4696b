// From the values of actions to the probabilities of taking them, and a draw from those.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace hardwood {

// Which actions may be taken; null: all of them.
using ActionMask = const std::uint8_t*;

inline bool is_allowed(ActionMask mask, int action) {
  return !mask || mask[action];
}

// The first of the best allowed actions.
inline int best_action(std::span<const float> values, ActionMask mask) {
  int best = -1;
  for (int k = 0; k < static_cast<int>(values.size()); ++k)
    if (is_allowed(mask, k) && (best < 0 || values[k] > values[best])) best = k;
  return best;
}

inline int n_allowed(std::size_t n_actions, ActionMask mask) {
  int n = 0;
  for (std::size_t k = 0; k < n_actions; ++k) n += is_allowed(mask, static_cast<int>(k));
  return n;
}

// [DGT22] Eq. (7): the best action, but with probability delta any allowed one.
inline void explore_uniformly(std::span<const float> values, ActionMask mask, double delta,
                              std::span<double> probability) {
  const int best = best_action(values, mask), n = n_allowed(values.size(), mask);
  for (int k = 0; k < static_cast<int>(values.size()); ++k)
    probability[k] = (is_allowed(mask, k) ? delta / n : 0.0) + (k == best ? 1.0 - delta : 0.0);
}

// Inverse gap weighting: the probability of an action falls with the gap between its value and the
// best.
// Foster, Rakhlin. Beyond UCB: optimal and efficient contextual bandits with regression oracles.
// ICML 2020.
inline void explore_by_gaps(std::span<const float> values, ActionMask mask, double gamma,
                            std::span<double> probability) {
  const int best = best_action(values, mask), n = n_allowed(values.size(), mask);
  double rest = 1.0;
  for (int k = 0; k < static_cast<int>(values.size()); ++k) {
    probability[k] = 0.0;
    if (k == best || !is_allowed(mask, k)) continue;
    const double gap = static_cast<double>(values[best]) - values[k];
    probability[k] = 1.0 / (n + gamma * gap);
    rest -= probability[k];
  }
  probability[best] = rest;
}

// No allowed action is rarer than `least`, or than 1 / n of n allowed actions, if that is less: what lies above is
// shared as before.
inline void keep_above(double least, ActionMask mask, std::span<double> probability) {
  const int n = n_allowed(probability.size(), mask);
  const double floor = std::min(least, 1.0 / n), rest = 1.0 - n * floor;
  for (int k = 0; k < static_cast<int>(probability.size()); ++k)
    if (is_allowed(mask, k)) probability[k] = floor + std::max(rest, 0.0) * probability[k];
}

// The action at which the running sum of probabilities passes u in [0, 1).
inline int drawn_action(std::span<const double> probability, double u) {
  double sum = 0;
  int last = 0;
  for (int k = 0; k < static_cast<int>(probability.size()); ++k) {
    if (probability[k] <= 0) continue;
    last = k;
    sum += probability[k];
    if (u < sum) break;
  }
  return last;
}

}  // namespace hardwood
