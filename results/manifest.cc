#include "results/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/outcome.h"
#include "results/durable_file.h"
#include "results/seal.h"

namespace results {
namespace {

using Json = nlohmann::ordered_json;

// 1: lines without checksums. 2: which positions a shard may have was a rule. Both are still read.
constexpr int kFormat = 3;
constexpr const char* kFormatKey = "llmsweep_manifest";

// A whole number, and nothing that the library would make one of.
std::uint64_t count_of(const Json& json) {
  if (!json.is_number_unsigned()) throw std::runtime_error("not a count");
  return json.get<std::uint64_t>();
}
std::uint64_t count_at(const Json& json, const std::string& name) {
  return count_of(json.at(name));
}

Json to_json(const PartFile& file) {
  return {{"file", file.name},
          {"rows", file.rows},
          {"bytes", file.bytes},
          {"xxh3", checksum_text(file.checksum)}};
}

PartFile part_file_from(const Json& json) {
  if (json.is_null()) return {};
  return {.name = json.at("file").get<std::string>(),
          .rows = count_at(json, "rows"),
          .bytes = count_at(json, "bytes"),
          .checksum = std::stoull(json.at("xxh3").get<std::string>(), nullptr, 16)};
}

Json to_json(const sweep::Tally& tally) {
  Json json;
  constexpr auto names = enum_names(engine::Status{});
  for (std::size_t i = 0; i < names.size(); ++i) json[std::string(names[i])] = tally.by_status[i];
  constexpr auto reasons = enum_names(engine::ReasonClass{});
  Json by_class = Json::object();
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (tally.by_class[i] > 0) by_class[std::string(reasons[i])] = tally.by_class[i];
  }
  if (!by_class.empty()) json["reasons"] = std::move(by_class);
  json["rejected"] = tally.rejected;
  json["not_applicable"] = tally.not_applicable;
  json["reused"] = tally.reused;
  return json;
}

sweep::Tally tally_from(const Json& json) {
  sweep::Tally tally;
  constexpr auto names = enum_names(engine::Status{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto count = json.find(names[i]);  // versions that did not know a status had none of it
    if (count != json.end()) tally.by_status[i] = count_of(*count);
  }
  // A line without reasons leaves them out, as versions did that could not count them.
  constexpr auto reasons = enum_names(engine::ReasonClass{});
  const Json by_class = json.value("reasons", Json::object());
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const auto count = by_class.find(reasons[i]);
    if (count != by_class.end()) tally.by_class[i] = count_of(*count);
  }
  for (const Json& count : json.at("rejected")) tally.rejected.push_back(count_of(count));
  tally.not_applicable = count_at(json, "not_applicable");
  tally.reused = count_at(json, "reused");
  return tally;
}

ManifestHeader header_from(const Json& json) {
  const auto shard = shard_from_text(json.at("shard").get<std::string>());
  if (!shard) throw std::runtime_error("no such shard");
  return {.spec_hash = json.at("spec_hash").get<std::string>(),
          .program_version = json.at("program_version").get<std::string>(),
          .program_commit = json.value("program_commit", ""),
          .model_version = std::int64_t(count_at(json, "model_version")),
          .shard = *shard,
          .positions = count_at(json, "positions")};
}

PartRecord part_from(const Json& json) {
  PartRecord part{
      .sequence = count_at(json, "part"), .files = {}, .tally = tally_from(json.at("tally"))};
  for (const Table table : kDetailsFirst) {
    // A table without rows need not be named: versions that did not know it could not have any.
    const auto file = json.find(engine::name_of(table));
    if (file != json.end()) part.files[table] = part_file_from(*file);
  }
  for (const Json& range : json.at("positions")) {
    part.positions.push_back({count_of(range.at(0)), count_of(range.at(1))});
  }
  return part;
}

constexpr const char* kBrokenSeal = "the line is damaged: its checksum does not hold";
constexpr const char* kUnreadable = "the line is damaged: it cannot be read";

// Takes a manifest line by line; the library's exceptions stop here.
class LineReader {
 public:
  explicit LineReader(Manifest& manifest) : manifest_(manifest) {}

  void take(std::string_view line) {
    ++number_;
    const Seal seal = seal_of_line(line);
    if (seal == Seal::broken) return damaged(kBrokenSeal);
    try {
      const Json json = Json::parse(line);
      if (number_ == 1) return take_header(json, seal);
      if (seal == Seal::absent && format_ != 1) return damaged(kBrokenSeal);
      manifest_.parts.push_back(part_from(json));
      manifest_.lines.push_back(number_);
    } catch (const std::exception&) {
      damaged(kUnreadable);
    }
  }

 private:
  void take_header(const Json& json, Seal seal) {
    format_ = int(std::min<std::uint64_t>(count_at(json, kFormatKey), 1'000'000));
    if (format_ > kFormat) {
      manifest_.newer_format = format_;
    } else if (format_ < 1 || (seal == Seal::absent && format_ != 1)) {
      format_ = kFormat;
      damaged(kBrokenSeal);
    } else {
      manifest_.header = header_from(json);
      manifest_.format = format_;
    }
  }
  void damaged(const char* what) { manifest_.damage.push_back({number_, what}); }

  Manifest& manifest_;
  int number_ = 0;
  int format_ = kFormat;
};

}  // namespace

std::string to_text(const Shard& shard) { return fmt::format("{}of{}", shard.number, shard.count); }

std::optional<Shard> shard_from_text(std::string_view text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, shard.number);
  if (number.ec != std::errc{} || end - number.ptr < 3 || std::string_view(number.ptr, 2) != "of") {
    return std::nullopt;
  }
  const auto count = std::from_chars(number.ptr + 2, end, shard.count);
  if (count.ec != std::errc{} || count.ptr != end) return std::nullopt;
  if (shard.number < 1 || shard.number > shard.count) return std::nullopt;
  return shard;
}

std::string to_line(const ManifestHeader& header) {
  const Json json{{kFormatKey, kFormat},
                  {"spec_hash", header.spec_hash},
                  {"program_version", header.program_version},
                  {"program_commit", header.program_commit},
                  {"model_version", header.model_version},
                  {"shard", to_text(header.shard)},
                  {"positions", header.positions}};
  return sealed_line(json.dump()) + "\n";
}

std::string to_line(const PartRecord& part) {
  Json ranges = Json::array();
  for (const sweep::IndexRange& range : part.positions) {
    ranges.push_back(Json::array({range.begin, range.end}));
  }
  Json json{{"part", part.sequence}, {"positions", std::move(ranges)}};
  for (std::size_t i = 0; i < kTables; ++i) {
    const PartFile& file = part.files[Table(i)];
    if (!file.name.empty()) json[std::string(engine::name_of(Table(i)))] = to_json(file);
  }
  json["tally"] = to_json(part.tally);
  return sealed_line(json.dump()) + "\n";
}

std::optional<Manifest> inspect_manifest(const std::filesystem::path& path) {
  const std::optional<std::string> text = read_file(path);
  if (!text) return std::nullopt;
  Manifest manifest;
  LineReader reader(manifest);
  std::string_view left = *text;
  std::size_t end = 0;
  while ((end = left.find('\n')) != std::string_view::npos && manifest.newer_format == 0) {
    reader.take(left.substr(0, end));
    left.remove_prefix(end + 1);
  }
  manifest.torn = !left.empty();
  manifest.intact_bytes = text->size() - left.size();
  // The first line is written with the file: a kill cannot have torn it.
  if (manifest.intact_bytes == 0) manifest.damage.push_back({1, kUnreadable});
  return manifest;
}

std::string manifest_name(const Shard& shard) {
  return fmt::format("manifest-{}.jsonl", to_text(shard));
}

std::string part_name(Table table, const Shard& shard, std::uint64_t sequence) {
  return fmt::format("{}/part-{}-{:06}.parquet", engine::name_of(table), to_text(shard), sequence);
}

}  // namespace results
