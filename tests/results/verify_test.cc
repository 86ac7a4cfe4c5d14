// Damage anywhere in a run folder is found, and repairing it costs what is damaged and nothing else.
#include "results/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "engine/base/random.h"
#include "results/archive.h"
#include "results/durable_file.h"
#include "results/failure.h"
#include "results/parquet_sink.h"
#include "results/run_manifests.h"
#include "results/seal.h"
#include "sweep/space/shard.h"
#include "tests/support/run_tables.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using tests::ToySweep;

constexpr const char* kTableNames[] = {"points", "kernels", "requests", "timeline"};

void flip_bit(const fs::path& file, std::uint64_t bit) {
  std::string bytes = *read_file(file);
  bytes[bit / 8] = char(bytes[bit / 8] ^ (1 << bit % 8));
  std::ofstream(file, std::ios::binary) << bytes;
}

// Bit number `bit` of a file, flipped as long as this lives.
class FlippedBit {
 public:
  FlippedBit(fs::path file, std::uint64_t bit) : file_(std::move(file)), bytes_(*read_file(file_)) {
    flip_bit(file_, bit);
  }
  ~FlippedBit() { std::ofstream(file_, std::ios::binary) << bytes_; }
  FlippedBit(const FlippedBit&) = delete;
  FlippedBit& operator=(const FlippedBit&) = delete;

 private:
  const fs::path file_;
  const std::string bytes_;
};

std::uint64_t any_bit_of(const fs::path& file, std::uint64_t seed) {
  return engine::random_bits(seed, engine::Stream::sampling, fs::file_size(file)) %
         (8 * fs::file_size(file));
}

class VerifyTest : public testing::Test {
 protected:
  const tests::TemporaryFolder temporary;
  const fs::path run = temporary.path() / "run";
  const ToySweep toy{.positions = 640, .requests = 3};
  const fs::path manifest = run / "manifest-1of2.jsonl";

  void SetUp() override { resume(); }
  // Runs what is left of both shards; says how many positions that was.
  std::uint64_t resume() {
    std::uint64_t left = 0;
    for (const std::uint32_t k : {1u, 2u}) {
      RunFolder folder = RunFolder::open(run, toy.identity({k, 2})).value();
      ParquetSink sink(folder, toy.schema(), {.points_per_part = 100});
      const sweep::IndexSet todo = sweep::shard_of(toy.positions, k, 2).minus(folder.done());
      tests::run_toy(toy, sink, todo);
      left += todo.count();
    }
    return left;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(run)) {
      if (entry.is_regular_file() && !entry.path().filename().string().starts_with(".")) {
        found.push_back(entry.path());
      }
    }
    std::ranges::sort(found);
    return found;
  }
  std::map<std::string, std::vector<std::string>> rows() const {
    std::map<std::string, std::vector<std::string>> rows;
    for (const char* table : kTableNames) rows[table] = tests::table_rows(run, table);
    return rows;
  }
};

TEST_F(VerifyTest, ASoundRunIsSound) {
  const auto report = verify_run(run);
  EXPECT_TRUE(report->sound());
  EXPECT_TRUE(report->notices.empty());
  EXPECT_EQ(report->manifests, 2u);
  EXPECT_EQ(report->damaged, 0u);
  EXPECT_EQ(report->done, 640u);
  EXPECT_EQ(report->positions, 640u);
  std::uint64_t rows = 0;
  for (const char* table : kTableNames) rows += tests::table_rows(run, table).size();
  EXPECT_EQ(report->rows, rows);
}

// Readers of a folder take every file in it, so a copy among the parts doubles rows.
TEST_F(VerifyTest, AFileAmongThePartsThatIsNoneIsNamedAndStays) {
  const fs::path copy = run / "points" / "copy of part-1of2-000000.parquet";
  fs::copy_file(run / "points" / "part-1of2-000000.parquet", copy);
  std::ofstream(run / "points" / "_metadata") << "readers pass over it";
  const auto report = verify_run(run);
  EXPECT_FALSE(report->sound());
  EXPECT_TRUE(report->damage.empty());
  EXPECT_THAT(
      report->foreign,
      testing::ElementsAre("points/copy of part-1of2-000000.parquet is no part of the run; who "
                           "reads the folder as a table reads it, too"));
  EXPECT_FALSE(repair_run(run)->sound());
  EXPECT_TRUE(fs::exists(copy));
  EXPECT_EQ(verify_run(run)->done, 640u);
  fs::remove(copy);
  EXPECT_TRUE(verify_run(run)->sound());
}

// One with the name of a part doubles rows as well, unless the run still lacks some: then it may be a part that is being written.
TEST_F(VerifyTest, APartThatAWholeRunDoesNotNameIsNoPartOfIt) {
  const fs::path copy = run / part_name(Table::points, {1, 2}, 77);
  fs::copy_file(run / part_name(Table::points, {1, 2}, 0), copy);
  const auto report = verify_run(run);
  EXPECT_TRUE(report->damage.empty());
  EXPECT_THAT(report->foreign,
              ElementsAre(HasSubstr("points/part-1of2-000077.parquet is no part of the run")));
  EXPECT_FALSE(repair_run(run)->sound());
  EXPECT_TRUE(fs::exists(copy));

  const std::string whole = *read_file(manifest);
  fs::resize_file(manifest, whole.find('\n', whole.find('\n') + 1) + 1);
  const auto going = verify_run(run);
  EXPECT_LT(going->done, going->positions);
  EXPECT_TRUE(going->sound());
  EXPECT_THAT(going->notices, ElementsAre(HasSubstr("unfinished file(s) of shard 1of2")));
  resume();
  EXPECT_FALSE(fs::exists(copy));
  EXPECT_TRUE(verify_run(run)->sound());
}

TEST_F(VerifyTest, AnyFlippedBitIsFound) {
  for (const fs::path& file : files()) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const std::uint64_t bit = any_bit_of(file, seed);
      const FlippedBit flipped(file, bit);
      const auto report = verify_run(run);
      const bool found = !report.ok() || !report->sound();
      // The end of a manifest's last line is the one place where damage looks like a kill.
      const bool last_end = file.extension() == ".jsonl" && bit / 8 + 1 == fs::file_size(file);
      EXPECT_TRUE(found || last_end) << file << " bit " << bit;
    }
  }
  EXPECT_TRUE(verify_run(run)->sound());
}

TEST_F(VerifyTest, AFlippedBitInAManifestIsNeverBelieved) {
  const auto truth = inspect_manifest(manifest)->parts;
  for (std::uint64_t byte = 0; byte < fs::file_size(manifest); byte += 7) {
    const FlippedBit flipped(manifest, 8 * byte + byte % 8);
    const auto read = inspect_manifest(manifest);
    EXPECT_TRUE(!read->damage.empty() || read->newer_format > 0 || read->torn) << byte;
    for (const PartRecord& part : read->parts) EXPECT_THAT(truth, Contains(part)) << byte;
    EXPECT_GE(read->parts.size() + 2, read->newer_format > 0 ? 0 : truth.size()) << byte;
  }
}

// The first format has no checksums: what is not a count there is damage, not a number made of it.
TEST_F(VerifyTest, CountsOfAManifestAreWholeNumbers) {
  const auto damage_with = [this](const std::string& rows) {
    std::ofstream(manifest, std::ios::binary)
        << R"({"llmsweep_manifest":1,"spec_hash":"70a1","program_version":"0.1.0","model_version":5,)"
        << R"("shard":"1of1","positions":3})" << '\n'
        << R"({"part":0,"positions":[[0,3]],"points":{"file":"points/a.parquet","rows":)" << rows
        << R"(,"bytes":9,"xxh3":"56"},"tally":{"ok":3,"rejected":[],"not_applicable":0,"reused":0}})"
        << '\n';
    return inspect_manifest(manifest)->damage.size();
  };
  EXPECT_EQ(damage_with("3"), 0u);
  for (const char* rows : {"1e20", "1.5", "-3", "\"3\"", "true", "null"}) {
    EXPECT_EQ(damage_with(rows), 1u) << rows;
  }
}

TEST_F(VerifyTest, RepairDropsWhatIsDamagedAndNothingElse) {
  const auto whole = rows();
  const fs::path sound = temporary.path() / "sound";
  fs::copy(run, sound, fs::copy_options::recursive);
  for (const fs::path& file : files()) {
    if (file.string().find("2of2") != std::string::npos) continue;  // as the first shard
    fs::remove_all(run);
    fs::copy(sound, run, fs::copy_options::recursive);
    flip_bit(file, any_bit_of(file, 17));
    const auto found = verify_run(run);
    ASSERT_FALSE(found->sound()) << file;
    const auto repaired = repair_run(run);
    EXPECT_EQ(repaired->damage, found->damage);
    EXPECT_TRUE(verify_run(run)->sound()) << file;
    const std::uint64_t again = resume();
    EXPECT_LE(again, 200u) << file;  // one part has some hundred positions
    EXPECT_EQ(again, 640 - repaired->done) << file;
    EXPECT_EQ(rows(), whole) << file;
    EXPECT_TRUE(verify_run(run)->sound()) << file;
  }
}

TEST_F(VerifyTest, NamesTheFileAndNotItsNeighbours) {
  const std::string name = part_name(Table::points, {2, 2}, 0);
  const FlippedBit flipped(run / name, 8 * 500);
  EXPECT_THAT(verify_run(run)->damage,
              ElementsAre(name + " is damaged: its checksum is not the one in the manifest"));
  EXPECT_EQ(verify_run(run)->damaged, 1u);
}

TEST_F(VerifyTest, ALostFirstLineIsWrittenAgainFromTheParts) {
  const auto whole = rows();
  for (const char* name : {"manifest-1of2.jsonl", "manifest-2of2.jsonl"}) {
    std::string text = *read_file(run / name);
    text[5] = '?';
    std::ofstream(run / name) << text;
  }
  EXPECT_THAT(verify_run(run)->damage, Contains(HasSubstr("manifest-2of2.jsonl:1: ")));
  ASSERT_TRUE(repair_run(run).ok());
  EXPECT_EQ(resume(), 0u);
  EXPECT_EQ(rows(), whole);
}

TEST_F(VerifyTest, ALostRunYamlIsWrittenAgainFromAPart) {
  fs::remove(run / "run.yaml");
  EXPECT_THAT(verify_run(run)->damage, ElementsAre("run.yaml is missing"));
  EXPECT_EQ(repair_run(run)->damaged, 0u);
  EXPECT_EQ(unsealed_text(*read_file(run / "run.yaml")), toy.spec);
  EXPECT_TRUE(verify_run(run)->sound());
}

TEST_F(VerifyTest, ALostManifestCostsItsShardOnly) {
  const auto whole = rows();
  fs::remove(manifest);
  EXPECT_THAT(verify_run(run)->damage,
              ElementsAre("manifest-1of2.jsonl: the manifest is missing, though there are parts"));
  ASSERT_TRUE(repair_run(run).ok());
  EXPECT_EQ(resume(), 320u);
  EXPECT_EQ(rows(), whole);
}

// Lines whose checksums hold and that still cannot be true.
TEST_F(VerifyTest, ClaimsThatCannotBeTrueAreRefused) {
  const auto truth = *inspect_manifest(manifest);
  const auto refused = [&](auto change) {
    Manifest changed = truth;
    change(changed);
    std::string text = to_line(*changed.header);
    for (const PartRecord& part : changed.parts) text += to_line(part);
    std::ofstream(manifest) << text;
    EXPECT_THROW(read_run(run), Failure);
    const auto report = verify_run(run);
    return report->damage.empty() ? "nothing" : report->damage.front();
  };
  const auto part = [](auto change) { return [change](Manifest& m) { change(m.parts[1]); }; };
  EXPECT_THAT(
      refused(part([](PartRecord& p) { std::swap(p.positions[0].begin, p.positions[0].end); })),
      HasSubstr("manifest-1of2.jsonl:3: the line cannot be right: the range"));
  EXPECT_THAT(refused(part([](PartRecord& p) { p.positions.push_back(p.positions[0]); })),
              HasSubstr("its ranges overlap or are out of order"));
  EXPECT_THAT(refused(part([](PartRecord& p) { p.positions.back().end = 5000; })),
              HasSubstr("it names position 4999 of a grid of 640"));
  EXPECT_THAT(refused(part([](PartRecord& p) { ++p.positions.back().end; })),
              HasSubstr("it counts"));
  EXPECT_THAT(
      refused(part([](PartRecord& p) { p.files[Table::points].name = "../../etc/passwd"; })),
      HasSubstr("'../../etc/passwd' is not the name of its file of points"));
  EXPECT_THAT(refused([](Manifest& m) { m.parts.push_back(m.parts[0]); }),
              HasSubstr("another line has its number"));
  EXPECT_THAT(refused([](Manifest& m) {
                PartRecord twin = m.parts[0];
                twin.sequence = 99;
                for (const Table table : kDetailsFirst) {
                  if (!twin.files[table].name.empty()) {
                    twin.files[table].name = part_name(table, {1, 2}, 99);
                  }
                }
                m.parts.push_back(twin);
              }),
              HasSubstr("is claimed by two parts"));
  EXPECT_THAT(refused([](Manifest& m) {
                m.header->shard = {2, 2};
              }),
              HasSubstr("it is the manifest of shard 2of2"));
}

TEST_F(VerifyTest, ARunThatIsBeingWrittenIsNotRepaired) {
  const RunFolder writer = RunFolder::open(run, toy.identity({1, 2})).value();
  EXPECT_TRUE(verify_run(run)->sound());
  EXPECT_THAT(engine::to_text(repair_run(run).mistakes()),
              HasSubstr("another process is writing this run"));
}

TEST_F(VerifyTest, WhatANewerProgramWroteIsNotRepaired) {
  std::ofstream(manifest) << "{\"llmsweep_manifest\":7}\n";
  const auto before = files();
  EXPECT_THAT(engine::to_text(repair_run(run).mistakes()), HasSubstr("newer version"));
  EXPECT_EQ(files(), before);
}

TEST_F(VerifyTest, AFolderThatIsNoRunIsAMistakeAndStaysAsItIs) {
  const fs::path other = temporary.path() / "other";
  fs::create_directories(other);
  EXPECT_FALSE(verify_run(other).ok());
  EXPECT_FALSE(repair_run(other).ok());
  EXPECT_TRUE(fs::is_empty(other));
}

TEST_F(VerifyTest, HalfALineAndUnfinishedFilesAreNoDamage) {
  std::ofstream(manifest, std::ios::app) << "{\"part\":";
  std::ofstream(hidden_name(run / part_name(Table::points, {1, 2}, 50))) << "half";
  const auto report = verify_run(run);
  EXPECT_TRUE(report->sound());
  EXPECT_EQ(report->notices.size(), 2u);
}

TEST_F(VerifyTest, RunsOfEarlierVersionsCanBeChecked) {
  for (const char* name : {"manifest-1of2.jsonl", "manifest-2of2.jsonl"}) {
    std::string plain;
    const std::string text = *read_file(run / name);
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
      const std::string line = text.substr(at, text.find('\n', at) - at);
      plain += line.substr(0, line.find(",\"line_xxh3")) + "}\n";
    }
    plain.replace(plain.find(":3,"), 3, ":1,");
    std::ofstream(run / name) << plain;
  }
  std::ofstream(run / "run.yaml") << toy.spec;
  EXPECT_TRUE(verify_run(run)->sound());
  EXPECT_EQ(verify_run(run)->done, 640u);
}

TEST_F(VerifyTest, ReuseTakesNothingThatIsDamaged) {
  for (const Table table : kDetailsFirst) {
    const fs::path file = run / part_name(table, {1, 2}, 0);
    const FlippedBit flipped(file, any_bit_of(file, 3));
    auto archive = Archive::open(run);
    ASSERT_TRUE(archive.ok());
    std::set<std::uint64_t> missed;
    for (std::uint64_t i = 0; i < toy.positions; ++i) {
      if (toy.rejected(i)) continue;
      sweep::Point point;
      engine::Outcome outcome;
      toy.point(i, point);
      if (!(*archive)->find(point.key, outcome)) missed.insert(i);
    }
    const auto parts = inspect_manifest(manifest)->parts;
    EXPECT_EQ(missed.size(), parts[0].tally.rows()) << engine::name_of(table);
    EXPECT_THAT((*archive)->notices(),
                ElementsAre(HasSubstr("in the manifest: its points are computed again")));
  }
}

}  // namespace
}  // namespace results
