// Stands between a program and the C library (LD_PRELOAD) where it changes files: lets the n-th change below a folder fail, kills the
// program at it, or writes all of them down, from which a test can tell what is on a disk after a power cut.
//
//   LLMSWEEP_SHIM=count|fail|kill|note   LLMSWEEP_SHIM_UNDER=FOLDER   LLMSWEEP_SHIM_LOG=FILE (count, note)
//   LLMSWEEP_SHIM_AT=N, from 1 (fail, kill)   LLMSWEEP_SHIM_ERROR=ERRNO (fail)
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}
const std::string& mode() {
  static const std::string mode = variable("LLMSWEEP_SHIM");
  return mode;
}

template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool is_under(const std::string& path) {
  static const std::string under = variable("LLMSWEEP_SHIM_UNDER");
  return !under.empty() && path.starts_with(under);
}

std::string absolute(const char* path) {
  if (path[0] == '/') return path;
  char here[4096];
  return getcwd(here, sizeof here) == nullptr ? path : std::string(here) + "/" + path;
}

std::string path_of(int file) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = readlink(link.c_str(), path, sizeof path);
  return size < 0 ? "" : std::string(path, std::size_t(size));
}

std::recursive_mutex one_at_a_time;
long changes = 0;

void append(const std::string& text) {
  static const int log = real(&open, "open")(variable("LLMSWEEP_SHIM_LOG").c_str(),
                                             O_WRONLY | O_CREAT | O_APPEND, 0644);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = real(&write, "write")(log, text.data() + done, text.size() - done);
    if (wrote < 0) abort();
    done += std::size_t(wrote);
  }
}

// A change of what is at `path` is about to be made. True: it fails.
bool refused(const std::string& path) {
  if (!is_under(path)) return false;
  ++changes;
  if (mode() == "count") append("x");
  static const long at = std::atol(variable("LLMSWEEP_SHIM_AT").c_str());
  if (changes != at) return false;
  if (mode() == "kill") raise(SIGKILL);
  if (mode() != "fail") return false;
  errno = std::atoi(variable("LLMSWEEP_SHIM_ERROR").c_str());
  return true;
}

// One change that was made: what, which file, and where in it; then the bytes.
void note(const char* what, const struct stat& file, off_t offset, const std::string& path,
          const std::string& bytes = "") {
  if (mode() != "note" || !is_under(path)) return;
  char line[8192];
  std::snprintf(line, sizeof line, "%s\t%lu\t%ld\t%zu\t%s\n", what, (unsigned long)file.st_ino,
                long(offset), bytes.size(), path.c_str());
  append(line + bytes);
}
void note_file(const char* what, int file, off_t offset, const std::string& bytes = "") {
  struct stat about {};
  fstat(file, &about);
  note(S_ISDIR(about.st_mode) ? "sync_folder" : what, about, offset, path_of(file), bytes);
}
void note_path(const char* what, const std::string& path, const std::string& more = "") {
  struct stat about {};
  lstat(path.c_str(), &about);
  note(what, about, 0, path, more);
}

}  // namespace

// A call of the C library in the order: may it fail, make it, note it.
#define CHANGE(path)                                                \
  const std::lock_guard<std::recursive_mutex> alone(one_at_a_time); \
  if (refused(path)) return -1

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t rights = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & O_CREAT) == 0) return real(&open, "open")(path, flags, rights);
  CHANGE(absolute(path));
  const int file = real(&open, "open")(path, flags, rights);
  if (file >= 0) note_path("name", absolute(path));
  return file;
}

ssize_t write(int file, const void* bytes, size_t size) {
  CHANGE(path_of(file));
  const ssize_t wrote = real(&write, "write")(file, bytes, size);
  if (wrote > 0 && mode() == "note" && is_under(path_of(file))) {
    note_file("write", file, lseek(file, 0, SEEK_CUR) - wrote,
              std::string(static_cast<const char*>(bytes), std::size_t(wrote)));
  }
  return wrote;
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  CHANGE(path_of(file));
  const ssize_t wrote = real(&pwrite, "pwrite")(file, bytes, size, offset);
  if (wrote > 0) {
    note_file("write", file, offset,
              std::string(static_cast<const char*>(bytes), std::size_t(wrote)));
  }
  return wrote;
}

int ftruncate(int file, off_t size) noexcept {
  CHANGE(path_of(file));
  const int done = real(&ftruncate, "ftruncate")(file, size);
  if (done == 0) note_file("cut", file, size);
  return done;
}

int fsync(int file) {
  CHANGE(path_of(file));
  const int done = real(&fsync, "fsync")(file);
  if (done == 0) note_file("sync", file, 0);
  return done;
}

int fdatasync(int file) {
  CHANGE(path_of(file));
  const int done = real(&fdatasync, "fdatasync")(file);
  if (done == 0) note_file("sync", file, 0);
  return done;
}

int rename(const char* from, const char* to) noexcept {
  CHANGE(absolute(to));
  const int done = real(&rename, "rename")(from, to);
  if (done == 0) note_path("rename", absolute(to), absolute(from));
  return done;
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  CHANGE(absolute(to));
  const int done = real(&linkat, "linkat")(from_folder, from, to_folder, to, flags);
  if (done == 0) note_path("name", absolute(to));
  return done;
}

int unlink(const char* path) noexcept {
  CHANGE(absolute(path));
  const int done = real(&unlink, "unlink")(path);
  if (done == 0) note_path("unname", absolute(path));
  return done;
}

int remove(const char* path) noexcept {
  CHANGE(absolute(path));
  const int done = real(&remove, "remove")(path);
  if (done == 0) note_path("unname", absolute(path));
  return done;
}

int mkdir(const char* path, mode_t rights) noexcept {
  CHANGE(absolute(path));
  const int done = real(&mkdir, "mkdir")(path, rights);
  if (done == 0) note_path("folder", absolute(path));
  return done;
}

}  // extern "C"
