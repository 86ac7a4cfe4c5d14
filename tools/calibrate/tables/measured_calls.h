// Rows of a kernel table that measured the same call, put together into one time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/hardware/device.h"
#include "tools/calibrate/tables/kernel_table.h"

namespace tools {

struct MeasuredCall {
  KernelCall call;
  double seconds = 0;
  std::uint32_t row = 0;   // the first of its rows
  std::uint32_t impl = 0;  // of that row, into KernelTable::impls
};

struct DeviceCalls {
  engine::Device device;
  std::vector<MeasuredCall> calls;
};

// What tools/gpu builds steps of: not FlashAttention-2, which cuDNN and our decode kernel beat, and not
// the sustained twins.
inline constexpr std::string_view kOwnSweepImpl = "^(?!.*(:flash|:sustained))";

// What the implementations of a call become.
enum class Across : std::uint8_t { median, least, separate };

struct GatherOptions {
  // Which implementations count, as a regular expression that must match part of their name; empty:
  // all, except ":sustained" ones, which measure a hot device, and "_eager" ones, whose time is the
  // host's.
  std::string impl;
  Across across = Across::median;
};

struct GatheredCalls {
  std::vector<MeasuredCall> calls;  // sorted by call
  std::size_t rows = 0;
  // Equal rows (same call, same implementation) whose times differ by more than a tenth: they are
  // replaced by their median, and that is said.
  std::size_t conflicts = 0;
  double worst_conflict = 1;  // longest over shortest
  engine::Location first_conflict;
};

// Equal rows become their median; then implementations become their median or least, or stay calls of
// their own.
engine::Result<GatheredCalls> gather_calls(const KernelTable& table, const GatherOptions& options);

}  // namespace tools
