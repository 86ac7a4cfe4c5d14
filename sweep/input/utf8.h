// Is this text? Rows and messages carry what users write, and readers of Parquet refuse other bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace sweep {

// Length of the UTF-8 character at the start of the text, 1 to 4; 0 if none is there (a stray byte, a cut or
// overlong form, a surrogate, beyond U+10FFFF).
std::size_t character_length(std::string_view text);

// Whether all of it is UTF-8 without zero bytes.
bool is_utf8(std::string_view text);

// The first byte that does not belong in a text, as a mistake with its line and column.
std::optional<engine::Mistake> not_text(std::string_view text, const std::string& file);

}  // namespace sweep
