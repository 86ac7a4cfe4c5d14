// How much work one point may take. Work is counted, not timed, so that a point ends alike on every machine.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace engine {

// Units of work of one point, unless a run says otherwise: minutes of one core. A unit is about an event of a
// simulation, or four bytes that it must hold at once.
constexpr double kPointBudget = 2e9;

// A step whose kernels are timed one by one.
constexpr double kWorkOfAStep = 16;

// Thrown by a meter, and nowhere else.
struct WorkExceeded {};  // the point took more than its budget
struct WorkStopped {};   // the run is to stop; the point is not finished

class WorkMeter {
 public:
  explicit WorkMeter(double budget = kPointBudget, const std::atomic<bool>* stop = nullptr)
      : budget_(budget), stop_(stop) {}

  void begin_point() { used_ = unwatched_ = 0; }
  void charge(double units) {
    used_ += units;
    if (!(used_ <= unwatched_)) look();
  }
  // For memory that is about to be taken.
  void charge_bytes(double bytes) { charge(bytes / 4); }

  double budget() const { return budget_; }
  double used() const { return used_; }

 private:
  // Throws where the point has to end.
  void look();

  double budget_;
  double used_ = 0;
  double unwatched_ = 0;  // the next look is when this much is used
  const std::atomic<bool>* stop_;
};

// The reason of a point that took more than its budget; and the budget, to six digits, that such a reason names
// (0 for any other text).
std::string given_up_reason(double budget);
double budget_given_up(std::string_view reason);

}  // namespace engine
