// Options of a call from Python: a dict of which every entry is read once.
#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bind/bind.hpp"

namespace hardwood {

// Every error is a std::invalid_argument that names the option.
class OptionReader {
 public:
  static constexpr double kMost = std::numeric_limits<float>::max();
  static constexpr double kLeastPositive = std::numeric_limits<float>::min();

  explicit OptionReader(const nb::dict& options) : options_(options) {}

  template <class T>
  T get(const char* name) {
    T value;
    if (!options_.contains(name)) fail(name, "is missing");
    if (!nb::try_cast(nb::object(options_[name]), value)) fail(name, "has another type");
    read_.insert(name);
    return value;
  }

  // A number of a range, both ends included.
  template <class T>
  T get(const char* name, T low, T high) {
    const T value = get<T>(name);
    check(name, value, low, high);
    return value;
  }

  float number(const char* name, double low = 0, double high = kMost) {
    return static_cast<float>(get<double>(name, low, high));
  }

  template <class T, class... Range>
  std::optional<T> find(const char* name, Range... range) {
    return options_.contains(name) ? std::optional<T>(get<T>(name, range...)) : std::nullopt;
  }

  // Several numbers of a range; a number of how many there are, where that is known.
  template <class T>
  std::vector<T> list(const char* name, T low, T high, std::optional<std::size_t> size = {}) {
    const std::vector<T> values = get<std::vector<T>>(name);
    if (size && values.size() != *size)
      fail(name,
           "must have " + std::to_string(*size) + " entries, got " + std::to_string(values.size()));
    for (const T value : values) check(name, value, low, high);
    return values;
  }

  // Call this last: an option that nothing has read is a mistake.
  void refuse_others() const {
    for (const auto& [name, value] : options_)
      if (const std::string text = nb::cast<std::string>(nb::str(name)); !read_.contains(text))
        fail(text, "is unknown");
  }

 private:
  [[noreturn]] static void fail(const std::string& name, const std::string& what) {
    throw std::invalid_argument("option '" + name + "' " + what);
  }
  template <class T>
  static void check(const char* name, T value, T low, T high) {
    if (!(value >= low && value <= high))
      fail(name,
           "must lie between " + shown(low) + " and " + shown(high) + ", got " + shown(value));
  }

  const nb::dict& options_;
  std::set<std::string> read_;
};

}  // namespace hardwood
