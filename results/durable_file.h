// Files that survive: written whole under a hidden name, synced, renamed; lines appended and synced;
// locks that a dead process cannot hold. Every failure is a Failure that names the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace results {

// An open file, closed with its owner.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  ~FileHandle();
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

// The hidden name a file has until it is complete: readers of a folder skip it. Every process has its
// own, so that two that write the same file at once cannot mix their bytes.
std::filesystem::path hidden_name(const std::filesystem::path& path);
// Whether `name` is the hidden name that this or another process gave to a file called `of`.
bool is_hidden_name(std::string_view name, std::string_view of);

// Writes and syncs the file under its hidden name; `reveal` gives it its own.
void write_hidden(const std::filesystem::path& path, std::string_view bytes);
void reveal(const std::filesystem::path& path);
// Makes a folder, for good, where there is none yet; the one around it exists.
void make_folder(const std::filesystem::path& folder);
// The same, with those around it.
void make_folders(const std::filesystem::path& folder);
// Makes what others wrote into a file permanent.
void sync_contents(const std::filesystem::path& file);
// Makes the names in a folder permanent.
void sync_folder(const std::filesystem::path& folder);

// All of the above for a single file.
void write_durably(const std::filesystem::path& path, std::string_view bytes);

// Removes what programs that were killed left of a file. Nobody may be writing it.
void remove_left_over(const std::filesystem::path& path);

// Appends to a file and syncs it. On failure the file is cut back to what it was.
class LineLog {
 public:
  LineLog(const std::filesystem::path& path, std::uint64_t keep_bytes);
  void append(std::string_view lines);

 private:
  std::filesystem::path path_;
  FileHandle file_;
  std::uint64_t size_ = 0;
};

std::optional<std::string> read_file(const std::filesystem::path& path);
// Hands a file to `take` piece by piece; false where there is none.
bool read_pieces(const std::filesystem::path& path,
                 const std::function<void(std::string_view)>& take);

// The length of a file, or nothing where there is none.
std::optional<std::uint64_t> file_length(const std::filesystem::path& path);

// Holds the lock file until destroyed. Empty when another process holds it.
std::optional<FileHandle> try_lock(const std::filesystem::path& path);
// The same, but waits while another process holds it.
FileHandle wait_for_lock(const std::filesystem::path& path);

}  // namespace results
