// Scaling of rewards of any size: centered at the mean reward of random actions, in units of spread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace hardwood {

// Two kinds. The paper's: rewards as they are, or as fractions of their range if some lie outside
// [0, 1]. Otherwise the center is the mean of the first rewards, those of random actions: leaves that
// start there are neither optimistic nor pessimistic. The scale is then the range, or four standard
// deviations if there are outliers; it is computed again whenever the number of rewards has doubled.
class RewardScale {
 public:
  RewardScale(bool is_paper, std::uint64_t n_first)
      : is_paper_(is_paper),
        next_look_(std::max<std::uint64_t>(n_first, 1)),
        lowest_(is_paper ? 0.0 : std::numeric_limits<double>::infinity()),
        highest_(is_paper ? 1.0 : -std::numeric_limits<double>::infinity()),
        is_known_(is_paper) {}

  bool is_known() const { return is_known_; }
  double mean() const { return mean_; }  // of all rewards
  float standard(double reward) const {
    return static_cast<float>((within(reward) - center_) / scale_);
  }
  double reward_of(float value) const { return center_ + scale_ * value; }

  // Returns the factor for values in the old scale: 1 unless the scale changed.
  double add(double reward) {
    ++count_;
    reward = within(reward);
    const double difference = reward - mean_;
    mean_ += difference / static_cast<double>(count_);
    squares_ += difference * (reward - mean_);
    lowest_ = std::min(lowest_, reward);
    highest_ = std::max(highest_, reward);
    if (is_paper_) {
      center_ = lowest_;
      scale_ = highest_ - lowest_;
      return 1.0;
    }
    if (count_ < next_look_) return 1.0;
    next_look_ *= 2;
    const double before = std::exchange(scale_, spread());
    if (is_known_) return before / scale_;
    is_known_ = true;
    center_ = mean_;
    return 1.0;
  }

  // Same as `add`, but computes the scale from the stored rewards without outliers: otherwise one wrong
  // reward would set the scale for a long time. `stored` returns them, the new one included, and is
  // called only when the scale is computed. If the center is outside their range (the start tree had
  // other units, the environment has changed), it is computed again and the factor is 0: leaves start
  // again.
  template <class Stored>
  double add(double reward, Stored&& stored) {
    if (is_paper_ || count_ + 1 < next_look_) return add(reward);
    ++count_;
    next_look_ *= 2;
    const Bulk bulk = bulk_of(stored());
    const double before = std::exchange(scale_, bulk.spread > 0 ? bulk.spread : scale_);
    const double around = 0.5 * scale_;
    if (is_known_ && bulk.lowest - around <= center_ && center_ <= bulk.highest + around)
      return before / scale_;
    is_known_ = true;
    center_ = bulk.mean;
    return 0.0;
  }

  // Starts from known expected values, between these two.
  void start_from(double lowest, double highest) {
    if (is_paper_) {
      lowest_ = std::min(lowest_, lowest);
      highest_ = std::max(highest_, highest);
      center_ = lowest_;
      scale_ = highest_ - lowest_;
      return;
    }
    center_ = 0.5 * (lowest + highest);
    scale_ = highest > lowest ? highest - lowest : 1.0;
    is_known_ = true;
  }

  struct State {
    std::uint64_t count, next_look;
    double mean, squares, lowest, highest, center, scale;
    bool is_known;
  };
  State state() const {
    return {count_, next_look_, mean_, squares_, lowest_, highest_, center_, scale_, is_known_};
  }
  void set_state(const State& s) {
    count_ = s.count, next_look_ = s.next_look, mean_ = s.mean, squares_ = s.squares;
    lowest_ = s.lowest, highest_ = s.highest, center_ = s.center, scale_ = s.scale;
    is_known_ = s.is_known;
  }

 private:
  static constexpr double kFarthest = 4;

  // Rewards without outliers.
  struct Bulk {
    double mean, lowest, highest, spread;
  };

  // Far: more than 20 ranges of the others away from them. At most one reward per thousand is left out:
  // what is more frequent is not a mistake.
  static std::pair<std::size_t, std::size_t> bulk_within(const std::vector<double>& sorted) {
    constexpr double kFar = 20;
    const std::size_t n = sorted.size();
    const double median = sorted[n / 2];
    std::pair<std::size_t, std::size_t> kept{0, n};
    for (std::size_t first = 0, last = n, left = 1 + n / 1000; left > 0 && last - first > 2;
         --left) {
      const bool is_low = median - sorted[first] > sorted[last - 1] - median;
      const double gap =
          is_low ? sorted[first + 1] - sorted[first] : sorted[last - 1] - sorted[last - 2];
      is_low ? ++first : --last;
      const double range = sorted[last - 1] - sorted[first];
      if (range > 0 && gap > kFar * range) kept = {first, last};
    }
    return kept;
  }

  // The spread: four standard deviations, but at most the range, and at least so large that no
  // remaining reward is clipped.
  static Bulk bulk_of(std::vector<double> rewards) {
    std::ranges::sort(rewards);
    const auto [first, last] = bulk_within(rewards);
    const auto n = static_cast<double>(last - first);
    double mean = 0, squares = 0;
    for (std::size_t i = first; i < last; ++i) mean += rewards[i] / n;
    for (std::size_t i = first; i < last; ++i)
      squares += (rewards[i] - mean) * (rewards[i] - mean) / n;
    const double lowest = rewards[first], highest = rewards[last - 1], range = highest - lowest;
    const double spread = std::min(range, std::max(4.0 * std::sqrt(squares), range / kFarthest));
    return {mean, lowest, highest, spread};
  }

  // Clips outliers.
  double within(double reward) const {
    if (is_paper_ || !is_known_) return reward;
    return std::clamp(reward, center_ - kFarthest * scale_, center_ + kFarthest * scale_);
  }

  double spread() const {
    const double deviation = std::sqrt(squares_ / static_cast<double>(count_));
    const double found = std::min(highest_ - lowest_, 4.0 * deviation);
    return found > 0 ? found : scale_;
  }

  bool is_paper_;
  std::uint64_t count_ = 0, next_look_;
  double mean_ = 0, squares_ = 0, lowest_, highest_, center_ = 0, scale_ = 1;
  bool is_known_;
};

}  // namespace hardwood
