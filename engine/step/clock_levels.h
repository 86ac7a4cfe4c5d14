// Decode steps at lower clocks than the device's: for each the lowest that keeps a limit on its time.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "engine/step/breakdown.h"
#include "engine/step/kernel_sums.h"

namespace engine {

class StepTable;
struct DecodeLine;
struct Decodes;
struct Verification;

struct ClockChoice {
  double lowest = 1;          // clock, as a share of the device's; 1: it is always the device's
  double power_exponent = 2;  // of what busy multiprocessors draw, in the clock
  double limit = std::numeric_limits<double>::infinity();  // on the time of a step, in seconds

  bool varies() const { return lowest < 1; }
};

// The same device at a share of its clock.
Device at_clock(const Device& device, double share, double power_exponent);

class ClockLevels {
 public:
  ClockLevels();
  ~ClockLevels();
  ClockLevels(ClockLevels&&) noexcept;
  ClockLevels& operator=(ClockLevels&&) noexcept;

  // Nothing is counted. The context outlives the use. A draft on the same devices has the clock of the step that it proposes for.
  void reset(const StepContext& context, const ByPhase& scale, const Verification& verification,
             const ClockChoice& choice);
  // The line of these decodes at the lowest clock at which every step keeps the limit until another clock may be chosen;
  // false: none below the device's own does.
  bool choose(const Decodes& decodes, DecodeLine& line);
  // Contexts between two knots share the choice, wherever a line begins or ends, so that a stretch and single steps choose
  // alike.
  static double chosen_until(double context);
  StepTable& at(int level);

  // Adds rows of everything counted, and its sums.
  void report(Breakdown& rows, StepTable& all);
  // Seconds of all steps counted, and the same weighed with their clocks.
  struct Sums {
    double seconds = 0, clock_seconds = 0;

    void add(const Sums& other) {
      seconds += other.seconds;
      clock_seconds += other.clock_seconds;
    }
  };
  Sums sums() const;

 private:
  struct Level;
  std::vector<std::unique_ptr<Level>> levels_;  // lowest first
  double limit_ = 0;
};

}  // namespace engine
