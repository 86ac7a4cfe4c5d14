// llmsweep calibrate: a calibration from kernel tables, with its error by cross-validation.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "results/durable_file.h"
#include "tools/calibrate/errors/load_calibration.h"
#include "tools/calibrate/fit/implementation_fits.h"
#include "tools/calibrate/fit/other_vendors.h"
#include "tools/calibrate/fit/transfer_fit.h"
#include "tools/calibrate/tables/network_calls.h"
#include "tools/calibrate/tables/profile_table.h"
#include "tools/calibrate/tables/table_checks.h"
#include "tools/calibrate/tables/trusted_rows.h"
#include "tools/calibrate_cli/calibrate_host.h"
#include "tools/calibrate_cli/calibrate_powers.h"
#include "tools/calibrate_cli/device_option.h"
#include "tools/calibrate_cli/use_of_calibration.h"
#include "tools/calibrate_cli/verbs.h"
#include "tools/command/exit_code.h"
#include "tools/command/kernel_verbs.h"
#include "tools/command/standard_library.h"
#include "tools/terminal/number_text.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

struct CalibrateArguments {
  std::vector<std::string> tables;
  std::string device;
  std::string tier = "measured";
  std::string impl;
  std::string output;
  std::string rows;
  std::string source;
  std::vector<std::string> sections;
  std::string engine;
  std::string network;
  std::string others;
  std::string base;
};

void complain(const std::vector<engine::Mistake>& mistakes) {
  print(stderr, "{}", engine::to_text(mistakes));
}

void complain(std::string what, std::string hint) {
  complain({{{}, std::move(what), std::move(hint)}});
}

std::string own_line(const std::string& section, std::size_t calls, const char* split,
                     const ErrorSummary& errors) {
  return fmt::format("{:<22} {:>7} {:<13} {}\n", section, calls, split, error_text(errors));
}

void print_errors(const MeasuredFit& fit) {
  print("{:<22} {:>7} {:<13} {}\n", "section", "calls", "split", error_heading());
  for (const SectionErrors& errors : fit.errors) {
    print("{}{}{}", own_line(errors.section, errors.calls, "before", errors.before),
          own_line("", errors.calls, "random fifth", errors.random),
          own_line("", errors.calls, "unseen shapes", errors.unseen));
  }
  for (const std::string& line : fit.left_out) print("left out: {}\n", line);
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

// The calls of all tables, one time each, and once more by implementation.
struct AllCalls {
  std::vector<MeasuredCall> merged;
  CallsByImpl by_impl;
};

std::optional<AllCalls> gathered_calls(const CalibrateArguments& arguments,
                                       const engine::Device& device) {
  AllCalls calls;
  for (const std::string& file : arguments.tables) {
    const auto table = checked_table(file, device);
    if (!table) return std::nullopt;
    auto gathered = gather_calls(*table, {.impl = arguments.impl});
    if (!gathered) {
      complain(gathered.mistakes());
      return std::nullopt;
    }
    for (const std::string& remark : remarks_on(*gathered)) print(stderr, "{}\n", remark);
    calls.merged.insert(calls.merged.end(), gathered->calls.begin(), gathered->calls.end());
    add_calls_by_impl(*table, arguments.impl, calls.by_impl);
  }
  return calls;
}

std::string source_of(const CalibrateArguments& arguments) {
  std::string source = arguments.source;
  for (const std::string& file :
       arguments.source.empty() ? arguments.tables : std::vector<std::string>{}) {
    if (!source.empty()) source += ", ";
    source += std::filesystem::path(file).filename().string();
  }
  return source;
}

void write_out(const std::vector<engine::Calibration>& calibrations, const std::string& file,
               const CalibrateArguments& arguments) {
  std::string text;
  for (engine::Calibration calibration : calibrations) {
    calibration.source = source_of(arguments);
    text += engine::write_calibration(calibration);
  }
  results::write_durably(file, text);
  print("{} written, {}\n", file, size_text(double(text.size())));
}

engine::Calibration named(const MeasuredFit& fit, const engine::Device& device) {
  engine::Calibration calibration = fit.calibration;
  calibration.name = device.name;
  calibration.device = device.name;
  calibration.fit_error = error_line(fit);
  return calibration;
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
  const engine::Calibration start = *transfer ? **transfer : engine::Calibration{};
  const MeasuredFit fit = fit_measured(calls->merged, *device, start);
  print_errors(fit);
  if (fit.errors.empty()) {
    complain(fmt::format("no family has the {} calls that a fit and its check need", kLeastCalls),
             "measure more shapes");
    return kMistake;
  }
  std::vector<engine::Calibration> written{named(fit, *device)};
  for (const MeasuredFit& one :
       fit_implementations(calls->by_impl, *device, fit.calibration, start)) {
    print("\n{}\n", one.calibration.impl);
    print_errors(one);
    written.push_back(named(one, *device));
  }
  write_out(written, arguments.output, arguments);
  print("{}", use_of_measured(arguments.output, *device, standard_library()));
  return kOk;
}

// The layer profile of an engine, from a folder MODEL/FORMAT.
std::optional<KernelTable> profile_or_complain(const std::filesystem::path& folder) {
  const auto model = profiled_model(folder, standard_library());
  const auto text = model ? profile_table(folder, *model) : model.mistakes();
  auto table = text ? kernel_table_of(*text, Times::needed) : text.mistakes();
  if (!table) {
    complain(table.mistakes());
    return std::nullopt;
  }
  keep_shared_kernels(*table);
  return std::move(table).value();
}

struct DeviceTable {
  engine::Device device;
  KernelTable table;
};

// "h100-sxm=table.csv.gz", or a profile's folder.
std::optional<DeviceTable> device_table(const std::string& argument) {
  const auto equals = argument.find('=');
  if (equals == std::string::npos) {
    complain("'" + argument + "' names no device", "write DEVICE=TABLE, as h100-sxm=h100.csv.gz");
    return std::nullopt;
  }
  auto device = device_or_complain(argument.substr(0, equals));
  if (!device) return std::nullopt;
  const std::string path = argument.substr(equals + 1);
  auto table = std::filesystem::is_directory(path) ? profile_or_complain(path)
                                                   : checked_table(path, *device);
  if (!table) return std::nullopt;
  return DeviceTable{std::move(*device), std::move(*table)};
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

// Adds the calls of one engine, whatever its rows are worth, but without kernels whose rows timed the host.
void add_engine_calls(const DeviceTable& measured, const std::string& name, EngineCalls& calls) {
  auto hosts = host_timed(measured.table, measured.device);
  std::erase_if(hosts, [&](const HostTimed& kernel) {
    return !measured.table.impls[kernel.kind.impl].starts_with(name);
  });
  for (const std::string& remark : remarks_on(hosts, measured.table)) {
    print("left out of what steps use: {}: {}\n", measured.device.name, remark);
  }
  calls.rows.push_back({measured.device, engine_calls(measured.table, name)});
  calls.kernels.push_back({measured.device, engine_calls(measured.table, name, hosts)});
}

// An engine's forms with what `file` has of the sections that were not asked for.
engine::Result<engine::Calibration> with_others(engine::Calibration forms, const std::string& file,
                                                const std::vector<std::string>& asked) {
  const auto read = load_calibration_file(file);
  if (!read) return read.mistakes();
  engine::Calibration others = *read->device;
  engine::Calibration::sections(others, [&](const std::string& name, auto& sets) {
    const auto begins = [&](const std::string& start) { return name.starts_with(start); };
    if (std::ranges::any_of(asked, begins)) sets = {};
  });
  forms.fit_error = others.fit_error;
  return engine::completed_by(std::move(forms), others);
}

int calibrate_engine(const TransferOptions& options, const CalibrateArguments& arguments) {
  EngineCalls calls;
  for (const std::string& argument : arguments.tables) {
    const auto measured = device_table(argument);
    if (!measured) return kMistake;
    add_engine_calls(*measured, arguments.engine, calls);
  }
  EngineFit fit = fit_engine(calls, options);
  if (fit.unseen.empty()) {
    complain("no rows of " + arguments.engine + " to fit", "check the name of the engine");
    return kMistake;
  }
  print("{}", unseen_text(fit.unseen));
  for (engine::Calibration* part : {&fit.forms, &fit.rows}) {
    part->name = arguments.engine;
    part->tier = engine::Tier::transfer;
    part->fit_error = unseen_line(fit.unseen);
  }
  if (!arguments.others.empty()) {
    auto forms = with_others(std::move(fit.forms), arguments.others, arguments.sections);
    if (!forms) {
      complain(forms.mistakes());
      return kMistake;
    }
    fit.forms = std::move(forms).value();
  }
  if (!arguments.output.empty()) {
    write_out({fit.forms}, arguments.output, arguments);
    print("{}", use_of_engine(arguments.output));
  }
  if (!arguments.rows.empty()) write_out({fit.rows}, arguments.rows, arguments);
  return kOk;
}

int calibrate_transfer(const CalibrateArguments& arguments) {
  const TransferOptions options{.sections = arguments.sections};
  if (!arguments.engine.empty()) return calibrate_engine(options, arguments);
  std::vector<DeviceCalls> devices;
  for (const std::string& argument : arguments.tables) {
    const auto measured = device_table(argument);
    if (!measured) return kMistake;
    devices.push_back(
        {measured->device, trusted_calls(measured->table, measured->device.architecture)});
  }
  if (!arguments.network.empty()) {
    const auto network = network_calls(arguments.network, standard_library());
    if (!network) {
      complain(network.mistakes());
      return kMistake;
    }
    devices.insert(devices.end(), network->fitted.begin(), network->fitted.end());
  }
  TransferFit fit = fit_transfer(devices, options);
  print("{}", left_out_text(fit.left_out));
  fit.calibration.name = "transfer";
  fit.calibration.tier = engine::Tier::transfer;
  fit.calibration.fit_error = left_out_line(fit.left_out);
  if (!arguments.others.empty()) {
    const auto others = load_calibration_file(arguments.others);
    if (!others) {
      complain(others.mistakes());
      return kMistake;
    }
    const std::string errors = others->device->fit_error + "; " + fit.calibration.fit_error;
    engine::Calibration shared = *others->device;
    widen_pooled(shared, devices, options);
    fit.calibration = engine::completed_by(std::move(shared), fit.calibration);
    fit.calibration.fit_error = errors;
    fit.calibration.reworded = false;
  }
  write_out({fit.calibration}, arguments.output, arguments);
  print("{}", use_of_transfer());
  return kOk;
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* verb = add_verb(app, kCalibrateVerb);
  verb->footer(
      "  llmsweep calibrate kernels.csv.gz --device h200-sxm -o h200-sxm.calibration\n"
      "  llmsweep calibrate --tier transfer a100-80gb-sxm=a.csv.gz h100-sxm=h.csv.gz -o "
      "t.calibration\n"
      "  llmsweep calibrate --tier powers power.csv --device h200-sxm\n"
      "  llmsweep calibrate --tier host steps.csv --base served.yaml -o specs/hosts/ours.yaml\n"
      "measured: one device's sweep; calls left out a fifth at a time give the error. transfer: "
      "parameters\n"
      "for devices that were never measured; each device left out in turn gives the error.");
  verb->add_option("tables", arguments->tables, "kernel tables; transfer: DEVICE=TABLE each")
      ->required()
      ->type_name("TABLE");
  verb->add_option("--device", arguments->device, "measured: the device of the tables")
      ->type_name("NAME");
  verb->add_option("--tier", arguments->tier,
                   "measured (default) or transfer; powers: prints what the device draws; host: "
                   "a host whose steps take as long as ten measured ones or more")
      ->check(CLI::IsMember({"measured", "transfer", "powers", "host"}))
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
  verb->add_option("--network", arguments->network,
                   "transfer: also fit the network profiles of this folder of public data")
      ->type_name("DIR");
  verb->add_option("--base", arguments->base,
                   "host: what a sweep says under 'base:' of the measured steps, which the table's "
                   "columns complete")
      ->type_name("FILE");
  verb->add_option("--source", arguments->source, "where the tables come from, for the record")
      ->type_name("TEXT");
  verb->add_option("-o,--output", arguments->output, "file to write")->type_name("FILE");
  verb->add_option("--rows", arguments->rows,
                   "with --engine: also write its parameters with the rules of its kernels, for "
                   "rows of tables")
      ->type_name("FILE");
  verb->add_option("--others", arguments->others,
                   "with --engine and --sections: all other sections as this file has them, for "
                   "--output; else: generations that this file has are as it has them")
      ->type_name("FILE");
  verb->callback([arguments, &exit_code] {
    if (arguments->tier == "powers") {
      exit_code = calibrate_powers(arguments->tables, arguments->device);
      return;
    }
    if (arguments->tier == "host") {
      exit_code = calibrate_host(arguments->tables, arguments->base, arguments->output);
      return;
    }
    if (arguments->output.empty() && (arguments->rows.empty() || arguments->engine.empty())) {
      throw CLI::RequiredError("--output");
    }
    exit_code = arguments->tier == "transfer" ? calibrate_transfer(*arguments)
                                              : calibrate_measured(*arguments);
  });
}

}  // namespace tools
