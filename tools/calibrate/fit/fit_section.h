// Fits the parameters of one family's form to measured calls.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "tools/calibrate/fit/minimise.h"
#include "tools/calibrate/tables/measured_calls.h"

namespace tools {

// One measured call in the engine's terms.
struct Sample {
  engine::Family family = engine::Family::gemm;
  engine::Op op;
  const engine::Device* device = nullptr;
  double seconds = 0;
};

// Whether an engine timed the call, with what it does around the kernel: quantising, storing keys.
bool timed_by_engine(const Sample& sample);

enum class Start : std::uint8_t {
  present,  // from the parameters in the calibration
  neutral,  // from values that know no device
};

struct FitOptions {
  Start start = Start::present;
  std::size_t most_samples = 1500;  // of more, an even choice is fitted
  MinimiseOptions search;
  std::span<const std::string_view> searched;  // parameters; none: all
};

// Changes the parameters of `section` ("gemm/bf16") and `set` in the calibration, which is present and
// has no points, so that the mean of |log(measured / predicted)| over the samples is least. An error
// beyond a factor of two counts as that: what a form cannot explain must not bend it. What an engine
// does around a kernel is searched only where samples with and without it tell the two apart. Returns
// the mean reached.
double fit_section(engine::Calibration& calibration, const std::string& section,
                   engine::ParameterSet set, const std::vector<Sample>& samples,
                   const FitOptions& options);

}  // namespace tools
