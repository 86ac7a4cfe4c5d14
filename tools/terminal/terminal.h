// What the verbs print. Names, labels and paths come from files of others: nothing in them may reach a
// terminal that it would obey (colours, titles, moved cursors, text turned around).
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tools {

// The text with every control character but line feed and tab, every mark that turns the direction of
// writing, and every byte that is not UTF-8 written out, as in \x1b or \u202e.
std::string printable(std::string_view text);

// Throws std::system_error where the text cannot be written.
void write_out(std::FILE* stream, std::string_view text);
// The same of what is still on its way: before another stream goes on, so that lines keep their order. A reader that has gone away
// has no use for it.
void flush_out(std::FILE* stream);

// What is printed there from now on is dropped.
void silence(std::FILE* stream);

template <class... Values>
void print(std::FILE* stream, fmt::format_string<Values...> format, Values&&... values) {
  write_out(stream, printable(fmt::format(format, std::forward<Values>(values)...)));
}
template <class... Values>
void print(fmt::format_string<Values...> format, Values&&... values) {
  // With its namespace: the format would bring in fmt's own function.
  tools::print(stdout, format, std::forward<Values>(values)...);
}

// A line each: "note: ...".
inline void print_notes(std::FILE* stream, std::span<const std::string> notes) {
  for (const std::string& note : notes) tools::print(stream, "note: {}\n", note);
}

}  // namespace tools
