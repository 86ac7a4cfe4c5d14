#include "results/durable_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "results/failure.h"

namespace results {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const char* doing, const fs::path& path, int error) {
  std::string hint;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    hint = "make room on that disk, then run the same command again: it resumes";
  } else if (error == EROFS || error == EACCES || error == EPERM) {
    hint = "choose a folder you may write to with -o DIR";
  } else if (error == ENOENT || error == ENOTDIR) {
    hint = "the run folder was moved or removed while the sweep ran";
  }
  throw Failure("cannot " + std::string(doing) + " " + path.string() + ": " + std::strerror(error),
                hint);
}

FileHandle open_file(const char* doing, const fs::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(doing, path, errno);
  return FileHandle(descriptor);
}

void write_all(int descriptor, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("write", path, errno);
    }
    bytes.remove_prefix(std::size_t(written));
  }
}

}  // namespace

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}
FileHandle::FileHandle(FileHandle&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}
FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

fs::path hidden_name(const fs::path& path) {
  return path.parent_path() / ("." + path.filename().string() + ".tmp");
}

void write_hidden(const fs::path& path, std::string_view bytes) {
  const fs::path hidden = hidden_name(path);
  try {
    const FileHandle file = open_file("create", hidden, O_WRONLY | O_CREAT | O_TRUNC);
    write_all(file.get(), bytes, hidden);
    if (::fsync(file.get()) != 0) fail("sync", hidden, errno);
  } catch (const Failure&) {
    // Half a file helps nobody, least of all on a full disk.
    ::unlink(hidden.c_str());
    throw;
  }
}

void reveal(const fs::path& path) {
  if (::rename(hidden_name(path).c_str(), path.c_str()) != 0) fail("rename to", path, errno);
}

void make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0777) == 0) return sync_folder(folder.parent_path());
  if (errno != EEXIST) fail("create", folder, errno);
}

void sync_folder(const fs::path& folder) {
  // A bare file name has an empty parent: the working directory.
  const FileHandle handle =
      open_file("open", folder.empty() ? fs::path(".") : folder, O_RDONLY | O_DIRECTORY);
  // Some network file systems refuse to sync a folder; their renames are synchronous.
  if (::fsync(handle.get()) != 0 && errno != EINVAL) fail("sync", folder, errno);
}

void write_durably(const fs::path& path, std::string_view bytes) {
  write_hidden(path, bytes);
  reveal(path);
  sync_folder(path.parent_path());
}

LineLog::LineLog(const fs::path& path, std::uint64_t keep_bytes)
    : path_(path), file_(open_file("open", path, O_WRONLY | O_APPEND)), size_(keep_bytes) {
  if (::ftruncate(file_.get(), off_t(size_)) != 0) fail("cut the torn end of", path, errno);
}

void LineLog::append(std::string_view lines) {
  try {
    write_all(file_.get(), lines, path_);
    if (::fdatasync(file_.get()) != 0) fail("sync", path_, errno);
  } catch (const Failure&) {
    // A torn line would be dropped on resume anyway; without it the file is clean at once.
    [[maybe_unused]] const int ignored = ::ftruncate(file_.get(), off_t(size_));
    throw;
  }
  size_ += lines.size();
}

std::optional<std::string> read_file(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT) return std::nullopt;
    fail("open", path, errno);
  }
  const FileHandle file(descriptor);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) fail("read", path, errno);
  std::string bytes(std::size_t(about.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno);
    if (got == 0) break;
    have += std::size_t(got);
  }
  bytes.resize(have);
  return bytes;
}

std::optional<FileHandle> try_lock(const fs::path& path) {
  FileHandle file = open_file("open", path, O_RDWR | O_CREAT);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) return std::nullopt;
  // A file system without locks: two writers of one shard are then the user's to avoid.
  if (errno == ENOSYS || errno == ENOTSUP || errno == ENOLCK) return file;
  fail("lock", path, errno);
}

}  // namespace results
