// The door libFuzzer comes in by; LLMSWEEP_FUZZ_TARGET names the target.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/targets.h"

namespace {

const fuzz::Target& chosen() {
  const char* name = std::getenv("LLMSWEEP_FUZZ_TARGET");
  for (const fuzz::Target& target : fuzz::targets()) {
    if (name != nullptr && target.name == name) return target;
  }
  std::fprintf(stderr, "LLMSWEEP_FUZZ_TARGET names no target\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Target& target = chosen();
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
