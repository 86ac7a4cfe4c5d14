#include "sweep/space/text_code.h"

#include <xxhash.h>

#include "engine/leaves/leaves.h"

namespace sweep {

double text_code(std::string_view text) {
  return double(XXH3_64bits(text.data(), text.size()) >> 12);
}

std::string text_digest(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return engine::to_hex({.high = hash.high64, .low = hash.low64});
}

}  // namespace sweep
