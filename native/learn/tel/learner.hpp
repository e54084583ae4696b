// TEL for the training loop: parameters [W | b | O] in one array; tree/soft.hpp and
// learn/tel/step.hpp compute the batches.
//
// Batch normalization comes before the trees, as in Sec. 2 of the paper, without a scale and a
// shift, which the weights and biases of splits make redundant. Its inputs are the columns of the
// table, so prediction uses the mean and variance of all training rows; steps use those of their
// batch.
#pragma once

#include <utility>
#include <vector>

#include "core/kernels.hpp"
#include "learn/loop/training.hpp"
#include "tree/soft_memory.hpp"

namespace hardwood {

// Weighted sums of columns and of their squares.
class ColumnMoments {
 public:
  explicit ColumnMoments(int n_columns) : sum_(n_columns), sum_of_squares_(n_columns) {}

  void add(const SampleTile& tile);
  bool is_known() const { return total_ > 0; }
  // Normalizes column j to mean 0 and variance 1 (slightly less if the variance is small): x scale
  // + shift.
  std::pair<double, double> scale_and_shift(int j) const;

 private:
  std::vector<double> sum_, sum_of_squares_;
  double total_ = 0;
};

class TelLearner final : public GradientLearner {
 public:
  TelLearner(SoftShape shape, Activation activation, float gamma, bool normalizes, Loss loss,
             float loss_parameter, int batch_size, std::size_t max_kept_scores = kKeptScores);

  static constexpr std::size_t kKeptScores = std::size_t{1} << 22;  // 16 MiB

  int tile_capacity(int batch_size) const override { return rounded_up(batch_size, kTileStep); }
  void before_epoch(int epoch, const float* parameters, const Tiles& all_rows) override;
  void initialize(Random& random, float* parameters) const override;
  double add_gradient(const float* parameters, const SampleTile& tile, float factor,
                      float* gradient) override;
  void predict(const float* parameters, const SampleTile& tile, Purpose purpose,
               float* prediction) override;
  void report(double weight, EpochRecord& record) override;
  void finish(float* parameters) const override;

 private:
  SoftTrees<float> trees(const float* parameters) const;
  void load(const SampleTile& samples, Purpose purpose);
  // Calls each(tile, its first row) for each part of samples that walk together.
  template <class Each>
  void for_parts(Each&& each);
  void forward(const SoftTrees<float>& trees, bool keeps_scores);

  SoftShape shape_;
  Activation activation_;
  float gamma_;
  bool normalizes_;
  Loss loss_;
  float loss_parameter_;
  int capacity_;
  SoftMemory<float> memory_;
  int n_ = 0;                 // samples loaded
  Buffer<float> X_;           // (capacity, stride) normalized
  Buffer<float> XT_;          // (parts, d, rows of a part)
  Buffer<float> out_;         // (capacity, k)
  Buffer<float> slope_;       // (capacity, k)
  Buffer<float> prediction_;  // (k, capacity)
  Buffer<float> gradient_;    // (k, capacity), by the prediction
  Buffer<float> tape_;        // (parts, scores kept of each)
  ColumnMoments of_all_;      // over all training rows
  std::int64_t n_reached_ = 0, n_met_ = 0;
};

}  // namespace hardwood
