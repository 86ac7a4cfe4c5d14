#include "results/claims.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>

#include "results/durable_file.h"
#include "results/failure.h"
#include "sweep/space/shard.h"

namespace results {
namespace {

namespace fs = std::filesystem;

// The last pieces decide how far apart workers end: by one of 32, a thirtieth of a worker's time.
constexpr std::uint64_t kPiecesPerWorker = 32;
constexpr std::size_t kEntryBytes = 11;  // a number of up to ten digits, and a line end

fs::path claims_file(const fs::path& run, std::uint32_t workers) {
  return run / fmt::format(".claims-{}", workers);
}

std::string entry(std::uint32_t worker) { return fmt::format("{:>10}\n", worker); }

[[noreturn]] void damaged(const fs::path& file) {
  throw FailsAgain(file.string() + " is damaged",
                   "when nobody writes to this folder, remove the file and go on");
}

std::vector<std::uint32_t> parsed(std::string_view text, const fs::path& file,
                                  std::uint32_t workers) {
  std::vector<std::uint32_t> found;
  for (std::size_t at = 0; at < text.size(); at += kEntryBytes) {
    const std::string_view line = text.substr(at, kEntryBytes);
    const char* begin = line.data() + std::min(line.find_first_not_of(' '), line.size());
    const char* end = line.data() + line.size() - 1;
    std::uint32_t worker = 0;
    const auto read = std::from_chars(begin, end, worker);
    if (line.size() != kEntryBytes || read.ec != std::errc{} || read.ptr != end ||
        worker > workers) {
      damaged(file);
    }
    found.push_back(worker);
  }
  return found;
}

}  // namespace

bool has_claims(const fs::path& run, std::uint32_t workers) {
  return file_length(claims_file(run, workers)).has_value();
}

void start_claims(const fs::path& run, std::uint32_t workers, std::uint64_t positions,
                  const sweep::IndexSet& done) {
  std::string text;
  for (std::uint64_t piece = 0; piece < pieces_of(positions, workers); ++piece) text += entry(0);
  for (const sweep::IndexRange& range : done.ranges()) {
    text += fmt::format("{} {}\n", range.begin, range.end);
  }
  write_durably(claims_file(run, workers), text);
}

namespace {

constexpr std::string_view kClaimsName = ".claims-";

std::vector<fs::path> claims_files(const fs::path& run) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(run)) {
    if (file.path().filename().string().starts_with(kClaimsName)) files.push_back(file.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

void forget_claims(const fs::path& run) {
  for (const fs::path& file : claims_files(run)) fs::remove(file);
}

std::vector<std::string> damaged_claims(const fs::path& run, std::uint64_t positions) {
  std::vector<std::string> damage;
  for (const fs::path& file : claims_files(run)) {
    const std::string name = file.filename().string();
    const std::string_view number = std::string_view(name).substr(kClaimsName.size());
    std::uint32_t workers = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), workers);
    if (read.ec != std::errc{} || read.ptr != number.data() + number.size()) continue;
    try {
      if (workers > 0 && read_claims(run, workers, positions)) continue;
    } catch (const FailsAgain&) {
    }
    damage.push_back(name + " is damaged: it does not say which worker does what");
  }
  return damage;
}

std::uint64_t pieces_of(std::uint64_t positions, std::uint32_t workers) {
  return std::clamp<std::uint64_t>(positions, 1, workers * kPiecesPerWorker);
}

sweep::IndexSet piece_of(std::uint64_t positions, std::uint32_t workers, std::uint64_t piece) {
  return sweep::shard_of(positions, piece + 1, pieces_of(positions, workers));
}

std::optional<ClaimsFile> read_claims(const fs::path& run, std::uint32_t workers,
                                      std::uint64_t positions) {
  const fs::path file = claims_file(run, workers);
  const std::optional<std::string> text = read_file(file);
  if (!text) return std::nullopt;
  const std::size_t entries = pieces_of(positions, workers) * kEntryBytes;
  if (text->size() < entries) damaged(file);
  ClaimsFile claims{.workers = parsed(std::string_view(*text).substr(0, entries), file, workers)};
  std::string_view ranges = std::string_view(*text).substr(entries);
  while (!ranges.empty()) {
    sweep::IndexRange range;
    const char* end = ranges.data() + ranges.size();
    const auto begin = std::from_chars(ranges.data(), end, range.begin);
    if (begin.ec != std::errc{} || begin.ptr == end || *begin.ptr != ' ') damaged(file);
    const auto last = std::from_chars(begin.ptr + 1, end, range.end);
    if (last.ec != std::errc{} || last.ptr == end || range.begin >= range.end) damaged(file);
    claims.done_before.add(range);
    ranges.remove_prefix(std::size_t(last.ptr + 1 - ranges.data()));
  }
  return claims;
}

Claims::Claims(fs::path run, Shard worker, std::uint64_t positions)
    : run_(std::move(run)), worker_(worker), positions_(positions) {}

sweep::IndexSet Claims::earlier() const {
  const auto claims = read_claims(run_, worker_.count, positions_);
  sweep::IndexSet taken;
  for (std::uint64_t piece = 0; claims && piece < claims->workers.size(); ++piece) {
    if (claims->workers[piece] == worker_.number)
      taken.add(piece_of(positions_, worker_.count, piece));
  }
  return taken;
}

// On the disk before any of it is done: a piece that was taken must not be free again after a power cut, when rows of it may be there.
// The others need not wait for that.
sweep::IndexSet Claims::next() {
  sweep::IndexSet piece = take();
  if (!piece.empty()) sync_contents(claims_file(run_, worker_.count));
  return piece;
}

sweep::IndexSet Claims::take() {
  const fs::path file = claims_file(run_, worker_.count);
  const FileHandle alone = wait_for_lock(file);
  std::string left((pieces_of(positions_, worker_.count) - first_) * kEntryBytes, '\0');
  const ssize_t got = ::pread(alone.get(), left.data(), left.size(), off_t(first_ * kEntryBytes));
  if (got != ssize_t(left.size())) damaged(file);
  const std::vector<std::uint32_t> owners = parsed(left, file, worker_.count);
  const auto free = std::ranges::find(owners, 0U);
  first_ += std::uint64_t(free - owners.begin());
  if (free == owners.end()) return {};
  const std::string mine = entry(worker_.number);
  if (::pwrite(alone.get(), mine.data(), mine.size(), off_t(first_ * kEntryBytes)) !=
      ssize_t(mine.size())) {
    throw Failure("cannot write " + file.string() + ": " +
                  std::error_code(errno, std::generic_category()).message());
  }
  return piece_of(positions_, worker_.count, first_++);
}

}  // namespace results
