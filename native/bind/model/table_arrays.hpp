// Conversion of tables from Python: dense or sparse, float32 or float64.
#pragma once

#include <optional>

#include "bind/model/encoder.hpp"

namespace hardwood {

// A table from Python, kept alive while it is read: a C-contiguous array (n, p), or an object that
// has `data`, `indices`, `indptr` and `shape` as SciPy's CSR. Index arrays of other types are
// converted.
class TableArrays {
 public:
  TableArrays(const Encoder& encoder, const nb::object& X);
  const Source& source() const { return source_; }
  std::size_t n_rows() const { return static_cast<std::size_t>(source_.n_rows); }

 private:
  void check_csr(const Encoding& encoding) const;

  nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> values_;
  Array1<std::int32_t> indices_;
  Array1<std::int64_t> indptr_;
  Source source_;
};

// One row as a table.
template <class T>
Source row_source(const Encoding& encoding, const Array1<T>& x) {
  require_width(x.size(), encoding);
  return {sizeof(T) == sizeof(float) ? Source::Kind::kFloat : Source::Kind::kDouble,
          x.data(),
          1,
          encoding.n_features,
          nullptr,
          nullptr};
}

inline void require_finite(const BadEntry& bad) {
  if (bad.feature >= 0) throw_infinity(bad);
}

// A new NumPy array that fill(T*) writes without the GIL; it returns the first infinity of the table.
template <class T, class Fill>
nb::ndarray<nb::numpy, T> answers(std::initializer_list<std::size_t> shape, Fill&& fill) {
  BadEntry bad;
  auto array = new_array<T>(shape, [&](T* out) {
    const nb::gil_scoped_release release;
    bad = fill(out);
  });
  require_finite(bad);
  return array;
}

}  // namespace hardwood
