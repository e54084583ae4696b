// Options from Python: names to enumerators.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "bind/bind.hpp"
#include "core/objective.hpp"
#include "learn/dgt/tile.hpp"
#include "learn/non_greedy/tile.hpp"
#include "tree/soft_tree.hpp"

namespace hardwood {

template <class E, std::size_t N>
E named(std::string_view name, std::string_view what,
        const std::pair<std::string_view, E> (&options)[N]) {
  for (const auto& [key, value] : options)
    if (key == name) return value;
  throw std::invalid_argument("unknown " + std::string(what) + " '" + std::string(name) + "'");
}

inline Loss loss_named(std::string_view name) {
  return named<Loss>(name, "loss",
                     {{"squared_error", Loss::kSquared},
                      {"absolute_error", Loss::kAbsolute},
                      {"huber", Loss::kHuber},
                      {"quantile", Loss::kQuantile},
                      {"poisson", Loss::kPoisson},
                      {"logistic", Loss::kLogistic},
                      {"cross_entropy", Loss::kCrossEntropy},
                      {"hinge", Loss::kHinge},
                      {"squared_codes", Loss::kSquaredCodes},
                      {"custom", Loss::kCustom}});
}

inline Optimizer optimizer_named(std::string_view name) {
  return named<Optimizer>(
      name, "optimizer",
      {{"sgd", Optimizer::kSgd}, {"rmsprop", Optimizer::kRmsprop}, {"adam", Optimizer::kAdam}});
}

inline DgtForm form_named(std::string_view path, std::string_view quantizer,
                          std::string_view routing) {
  return {named<Path>(path, "path",
                      {{"sum", Path::kSum},
                       {"product", Path::kProduct},
                       {"product_softmax", Path::kProductSoftmax}}),
          named<Quantizer>(quantizer, "quantizer",
                           {{"sign", Quantizer::kSign}, {"scaled", Quantizer::kScaled}}),
          named<Routing>(routing, "routing",
                         {{"quantized", Routing::kQuantized}, {"annealed", Routing::kAnnealed}}),
          1.0f};
}

inline Activation activation_named(std::string_view name) {
  return named<Activation>(name, "activation",
                           {{"smooth_step", Activation::kSmoothStep},
                            {"smooth_step_5", Activation::kSmoothStep5},
                            {"logistic", Activation::kLogistic}});
}

inline Inference inference_named(std::string_view name) {
  return named<Inference>(name, "inference",
                          {{"exhaustive", Inference::kExhaustive},
                           {"exact", Inference::kExact},
                           {"fast", Inference::kFast}});
}

inline Schedule schedule_named(std::string_view name) {
  return named<Schedule>(name, "schedule",
                         {{"constant", Schedule::kConstant},
                          {"cosine", Schedule::kCosine},
                          {"one_cycle", Schedule::kOneCycle}});
}

}  // namespace hardwood
