#include "results/writers.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "results/run_manifests.h"

namespace results {
namespace {

// A shared lock on a file that is there, held as long as the handle lives.
enum class Shared : std::uint8_t { taken, refused, no_file };
Shared take_shared(const std::filesystem::path& path, FileHandle& handle) {
  handle = FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!handle) return errno == ENOENT ? Shared::no_file : Shared::refused;
  return ::flock(handle.get(), LOCK_SH | LOCK_NB) == 0 ? Shared::taken : Shared::refused;
}

}  // namespace

std::vector<Writer> writers_of(const std::filesystem::path& run, const std::vector<Shard>& shards) {
  std::vector<Writer> writers(shards.size(), Writer::unknown);
  // A writer takes the folder's lock before a shard's. While this one holds the folder, no other can find a shard's lock taken by it.
  FileHandle folder;
  if (take_shared(folder_lock(run), folder) != Shared::taken) return writers;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    FileHandle shard;
    const Shared found = take_shared(shard_lock(run, shards[i]), shard);
    writers[i] = found == Shared::refused ? Writer::alive : Writer::none;
  }
  return writers;
}

engine::Result<std::vector<FileHandle>> lock_writers(const std::filesystem::path& run) {
  std::vector<FileHandle> locks;
  for (const ShardManifest& found : read_run(run)) {
    auto lock = try_lock(shard_lock(run, found.shard));
    if (!lock) {
      return engine::Mistake{
          {.file = run.string()}, "another process is writing this run", "wait for it or stop it"};
    }
    locks.push_back(std::move(*lock));
  }
  return locks;
}

}  // namespace results
