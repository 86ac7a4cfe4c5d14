#include "engine/calibration/device_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>

#include "engine/calibration/line_words.h"

namespace engine {
namespace {

constexpr std::array<std::string_view, 8> kNoFacts = {
    "memory_capacity", "idle_power",   "power_limit", "busy_power",
    "tensor_power",    "memory_power", "rent",        "purchase"};

// visit(name, member) for every number of a device, with those of its links and peaks.
template <class Self, class Visit>
void each_fact(Self& self, const std::string& prefix, const Visit& visit) {
  std::remove_const_t<Self>::fields(self, [&](std::string_view name, auto& member, auto&&...) {
    using Member = std::remove_cvref_t<decltype(member)>;
    if (std::ranges::find(kNoFacts, name) != kNoFacts.end()) return;
    const std::string full = prefix + std::string(name);
    if constexpr (std::is_same_v<Member, Link> || std::is_same_v<Member, MatrixPeaks>) {
      each_fact(member, full + ".", visit);
    } else if constexpr (std::is_same_v<Member, std::string>) {
      // The generation decides which parameters speak for a device.
      if (name == "architecture") visit(full, member);
    } else if constexpr (std::is_same_v<Member, SystolicArray>) {
      // Products on grids are not fitted.
    } else {
      visit(full, member);
    }
  });
}

std::string text_of(const std::string& text) { return text; }
template <class Number>
std::string text_of(const Number& number) {
  if constexpr (requires { number.value; }) {
    return fmt::format("{}", number.value);
  } else if constexpr (std::is_enum_v<Number>) {
    return std::string(name_of(number));
  } else {
    return fmt::format("{}", number);
  }
}

bool read(std::string_view text, std::string& value) {
  value = text;
  return true;
}
bool read(std::string_view text, double& value) {
  const auto parsed = number(text);
  value = parsed.value_or(0);
  return parsed.has_value();
}
bool read(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}
bool read(std::string_view text, bool& value) {
  value = text == "true";
  return value || text == "false";
}
bool read(std::string_view text, Topology& value) {
  const auto known = from_name<Topology>(text);
  value = known.value_or(Topology::none);
  return known.has_value();
}
template <class Quantity>
requires requires(Quantity quantity) { quantity.value; }
bool read(std::string_view text, Quantity& quantity) { return read(text, quantity.value); }

}  // namespace

std::string facts_text(const Device& device) {
  std::string text;
  each_fact(device, "measured_on.", [&text](const std::string& name, const auto& member) {
    text += fmt::format("{}: {}\n", name, text_of(member));
  });
  return text;
}

bool set_fact(Device& device, std::string_view name, std::string_view value) {
  bool good = false;
  each_fact(device, "", [&](const std::string& fact, auto& member) {
    if (fact == name) good = read(value, member);
  });
  return good;
}

bool same_kernels(const Device& a, const Device& b) {
  return a.multiprocessors == b.multiprocessors && a.clock == b.clock &&
         a.rated_multiprocessors == b.rated_multiprocessors && a.rated_clock == b.rated_clock &&
         a.peak == b.peak && a.vector_peak == b.vector_peak &&
         a.memory_bandwidth == b.memory_bandwidth && a.l2_capacity == b.l2_capacity &&
         a.l2_bandwidth == b.l2_bandwidth && a.shared_memory == b.shared_memory &&
         a.launch_latency == b.launch_latency && a.host_link.bandwidth == b.host_link.bandwidth &&
         a.host_link.latency == b.host_link.latency;
}

bool same_links(const Device& a, const Device& b) {
  return rates_of(a.scale_up) == rates_of(b.scale_up) &&
         rates_of(a.scale_out) == rates_of(b.scale_out);
}

}  // namespace engine
