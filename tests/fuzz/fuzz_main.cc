// llmsweep_fuzz all: the smoke test. Seeds of every target and inputs made from them, by number.
// llmsweep_fuzz TARGET [RUNS [FIRST]]: those of one target.
// llmsweep_fuzz TARGET FILE: one input from a file, such as libFuzzer leaves behind.
// llmsweep_fuzz TARGET --corpora | --dictionary: its folders of seeds; its words, as libFuzzer reads them.
// Each input runs in a child process, so that the number of one that ends it can be told.
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/targets.h"
#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// In the order of their names: an input's number must mean the same everywhere.
std::vector<std::string> seeds_of(const fuzz::Target& target) {
  std::vector<fs::path> files;
  for (const std::string_view corpus : target.corpora) {
    for (const auto& entry : fs::recursive_directory_iterator(paths::source(std::string(corpus)))) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  seeds.reserve(files.size());
  for (const fs::path& file : files) seeds.push_back(content(file));
  return seeds;
}

struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

int run_range(const fuzz::Target& target, const std::vector<std::string>& seeds, Range range) {
  void* shared = mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto& current = *static_cast<volatile std::uint64_t*>(shared);
  std::fflush(nullptr);  // or the child writes it again
  const pid_t child = fork();
  if (child == 0) {
    for (std::uint64_t i = range.first; i < range.last; ++i) {
      current = i;
      target.run(fuzz::make_input(i, seeds, target.words));
    }
    std::exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    fmt::print("{}: {} inputs, {} of them seeds\n", target.name, range.last - range.first,
               seeds.size());
    return 0;
  }
  const std::uint64_t number = current;
  const std::string file = fmt::format("fuzz-{}-{}", target.name, number);
  std::ofstream(file, std::ios::binary) << fuzz::make_input(number, seeds, target.words);
  fmt::print(stderr, "{}: input {} ends the program; it is in {}, or: llmsweep_fuzz {} 1 {}\n",
             target.name, number, fs::absolute(file).string(), target.name, number);
  return 1;
}

int run_target(const fuzz::Target& target) {
  const std::vector<std::string> seeds = seeds_of(target);
  return run_range(target, seeds, {0, seeds.size() + std::uint64_t(target.runs)});
}

int usage() {
  fmt::print(stderr,
             "usage: llmsweep_fuzz all | TARGET [RUNS [FIRST] | FILE | --corpora | --dictionary]; "
             "targets:");
  for (const fuzz::Target& one : fuzz::targets()) fmt::print(stderr, " {}", one.name);
  fmt::print(stderr, "\n");
  return 2;
}

// One word a line, in quotes, every byte as \xNN.
void print_dictionary(const fuzz::Target& target) {
  for (const std::string_view word : target.words) {
    fmt::print("\"");
    for (const char byte : word) fmt::print("\\x{:02x}", static_cast<unsigned char>(byte));
    fmt::print("\"\n");
  }
}

// What follows the name of a target.
int run_one(const fuzz::Target& target, const std::vector<std::string>& rest) {
  if (rest.empty()) return run_target(target);
  if (rest[0] == "--corpora") {
    for (const std::string_view corpus : target.corpora) fmt::print("{}\n", corpus);
    return 0;
  }
  if (rest[0] == "--dictionary") {
    print_dictionary(target);
    return 0;
  }
  std::error_code error;
  if (fs::is_regular_file(rest[0], error)) {
    target.run(content(rest[0]));
    return 0;
  }
  const std::uint64_t runs = std::strtoull(rest[0].c_str(), nullptr, 10);
  const std::uint64_t first = rest.size() > 1 ? std::strtoull(rest[1].c_str(), nullptr, 10) : 0;
  return run_range(target, seeds_of(target), {first, first + runs});
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.empty()) return usage();
  if (words[0] == "all") {
    int worst = 0;
    for (const fuzz::Target& target : fuzz::targets()) worst = std::max(worst, run_target(target));
    return worst;
  }
  for (const fuzz::Target& target : fuzz::targets()) {
    if (target.name == words[0]) return run_one(target, {words.begin() + 1, words.end()});
  }
  return usage();
}
