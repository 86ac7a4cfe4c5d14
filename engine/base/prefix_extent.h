// A stretch of a token sequence that others may share.
#pragma once

#include <cstdint>

namespace engine {

// `key` stands for the content of everything up to `end`, so two requests share KV exactly as far as
// their keys agree. Stretches may have any length: a recorded block, a system prompt, a turn of a
// conversation.
struct PrefixExtent {
  std::uint64_t key = 0;
  std::int64_t end = 0;  // tokens from the start of the sequence

  // The rest of a sequence, which no other has: it ends wherever the sequence does.
  static constexpr std::int64_t kOpen = std::int64_t{1} << 62;
  bool own() const { return end == kOpen; }
};

}  // namespace engine
