// What the verbs print. Names, labels and paths come from files of others: nothing in them may reach a
// terminal that it would obey (colours, titles, moved cursors, text turned around).
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace tools {

// The text with every control character but line feed and tab, every mark that turns the direction of
// writing, and every byte that is not UTF-8 written out, as in \x1b or \u202e.
std::string printable(std::string_view text);

// Throws std::system_error where the text cannot be written.
void write_out(std::FILE* stream, std::string_view text);

template <class... Values>
void print(std::FILE* stream, fmt::format_string<Values...> format, Values&&... values) {
  write_out(stream, printable(fmt::format(format, std::forward<Values>(values)...)));
}
template <class... Values>
void print(fmt::format_string<Values...> format, Values&&... values) {
  // With its namespace: the format would bring in fmt's own function.
  tools::print(stdout, format, std::forward<Values>(values)...);
}

}  // namespace tools
