// Are the files that were read still what they were?
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace sweep {

class ReadFiles {
 public:
  // Remembers a file that has just been read; one that is known already stays as it was.
  void note(const std::string& file);
  // Whether one of them may have another content now: another size or time, gone or come.
  bool any_changed() const;

 private:
  struct Stamp {
    std::uintmax_t bytes = 0;
    std::filesystem::file_time_type written;
    bool exists = false;
    // Written so long before it was read that writing it once more gives it another time.
    bool settled = false;
  };
  static Stamp stamp_of(const std::string& file);

  std::map<std::string, Stamp> files_;
};

}  // namespace sweep
