// llmsweep calibrate: a calibration from kernel tables, with its error by cross-validation.
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "results/durable_file.h"
#include "tools/calibrate/measured_fit.h"
#include "tools/calibrate/shared_set.h"
#include "tools/calibrate/table_checks.h"
#include "tools/calibrate/transfer_fit.h"
#include "tools/calibrate/trusted_rows.h"
#include "tools/cli/cli.h"
#include "tools/cli/device_option.h"

namespace tools {
namespace {

struct CalibrateArguments {
  std::vector<std::string> tables;
  std::string device;
  std::string tier = "measured";
  std::string impl;
  std::string output;
  std::string source;
  std::vector<std::string> sections;
  std::string keep;
  std::string engine;
};

void complain(const std::vector<engine::Mistake>& mistakes) {
  fmt::print(stderr, "{}", engine::to_text(mistakes));
}

void complain(std::string what, std::string hint) {
  complain({{{}, std::move(what), std::move(hint)}});
}

std::string own_line(const std::string& section, std::size_t calls, const char* split,
                     const ErrorSummary& errors) {
  return fmt::format("{:<22} {:>7} {:<13} {}\n", section, calls, split, error_text(errors));
}

void print_errors(const MeasuredFit& fit) {
  fmt::print("{:<22} {:>7} {:<13} {}\n", "section", "calls", "split", error_heading());
  for (const SectionErrors& errors : fit.errors) {
    fmt::print("{}{}{}", own_line(errors.section, errors.calls, "before", errors.before),
               own_line("", errors.calls, "random fifth", errors.random),
               own_line("", errors.calls, "unseen shapes", errors.unseen));
  }
  for (const std::string& line : fit.left_out) fmt::print("left out: {}\n", line);
}

// "gemm/bf16 2.1%, attn_decode/bf16 1.9%": means over unseen random calls.
std::string error_line(const MeasuredFit& fit) {
  std::string line = "mean error on calls left out (random fifth / unseen shapes):";
  for (const SectionErrors& errors : fit.errors) {
    line += fmt::format(" {} {:.1f}/{:.1f}%", errors.section, 100 * errors.random.mean,
                        100 * errors.unseen.mean);
  }
  return line;
}

std::optional<std::vector<MeasuredCall>> gathered_calls(const CalibrateArguments& arguments,
                                                        const engine::Device& device) {
  std::vector<MeasuredCall> calls;
  for (const std::string& file : arguments.tables) {
    const auto table = checked_table(file, device);
    if (!table) return std::nullopt;
    auto gathered = gather_calls(*table, {.impl = arguments.impl});
    if (!gathered) {
      complain(gathered.mistakes());
      return std::nullopt;
    }
    for (const std::string& remark : remarks_on(*gathered)) fmt::print(stderr, "{}\n", remark);
    calls.insert(calls.end(), gathered->calls.begin(), gathered->calls.end());
  }
  return calls;
}

void write_out(engine::Calibration calibration, const CalibrateArguments& arguments) {
  calibration.source = arguments.source;
  if (calibration.source.empty()) {
    for (const std::string& file : arguments.tables) {
      if (!calibration.source.empty()) calibration.source += ", ";
      calibration.source += std::filesystem::path(file).filename().string();
    }
  }
  const std::string text = engine::write_calibration(calibration);
  results::write_durably(arguments.output, text);
  fmt::print("{} written, {}\n", arguments.output, size_text(double(text.size())));
}

int calibrate_measured(const CalibrateArguments& arguments) {
  if (arguments.device.empty()) {
    complain("--device is missing", "say which device the tables were measured on");
    return kMistake;
  }
  const auto device = device_or_complain(arguments.device);
  if (!device) return kMistake;
  const auto calls = gathered_calls(arguments, *device);
  if (!calls) return kMistake;
  const auto transfer = load_transfer(standard_library());
  if (!transfer) {
    complain(transfer.mistakes());
    return kMistake;
  }
  MeasuredFit fit = fit_measured(*calls, *device, *transfer ? **transfer : engine::Calibration{});
  print_errors(fit);
  if (fit.errors.empty()) {
    complain(fmt::format("no family has the {} calls that a fit and its check need", kLeastCalls),
             "measure more shapes");
    return kMistake;
  }
  fit.calibration.name = device->name;
  fit.calibration.device = device->name;
  fit.calibration.fit_error = error_line(fit);
  write_out(std::move(fit.calibration), arguments);
  return kOk;
}

// "h100-sxm=table.csv.gz"; `engine` empty: of every engine what is trusted.
std::optional<DeviceCalls> device_calls(const std::string& argument, const std::string& engine) {
  const auto equals = argument.find('=');
  if (equals == std::string::npos) {
    complain("'" + argument + "' names no device", "write DEVICE=TABLE, as h100-sxm=h100.csv.gz");
    return std::nullopt;
  }
  auto device = device_or_complain(argument.substr(0, equals));
  if (!device) return std::nullopt;
  const auto table = checked_table(argument.substr(equals + 1), *device);
  if (!table) return std::nullopt;
  auto calls =
      engine.empty() ? trusted_calls(*table, device->architecture) : engine_calls(*table, engine);
  return DeviceCalls{std::move(*device), std::move(calls)};
}

// "gemm/bf16 12.1 6.2 10.0": each device's turn.
std::string left_out_line(const std::vector<LeftOut>& rows) {
  std::string line = "mean error % on a device left out:";
  std::string section;
  for (const LeftOut& row : rows) {
    if (row.section != section) line += fmt::format(" {}:", section = row.section);
    line += fmt::format(" {} {:.1f}", row.device, 100 * row.errors.mean);
    if (row.without == Without::generation) line += " (with its generation)";
  }
  return line;
}

// "gemm/bf16 3.4 on h100-sxm".
std::string unseen_line(const std::vector<UnseenShapes>& rows) {
  std::string line = "mean error % on weight shapes and head layouts left out:";
  for (const UnseenShapes& row : rows) {
    line += fmt::format(" {} {:.1f} on {}", row.section, 100 * row.errors.mean, row.device);
  }
  return line;
}

int calibrate_engine(const std::vector<DeviceCalls>& devices, const TransferOptions& options,
                     const CalibrateArguments& arguments) {
  EngineFit fit = fit_engine(devices, options);
  if (fit.unseen.empty()) {
    complain("no rows of " + arguments.engine + " to fit", "check the name of the engine");
    return kMistake;
  }
  fmt::print("{}", unseen_text(fit.unseen));
  fit.calibration.name = arguments.engine;
  fit.calibration.tier = engine::Tier::transfer;
  fit.calibration.fit_error = unseen_line(fit.unseen);
  write_out(std::move(fit.calibration), arguments);
  return kOk;
}

int calibrate_transfer(const CalibrateArguments& arguments) {
  std::vector<DeviceCalls> devices;
  for (const std::string& argument : arguments.tables) {
    auto calls = device_calls(argument, arguments.engine);
    if (!calls) return kMistake;
    devices.push_back(std::move(*calls));
  }
  const TransferOptions options{.sections = arguments.sections};
  if (!arguments.engine.empty()) return calibrate_engine(devices, options, arguments);
  TransferFit fit = fit_transfer(devices, options);
  fmt::print("{}", left_out_text(fit.left_out));
  if (!arguments.keep.empty()) {
    const auto kept = load_calibration_file(arguments.keep);
    if (!kept) {
      complain(kept.mistakes());
      return kMistake;
    }
    fit.calibration = with_other_sections(std::move(fit.calibration), **kept);
  }
  fit.calibration.name = "transfer";
  fit.calibration.tier = engine::Tier::transfer;
  fit.calibration.fit_error = left_out_line(fit.left_out);
  write_out(std::move(fit.calibration), arguments);
  return kOk;
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* verb = app.add_subcommand("calibrate", "Make a calibration from kernel tables");
  verb->footer(
      "  llmsweep calibrate kernels.csv.gz --device h200-sxm -o h200-sxm.calibration\n"
      "  llmsweep calibrate --tier transfer a100-80gb-sxm=a.csv.gz h100-sxm=h.csv.gz -o "
      "t.calibration\n"
      "measured: one device's sweep; calls left out a fifth at a time give the error. transfer: "
      "parameters\n"
      "for devices that were never measured; each device left out in turn gives the error.");
  verb->add_option("tables", arguments->tables, "kernel tables; transfer: DEVICE=TABLE each")
      ->required()
      ->type_name("TABLE");
  verb->add_option("--device", arguments->device, "measured: the device of the tables")
      ->type_name("NAME");
  verb->add_option("--tier", arguments->tier, "measured (default) or transfer")
      ->check(CLI::IsMember({"measured", "transfer"}))
      ->type_name("TIER");
  verb->add_option("--impl", arguments->impl,
                   "measured: only implementations this expression finds")
      ->type_name("REGEX");
  verb->add_option("--sections", arguments->sections,
                   "transfer: only families that begin so, as gemm/bf16")
      ->delimiter(',')
      ->type_name("NAMES");
  verb->add_option(
          "--engine", arguments->engine,
          "transfer: parameters of one engine's version only, as vllm_0.24.0, or of one of its\n"
          "kernels, as sglang_0.5.14:triton")
      ->type_name("NAME");
  verb->add_option("--keep", arguments->keep,
                   "transfer: take families that the tables do not have from this calibration")
      ->type_name("FILE");
  verb->add_option("--source", arguments->source, "where the tables come from, for the record")
      ->type_name("TEXT");
  verb->add_option("-o,--output", arguments->output, "file to write")
      ->required()
      ->type_name("FILE");
  verb->callback([arguments, &exit_code] {
    exit_code = arguments->tier == "transfer" ? calibrate_transfer(*arguments)
                                              : calibrate_measured(*arguments);
  });
}

}  // namespace tools
