// CO2: a hyperplane by gradient descent on a bound of the loss of one split with two leaves.
//
// Norouzi, Collins, Fleet, Kohli 2015: the bound of learn/non_greedy/step.hpp for a tree of one
// split, on the rows of one node, started from the best axis split. Departs from the paper: the
// threshold along the learned direction is searched again, as the best for the impurity of the
// node.
#include <cmath>

#include "core/threads.hpp"
#include "learn/greedy/level.hpp"
#include "learn/non_greedy/learner.hpp"

namespace hardwood {

namespace {

// Keeps the scores of a pure leaf finite.
constexpr double kLeastShare = 1e-3;

Loss loss_of(Measure measure) {
  if (has_classes(measure)) return Loss::kCrossEntropy;
  return measure == Measure::kVariance ? Loss::kSquared : Loss::kLogistic;
}

// The scores whose outputs are the class frequencies or means of a leaf.
float score_of(Measure measure, double mean) {
  if (measure == Measure::kVariance) return static_cast<float>(mean);
  const double share = std::clamp(mean, kLeastShare, 1.0 - kLeastShare);
  return static_cast<float>(has_classes(measure) ? std::log(share)
                                                 : std::log(share / (1.0 - share)));
}

class Co2Node {
 public:
  Co2Node(const Level& level, const Problem& problem, const LevelNode& node, int n_threads)
      : level_(level), node_(node), n_threads_(n_threads), own_(problem) {
    for (int i = node.first; i < node.last; ++i) rows_.push_back(problem.train[level.row[i]]);
    own_.train = rows_;
    own_.valid = {};
    own_.loss = loss_of(level.options.measure);
    own_.loss_parameter = 0;
    own_.n_outputs = level.targets.width;
  }

  // The split of the first norm that beats the axis split; none if no norm does.
  ObliqueSplit run(const AxisSplit& axis) {
    for (const float nu : level_.options.co2.nu) {
      ObliqueSplit found = run(axis, nu);
      if (found.worth > axis.worth) return found;
    }
    return {};
  }

 private:
  ObliqueSplit run(const AxisSplit& axis, float nu) {
    const Co2Options& co2 = level_.options.co2;
    TrainingOptions training;
    training.batch_size = std::min(co2.batch_size, node_.size());
    const int n_batches = (node_.size() + training.batch_size - 1) / training.batch_size;
    training.max_epochs = std::clamp(co2.max_steps / n_batches, 1, co2.max_epochs);
    training.schedule = Schedule::kCosine;
    training.schedule_cycles = 1;
    training.step.learning_rate = co2.learning_rate;
    NonGreedyOptions options;
    options.inference = Inference::kExact;
    options.nu = nu;
    options.momentum = co2.momentum;
    const std::int32_t children[] = {~0, ~1};
    const TreeTopology topology(children);
    NonGreedyLearner learner(topology, own_, options, training.batch_size, n_threads_);
    Monitor monitor;
    monitor.on_epoch = [&](const EpochRecord&) { return level_.stop.load(); };
    const TrainingResult result = train(learner, own_, training, static_cast<int>(node_.number),
                                        level_.seed, start_at(axis, nu, learner.layout()), monitor);
    const float* weights = result.parameters.data();
    return along(level_, node_, std::vector<double>(weights, weights + own_.n_columns()));
  }

  // The axis split, with norm sqrt(nu), and leaves fitted to their rows.
  std::vector<float> start_at(const AxisSplit& axis, float nu, const Layout& layout) const {
    std::vector<float> parameters(layout.n_parameters());
    const Parameters<float> p = layout.view(parameters.data());
    const GreedySplit split = split_of(level_.data, axis);
    double norm = static_cast<double>(split.bias) * split.bias;
    for (const SplitTerm& term : split.terms)
      norm += static_cast<double>(term.weight) * term.weight;
    const auto scale = static_cast<float>(std::sqrt(nu / norm));
    for (const SplitTerm& term : split.terms) p.W[term.column] = scale * term.weight;
    *p.b = scale * split.bias;
    set_leaves(axis, p.leaves);
    return parameters;
  }

  void set_leaves(const AxisSplit& axis, float* theta) const {
    const RowTargets& targets = level_.targets;
    std::vector<double> sums[2];
    for (auto& of_side : sums) of_side.assign(targets.n_sums(), 0.0);
    for (int i = node_.first; i < node_.last; ++i)
      targets.add(i, sums[goes_right(level_.data, axis, level_.row[i])].data());
    for (int side = 0; side < 2; ++side)
      for (int k = 0; k < targets.width; ++k)
        theta[side * targets.width + k] =
            score_of(targets.measure, sums[side][1 + k] / std::max(sums[side][0], 1e-30));
  }

  const Level& level_;
  const LevelNode& node_;
  int n_threads_;
  Problem own_;
  std::vector<std::int64_t> rows_;
};

}  // namespace

std::vector<ObliqueSplit> search_co2(const Level& level, const Problem& problem,
                                     std::span<const LevelNode> nodes,
                                     std::span<const AxisSplit> axis) {
  std::vector<ObliqueSplit> found(nodes.size());
  const int n_nodes = static_cast<int>(nodes.size());
  // Threads share the nodes or, if there are too few nodes, the rows of a batch.
  const int of_node = n_nodes < level.n_threads ? level.n_threads : 1;
  parallel_for(n_nodes, of_node > 1 ? 1 : level.n_threads, [&](int i) {
    if (level.stop || !axis[i].found()) return;
    found[i] = Co2Node(level, problem, nodes[i], of_node).run(axis[i]);
  });
  return found;
}

}  // namespace hardwood
