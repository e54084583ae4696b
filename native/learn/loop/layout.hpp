// The layout of a learner's parameters.
#pragma once

#include <cstddef>

#include "core/matrix.hpp"

namespace hardwood {

// The parts of a learner's parameters [W | A | b | leaves].
template <class T>
struct Parameters {
  T* W = nullptr;       // (splits, padded(columns))
  T* A = nullptr;       // (leaves, outputs, padded(columns)), or null: the leaves are constant
  T* b = nullptr;       // (splits,)
  T* leaves = nullptr;  // (leaves, outputs)
};

// Offsets of these parts. The weights come first, because l1 and l2 apply only to them.
struct Layout {
  std::size_t n_splits = 0;  // of all trees that are learned together, as are the leaves
  std::size_t n_leaves = 0;
  int n_columns = 0;
  int n_outputs = 0;
  bool has_leaf_weights = false;

  std::size_t weights_end() const { return n_splits * padded(n_columns); }
  std::size_t n_leaf_weights() const {
    return has_leaf_weights ? n_values() * padded(n_columns) : 0;
  }
  std::size_t n_penalized() const { return weights_end() + n_leaf_weights(); }
  std::size_t n_values() const { return n_leaves * n_outputs; }
  std::size_t n_parameters() const { return n_penalized() + n_splits + n_values(); }

  template <class T>
  Parameters<T> view(T* parameters) const {
    T* const bias = parameters + n_penalized();
    return {parameters, has_leaf_weights ? parameters + weights_end() : nullptr, bias,
            bias + n_splits};
  }
};

}  // namespace hardwood
