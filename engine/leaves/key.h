// The identity of a point: what joins runs, and finds a point again that was computed before.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace engine {

struct Scenario;
struct Calibrations;

struct Key {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Key&) const = default;
};

// A content hash of what the point can depend on: the model version, the leaves that its task reads and that
// differ from their defaults, and the calibration that its kernel times come from. Names, and
// where files lie are not in it. A knob added later, left at its default, moves no key.
Key key_of(const Scenario& scenario, const Calibrations& calibrations);
// The same where no calibrations are loaded.
Key key_of(const Scenario& scenario);

std::string to_hex(Key key);
// 32 hexadecimal digits, written to `out`.
void write_hex(Key key, char* out);

}  // namespace engine
