// Texts as numbers: how an expression compares names, and how a run knows its spec again.
#pragma once

#include <string>
#include <string_view>

namespace sweep {

// A number that stands for a text in an expression: 52 bits of its hash, so that equal texts compare
// equal and different ones (but for one chance in 2^52) do not.
double text_code(std::string_view text);

// 32 hexadecimal digits of the content.
std::string text_digest(std::string_view text);

}  // namespace sweep
