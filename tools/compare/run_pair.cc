#include "tools/compare/run_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "engine/base/random.h"
#include "engine/leaves/key.h"
#include "sweep/language/parse_quantity.h"

namespace tools {
namespace {

using engine::Key;
using engine::Mistake;

constexpr const char* kModelVersion = "llmsweep.model_version";

// What identifies a row, and the row. Sorted, equal ones are neighbours, in the order of the sweep: that
// of rows depends on which thread or shard was done first.
struct Identified {
  Key key;
  double index = 0;
  std::uint32_t row = 0;
  auto operator<=>(const Identified&) const = default;
};
using Identities = std::vector<Identified>;

Identities by_key(const RunRows& run) {
  const std::vector<double> index = run.numbers("index");
  Identities all;
  all.reserve(run.rows());
  for (const results::ParquetReader& file : run.runs().front().files) {
    for (const Key& key : file.keys()) {
      all.push_back({key, index[all.size()], std::uint32_t(all.size())});
    }
  }
  std::ranges::sort(all);
  return all;
}

// A digest of what `rows` have for each axis: its label, or its value where a sample draws it. An axis that
// only the other run has is a setting here.
Identities by_labels(const RunRows& run, const std::vector<std::uint32_t>& rows,
                     const std::set<std::string>& axes) {
  const std::vector<double> index = run.numbers("index");
  Identities all(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    all[i].index = index[rows[i]];
    all[i].row = rows[i];
  }
  for (const std::string& axis : axes) {
    const results::Column* column = run.find_axis(axis);
    if (column == nullptr) continue;
    const Coded texts = run.texts(column->name);
    std::vector<std::uint64_t> digests;
    for (const std::string& name : texts.names) digests.push_back(std::hash<std::string>{}(name));
    for (Identified& one : all) {
      const std::uint32_t code = texts.codes[one.row];
      const std::uint64_t digest = code == Coded::kNone ? 0 : digests[code];
      one.key.high = engine::mixed_seed(one.key.high, digest);
      one.key.low = engine::mixed_seed(~one.key.low, digest);
    }
  }
  std::ranges::sort(all);
  return all;
}

// Pairs equal identities, the first with the first where several are equal; the others stay over.
void join(const Identities& olds, const Identities& news, RunPair& pair) {
  pair.only_old.clear();
  pair.only_new.clear();
  auto old_one = olds.begin();
  auto new_one = news.begin();
  while (old_one != olds.end() || new_one != news.end()) {
    if (new_one == news.end() || (old_one != olds.end() && old_one->key < new_one->key)) {
      pair.only_old.push_back((old_one++)->row);
    } else if (old_one == olds.end() || new_one->key < old_one->key) {
      pair.only_new.push_back((new_one++)->row);
    } else {
      pair.pairs.push_back({(old_one++)->row, (new_one++)->row});
    }
  }
}

std::set<std::string> axes_of(const RunPair& pair) {
  std::set<std::string> axes;
  for (const RunRows* run : {&pair.old_run, &pair.new_run}) {
    for (const results::Column& axis : run->axes()) axes.insert(axis_name(axis.name));
  }
  return axes;
}

void join_runs(RunPair& pair, JoinBy by) {
  if (by == JoinBy::labels) {
    for (std::uint32_t row = 0; row < pair.old_run.rows(); ++row) pair.only_old.push_back(row);
    for (std::uint32_t row = 0; row < pair.new_run.rows(); ++row) pair.only_new.push_back(row);
  } else {
    join(by_key(pair.old_run), by_key(pair.new_run), pair);
  }
  const std::size_t by_keys = pair.pairs.size();
  if (by != JoinBy::key && !pair.only_old.empty() && !pair.only_new.empty()) {
    const std::set<std::string> axes = axes_of(pair);
    join(by_labels(pair.old_run, pair.only_old, axes), by_labels(pair.new_run, pair.only_new, axes),
         pair);
  }
  pair.by_labels = pair.pairs.size() - by_keys;
  std::ranges::sort(pair.pairs, {}, &RowPair::new_row);
  std::ranges::sort(pair.only_old);
  std::ranges::sort(pair.only_new);
}

Mistake nothing_in_common(const RunPair& pair, JoinBy by) {
  const std::string& old_folder = pair.old_run.runs().front().folder.string();
  return {{.file = pair.new_run.runs().front().folder.string()},
          by == JoinBy::key ? "no point has a key that is in " + old_folder
                            : "no point has the axis labels of one in " + old_folder,
          by == JoinBy::key &&
                  pair.old_run.metadata(0, kModelVersion) != pair.new_run.metadata(0, kModelVersion)
              ? "the versions of the formulas differ, and keys with them: --by labels"
              : "compare two runs of one sweep"};
}

}  // namespace

engine::Result<RunPair> RunPair::open(const std::string& old_folder, const std::string& new_folder,
                                      JoinBy by) {
  RunPair pair;
  std::vector<Mistake> mistakes;
  for (auto [run, folder] : {std::pair{&pair.old_run, old_folder}, {&pair.new_run, new_folder}}) {
    auto opened = RunRows::open({folder});
    mistakes.insert(mistakes.end(), opened.mistakes().begin(), opened.mistakes().end());
    if (!opened) continue;
    *run = std::move(opened).value();
    pair.notes.insert(pair.notes.end(), run->notes().begin(), run->notes().end());
  }
  if (!mistakes.empty()) return mistakes;
  const std::string old_version = pair.old_run.metadata(0, kModelVersion);
  const std::string new_version = pair.new_run.metadata(0, kModelVersion);
  if (old_version != new_version) {
    pair.notes.push_back(fmt::format("version of the formulas: {} in {}, {} in {}", old_version,
                                     old_folder, new_version, new_folder));
  }
  join_runs(pair, by);
  if (pair.pairs.empty()) return nothing_in_common(pair, by);
  return pair;
}

PointNames::PointNames(const RunRows& run) : index_(run.numbers("index")) {
  for (const results::Column& axis : run.axes()) {
    axes_.push_back(axis_name(axis.name));
    labels_.push_back(run.texts(axis.name));
  }
}

std::string PointNames::name(std::uint32_t row) const {
  std::string labels;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (labels_[i].codes[row] == Coded::kNone) continue;
    labels += fmt::format("{}{}={}", labels.empty() ? "" : ", ", axes_[i], labels_[i][row]);
  }
  return sweep::format_number(index_[row]) + (labels.empty() ? "" : " (" + labels + ")");
}

}  // namespace tools
