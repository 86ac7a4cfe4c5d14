// What produced a row: the program and the model behind its numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace engine {

// Raised whenever a formula change moves any result; part of every key. The reasons are in
// engine/MODEL_CHANGES.md.
constexpr std::int64_t kModelVersion = 31;

// Raised when the form of a fitted kernel changes, so that parameters fitted to the old form mean nothing in
// the new one; calibration files carry it.
constexpr std::int64_t kKernelFormVersion = 4;

std::string_view program_version();  // "0.1.0"
std::string_view program_commit();   // "8d535a7c01f2", "-dirty" after it if changed; or "unknown"
std::string_view compiler();         // "GNU 12.2.0"

}  // namespace engine
