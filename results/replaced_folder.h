// Runs that are read while another process puts a new one in their place (`llmsweep compare --accept`).
#pragma once

#include <cstdint>
#include <filesystem>

#include "results/failure.h"

namespace results {

// Which folder stands at a path, and when its name or contents last changed.
struct FolderState {
  std::uint64_t device = 0, number = 0;
  std::int64_t changed = 0;  // ns
  bool operator==(const FolderState&) const = default;
};
FolderState state_of(const std::filesystem::path& folder);

// What `read` makes of a folder. It may meet a manifest of one run and the files of the next: what goes wrong is tried again where
// the folder is another one since. A run that is being written changes, too, so not for ever.
template <class Read>
auto read_again_if_replaced(const std::filesystem::path& folder, Read read) {
  constexpr int most = 20;
  for (int times = 1;; ++times) {
    const FolderState before = state_of(folder);
    const auto is_final = [&] { return times == most || state_of(folder) == before; };
    try {
      auto result = read();
      if (result || is_final()) return result;
    } catch (const Failure&) {
      if (is_final()) throw;
    }
  }
}

}  // namespace results
