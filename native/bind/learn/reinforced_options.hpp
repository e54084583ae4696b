// Options of reinforced trees, by Python's keyword arguments.
#pragma once

#include "bind/learn/option_reader.hpp"
#include "bind/options.hpp"
#include "learn/reinforced/learner.hpp"

namespace hardwood {

inline ReinforcedOptions reinforced_options(OptionReader& options) {
  ReinforcedOptions o;
  o.estimator = named<PolicyEstimator>(
      options.get<std::string>("estimator"), "estimator",
      {{"sampled", PolicyEstimator::kSampled}, {"exact", PolicyEstimator::kExact}});
  o.baseline = named<Baseline>(options.get<std::string>("baseline"), "baseline",
                               {{"none", Baseline::kNone},
                                {"leave-one-out", Baseline::kLeaveOneOut},
                                {"value", Baseline::kValue}});
  o.n_samples =
      options.get<int>("n_samples", o.baseline == Baseline::kLeaveOneOut ? 2 : 1, 1 << 16);
  o.entropy = options.number("entropy");
  o.first_temperature = options.number("first_temperature", OptionReader::kLeastPositive);
  o.last_temperature = options.number("last_temperature", OptionReader::kLeastPositive);
  o.annealed_at = options.number("annealed_at", OptionReader::kLeastPositive);
  o.policy_scale = options.number("policy_scale");
  o.leaf_scale = options.number("leaf_scale");
  o.by_lanes = options.find<bool>("by_lanes");
  return o;
}

}  // namespace hardwood
