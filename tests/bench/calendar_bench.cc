// How long does one completion and one newcomer take in a batch of so many sequences?
//
//     build/release/llmsweep_bench --benchmark_filter=ServingCalendar
#include <benchmark/benchmark.h>

#include <cstdint>

#include "engine/base/random.h"
#include "engine/serving/sequences/step_calendar.h"

namespace {

using namespace engine;

void ServingCalendar(benchmark::State& state) {
  std::uint64_t drawn = 0;
  const auto answer = [&drawn] {
    return 1 + std::int64_t(200 * exponential(1, Stream::output_lengths, drawn++ % 65'536));
  };
  StepCalendar calendar;
  for (std::int64_t slot = 0; slot < state.range(0); ++slot) {
    calendar.insert(std::int32_t(slot), answer());
  }
  for (auto _ : state) {
    const std::int64_t step = calendar.next();
    const std::int32_t slot = calendar.first_by(step);
    calendar.remove(slot, step);
    calendar.insert(slot, step + answer());
  }
}
BENCHMARK(ServingCalendar)->RangeMultiplier(16)->Range(16, 4096);

}  // namespace
