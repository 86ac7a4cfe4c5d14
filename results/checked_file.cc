#include "results/checked_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <memory>

#include "results/durable_file.h"
#include "results/failure.h"
#include "results/seal.h"

namespace results {
namespace {

namespace fs = std::filesystem;

std::string is_damaged(const PartFile& file) {
  return file.name + " is damaged: its checksum is not the one in the manifest";
}

}  // namespace

std::optional<std::uint64_t> file_checksum(const fs::path& path) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  if (state == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  const bool found = read_pieces(path, [&state](std::string_view piece) {
    XXH3_64bits_update(state.get(), piece.data(), piece.size());
  });
  if (!found) return std::nullopt;
  return XXH3_64bits_digest(state.get());
}

std::string trouble_with(const fs::path& folder, const PartFile& file, Look look) {
  if (file.name.empty()) return "";
  const std::optional<std::uint64_t> length = file_length(folder / file.name);
  if (!length) return file.name + " is missing";
  if (*length != file.bytes) {
    return fmt::format("{} has {} bytes, not {}", file.name, *length, file.bytes);
  }
  if (look == Look::contents && file_checksum(folder / file.name) != file.checksum) {
    return is_damaged(file);
  }
  return "";
}

std::string trouble_with(const fs::path& folder, const PartRecord& part, Look look) {
  for (const PartFile& file : part.files) {
    std::string trouble = trouble_with(folder, file, look);
    if (!trouble.empty()) return trouble;
  }
  return "";
}

std::string checked_bytes(const fs::path& folder, const PartFile& file) {
  std::optional<std::string> bytes = read_file(folder / file.name);
  if (!bytes) throw FailsAgain((folder / file.name).string() + " is missing");
  if (checksum_of(*bytes) != file.checksum) throw FailsAgain((folder / is_damaged(file)).string());
  return std::move(*bytes);
}

}  // namespace results
