// What calls of a kernel amount to: time, its interval, arithmetic, traffic, energy. Everything in it adds up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/base/savings.h"
#include "engine/base/units.h"

namespace engine {

// How a table writes a member of Work.
enum class Written : std::uint8_t {
  plainly,
  exposed,   // without what is hidden
  as_ratio,  // as a multiple of the exposed time
  if_known,  // zero means unknown, and is written as null
};

// What calls of one kernel take together, on one device (of each pipeline stage in turn). A new figure is a member and a line in `fields`;
// sums and the kernels table follow.
struct Work {
  double calls = 0;
  Seconds time;    // the device is busy with it
  Seconds hidden;  // of `time`: it runs beside something that takes as long
  Seconds low;     // nine times in ten, what is not hidden takes between these
  Seconds high;
  Seconds limited;  // of `time`: what the board's power limit adds
  Flops flops;
  Bytes bytes;
  Bytes from_memory;  // of `bytes` on a device, what its cache does not hold
  Joules energy;      // 0: the device does not say what it draws
  // What a lower clock changes, known where PowerLimit says passes: of `time` the part in proportion to 1 / clock, and of `energy` what
  // goes to busy multiprocessors and to memory (engine/kernels/power.h).
  Seconds clocked;
  Joules by_busy, by_memory;
  Savings saved;  // of the exposed time, if one part were free; none where the host takes the time

  // What it adds to the time of a step.
  Seconds exposed() const { return time - hidden; }

  // The columns of the kernels table: name, member, how it is written, meaning.
  template <class Self, class Visit>
  static constexpr void fields(Self& self, Visit&& visit) {
    visit("calls", self.calls, Written::plainly, "launches on one device");
    visit("seconds", self.time, Written::exposed, "time of all calls on one device");
    visit("low_ratio", self.low, Written::as_ratio,
          "lower end of the 90% interval of the time, as a multiple of seconds");
    visit("high_ratio", self.high, Written::as_ratio,
          "upper end of the 90% interval of the time, as a multiple of seconds");
    visit("flops", self.flops, Written::plainly, "arithmetic of all calls on one device");
    visit("bytes", self.bytes, Written::plainly,
          "what all calls on one device read and write in memory and its cache, or send over the "
          "network");
    visit("energy_j", self.energy, Written::if_known,
          "energy one device draws during all calls, by the powers that its file states; null: it "
          "states none");
    visit("limited_s", self.limited, Written::plainly,
          "time of all calls on one device that its power limit adds: without it they would be so "
          "much shorter");
    visit("hidden_s", self.hidden, Written::plainly,
          "time of all calls on one device that passes while something else takes as long; it is "
          "not part of seconds");
  }

  void add(const Work& other, double times = 1);

  bool operator==(const Work&) const = default;
};

inline void Work::add(const Work& other, double times) {
  static_assert(std::is_standard_layout_v<Work> && sizeof(Work) % sizeof(double) == 0,
                "work is doubles and nothing else");
  auto* sums = reinterpret_cast<double*>(this);
  const auto* more = reinterpret_cast<const double*>(&other);
  for (std::size_t i = 0; i < sizeof(Work) / sizeof(double); ++i) sums[i] += more[i] * times;
}

}  // namespace engine
