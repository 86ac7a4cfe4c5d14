// The door libFuzzer comes in by. LLMSWEEP_FUZZ_TARGET names the target; LLMSWEEP_FUZZ_CPU_SECONDS says how
// much CPU time it may take, which means the same on a busy machine as on an idle one.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "tests/fuzz/targets.h"

namespace {

const fuzz::Target& chosen() {
  const char* name = std::getenv("LLMSWEEP_FUZZ_TARGET");
  for (const fuzz::Target& target : fuzz::targets()) {
    if (name != nullptr && target.name == name) return target;
  }
  std::fprintf(stderr, "LLMSWEEP_FUZZ_TARGET names no target\n");
  std::exit(2);
}

// libFuzzer takes SIGUSR1 for the wish to end after this input.
void end_after(std::time_t cpu_seconds) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  timer_t timer{};
  itimerspec when{};
  when.it_value.tv_sec = cpu_seconds;
  if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) != 0 ||
      timer_settime(timer, 0, &when, nullptr) != 0) {
    std::perror("a timer of CPU time");
    std::exit(2);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* seconds = std::getenv("LLMSWEEP_FUZZ_CPU_SECONDS");
  if (seconds != nullptr) end_after(std::strtol(seconds, nullptr, 10));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Target& target = chosen();
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
