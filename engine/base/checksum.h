// A short fingerprint of text, for files that must not be edited by hand.
#pragma once

#include <string>
#include <string_view>

namespace engine {

// 16 hexadecimal digits (xxh3, 64 bits).
std::string checksum_of(std::string_view text);

}  // namespace engine
