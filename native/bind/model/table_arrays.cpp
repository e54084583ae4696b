#include "bind/model/table_arrays.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>

#include <utility>

namespace hardwood {

namespace {

bool is_csr(const nb::object& X) {
  std::string_view format;
  return nb::hasattr(X, "indptr") && nb::hasattr(X, "format") &&
         nb::try_cast(nb::object(X.attr("format")), format) && format == "csr";
}

}  // namespace

TableArrays::TableArrays(const Encoder& encoder, const nb::object& X) {
  const bool is_sparse = is_csr(X);
  const nb::object values = is_sparse ? nb::object(X.attr("data")) : X;
  require(nb::try_cast(values, values_, false) && values_.ndim() == (is_sparse ? 1 : 2) &&
              (values_.dtype() == nb::dtype<float>() || values_.dtype() == nb::dtype<double>()),
          "X must be float32 or float64, contiguous (n, p) or a CSR matrix");
  const bool is_float = values_.dtype() == nb::dtype<float>();
  require(is_aligned(static_cast<const char*>(values_.data()),
                     is_float ? sizeof(float) : sizeof(double)),
          "X must be aligned to its entries");
  source_.values = values_.data();
  source_.n_features = encoder.encoding().n_features;
  if (!is_sparse) {
    require_width(values_.shape(1), encoder.encoding());
    source_.kind = is_float ? Source::Kind::kFloat : Source::Kind::kDouble;
    source_.n_rows = static_cast<std::int64_t>(values_.shape(0));
    return;
  }
  std::pair<std::size_t, std::size_t> shape;
  // Converted arrays stay alive as long as this object: it owns them.
  require(nb::try_cast(nb::object(X.attr("shape")), shape) &&
              nb::try_cast(nb::object(X.attr("indices")), indices_) &&
              nb::try_cast(nb::object(X.attr("indptr")), indptr_),
          "not a compressed sparse row matrix");
  require_width(shape.second, encoder.encoding());
  check_csr(encoder.encoding());
  source_.kind = is_float ? Source::Kind::kFloatSparse : Source::Kind::kDoubleSparse;
  source_.n_rows = static_cast<std::int64_t>(indptr_.size()) - 1;
  source_.indices = indices_.data();
  source_.indptr = indptr_.data();
}

void TableArrays::check_csr(const Encoding& encoding) const {
  require(encoding.all_numeric, "sparse tables hold numbers only");
  require(indptr_.size() >= 1 && values_.size() == indices_.size(),
          "not a compressed sparse row matrix");
  std::int64_t previous = 0;
  for (std::size_t i = 0; i < indptr_.size(); ++i) {
    require(indptr_.data()[i] >= previous, "the row pointers of the sparse table decrease");
    previous = indptr_.data()[i];
  }
  require(indptr_.data()[0] == 0 && static_cast<std::size_t>(previous) <= values_.size(),
          "the row pointers of the sparse table leave its data");
  // Increasing columns also keep a row from raising more flags than it has features.
  for (std::size_t row = 0; row + 1 < indptr_.size(); ++row) {
    std::int32_t last = -1;
    for (std::int64_t i = indptr_.data()[row]; i < indptr_.data()[row + 1]; ++i) {
      require(indices_.data()[i] > last && indices_.data()[i] < encoding.n_features,
              "the columns of a sparse row must increase and lie within the table");
      last = indices_.data()[i];
    }
  }
}

}  // namespace hardwood
