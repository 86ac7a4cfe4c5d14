#include "tools/cli/hand_over.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "engine/base/result.h"
#include "tools/command/exit_code.h"
#include "tools/command/kernel_verbs.h"
#include "tools/terminal/terminal.h"

namespace tools {

void add_handed_over(CLI::App& app) {
  for (const KernelVerb& verb : kKernelVerbs) add_verb(app, verb);
}

bool is_handed_over(int argc, char** argv) {
  return argc > 1 && std::ranges::any_of(kKernelVerbs, [&](const KernelVerb& verb) {
           return std::string_view(argv[1]) == verb.name;
         });
}

int hand_over(char** argv) {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const auto program = folder / kKernelProgram;
  execv(program.c_str(), argv);
  const int reason = errno;
  engine::Mistake mistake{
      {}, fmt::format("cannot start {}: {}", program.string(), std::strerror(reason)), ""};
  if (reason == ENOENT) {
    mistake.what =
        fmt::format("'{}' needs {}, which is not in {}", argv[1], kKernelProgram, folder.string());
    const bool built_here = std::filesystem::exists(folder / "CMakeCache.txt", error);
    mistake.hint =
        fmt::format("build it: {}cmake --build {} --target {}", built_here ? "" : "in a checkout: ",
                    built_here ? folder.string() : "build/release", kKernelProgram);
  }
  print(stderr, "{}", engine::to_text({mistake}));
  return kFailure;
}

}  // namespace tools
