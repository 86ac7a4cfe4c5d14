#include "tools/calibrate/errors/validate_all.h"

#include <fmt/core.h>

#include <array>
#include <memory>
#include <utility>

#include "sweep/language/sweep_spec.h"
#include "tools/calibrate/errors/accuracy_table.h"
#include "tools/calibrate/errors/engine_calibrations.h"
#include "tools/calibrate/errors/load_calibration.h"
#include "tools/calibrate/errors/step_errors.h"
#include "tools/calibrate/errors/validate_table.h"
#include "tools/calibrate/fit/measured_fit.h"
#include "tools/calibrate/fit/transfer_fit.h"
#include "tools/calibrate/tables/network_calls.h"
#include "tools/calibrate/tables/trusted_rows.h"
#include "tools/terminal/terminal.h"

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

void say(const std::string& what) { print(stderr, "validate: {}\n", what); }

engine::Result<engine::Device> named_device(const sweep::Library& library, const char* name) {
  auto spec = sweep::read_named(library, "devices", name);
  if (!spec) return spec.mistakes();
  return std::move(spec->scenario.device);
}

// A public table: one time a call of what is trusted, and the errors of every engine's own rows.
struct PublicDevice {
  DeviceCalls trusted;
  std::vector<ErrorLine> raw;
};

std::vector<ErrorLine> raw_errors(const KernelTable& table, TablePredictor predictors) {
  std::vector<MeasuredCall> rows;
  for (const KernelRecord& record : table.records) {
    rows.push_back({record.call, record.seconds, record.row, record.impl});
  }
  return validate_calls(rows, [&](const MeasuredCall& row) {
    return predictors.of(table.impls[row.impl])(row.call);
  });
}

engine::Result<std::vector<PublicDevice>> public_devices(
    const ValidateAllOptions& options, const SharedCalibration& transfer,
    const std::vector<EngineCalibration>& engines) {
  std::vector<PublicDevice> devices;
  for (const PublicTable& table : kTables) {
    auto device = named_device(options.library, table.device);
    if (!device) return device.mistakes();
    const auto rows = read_kernel_table(options.data / "kernels" / table.file, Times::needed);
    if (!rows) return rows.mistakes();
    auto raw = raw_errors(
        *rows, TablePredictor(*device, transfer, {.known = engines, .transfer = transfer}));
    auto calls = trusted_calls(*rows, device->architecture);
    devices.push_back({{std::move(device).value(), std::move(calls)}, std::move(raw)});
  }
  return devices;
}

void append(std::vector<ErrorLine>& all, const std::vector<ErrorLine>& lines) {
  all.insert(all.end(), lines.begin(), lines.end());
}

enum class Spread : std::uint8_t { inside, between };  // nodes

std::vector<MeasuredCall> calls_of(const DeviceCalls& device, Spread spread) {
  std::vector<MeasuredCall> calls;
  for (const MeasuredCall& call : device.calls) {
    if ((call.call[Size::nodes] > 1) == (spread == Spread::between)) calls.push_back(call);
  }
  return calls;
}

std::string shipped_text(const std::vector<PublicDevice>& devices, const engine::Calibration* fit,
                         AccuracyFigures& figures) {
  std::string text;
  for (const PublicDevice& device : devices) {
    const auto lines = validate_calls(device.trusted.calls, {device.trusted.device, fit});
    text += fmt::format("\n{}, one time a call\n{}\n{}, every engine's row as it is\n{}",
                        device.trusted.device.name, error_table_text(lines),
                        device.trusted.device.name, error_table_text(device.raw));
    append(figures.trusted, lines);
    append(figures.raw, device.raw);
  }
  return text;
}

std::string network_text(const NetworkCalls& network, const engine::Calibration* fit,
                         AccuracyFigures& figures) {
  std::string text;
  for (const DeviceCalls& device : network.fitted) {
    for (const Spread spread : {Spread::inside, Spread::between}) {
      const auto lines = validate_calls(calls_of(device, spread), {device.device, fit});
      if (lines.back().errors.rows == 0) continue;
      text += fmt::format("\n{}, network profiles, {}\n{}", device.device.name,
                          spread == Spread::between ? "between nodes" : "in a node",
                          error_table_text(lines));
      append(spread == Spread::between ? figures.between : figures.trusted, lines);
    }
  }
  for (const NetworkCheck& check : network.checks) {
    const auto lines = validate_calls(check.calls.calls, {check.calls.device, fit});
    text += fmt::format("\n{}\n{}", check.what, error_table_text(lines));
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

engine::Result<DeviceCalls> own_sweep(const ValidateAllOptions& options) {
  auto device = named_device(options.library, "h200-sxm");
  if (!device) return device.mistakes();
  const auto rows =
      read_kernel_table(options.sweeps / "h200-sxm" / "kernels.csv.gz", Times::needed);
  if (!rows) return rows.mistakes();
  auto calls = gather_calls(*rows, {.impl = std::string(kOwnSweepImpl)});
  if (!calls) return calls.mistakes();
  return DeviceCalls{std::move(device).value(), std::move(calls->calls)};
}

engine::Result<std::string> own_sweep_text(const ValidateAllOptions& options,
                                           const DeviceCalls& sweep,
                                           const engine::Calibration& transfer,
                                           AccuracyFigures& figures) {
  const MeasuredFit fit = fit_measured(sweep.calls, sweep.device, transfer);
  std::string text =
      fmt::format("\n## measured: h200-sxm, our sweep, a fifth of the calls or shapes left out\n{}",
                  measured_text(fit));
  figures.own = validate_calls(sweep.calls, {sweep.device, &transfer});
  text += fmt::format("\n## transfer as shipped: h200-sxm, our sweep\n{}",
                      error_table_text(figures.own));
  const engine::Calibration measured = engine::completed_by(fit.calibration, transfer);
  for (const auto& [tier, calibration] :
       {std::pair{"measured", &measured}, {"transfer", &transfer}}) {
    const auto steps = step_errors(options.sweeps / "h200-sxm" / "steps.csv",
                                   {.device = sweep.device, .calibration = calibration});
    if (!steps) return steps.mistakes();
    text += fmt::format("\n## composition: h200-sxm steps, {}\n{}", tier, step_errors_text(*steps));
  }
  return text;
}

}  // namespace

engine::Result<std::string> validate_all(const ValidateAllOptions& options) {
  const auto loaded = load_transfer(options.library);
  if (!loaded) return loaded.mistakes();
  const SharedCalibration transfer =
      *loaded ? *loaded : std::make_shared<const engine::Calibration>();
  const auto engines = load_engine_rows(options.engine_rows);
  if (!engines) return engines.mistakes();
  say("reading the public tables");
  const auto devices = public_devices(options, transfer, *engines);
  if (!devices) return devices.mistakes();
  const auto network = network_calls(options.data, options.library);
  if (!network) return network.mistakes();
  const auto sweep = own_sweep(options);
  if (!sweep) return sweep.mistakes();

  AccuracyFigures figures;
  say("leaving one device out at a time");
  std::vector<DeviceCalls> all;
  for (const PublicDevice& device : *devices) all.push_back(device.trusted);
  all.push_back(*sweep);
  all.insert(all.end(), network->fitted.begin(), network->fitted.end());
  figures.left_out = leave_one_out(all, {});
  std::string text =
      "## transfer: each device from the others, without and with the rest of its generation\n";
  text += left_out_text(figures.left_out);
  text += "\n## transfer as shipped (its parameters were fitted to samples of these tables)\n";
  text += shipped_text(*devices, transfer.get(), figures);
  text += network_text(*network, transfer.get(), figures);
  say("leaving out calls of the H100 table");
  const DeviceCalls& h100 = (*devices)[1].trusted;
  text += "\n## measured: h100-sxm, public table, a fifth of the calls or shapes left out\n";
  text += measured_text(fit_measured(thinned(h100.calls, kMostMeasured), h100.device, *transfer));
  say("our own sweep");
  auto own = own_sweep_text(options, *sweep, *transfer, figures);
  if (!own) return own.mistakes();
  const std::string table = accuracy_table(figures);
  if (!options.readme.empty()) {
    const auto put = put_into(options.readme, table);
    if (!put) return put.mistakes();
  }
  return text + *own + "\n## in short\n" + table;
}

}  // namespace tools
