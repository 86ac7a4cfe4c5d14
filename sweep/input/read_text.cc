#include "sweep/input/read_text.h"

#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "sweep/input/utf8.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using engine::Location;
using engine::Mistake;

constexpr std::size_t kPiece = 1 << 16;  // as many bytes as most files have, or more

// Devices, pipes and folders are no files to read: some of them never end.
std::optional<Mistake> not_a_file(const fs::path& file) {
  std::error_code error;
  const Location where{file.string(), 0, 0};
  if (!fs::exists(file, error)) return Mistake{where, "there is no such file", "check its name"};
  if (!fs::is_regular_file(file, error)) {
    return Mistake{where, "this is not a file", "name a file, not a folder"};
  }
  return std::nullopt;
}

engine::Result<std::string> checked_text(std::string text, const fs::path& file) {
  if (auto mistake = not_text(text, file.string())) return std::move(*mistake);
  return text;
}

struct CloseGzip {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using Gzip = std::unique_ptr<gzFile_s, CloseGzip>;

// Why reading has to stop after `bytes` bytes of text, if it has to.
std::optional<Mistake> beyond(const fs::path& file, gzFile source, std::size_t bytes,
                              const InputLimits& limits) {
  const Location where{file.string(), 0, 0};
  const auto size = std::int64_t(bytes);
  if (size > limits.table_bytes) {
    return beyond_limit(where, "the file holds more than " + limit_text(limits.table_bytes),
                        "table_bytes");
  }
  const auto packed = std::int64_t(gzoffset(source));
  if (gzdirect(source) == 0 && size > kAlwaysUnpacked && size / limits.expansion > packed) {
    return beyond_limit(where,
                        "the file unpacks to more than " + limit_text(kAlwaysUnpacked) +
                            " and more than " + std::to_string(limits.expansion) +
                            " times its size",
                        "expansion");
  }
  return std::nullopt;
}

}  // namespace

engine::Result<std::string> read_spec_text(const fs::path& file, const InputLimits& limits) {
  if (auto mistake = not_a_file(file)) return std::move(*mistake);
  const Location where{file.string(), 0, 0};
  std::ifstream stream(file, std::ios::binary);
  std::string text, piece(kPiece, '\0');
  while (stream && std::int64_t(text.size()) <= limits.spec_bytes) {
    stream.read(piece.data(), std::streamsize(piece.size()));
    text.append(piece, 0, std::size_t(stream.gcount()));
  }
  if (!stream.eof() && !stream)
    return Mistake{where, "this file cannot be read", "check its permissions"};
  if (std::int64_t(text.size()) > limits.spec_bytes) {
    return beyond_limit(where, "the file holds more than " + limit_text(limits.spec_bytes),
                        "spec_bytes");
  }
  return checked_text(std::move(text), file);
}

engine::Result<std::string> read_table_bytes(const fs::path& file, const InputLimits& limits) {
  if (auto mistake = not_a_file(file)) return std::move(*mistake);
  const Location where{file.string(), 0, 0};
  const Gzip source(gzopen(file.c_str(), "rb"));  // plain files too
  if (source == nullptr) return Mistake{where, "this file cannot be read", "check its permissions"};
  gzbuffer(source.get(), 1 << 18);
  std::string text;
  std::vector<char> piece(kPiece);
  int count = 0;
  while ((count = gzread(source.get(), piece.data(), unsigned(piece.size()))) > 0) {
    text.append(piece.data(), std::size_t(count));
    if (auto mistake = beyond(file, source.get(), text.size(), limits)) return std::move(*mistake);
  }
  int error = Z_OK;
  gzerror(source.get(), &error);
  if (count < 0 || error != Z_OK) {
    return Mistake{
        where,
        "the file is damaged or cut off after " + std::to_string(text.size()) + " bytes of text",
        "fetch the file again"};
  }
  return text;
}

engine::Result<std::string> read_table_text(const fs::path& file, const InputLimits& limits) {
  auto text = read_table_bytes(file, limits);
  return text ? checked_text(std::move(*text), file) : text;
}

}  // namespace sweep
