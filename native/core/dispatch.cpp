#include <cstdlib>
#include <stdexcept>
#include <string>

#include "core/kernels.hpp"

namespace hardwood {

namespace baseline {
extern const Kernels table;
}
#ifdef HARDWOOD_X86
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
#endif

namespace {

#ifdef HARDWOOD_X86
// Routing is limited by loads, and eight rows at a time fill the registers of AVX2. Wider registers
// do not help, and the compiler generates worse code for them (benchmarks/speed/inference.py).
Kernels avx512_with_narrow_routing() {
  Kernels mixed = avx512::table;
  mixed.encode_rows = avx2::table.encode_rows;
  mixed.route = avx2::table.route;
  mixed.route_plain = avx2::table.route_plain;
  mixed.route_encoded = avx2::table.route_encoded;
  mixed.answer = avx2::table.answer;
  return mixed;
}
#endif

std::vector<const Kernels*> supported() {
  std::vector<const Kernels*> found{&baseline::table};
#ifdef HARDWOOD_X86
  static const Kernels avx512_mixed = avx512_with_narrow_routing();
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    found.push_back(&avx2::table);
  if (found.size() == 2 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    found.push_back(&avx512_mixed);
#endif
  return found;
}

const Kernels& choose() {
  const auto found = supported();
  const char* wish = std::getenv("HARDWOOD_ISA");
  if (!wish) return *found.back();
  std::string names;
  for (const Kernels* k : found) {
    if (std::string_view(wish) == k->name) return *k;
    names += std::string(names.empty() ? "" : ", ") + k->name;
  }
  throw std::runtime_error("HARDWOOD_ISA=" + std::string(wish) +
                           " is not an instruction set of this machine. It has: " + names);
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

std::vector<std::string_view> available_instruction_sets() {
  std::vector<std::string_view> names;
  for (const Kernels* k : supported()) names.emplace_back(k->name);
  return names;
}

}  // namespace hardwood
