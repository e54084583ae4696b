// The objective and the options of a step, shared by every learner of the engine.
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>

namespace hardwood {

enum class Loss {
  kSquared,
  kAbsolute,
  kHuber,
  kQuantile,
  kPoisson,
  kLogistic,
  kCrossEntropy,
  // Losses of classes, coded as 1 for the row's class and -1 for the others, summed over classes.
  kHinge,
  kSquaredCodes,
  kCustom,
  // Losses of bandit feedback: of one output only, that of the chosen action. They read two
  // targets, the action and its reward.
  kActionSquared,
  kActionSigmoid
};

// Losses of classes read one target, the class index. The others read one target per output, except
// the losses of actions.
inline bool has_class_target(Loss loss) {
  return loss == Loss::kCrossEntropy || loss == Loss::kHinge || loss == Loss::kSquaredCodes;
}

// A tile of predictions and targets, output-major with the samples side by side.
struct LossTile {
  int n_outputs = 0;                  // k
  std::ptrdiff_t stride = 0;          // samples of room per output, a multiple of 16
  const float* prediction = nullptr;  // (k, stride)
  const float* target = nullptr;      // (k, stride), or (1, stride) class indices
  const float* weight = nullptr;      // (stride,)
  float* gradient = nullptr;          // (k, stride)
};

enum class Optimizer { kSgd, kRmsprop, kAdam };

struct StepOptions {
  Optimizer optimizer = Optimizer::kRmsprop;
  float learning_rate = 0.01f;
  float momentum = 0.0f;  // Adam: beta_1
  float decay = 0.99f;    // RMSprop: alpha; Adam: beta_2
  float epsilon = 1e-8f;
  float l1 = 0.0f;
  float l2 = 0.0f;
  float gradient_factor = 1.0f;    // clipping
  float first_correction = 1.0f;   // Adam: 1 - beta_1^t
  float second_correction = 1.0f;  // Adam: 1 - beta_2^t
};

// What changes from step to step: the clipping factor and Adam's bias corrections.
class StepClock {
 public:
  void prepare(StepOptions& step, double squared_gradient_norm, float clip_norm) {
    const double norm = std::sqrt(squared_gradient_norm);
    step.gradient_factor = norm > clip_norm ? static_cast<float>(clip_norm / norm) : 1.0f;
    powers_.first *= step.momentum;
    powers_.second *= step.decay;
    step.first_correction = static_cast<float>(1.0 - powers_.first);
    step.second_correction = static_cast<float>(1.0 - powers_.second);
  }

  // For saving: beta_1^t and beta_2^t.
  struct Powers {
    double first = 1, second = 1;
  };
  Powers powers() const { return powers_; }
  void set_powers(Powers powers) { powers_ = powers; }

 private:
  Powers powers_;
};

enum class Schedule { kConstant, kCosine, kOneCycle };

// Learning rate at step t of n, as a fraction of the peak.
inline double schedule_factor(Schedule schedule, double t, double n, int cycles) {
  const auto half_cosine = [](double from, double to, double progress) {
    return to + 0.5 * (from - to) * (1.0 + std::cos(std::numbers::pi * progress));
  };
  switch (schedule) {
    case Schedule::kConstant:
      return 1.0;
    case Schedule::kCosine: {
      const double length = n / cycles;
      return half_cosine(1.0, 0.0, std::fmod(t, length) / length);
    }
    case Schedule::kOneCycle: {
      constexpr double kStart = 1.0 / 25.0, kEnd = kStart / 1e4, kRise = 0.3;
      const double top = kRise * n - 1.0;
      return t <= top ? half_cosine(kStart, 1.0, top > 0 ? t / top : 1.0)
                      : half_cosine(1.0, kEnd, n - 1.0 > top ? (t - top) / (n - 1.0 - top) : 1.0);
    }
  }
  return 1.0;
}

}  // namespace hardwood
