#include "tools/status/what_to_do.h"

#include <fmt/format.h>

#include "sweep/language/suggest.h"
#include "tools/terminal/number_text.h"
#include "tools/terminal/shell_word.h"

namespace tools {
namespace {

constexpr std::size_t kMostCommands = 64;
constexpr std::size_t kMostNamed = 8;

std::string run_command(const std::string& folder) {
  return fmt::format("llmsweep run {} -o {}", shell_word(folder + "/run.yaml"), shell_word(folder));
}

}  // namespace

std::string what_to_do(const std::string& folder, const RunStatus& status) {
  const bool taken = status.sharing == results::Sharing::taken;
  std::string text;
  std::size_t dead = 0;
  for (const ShardStatus& shard : status.shards) {
    if (!shard.is_dead() || ++dead > kMostCommands) continue;
    text += fmt::format("go on with: {}", run_command(folder));
    if (shard.shard.count > 1 || taken) {
      text += fmt::format(" --{} {}/{}", taken ? "worker" : "shard", shard.shard.number,
                          shard.shard.count);
    }
    text += '\n';
  }
  if (dead > kMostCommands) {
    text += fmt::format("and {} more such; or all of it in one: {}\n",
                        grouped(dead - kMostCommands), run_command(folder));
  }
  // There are free pieces, and no worker is left to take them.
  if (text.empty() && !status.has_writer()) {
    text = fmt::format("go on with: {}\n", run_command(folder));
  }
  return text;
}

std::string held_by_the_dead(const std::string& folder, const RunStatus& status) {
  if (status.sharing != results::Sharing::taken || status.untaken > 0 || status.has_writer()) {
    return "";
  }
  std::uint64_t held = 0;
  std::vector<std::string> names;
  for (const ShardStatus& shard : status.shards) {
    if (!shard.is_dead()) continue;
    held += shard.left();
    names.push_back(std::to_string(shard.shard.number));
  }
  if (names.empty()) return "";
  return fmt::format(
      "{} {} not done: {} {} stopped with {}, and no other worker takes what one has taken\n{}",
      counted(held, "position"), held == 1 ? "is" : "are", names.size() == 1 ? "worker" : "workers",
      sweep::listing(names, kMostNamed), held == 1 ? "it" : "them", what_to_do(folder, status));
}

}  // namespace tools
