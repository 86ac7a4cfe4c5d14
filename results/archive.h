// Finished points of an earlier run, found by key: what `--reuse DIR` hands to the runner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "sweep/space/row_sink.h"

namespace results {

struct ArchiveOptions {
  // Decoded parts that are kept; the least recently asked for goes first.
  std::size_t memory_bytes = std::size_t{256} << 20;
};

// Opening reads the keys of every committed part (16 bytes a point stay in memory); a part is
// decoded when one of its points is asked for. Asked from any thread. A part whose files are not those
// that were written, by their checksums, is left out: its points are then computed again.
class Archive final : public sweep::OutcomeArchive {
 public:
  static engine::Result<std::unique_ptr<Archive>> open(const std::filesystem::path& folder,
                                                       ArchiveOptions options = {});
  ~Archive() override;

  bool find(const engine::Key& key, engine::Outcome& outcome) override;
  std::uint64_t size() const;
  // What could not be used, so far: a part is looked at when the first of its points is asked for.
  std::vector<std::string> notices() const;

 private:
  struct Impl;
  explicit Archive(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace results
