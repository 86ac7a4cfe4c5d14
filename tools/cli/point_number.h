// The number of a point as an option: a minus would be read as a very large one.
#pragma once

#include <string>

namespace tools {

inline std::string check_point_number(const std::string& text) {
  return text.starts_with('-') ? "'" + text + "': points are counted from 0" : "";
}

}  // namespace tools
