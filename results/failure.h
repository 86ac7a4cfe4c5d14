// The disk said no: what happened to which file, and what to do about it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace results {

// Thrown by everything in results that touches files, and caught at the command line. Nothing
// committed earlier is lost: a run that failed is resumed like one that was killed.
class Failure : public std::runtime_error {
 public:
  explicit Failure(std::string what, std::string hint = "")
      : std::runtime_error(hint.empty() ? what : what + "\n  hint: " + hint) {}
};

}  // namespace results
