// The highest rate at which something still holds.
#pragma once

#include <functional>

namespace engine {

struct CapacityResult {
  double rate = 0;       // requests a second; 0: not even a crawl meets it
  bool monotone = true;  // lower rates that were tried hold too
  bool endless = false;  // it holds at any rate: there is no highest
  int trials = 0;
};

// Rates are tried on a fixed geometric grid of ratio 1 + tolerance, so the answer does not depend on
// where the search starts: `guess` only decides how soon it ends. Every trial meets the same random
// numbers, which is what makes the answer monotone up to the load's own accidents; two more trials,
// at half and at four fifths of the answer, check that it is.
CapacityResult highest_rate(double guess, double tolerance,
                            const std::function<bool(double rate)>& holds);

}  // namespace engine
