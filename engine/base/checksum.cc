#include "engine/base/checksum.h"

#include <fmt/core.h>
#include <xxhash.h>

namespace engine {

std::string checksum_of(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

}  // namespace engine
