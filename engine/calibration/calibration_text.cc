// The text of a calibration. One value a line:
//
//     llmsweep calibration 1
//     name: transfer
//     tier: transfer
//     model_version: 2
//     device: -
//     source: ...
//     fit_error: ...
//     checksum: 0123456789abcdef        of every line after this one, and of those before it
//     section gemm/bf16/hopper
//     eta_m: 0.84
//     low: 0.89
//     high: 1.12
//     launch: 2.4
//     envelope m: 1 32768
//     point: 16 4096 4096 1 0.0123      coordinates as in the kernel tables, then the residual
#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/checksum.h"
#include "engine/base/version.h"
#include "engine/calibration/calibration.h"

namespace engine {
namespace {

constexpr std::string_view kMagic = "llmsweep calibration ";

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t start = text.find_first_not_of(' ');
    if (start == std::string_view::npos) break;
    text.remove_prefix(start);
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

// Everything but the line that states it.
std::string fingerprint(std::string_view before, std::string_view after) {
  return checksum_of(std::string(before) + std::string(after));
}

// The section being read, whatever the type of its parameters: where values go and what is missing.
struct OpenSection {
  std::string name;
  int line = 0;
  SetFacts* facts = nullptr;
  CoordinateList list;
  std::vector<std::pair<std::string_view, double*>> values;
  std::vector<bool> seen;
  std::vector<MeasuredPoint> points;
  std::array<bool, kMostCoordinates> bounded{};
};

class Reader {
 public:
  Reader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  Result<Calibration> read() {
    if (!header()) return std::move(mistakes_);
    while (next_line()) body_line();
    close_section();
    if (!mistakes_.empty()) return std::move(mistakes_);
    return std::move(calibration_);
  }

 private:
  void wrong(int line, std::string what, std::string hint) {
    mistakes_.push_back({{file_, line, 1}, std::move(what), std::move(hint)});
  }

  bool next_line() {
    if (at_ >= text_.size()) return false;
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    line_ = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++number_;
    return true;
  }

  // "key: value"; false and a mistake where the line is something else.
  bool split(std::string_view& key, std::string_view& value) {
    const std::size_t colon = line_.find(": ");
    if (colon == std::string_view::npos) {
      wrong(number_, fmt::format("'{}' is not 'key: value'", line_), kAgain);
      return false;
    }
    key = line_.substr(0, colon);
    value = line_.substr(colon + 2);
    return true;
  }

  bool stops(std::string what, std::string hint) {
    wrong(std::max(number_, 1), std::move(what), std::move(hint));
    return false;
  }

  bool header() {
    if (!next_line() || !line_.starts_with(kMagic)) {
      return stops("not a calibration", "calibrations are written by 'llmsweep calibrate'");
    }
    if (line_.substr(kMagic.size()) != fmt::format("{}", kCalibrationFormat)) {
      return stops(fmt::format("calibration format {}; this program reads format {}",
                               line_.substr(kMagic.size()), kCalibrationFormat),
                   kAgain);
    }
    while (true) {
      const std::size_t start = at_;
      if (!next_line()) return stops("the header has no checksum", kAgain);
      std::string_view key, value;
      if (!split(key, value)) return false;
      if (key == "checksum") return checksum(value, text_.substr(0, start));
      if (!header_value(key, value)) return false;
    }
  }

  bool header_value(std::string_view key, std::string_view value) {
    const std::string text(value == "-" ? "" : value);
    if (key == "name") {
      calibration_.name = text;
    } else if (key == "device") {
      calibration_.device = text;
    } else if (key == "source") {
      calibration_.source = text;
    } else if (key == "fit_error") {
      calibration_.fit_error = text;
    } else if (key == "tier") {
      const auto tier = from_name<Tier>(value);
      if (!tier) return stops(fmt::format("unknown tier '{}'", value), kAgain);
      calibration_.tier = *tier;
    } else if (key == "model_version") {
      if (value != fmt::format("{}", kModelVersion)) {
        return stops(fmt::format("made for model version {}; this program is version {}", value,
                                 kModelVersion),
                     kAgain);
      }
    } else {
      return stops(fmt::format("unknown key '{}'", key), kAgain);
    }
    return true;
  }

  bool checksum(std::string_view stated, std::string_view before) {
    const std::string actual =
        fingerprint(before, at_ < text_.size() ? text_.substr(at_) : std::string_view{});
    if (stated != actual) {
      return stops(
          fmt::format("checksum {} does not match the file's contents ({})", stated, actual),
          "the file was edited or cut off; make it anew with 'llmsweep calibrate'");
    }
    calibration_.checksum = actual;
    return true;
  }

  void body_line() {
    if (line_.starts_with("section ")) {
      close_section();
      open_section(line_.substr(8));
      return;
    }
    std::string_view key, value;
    if (!split(key, value)) return;
    if (open_.facts == nullptr) {
      return wrong(number_, fmt::format("'{}' is in no known section", key), kAgain);
    }
    if (key == "point") return point(value);
    if (key.starts_with("envelope ")) return envelope(key.substr(9), value);
    for (std::size_t i = 0; i < open_.values.size(); ++i) {
      if (open_.values[i].first != key) continue;
      if (open_.seen[i]) return wrong(number_, fmt::format("'{}' is given twice", key), kAgain);
      const auto parsed = number(value);
      if (!parsed)
        return wrong(number_, fmt::format("{}: '{}' is not a number", key, value), kAgain);
      open_.seen[i] = true;
      *open_.values[i].second = *parsed;
      return;
    }
    wrong(number_, fmt::format("unknown key '{}' in section {}", key, open_.name), kAgain);
  }

  void open_section(std::string_view name) {
    open_ = OpenSection{};
    open_.name = name;
    open_.line = number_;
    const std::size_t slash = name.rfind('/');
    const auto set = slash == std::string_view::npos
                         ? std::nullopt
                         : from_name<ParameterSet>(name.substr(slash + 1));
    if (set && *set != ParameterSet::none) {
      Calibration::sections(calibration_,
                            [&](std::string_view family, auto& sets, CoordinateList list) {
                              if (family == name.substr(0, slash))
                                bind(sets[static_cast<std::size_t>(*set)], list);
                            });
    }
    if (open_.facts == nullptr) {
      wrong(number_, fmt::format("unknown section '{}'", name), kAgain);
    } else if (open_.facts->present) {
      wrong(number_, fmt::format("section {} is given twice", name), kAgain);
    }
  }

  template <class Fit>
  void bind(FittedSet<Fit>& set, CoordinateList list) {
    open_.facts = &set;
    open_.list = list;
    open_.values = {{"low", &set.low}, {"high", &set.high}, {"launch", &set.launch}};
    Fit::fields(set.fit, [this](std::string_view key, double& value) {
      open_.values.emplace_back(key, &value);
    });
    open_.seen.assign(open_.values.size(), false);
  }

  void close_section() {
    if (open_.facts == nullptr) return;
    for (std::size_t i = 0; i < open_.values.size(); ++i) {
      if (open_.seen[i]) continue;
      wrong(open_.line, fmt::format("section {} has no '{}'", open_.name, open_.values[i].first),
            kAgain);
    }
    SetFacts& facts = *open_.facts;
    facts.present = true;
    facts.tier = calibration_.tier;
    facts.envelope.known = false;
    for (std::size_t i = 0; i < open_.list.size(); ++i) {
      facts.envelope.known = facts.envelope.known || open_.bounded[i];
    }
    for (std::size_t i = 0; i < open_.list.size(); ++i) {
      if (open_.bounded[i]) continue;
      facts.envelope.low[i] = -HUGE_VAL;
      facts.envelope.high[i] = HUGE_VAL;
    }
    facts.points = PointSet(std::move(open_.points), open_.list);
    open_ = OpenSection{};
  }

  void envelope(std::string_view name, std::string_view value) {
    const std::vector<std::string_view> words = words_of(value);
    for (std::size_t i = 0; i < open_.list.size(); ++i) {
      if (open_.list[i].name != name) continue;
      const auto low = words.size() == 2 ? number(words[0]) : std::nullopt;
      const auto high = words.size() == 2 ? number(words[1]) : std::nullopt;
      if (!low || !high) {
        return wrong(number_, fmt::format("envelope {}: '{}' is not two numbers", name, value),
                     kAgain);
      }
      open_.bounded[i] = true;
      open_.facts->envelope.low[i] = *low;
      open_.facts->envelope.high[i] = *high;
      return;
    }
    wrong(number_, fmt::format("unknown coordinate '{}' in section {}", name, open_.name), kAgain);
  }

  void point(std::string_view value) {
    MeasuredPoint point;
    const std::vector<std::string_view> words = words_of(value);
    bool fine = words.size() == open_.list.size() + 1;
    for (std::size_t i = 0; fine && i < words.size(); ++i) {
      const auto parsed = number(words[i]);
      fine = parsed.has_value();
      if (!fine) break;
      (i < open_.list.size() ? point.shape.value[i] : point.residual) = *parsed;
    }
    if (!fine) {
      return wrong(number_,
                   fmt::format("point: '{}' is not {} numbers", value, open_.list.size() + 1),
                   kAgain);
    }
    point.shape.count = open_.list.size();
    open_.points.push_back(point);
  }

  static constexpr const char* kAgain = "make the file anew with 'llmsweep calibrate'";

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  std::string_view line_;
  int number_ = 0;
  Calibration calibration_;
  OpenSection open_;
  std::vector<Mistake> mistakes_;
};

// One line: a header value may not bring lines of its own.
std::string one_line(const std::string& text) {
  if (text.empty()) return "-";
  std::string line = text;
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return line;
}

template <class Fit>
void write_set(const std::string& name, const FittedSet<Fit>& set, CoordinateList list,
               std::string& text) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, "section {}\n", name);
  Fit::fields(set.fit, [&out](std::string_view key, double value) {
    fmt::format_to(out, "{}: {}\n", key, value);
  });
  fmt::format_to(out, "low: {}\nhigh: {}\nlaunch: {}\n", set.low, set.high, set.launch);
  for (std::size_t i = 0; set.envelope.known && i < list.size(); ++i) {
    if (!std::isfinite(set.envelope.low[i])) continue;
    fmt::format_to(out, "envelope {}: {} {}\n", list[i].name, set.envelope.low[i],
                   set.envelope.high[i]);
  }
  for (const MeasuredPoint& point : set.points.points()) {
    text += "point:";
    for (std::size_t i = 0; i < list.size(); ++i) {
      fmt::format_to(out, " {}", point.shape.value[i]);
    }
    fmt::format_to(out, " {}\n", point.residual);
  }
}

}  // namespace

Result<Calibration> parse_calibration(std::string_view text, const std::string& file_name) {
  return Reader(text, file_name).read();
}

std::string write_calibration(const Calibration& calibration) {
  const std::string header = fmt::format(
      "{}{}\nname: {}\ntier: {}\nmodel_version: {}\ndevice: {}\nsource: {}\nfit_error: {}\n",
      kMagic, kCalibrationFormat, one_line(calibration.name), name_of(calibration.tier),
      kModelVersion, one_line(calibration.device), one_line(calibration.source),
      one_line(calibration.fit_error));
  std::string body;
  Calibration::sections(
      calibration, [&](const std::string& name, const auto& sets, CoordinateList list) {
        for (std::size_t i = 0; i < sets.size(); ++i) {
          // What a sweep was completed by belongs to another file.
          if (!sets[i].present || sets[i].tier != calibration.tier) continue;
          write_set(name + "/" + std::string(name_of(ParameterSet(i))), sets[i], list, body);
        }
      });
  return header + "checksum: " + fingerprint(header, body) + "\n" + body;
}

Calibration completed_by(Calibration measured, const Calibration& transfer) {
  std::vector<const void*> sources;
  Calibration::sections(transfer, [&sources](std::string_view, const auto& sets, CoordinateList) {
    sources.push_back(&sets);
  });
  std::size_t next = 0;
  Calibration::sections(measured, [&](std::string_view, auto& sets, CoordinateList) {
    const auto& from = *static_cast<std::decay_t<decltype(sets)> const*>(sources[next++]);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (!sets[i].present) sets[i] = from[i];
    }
  });
  return measured;
}

}  // namespace engine
