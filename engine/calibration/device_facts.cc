#include "engine/calibration/device_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "engine/calibration/line_words.h"

namespace engine {
namespace {

// visit(name, member, decides) for each field of a device, with those of its links, peaks and grids. What a link as a whole decides, its
// fields do not go beyond.
template <class Self, class Visit>
void each_field(Self& self, const std::string& prefix, TimesOf most, const Visit& visit) {
  std::remove_const_t<Self>::fields(
      self, [&](std::string_view name, auto& member, std::string_view, Range range) {
        using Member = std::remove_cvref_t<decltype(member)>;
        const TimesOf decides = std::max(most, range.decides);
        const std::string full = prefix + std::string(name);
        if constexpr (HasFields<Member>) {
          each_field(member, full + ".", decides, visit);
        } else {
          visit(full, member, decides);
        }
      });
}

// Calibrations state it that were made while it counted as one.
constexpr std::string_view kFormerFact = "shared_memory";

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
template <NamedEnum Word>
bool read(std::string_view text, Word& value) {
  const auto known = from_name<Word>(text);
  value = known.value_or(Word{});
  return known.has_value();
}
template <class Quantity>
requires requires(Quantity quantity) { quantity.value; }
bool read(std::string_view text, Quantity& quantity) { return read(text, quantity.value); }

}  // namespace

std::string facts_text(const Device& device) {
  std::string text;
  const auto add = [&text](const std::string& name, const auto& member, TimesOf decides) {
    if (decides == TimesOf::nothing) return;
    text += fmt::format("{}: {}\n", name, text_of(member));
  };
  each_field(device, "measured_on.", TimesOf::kernels, add);
  return text;
}

bool set_fact(Device& device, std::string_view name, std::string_view value) {
  if (name == kFormerFact) return true;
  bool good = false;
  each_field(device, "", TimesOf::kernels,
             [&](const std::string& fact, auto& member, TimesOf decides) {
               if (fact == name && decides != TimesOf::nothing) good = read(value, member);
             });
  return good;
}

namespace {

// Where the fields lie that decide some times. Every struct is held by value, so an offset is the same in every device.
class Compared {
 public:
  explicit Compared(TimesOf times) {
    const Device any;
    const auto* origin = reinterpret_cast<const char*>(&any);
    each_field(any, "", TimesOf::kernels,
               [&](const std::string&, const auto& member, TimesOf decides) {
                 using Member = std::remove_cvref_t<decltype(member)>;
                 if (decides != times) return;
                 const auto at = std::size_t(reinterpret_cast<const char*>(&member) - origin);
                 fields_.push_back({at, [](const char* a, const char* b) {
                                      return *reinterpret_cast<const Member*>(a) ==
                                             *reinterpret_cast<const Member*>(b);
                                    }});
               });
  }

  bool equal(const Device& a, const Device& b) const {
    const auto* in_a = reinterpret_cast<const char*>(&a);
    const auto* in_b = reinterpret_cast<const char*>(&b);
    return std::ranges::all_of(fields_, [&](const Field& field) {
      return field.equal(in_a + field.offset, in_b + field.offset);
    });
  }

 private:
  struct Field {
    std::size_t offset;
    bool (*equal)(const char* a, const char* b);
  };
  std::vector<Field> fields_;
};

}  // namespace

void tell_tf32_apart(Device& device) {
  if (device.peak.tf32.value > 0 || device.peak.fp32 <= device.vector_peak) return;
  device.peak.tf32 = device.peak.fp32;
  device.peak.fp32 = device.vector_peak;
}

bool same_kernels(const Device& a, const Device& b) {
  static const Compared kernels(TimesOf::kernels);
  return kernels.equal(a, b);
}

bool same_links(const Device& a, const Device& b) {
  static const Compared links(TimesOf::links);
  return links.equal(a, b);
}

}  // namespace engine
