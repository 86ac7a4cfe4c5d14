#include "tools/calibrate/validate_all.h"

#include <fmt/core.h>

#include <array>
#include <memory>
#include <utility>

#include "sweep/spec/sweep_spec.h"
#include "tools/calibrate/load_calibration.h"
#include "tools/calibrate/measured_fit.h"
#include "tools/calibrate/step_errors.h"
#include "tools/calibrate/transfer_fit.h"
#include "tools/calibrate/trusted_rows.h"
#include "tools/calibrate/validate_table.h"

namespace tools {
namespace {

struct PublicTable {
  const char* device;
  const char* file;
};
constexpr std::array<PublicTable, 3> kTables = {{{"a100-80gb-sxm", "a100_sxm.csv.gz"},
                                                 {"h100-sxm", "h100_sxm.csv.gz"},
                                                 {"b200-sxm", "b200_sxm.csv.gz"}}};

// Calls of a family and format that held-out splits of a public table are fitted to: enough for a
// dense sweep, few enough for minutes.
constexpr std::size_t kMostMeasured = 1500;

void say(const std::string& what) { fmt::print(stderr, "validate: {}\n", what); }

engine::Result<engine::Device> named_device(const sweep::Library& library, const char* name) {
  auto spec = sweep::read_named(library, "devices", name);
  if (!spec) return spec.mistakes();
  return std::move(spec->scenario.device);
}

engine::Result<std::vector<DeviceCalls>> public_calls(const ValidateAllOptions& options) {
  std::vector<DeviceCalls> devices;
  for (const PublicTable& table : kTables) {
    auto device = named_device(options.library, table.device);
    if (!device) return device.mistakes();
    const auto rows = read_kernel_table(options.data / "kernels" / table.file, Times::needed);
    if (!rows) return rows.mistakes();
    auto calls = trusted_calls(*rows, device->architecture);
    devices.push_back({std::move(device).value(), std::move(calls)});
  }
  return devices;
}

std::string shipped_text(const std::vector<DeviceCalls>& devices, const engine::Calibration* fit) {
  std::string text;
  for (const DeviceCalls& calls : devices) {
    text += fmt::format("\n{}\n{}", calls.device.name,
                        error_table_text(validate_calls(calls.calls, {calls.device, fit})));
  }
  return text;
}

std::string measured_text(const MeasuredFit& fit) {
  std::string text = fmt::format("{:<22} {:<14} {}\n", "section", "left out", error_heading());
  for (const SectionErrors& errors : fit.errors) {
    text += fmt::format("{:<22} {:<14} {}\n", errors.section, "random fifth",
                        error_text(errors.random));
    text += fmt::format("{:<22} {:<14} {}\n", "", "unseen shapes", error_text(errors.unseen));
  }
  return text;
}

// An even choice of at most `most` calls a family and format.
std::vector<MeasuredCall> thinned(const std::vector<MeasuredCall>& calls, std::size_t most) {
  std::vector<MeasuredCall> chosen;
  for (std::size_t first = 0; first < calls.size();) {
    std::size_t last = first;
    const auto same = [&](const MeasuredCall& other) {
      return other.call.family == calls[first].call.family &&
             other.call.dtype == calls[first].call.dtype &&
             other.call.kv_dtype == calls[first].call.kv_dtype;
    };
    while (last < calls.size() && same(calls[last])) ++last;
    const std::size_t count = std::min(most, last - first);
    for (std::size_t i = 0; i < count; ++i) {
      chosen.push_back(calls[first + i * (last - first) / count]);
    }
    first = last;
  }
  return chosen;
}

engine::Result<std::string> own_sweep_text(const ValidateAllOptions& options,
                                           const engine::Calibration& transfer) {
  const auto folder = options.sweeps / "h200-sxm";
  auto device = named_device(options.library, "h200-sxm");
  if (!device) return device.mistakes();
  const auto rows = read_kernel_table(folder / "kernels.csv.gz", Times::needed);
  if (!rows) return rows.mistakes();
  const auto calls = gather_calls(*rows, {.impl = std::string(kOwnSweepImpl)});
  if (!calls) return calls.mistakes();
  const MeasuredFit fit = fit_measured(calls->calls, *device, transfer);
  std::string text =
      fmt::format("\n## measured: h200-sxm, our sweep, a fifth of the calls or shapes left out\n{}",
                  measured_text(fit));
  text += fmt::format("\n## transfer: h200-sxm, our sweep (never fitted)\n{}",
                      error_table_text(validate_calls(calls->calls, {*device, &transfer})));
  const engine::Calibration measured = engine::completed_by(fit.calibration, transfer);
  for (const auto& [tier, calibration] :
       {std::pair{"measured", &measured}, {"transfer", &transfer}}) {
    const auto steps =
        step_errors(folder / "steps.csv", {.device = *device, .calibration = calibration});
    if (!steps) return steps.mistakes();
    text += fmt::format("\n## composition: h200-sxm steps, {}\n{}", tier, step_errors_text(*steps));
  }
  return text;
}

}  // namespace

engine::Result<std::string> validate_all(const ValidateAllOptions& options) {
  say("reading the public tables");
  const auto devices = public_calls(options);
  if (!devices) return devices.mistakes();
  const auto transfer = load_transfer(options.library);
  if (!transfer) return transfer.mistakes();
  const engine::Calibration base = *transfer ? **transfer : engine::Calibration{};

  std::string text = "## transfer: each device from the others, nothing known of it\n";
  say("leaving one device out at a time");
  text += left_out_text(leave_one_out(*devices, {}));
  text += "\n## transfer as shipped (its parameters were fitted to samples of these tables)\n";
  text += shipped_text(*devices, &base);
  say("leaving out calls of the H100 table");
  const DeviceCalls& h100 = (*devices)[1];
  text += "\n## measured: h100-sxm, public table, a fifth of the calls or shapes left out\n";
  text += measured_text(fit_measured(thinned(h100.calls, kMostMeasured), h100.device, base));
  say("our own sweep");
  auto own = own_sweep_text(options, base);
  if (!own) return own.mistakes();
  return text + *own;
}

}  // namespace tools
