// The text of a calibration. One value a line:
//
//     llmsweep calibration 2
//     name: transfer
//     tier: transfer
//     model_version: 4
//     device: -
//     source: ...
//     fit_error: ...
//     impl: vllm_0.24.0:...             only in a text about one implementation
//     measured_on.multiprocessors: 132  the datasheet of the swept device, one line a fact
//     identity: fedcba9876543210        only where the text was put into other words: the checksum it had before
//     checksum: 0123456789abcdef        of every line after this one, and of those before it
//     section gemm/bf16/hopper
//     memory_share: 0.84
//     low: 0.89
//     high: 1.12
//     launch: 2.4
//     envelope m: 1 32768
//     trees: 132                        processors of the measured device
//     tree: 0 16.5 ... -12 0 7 ...      six features and limits, 64 leaves in units of 1e-4
//     line: 4096 4096 1 0 : 16 0.0123 32 0.0119 ...
//                                       coordinates as in the kernel tables but the first; then the
//                                       first and the residual of each measured call
//     point: 16 4096 4096 1 0 0.0123    the same for one call, as older files have it
//
// Format 1 is the same with shorter names of parameters (Parameter::former).
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/version.h"
#include "engine/calibration/calibration.h"
#include "engine/calibration/calibration_format.h"
#include "engine/calibration/device_facts.h"
#include "engine/calibration/line_words.h"

namespace engine {
namespace {

using calibration_format::fingerprint;
using calibration_format::kMagic;

// The section being read, whatever the type of its parameters: where values go and what is missing.
struct OpenSection {
  std::string name;
  int line = 0;
  SetFacts* facts = nullptr;
  CoordinateList list;
  // One value of the section: what its line is called, and where it goes.
  struct Value {
    std::string_view key;
    double* place;
  };
  std::vector<Value> values;
  std::vector<bool> seen;
  std::vector<MeasuredPoint> points;
  BoostedTrees trees;
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
    const std::string_view format = line_.substr(kMagic.size());
    former_ = format == fmt::format("{}", kFormerFormat);
    if (!former_ && format != fmt::format("{}", kCalibrationFormat)) {
      return stops(fmt::format("calibration format {}; this program reads formats {} and {}",
                               format, kFormerFormat, kCalibrationFormat),
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
    } else if (key == "impl") {
      calibration_.impl = text;
    } else if (key == "identity") {
      stated_identity_ = text;
    } else if (key.starts_with(kMeasuredOn)) {
      if (!calibration_.measured_on) calibration_.measured_on.emplace();
      says_tf32_ = says_tf32_ || key.ends_with(".tf32");
      if (!set_fact(*calibration_.measured_on, key.substr(kMeasuredOn.size()), value)) {
        return stops(fmt::format("{}: '{}' is no fact of a device", key, value), kAgain);
      }
    } else if (key == "tier") {
      const auto tier = from_name<Tier>(value);
      if (!tier) return stops(fmt::format("unknown tier '{}'", value), kAgain);
      calibration_.tier = *tier;
    } else if (key == "model_version") {
      if (value != fmt::format("{}", kKernelFormVersion)) {
        return stops(fmt::format("made for kernel forms of version {}; this program has version {}",
                                 value, kKernelFormVersion),
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
    if (calibration_.measured_on && !says_tf32_) tell_tf32_apart(*calibration_.measured_on);
    calibration_.checksum = stated_identity_.empty() ? actual : stated_identity_;
    calibration_.identity = calibration_.checksum;
    calibration_.reworded = former_ || !stated_identity_.empty();
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
    if (key == "line") return line(value);
    if (key == "tree") return tree(value);
    if (key == "trees") return trees(value);
    if (key == "point") return point(value);
    if (key.starts_with("envelope ")) return envelope(key.substr(9), value);
    for (std::size_t i = 0; i < open_.values.size(); ++i) {
      if (open_.values[i].key != key) continue;
      if (open_.seen[i]) return wrong(number_, fmt::format("'{}' is given twice", key), kAgain);
      const auto parsed = number(value);
      if (!parsed)
        return wrong(number_, fmt::format("{}: '{}' is not a number", key, value), kAgain);
      open_.seen[i] = true;
      *open_.values[i].place = *parsed;
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
      Calibration::sections(calibration_, [&](const std::string& section, auto& sets) {
        if (section != name.substr(0, slash)) return;
        if (sets.find(*set) != nullptr) {
          wrong(number_, fmt::format("section {} is given twice", name), kAgain);
        }
        bind(sets.edit(*set));
      });
    }
    if (open_.facts == nullptr) wrong(number_, fmt::format("unknown section '{}'", name), kAgain);
  }

  template <class Fit>
  void bind(FittedSet<Fit>& set) {
    open_.facts = &set;
    open_.list = coordinates_for<Fit>();
    open_.values = {{"low", &set.low}, {"high", &set.high}, {"launch", &set.launch}};
    each_parameter(set.fit, [this](const auto& parameter, double& value) {
      open_.values.push_back({former_ ? parameter.former : parameter.name, &value});
    });
    open_.seen.assign(open_.values.size(), false);
  }

  void close_section() {
    if (open_.facts == nullptr) return;
    for (std::size_t i = 0; i < open_.values.size(); ++i) {
      if (open_.seen[i]) continue;
      wrong(open_.line, fmt::format("section {} has no '{}'", open_.name, open_.values[i].key),
            kAgain);
    }
    SetFacts& facts = *open_.facts;
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
    facts.points = PointSet(std::move(open_.points), open_.list, std::move(open_.trees));
    open_ = OpenSection{};
  }

  void envelope(std::string_view name, std::string_view value) {
    const auto ends = numbers_of(value);
    for (std::size_t i = 0; i < open_.list.size(); ++i) {
      if (open_.list[i].name != name) continue;
      if (!ends || ends->size() != 2) {
        return wrong(number_, fmt::format("envelope {}: '{}' is not two numbers", name, value),
                     kAgain);
      }
      open_.bounded[i] = true;
      open_.facts->envelope.low[i] = ends->front();
      open_.facts->envelope.high[i] = ends->back();
      return;
    }
    wrong(number_, fmt::format("unknown coordinate '{}' in section {}", name, open_.name), kAgain);
  }

  void point(std::string_view value) {
    MeasuredPoint point;
    const auto numbers = numbers_of(value);
    const std::size_t count = open_.list.size();
    if (!numbers || numbers->size() != count + 1) {
      return wrong(number_, fmt::format("point: '{}' is not {} numbers", value, count + 1), kAgain);
    }
    std::copy_n(numbers->begin(), count, point.shape.value.begin());
    point.shape.count = count;
    point.residual = numbers->back();
    open_.points.push_back(point);
  }

  void line(std::string_view value) {
    const std::size_t colon = value.find(": ");
    const std::size_t others = open_.list.size() - 1;
    const auto shape = numbers_of(value.substr(0, std::min(colon, value.size())));
    const auto calls =
        colon == std::string_view::npos ? std::nullopt : numbers_of(value.substr(colon + 2));
    if (!shape || shape->size() != others || !calls || calls->empty() || calls->size() % 2 != 0) {
      return wrong(number_,
                   fmt::format("line: not {} numbers, ':' and the pairs of measured calls", others),
                   kAgain);
    }
    MeasuredPoint point;
    point.shape.count = open_.list.size();
    std::ranges::copy(*shape, point.shape.value.begin() + 1);
    for (std::size_t i = 0; i < calls->size(); i += 2) {
      point.shape.value[0] = (*calls)[i];
      point.residual = (*calls)[i + 1];
      open_.points.push_back(point);
    }
  }

  void trees(std::string_view value) {
    const auto processors = number(value);
    if (!processors || *processors <= 0 || open_.list.features == Features::none) {
      return wrong(number_, fmt::format("trees: '{}' in section {}", value, open_.name), kAgain);
    }
    open_.trees.features = open_.list.features;
    open_.trees.processors = *processors;
  }

  void tree(std::string_view value) {
    const auto numbers = numbers_of(value);
    constexpr std::size_t asked = 2 * kTreeDepth;
    bool fine =
        numbers && numbers->size() == asked + kTreeLeaves && open_.trees.features != Features::none;
    for (std::size_t i = 0; fine && i < numbers->size(); ++i) {
      const double value_here = (*numbers)[i];
      const bool feature = i < asked && i % 2 == 0;
      const double low = feature ? 0 : INT16_MIN, high = feature ? kMostFeatures - 1 : INT16_MAX;
      const bool whole = feature || i >= asked;
      fine = !whole ||
             (value_here >= low && value_here <= high && value_here == std::floor(value_here));
    }
    if (!fine) {
      return wrong(number_,
                   fmt::format("tree: not {} features with limits and {} whole leaves", kTreeDepth,
                               kTreeLeaves),
                   kAgain);
    }
    for (std::size_t i = 0; i < asked; i += 2) {
      open_.trees.asked.push_back(std::uint8_t((*numbers)[i]));
      open_.trees.limit.push_back((*numbers)[i + 1]);
    }
    for (std::size_t i = asked; i < numbers->size(); ++i) {
      open_.trees.leaves.push_back(std::int16_t((*numbers)[i]));
    }
  }

  static constexpr std::string_view kMeasuredOn = "measured_on.";
  static constexpr const char* kAgain = "make the file anew with 'llmsweep calibrate'";

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  std::string_view line_;
  int number_ = 0;
  bool former_ = false;  // the text is of the former format
  bool says_tf32_ = false;
  std::string stated_identity_;
  Calibration calibration_;
  OpenSection open_;
  std::vector<Mistake> mistakes_;
};

}  // namespace

Result<Calibration> parse_calibration(std::string_view text, const std::string& file_name) {
  return Reader(text, file_name).read();
}

std::vector<std::string_view> calibrations_in(std::string_view text) {
  std::vector<std::string_view> texts;
  const std::string next = "\n" + std::string(kMagic);
  while (true) {
    const std::size_t end = text.find(next);
    texts.push_back(text.substr(0, end == std::string_view::npos ? end : end + 1));
    if (end == std::string_view::npos) return texts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace engine
