// All manifests of a run folder, the files they name and those they do not.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/run_check.h"

namespace results {

constexpr const char* kRunYaml = "run.yaml";

// Why a path that the user gave can be no run folder: there is nothing, or a file.
std::optional<engine::Mistake> no_folder(const std::filesystem::path& run);
// Of a folder that is there and no run.
engine::Mistake no_manifest(const std::filesystem::path& run);

std::filesystem::path folder_of(const std::filesystem::path& run, Table table);
// One process at a time opens or repairs a run folder: it holds this lock meanwhile.
std::filesystem::path folder_lock(const std::filesystem::path& run);
// One process at a time writes a shard.
std::filesystem::path shard_lock(const std::filesystem::path& run, const Shard& shard);

// Every shard that has a manifest or parts, with what can be believed of it and what cannot. A shard
// with parts but without a manifest is damage: a manifest is there before its first part.
std::vector<ShardManifest> inspect_run(const std::filesystem::path& run);
// The same for callers that act on what the manifests say: any damage is a Failure, and so is a manifest of a newer program. Nothing must
// be removed because of a manifest that cannot be read.
std::vector<ShardManifest> read_run(const std::filesystem::path& run);

// One shard alone, by the same rules; nothing where it has no manifest.
std::optional<ShardManifest> read_shard(const std::filesystem::path& run, const Shard& shard);
// The manifest of some shard; nothing where there is none.
std::optional<ShardManifest> read_any_shard(const std::filesystem::path& run);

// "manifest-1of1.jsonl:3: the line is damaged: ...", within the run folder.
std::string to_text(const Shard& shard, const Damage& damage);

// Replaces the manifest of a shard; the manifest then says so itself.
void rewrite_manifest(const std::filesystem::path& run, const Shard& shard, Manifest& manifest);

// Files of a shard that no line of its manifest names: what a kill leaves, hidden or not.
std::vector<std::filesystem::path> unnamed_files(const std::filesystem::path& run,
                                                 const Shard& shard, const Manifest& manifest);
// Files beside the parts of a table that no run writes ("points/copy.parquet"): whoever reads the folder as one table reads them, too.
std::vector<std::string> foreign_files(const std::filesystem::path& run);

}  // namespace results
