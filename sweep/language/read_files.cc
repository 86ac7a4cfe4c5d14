#include "sweep/language/read_files.h"

#include <algorithm>
#include <chrono>
#include <system_error>

namespace sweep {
namespace {

// File systems keep times in steps of some milliseconds, old ones of two seconds.
constexpr std::chrono::seconds kStep{2};

}  // namespace

ReadFiles::Stamp ReadFiles::stamp_of(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code no_size, no_time;
  Stamp stamp{.bytes = fs::file_size(file, no_size), .written = fs::last_write_time(file, no_time)};
  stamp.exists = !no_size && !no_time;
  if (!stamp.exists) return {.settled = true};
  stamp.settled = fs::file_time_type::clock::now() - stamp.written > kStep;
  return stamp;
}

void ReadFiles::note(const std::string& file) {
  if (!files_.contains(file)) files_.emplace(file, stamp_of(file));
}

bool ReadFiles::any_changed() const {
  return std::ranges::any_of(files_, [](const auto& known) {
    const auto& [file, then] = known;
    const Stamp now = stamp_of(file);
    return !then.settled || now.exists != then.exists || now.bytes != then.bytes ||
           now.written != then.written;
  });
}

}  // namespace sweep
