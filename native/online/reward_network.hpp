// A network that estimates the reward of every action: two hidden layers of rectified linear units,
// learned from the reward of the action taken. NumPy reference: tests/reference/reward_network.py.
//
// A layer is one matrix (inputs + 1, outputs), whose last row is the bias; its inputs end with a
// constant 1.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "core/matrix.hpp"
#include "core/objective.hpp"
#include "core/random.hpp"

namespace hardwood {

inline constexpr int kNetworkLayers = 3;
// Of weights, in size; learning stays far below. With limited inputs, every output is then finite.
inline constexpr float kMostNetworkWeight = 1e6f;

class NetworkShape {
 public:
  NetworkShape(int n_columns, int hidden, int n_outputs)
      : width_{n_columns, hidden, hidden, n_outputs} {}

  bool operator==(const NetworkShape&) const = default;
  int n_columns() const { return width_.front(); }
  int n_outputs() const { return width_.back(); }
  int width(int i) const { return width_[i]; }
  std::size_t first(int i) const;  // of layer i, in the array of all parameters
  std::size_t n_parameters() const { return first(kNetworkLayers); }
  template <class T>
  Matrix<T> layer(T* parameters, int i) const {
    return {parameters + first(i), width_[i] + 1, width_[i + 1], padded(width_[i + 1])};
  }

 private:
  std::array<int, kNetworkLayers + 1> width_;
};

// Inputs and the outputs of every layer, for up to `capacity` rows.
class Activations {
 public:
  Activations(const NetworkShape& shape, int capacity);
  // (n, width of layer i, and the constant unless it is the output)
  Matrix<float> at(int i, int n) { return {values_[i].data(), n, columns_[i], stride_[i]}; }
  Matrix<float> inputs(int n) { return at(0, n); }
  Matrix<float> outputs(int n) { return at(kNetworkLayers, n); }

 private:
  std::array<int, kNetworkLayers + 1> columns_;
  std::array<std::ptrdiff_t, kNetworkLayers + 1> stride_;
  std::array<Buffer<float>, kNetworkLayers + 1> values_;
};

// Computes the outputs of n rows from their inputs.
void forward(const NetworkShape& shape, const float* parameters, int n, Activations& rows);

enum class RewardLoss { kLogistic, kSquared, kHuber };

// What a row teaches: the reward of one action, and the weight of the row.
struct ActionReward {
  std::int32_t action = 0;
  float reward = 0;
  float weight = 1;
};

// The derivative of the loss by the output of the action. With the logistic loss, the output is a
// log-odds and the reward lies in [0, 1]. Errors beyond kHuberWidth count linearly in Huber's loss.
inline constexpr float kHuberWidth = 0.25f;
float reward_slope(RewardLoss loss, float output, float reward);
// The expected reward that an output stands for.
float expected_reward(RewardLoss loss, float output);

struct NetworkOptions {
  int hidden = 256;
  StepOptions step;
  float weight_decay = 0;  // decoupled from the gradient: Loshchilov, Hutter. ICLR 2019
};

class RewardNetwork {
 public:
  RewardNetwork(int n_columns, int n_actions, const NetworkOptions& options, int batch_size,
                std::uint64_t seed);

  const NetworkShape& shape() const { return shape_; }
  const Buffer<float>& parameters() const { return parameters_; }

  // Rows to learn from or to answer: the caller writes inputs, at most `batch_size` of them.
  Activations& rows() { return rows_; }
  void answer(int n) { forward(shape_, parameters_.data(), n, rows_); }
  // The gradient of the mean loss of the rows, with the layout of the parameters.
  std::span<const float> gradient(std::span<const ActionReward> wanted, RewardLoss loss);
  void step(std::span<const ActionReward> wanted, RewardLoss loss);
  void scale_outputs(double factor);
  // Forgets the rewards of actions and keeps the hidden layers.
  void forget();

  struct State {
    std::vector<float> parameters, first_moment, second_moment;
    StepClock::Powers powers;
  };
  State state() const;
  void set_state(const State& state);

 private:
  std::ptrdiff_t last_layer() const {
    return static_cast<std::ptrdiff_t>(shape_.first(kNetworkLayers - 1));
  }
  void fall(int n);

  NetworkShape shape_;
  NetworkOptions options_;
  Buffer<float> parameters_, first_moment_, second_moment_, gradient_, transposed_;
  Buffer<float> start_;  // the last layer before anything was learned
  Activations rows_, slopes_;
  StepClock clock_;
};

}  // namespace hardwood
