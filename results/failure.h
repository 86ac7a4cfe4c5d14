// The disk said no: what happened to which file, and what to do about it.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/base/result.h"

namespace results {

// Thrown by everything in results that touches files, and caught at the command line. Nothing
// committed earlier is lost: a run that failed is resumed like one that was killed.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& what, const std::string& hint = "")
      : std::runtime_error(hint.empty() ? what : what + "\n  hint: " + hint) {}
};

// What lies there is damaged, or for another program to finish. The same command would fail again, so the hint says what to do first.
class FailsAgain : public Failure {
 public:
  using Failure::Failure;
};

// What is wrong with a file or folder that the user gave, as a value for callers that report it and go on.
inline engine::Mistake mistake(const std::filesystem::path& where, std::string what,
                               std::string hint) {
  return {.where = {.file = where.string()}, .what = std::move(what), .hint = std::move(hint)};
}

}  // namespace results
