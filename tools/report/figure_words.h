// How the page names a figure: in the words of its description, with the group that a list shows it in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tools {

// The head of a column's description: "task serve: time to first token, p99" is "time to first token, p99". The
// column's own name where the description has no such head. A brief one of a long head leaves out clauses that explain.
enum class LabelLength : std::uint8_t { brief, full };
std::string figure_label(std::string_view column, std::string_view description, LabelLength length);

// "time", "rates", "memory"...; "other" for a figure of a program newer than this one.
std::string_view figure_group(std::string_view column);

}  // namespace tools
