#include "results/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "results/failure.h"

namespace results {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const char* doing, const fs::path& path, int error) {
  std::string hint;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    hint = "make room on that disk, then run the same command again; a sweep goes on where it was";
  } else if (error == EROFS || error == EACCES || error == EPERM) {
    hint = "choose a folder you may write to with -o DIR";
  } else if (error == ENOENT || error == ENOTDIR) {
    hint = "there is no such folder to write to, or it was moved or removed meanwhile";
  } else if (error == EMFILE || error == ENFILE) {
    hint =
        "allow more open files ('ulimit -n'), then run the same command again; a sweep goes on "
        "where it was";
  } else if (error == ELOOP) {
    hint = "a symbolic link stands where the program keeps a file of its own; remove it";
  }
  throw Failure("cannot " + std::string(doing) + " " + path.string() + ": " + std::strerror(error),
                hint);
}

// Files of the program's own are never reached through a link. Otherwise another user who may write to the folder could have any of the
// user's files overwritten.
FileHandle open_file(const char* doing, const fs::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0644);
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

// False when another process holds the lock.
bool locked(int descriptor, int operation, const fs::path& path) {
  while (::flock(descriptor, operation) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    // A file system without locks: two writers of one shard are then the user's to avoid.
    if (errno == ENOSYS || errno == ENOTSUP || errno == ENOLCK) return true;
    fail("lock", path, errno);
  }
  return true;
}

// A rename would put a file in the place of a device or a pipe.
void refuse_device(const fs::path& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode) || S_ISDIR(there.st_mode)) return;
  throw Failure(
      "cannot write " + path.string() + ": it is a device or a pipe, and would be replaced",
      "name a file");
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
  // Processes on two machines that share a disk may have one number; one that forked has its parent's
  // random bits.
  static const std::string random = std::to_string(std::random_device{}());
  return path.parent_path() / ("." + path.filename().string() + "." + std::to_string(::getpid()) +
                               "-" + random + ".tmp");
}

bool is_hidden_name(std::string_view name, std::string_view of) {
  return name.starts_with("." + std::string(of) + ".") && name.ends_with(".tmp");
}

void write_hidden(const fs::path& path, std::string_view bytes) {
  const fs::path hidden = hidden_name(path);
  try {
    ::unlink(hidden.c_str());
    const FileHandle file = open_file("create", hidden, O_WRONLY | O_CREAT | O_EXCL);
    write_all(file.get(), bytes, hidden);
    if (::fsync(file.get()) != 0) fail("sync", hidden, errno);
  } catch (const Failure&) {
    // Half a file is of no use, least of all on a full disk.
    ::unlink(hidden.c_str());
    throw;
  }
}

void reveal(const fs::path& path) {
  const fs::path hidden = hidden_name(path);
  if (::rename(hidden.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  ::unlink(hidden.c_str());
  fail("rename to", path, error);
}

namespace {

// A folder that one may write to and not read cannot be synced: nothing can be done there.
void sync_around(const fs::path& folder) {
  const fs::path around = folder.parent_path();
  if (::access(around.empty() ? "." : around.c_str(), R_OK) == 0) sync_folder(around);
}

}  // namespace

void make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0777) == 0) return sync_folder(folder.parent_path());
  if (errno != EEXIST) fail("create", folder, errno);
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> missing;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
    missing.push_back(at);
  }
  error.clear();
  fs::create_directories(folder, error);
  // A run is there when the power comes back only if every folder that leads to it is.
  if (!error) {
    for (const fs::path& made : missing) sync_around(made);
    return;
  }
  const int number = error.value();
  if (number != ENAMETOOLONG && number != EEXIST && number != ELOOP && number != EINVAL) {
    fail("make the folder", folder, number);
  }
  // It is the name, which the same command would have again.
  throw FailsAgain("cannot make the folder " + folder.string() + ": " + std::strerror(number),
                   fs::is_symlink(folder, error) ? "it is a link that leads nowhere; remove it"
                                                 : "give another name");
}

void sync_contents(const fs::path& file) {
  const FileHandle handle = open_file("open", file, O_RDONLY);
  if (::fdatasync(handle.get()) != 0) fail("sync", file, errno);
}

void sync_folder(const fs::path& folder) {
  // A bare file name has an empty parent: the working directory.
  const fs::path name = folder.empty() ? fs::path(".") : folder;
  const FileHandle handle(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle) fail("open", folder, errno);
  // Some network file systems refuse to sync a folder; their renames are synchronous.
  if (::fsync(handle.get()) != 0 && errno != EINVAL) fail("sync", folder, errno);
}

namespace {

// Gives a file that has no name yet the one that it is for. False: this file system cannot do that.
bool name_file(const FileHandle& file, const fs::path& path) {
  const std::string open = fmt::format("/proc/self/fd/{}", file.get());
  const auto link = [&open](const fs::path& name) {
    return ::linkat(AT_FDCWD, open.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (link(path)) return true;
  if (errno != EEXIST || !link(hidden_name(path))) return false;
  reveal(path);
  return true;
}

// A program that is killed while it writes leaves nothing behind: the file has no name before it is whole. False: this file
// system has no such files.
bool write_nameless(const fs::path& path, std::string_view bytes) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const FileHandle file(::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644));
  if (!file) return false;
  write_all(file.get(), bytes, path);
  if (::fsync(file.get()) != 0) fail("sync", path, errno);
  return name_file(file, path);
}

}  // namespace

void write_durably(const fs::path& path, std::string_view bytes) {
  refuse_device(path);
  if (!write_nameless(path, bytes)) {
    write_hidden(path, bytes);
    reveal(path);
  }
  sync_folder(path.parent_path());
}

void remove_left_over(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_hidden_name(entry.path().filename().string(), path.filename().string())) {
      found.push_back(entry.path());
    }
  }
  for (const fs::path& file : found) fs::remove(file);
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

bool read_pieces(const fs::path& path, const std::function<void(std::string_view)>& take) {
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return false;
    fail("open", path, errno);
  }
  constexpr std::size_t kPiece = 1 << 18;
  std::string piece(kPiece, '\0');
  while (true) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno);
    if (got == 0) return true;
    take(std::string_view(piece).substr(0, std::size_t(got)));
  }
}

std::optional<std::string> read_file(const fs::path& path) {
  std::string bytes;
  const bool found = read_pieces(path, [&bytes](std::string_view piece) { bytes += piece; });
  return found ? std::optional(std::move(bytes)) : std::nullopt;
}

std::optional<std::uint64_t> file_length(const fs::path& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0) return std::uint64_t(about.st_size);
  if (errno == ENOENT) return std::nullopt;
  fail("look at", path, errno);
}

std::optional<FileHandle> try_lock(const fs::path& path) {
  FileHandle file = open_file("open", path, O_RDWR | O_CREAT);
  return locked(file.get(), LOCK_EX | LOCK_NB, path) ? std::optional(std::move(file))
                                                     : std::nullopt;
}

FileHandle wait_for_lock(const fs::path& path) {
  FileHandle file = open_file("open", path, O_RDWR | O_CREAT);
  locked(file.get(), LOCK_EX, path);
  return file;
}

}  // namespace results
