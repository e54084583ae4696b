// Array types of the bindings, and the parts of the module. Bindings check arguments and call the
// engine; they compute nothing.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bind/checks.hpp"
#include "core/buffer.hpp"

namespace hardwood {

namespace nb = nanobind;

// An array whose entries lie where their type must: others, such as views into bytes, are refused.
template <class T, class... Config>
class AlignedArray : public nb::ndarray<T, Config...> {
 public:
  using Base = nb::ndarray<T, Config...>;
  AlignedArray() = default;
  explicit AlignedArray(const Base& base) : Base(base) {}
};

template <class T>
bool is_aligned(const T* data, std::size_t size = sizeof(T)) {
  return reinterpret_cast<std::uintptr_t>(data) % size == 0;
}

template <class T, int kDim>
using Array = AlignedArray<const T, nb::ndim<kDim>, nb::c_contig, nb::device::cpu>;
// Memory of the caller that the engine writes to.
template <class T, int kDim>
using Result = AlignedArray<T, nb::ndim<kDim>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array1 = Array<T, 1>;
template <class T>
using Array2 = Array<T, 2>;

// An initialized object of a bound class.
template <class T>
const T& checked_object(nb::handle object, const char* message) {
  const T* found = nullptr;
  require(nb::try_cast(object, found) && found, message);
  return *found;
}

// A new NumPy array that owns a copy made by `fill(T*)`.
template <class T, class Fill>
nb::ndarray<nb::numpy, T> new_array(const std::vector<std::size_t>& shape, Fill&& fill) {
  auto* buffer = new Buffer<T>(checked_product(shape));
  nb::capsule owner(buffer, [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
  fill(buffer->data());
  return nb::ndarray<nb::numpy, T>(buffer->data(), shape.size(), shape.data(), owner);
}

void bind_table(nb::module_& m);
void bind_tree(nb::module_& m);
void bind_forest(nb::module_& m);
void bind_ensemble(nb::module_& m);
void bind_policy(nb::module_& m);
void bind_explain(nb::module_& m);
void bind_fit(nb::module_& m);
void bind_learn_greedy(nb::module_& m);
void bind_learn_tao(nb::module_& m);
void bind_learn_linear_tree(nb::module_& m);
void bind_nn(nb::module_& m);
void bind_latent(nb::module_& m);
void bind_bandit(nb::module_& m);
void bind_counterfactual(nb::module_& m);
void bind_core(nb::module_& m);

}  // namespace hardwood

template <class T, class... Config>
struct nanobind::detail::type_caster<hardwood::AlignedArray<T, Config...>> {
  using Base = make_caster<typename hardwood::AlignedArray<T, Config...>::Base>;
  using Aligned = hardwood::AlignedArray<T, Config...>;
  NB_TYPE_CASTER(Aligned, Base::Name)

  bool from_python(handle from, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    Base base;
    if (!base.from_python(from, flags, cleanup)) return false;
    value = Aligned(base.value);
    return hardwood::is_aligned(value.data());
  }
};
