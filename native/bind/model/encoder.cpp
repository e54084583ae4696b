#include <algorithm>

#include "bind/model/encoder.hpp"
#include "bind/model/table_arrays.hpp"
#include "core/kernels.hpp"

namespace hardwood {

Encoder::Encoder(Array1<std::uint8_t> kinds, Array1<std::int32_t> first_column,
                 Array1<std::int32_t> n_levels, Array1<std::int32_t> flag_column,
                 Array1<double> center, Array1<double> scale, int n_columns) {
  const std::size_t p = kinds.size();
  require(first_column.size() == p && n_levels.size() == p && flag_column.size() == p &&
              center.size() == p && scale.size() == p,
          "the encoder's arrays differ in length");
  require(p > 0, "an encoder has at least one feature");
  checked_size("kinds", p);
  checked_range("n_columns", n_columns, 1, kMany);
  require_finite_entries("center", center);
  require_positive("scale", scale);
  require_indices("first_column", first_column, n_columns);
  // Counted before they are listed: the list has one entry per column.
  std::int64_t n_filled = 0;
  for (std::size_t f = 0; f < p; ++f) {
    n_filled +=
        kinds.data()[f] == 0 ? 1 : checked_range("n_levels", n_levels.data()[f], 0, n_columns);
    n_filled += flag_column.data()[f] >= 0;
  }
  require(n_filled == n_columns, "the features do not fill n_columns columns");
  std::vector<std::int32_t> indicator_columns;
  for (std::size_t f = 0; f < p; ++f) {
    const bool numeric = kinds.data()[f] == 0;
    const std::int32_t levels = numeric ? 0 : n_levels.data()[f];
    first_level_.push_back(numeric ? -1 : static_cast<std::int32_t>(indicator_columns.size()));
    n_levels_.push_back(levels);
    if (numeric) {
      numeric_feature_.push_back(static_cast<std::int32_t>(f));
      column_of_.push_back(first_column.data()[f]);
      center_.push_back(center.data()[f]);
      scale_.push_back(scale.data()[f]);
    }
    for (std::int32_t l = 0; l < levels; ++l)
      indicator_columns.push_back(first_column.data()[f] + l);
    const bool flagged = flag_column.data()[f] >= 0;
    flag_.push_back(flagged ? static_cast<std::int32_t>(indicator_columns.size()) : -1);
    if (flagged) indicator_columns.push_back(flag_column.data()[f]);
  }
  column_of_.insert(column_of_.end(), indicator_columns.begin(), indicator_columns.end());
  std::vector<bool> is_filled(n_columns);
  for (const std::int32_t c : column_of_) {
    require(c >= 0 && c < n_columns && !is_filled[c], "a column is out of range or filled twice");
    is_filled[c] = true;
  }

  center_float_.assign(padded(static_cast<int>(center_.size())), 0.0f);
  inverse_scale_float_ = center_float_;
  for (std::size_t j = 0; j < center_.size(); ++j) {
    inverse_scale_.push_back(1.0 / scale_[j]);
    center_float_[j] = static_cast<float>(center_[j]);
    inverse_scale_float_[j] = static_cast<float>(inverse_scale_[j]);
  }
  const auto fits = [](double exact, float rounded) {
    return static_cast<double>(rounded) == exact;
  };
  encoding_.n_features = static_cast<int>(p);
  encoding_.n_numeric = static_cast<int>(numeric_feature_.size());
  encoding_.n_indicators = static_cast<int>(indicator_columns.size());
  encoding_.all_numeric = numeric_feature_.size() == p;
  encoding_.fits_float =
      std::equal(center_.begin(), center_.end(), center_float_.begin(), fits) &&
      std::equal(inverse_scale_.begin(), inverse_scale_.end(), inverse_scale_float_.begin(), fits);
  encoding_.numeric_feature = numeric_feature_.data();
  encoding_.center = center_.data();
  encoding_.inverse_scale = inverse_scale_.data();
  encoding_.center_float = center_float_.data();
  encoding_.inverse_scale_float = inverse_scale_float_.data();
  encoding_.first_level = first_level_.data();
  encoding_.n_levels = n_levels_.data();
  encoding_.flag = flag_.data();

  constexpr double kModerate = 0x1p40;
  for (const double scale_of_one : scale_)
    scales_are_moderate_ &= scale_of_one >= 1.0 / kModerate && scale_of_one <= kModerate;
  ones_.assign(center_.size(), 1.0);
  ones_float_.assign(center_float_.size(), 1.0f);
  unscaled_ = encoding_;
  unscaled_.is_unscaled = true;
  unscaled_.inverse_scale = ones_.data();
  unscaled_.inverse_scale_float = ones_float_.data();
}

namespace {

auto encode(const Encoder& encoder, const nb::object& X) {
  const TableArrays table(encoder, X);
  const Encoding& e = encoder.encoding();
  const std::size_t columns = encoder.n_columns();
  return answers<float>({table.n_rows(), columns}, [&](float* out) {
    Buffer<float> values(padded(e.n_numeric));
    Buffer<std::int32_t> active(e.n_features);
    BadEntry bad;
    for (std::size_t row = 0; row < table.n_rows(); ++row, out += columns) {
      std::int32_t active_end = 0;
      kernels().encode_rows(e, table.source(), nullptr, static_cast<std::int64_t>(row), 1,
                            {values.data(), padded(e.n_numeric), active.data(), &active_end}, bad);
      for (int j = 0; j < e.n_numeric; ++j) out[encoder.column_of()[j]] = values[j];
      for (int a = 0; a < active_end; ++a) out[encoder.column_of()[e.n_numeric + active[a]]] = 1.0f;
    }
    return bad;
  });
}

}  // namespace

void require_width(std::size_t found, const Encoding& expected) {
  if (static_cast<std::int64_t>(found) != expected.n_features)
    throw std::invalid_argument("found " + std::to_string(found) + " features, expected " +
                                std::to_string(expected.n_features));
}

void throw_infinity(const BadEntry& bad) {
  throw std::domain_error("infinity at row " + std::to_string(bad.row) + ", feature " +
                          std::to_string(bad.feature));
}

void bind_table(nb::module_& m) {
  nb::class_<Encoder>(m, "Encoder", "Turns raw rows into the columns that splits weigh.")
      .def(nb::init<Array1<std::uint8_t>, Array1<std::int32_t>, Array1<std::int32_t>,
                    Array1<std::int32_t>, Array1<double>, Array1<double>, int>(),
           nb::arg("kinds"), nb::arg("first_column"), nb::arg("n_levels"), nb::arg("flag_column"),
           nb::arg("center"), nb::arg("scale"), nb::arg("n_columns"))
      .def_prop_ro("n_columns", &Encoder::n_columns)
      .def("encode", &encode, nb::arg("X"), "Encoded rows (n, n_columns), in the schema's order.");
}

}  // namespace hardwood
