// Rewards of any size in units of their own spread, around what they are without any skill.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace hardwood {

// Of two kinds. In the paper's, rewards are as they came, or shares of their range where some lie
// outside of [0, 1]. Else the centre is the mean of the first rewards, those of actions taken at
// random: leaves that start there are neither optimistic nor pessimistic. The scale is then the
// range, or four deviations where single rewards lie far out; it is looked at again whenever the
// number of rewards has doubled.
class RewardScale {
 public:
  RewardScale(bool is_paper, std::uint64_t n_first)
      : is_paper_(is_paper),
        next_look_(std::max<std::uint64_t>(n_first, 1)),
        lowest_(is_paper ? 0.0 : std::numeric_limits<double>::infinity()),
        highest_(is_paper ? 1.0 : -std::numeric_limits<double>::infinity()),
        is_known_(is_paper) {}

  bool is_known() const { return is_known_; }
  double center() const { return center_; }
  double mean() const { return mean_; }  // of all rewards
  double scale() const { return scale_; }
  float standard(double reward) const {
    return static_cast<float>((within(reward) - center_) / scale_);
  }
  double reward_of(float value) const { return center_ + scale_ * value; }

  // Returns what values in the scale before are to be multiplied by: 1 unless the scale changed.
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

  // From values that are expected already, between these two.
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
  // A reward far out is drawn in, or it alone would decide what all others count.
  double within(double reward) const {
    constexpr double kFarthest = 4;
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
