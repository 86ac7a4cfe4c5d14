// llmsweep import: what others measured, as a run to compare with or a table to calibrate on.
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "results/failure.h"
#include "results/measured.h"
#include "results/parquet_sink.h"
#include "results/run_folder.h"
#include "results/text_table.h"
#include "tools/cli/cli.h"
#include "tools/import/chakra_trace.h"
#include "tools/import/genai_perf_result.h"
#include "tools/import/profiler_trace.h"
#include "tools/import/vllm_result.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

using ReadResult = engine::Result<LoadResult> (*)(const std::filesystem::path&);

// A verb that makes a measured run of files of a load generator: what it says, and which reader it uses.
struct LoadVerb {
  const char* name;
  const char* summary;
  const char* files;
  const char* details;  // what keeps single requests in a file
  ReadResult read;
};

constexpr LoadVerb kLoadVerbs[] = {
    {"vllm", "Results of 'vllm bench serve --save-result' as a measured run", "JSON files of vLLM",
     "'vllm bench serve --save-detailed' keeps them", read_vllm_result},
    {"sglang", "Results of 'sglang.bench_serving --output-file' as a measured run",
     "JSON files of SGLang, one result in each", "'--output-details' keeps them",
     read_sglang_result},
    {"genai-perf", "Summaries of GenAI-Perf or AIPerf as a measured run",
     "profile_export_genai_perf.json or profile_export_aiperf.json of each point",
     "its summaries have none", read_genai_perf_result},
};

struct LoadArguments {
  const LoadVerb* verb = nullptr;
  std::string spec;
  std::vector<std::string> files;
  std::vector<std::uint64_t> points;
  std::string folder;
};

// One file, and the point that it measures.
struct Measured {
  sweep::Point point;
  LoadResult result;
};

// The measurements, or nothing once every mistake is told.
std::optional<std::vector<Measured>> read_measured(const LoadArguments& arguments,
                                                   const sweep::SweepSpec& spec) {
  std::vector<Measured> measured;
  bool sound = true;
  for (std::size_t i = 0; i < arguments.files.size(); ++i) {
    const std::uint64_t index = arguments.points.empty() ? i : arguments.points[i];
    BuiltPoint built = build_or_say(spec, index);
    auto result = arguments.verb->read(arguments.files[i]);
    if (!result) print(stderr, "{}", engine::to_text(result.mistakes()));
    sound = sound && built.point && result;
    if (!sound) continue;
    if (built.point->scenario.task != engine::Task::serve) {
      print(stderr, "error: point {} does not serve a load, which {} measures\n", index,
            arguments.files[i]);
      sound = false;
      continue;
    }
    const std::string other = contradiction(*result, built.point->scenario.load);
    if (!other.empty()) {
      print(stderr,
            "{}: error: {}, which is not that of point {}\n  hint: files are of points 0, 1, 2 and "
            "so on in the order given; --points says which points instead\n",
            arguments.files[i], other, index);
      sound = false;
      continue;
    }
    measured.push_back({std::move(*built.point), std::move(*result)});
  }
  std::ranges::sort(measured, {}, [](const Measured& one) { return one.point.index; });
  for (std::size_t i = 1; i < measured.size(); ++i) {
    if (measured[i].point.index != measured[i - 1].point.index) continue;
    print(stderr, "error: two files are of point {}\n  hint: give each its own with --points\n",
          measured[i].point.index);
    sound = false;
  }
  if (!sound) return std::nullopt;
  return measured;
}

int write_measured(const LoadArguments& arguments, const sweep::SweepSpec& spec,
                   const std::vector<Measured>& measured) {
  const sweep::Space& space = spec.space;
  // Of another kind than a simulation of the same spec: neither goes on in the other's folder.
  auto folder = results::RunFolder::open(
      arguments.folder, {.run_yaml = spec.resolved,
                         .spec_hash = spec.digest + std::string(results::kMeasuredMark),
                         .shard = {},
                         .positions = space.size()});
  if (!folder) {
    print(stderr, "{}", engine::to_text(folder.mistakes()));
    return kMistake;
  }
  for (const Measured& one : measured) {
    if (!folder->done().contains(one.point.index)) continue;
    print(
        stderr,
        "{}: error: point {} is there already\n  hint: choose a new folder with -o DIR; points of "
        "a run are not replaced\n",
        arguments.folder, one.point.index);
    return kMistake;
  }
  results::ParquetSink sink(*folder, results::schema_inputs(space));
  std::size_t requests = 0;
  for (const Measured& one : measured) {
    const std::uint64_t index = one.point.index;
    auto chunk = sink.start_chunk();
    chunk->add(one.point, one.result.outcome);
    sweep::Tally tally;
    tally.count(one.result.outcome);
    sink.finish_chunk(std::move(chunk), {index, index + 1}, tally);
    requests += one.result.outcome.requests.size();
  }
  sink.flush();
  print("{}: {}, {}; compare it with a simulation: llmsweep compare {} runs/NAME --common\n",
        arguments.folder, counted(measured.size(), "measured point"), counted(requests, "request"),
        arguments.folder);
  return kOk;
}

int import_load(const LoadArguments& arguments) {
  if (!arguments.points.empty() && arguments.points.size() != arguments.files.size()) {
    print(stderr, "error: --points: {} numbers for {} files\n", arguments.points.size(),
          arguments.files.size());
    return kMistake;
  }
  const auto spec = read_or_complain(arguments.spec);
  if (!spec) return kMistake;
  if (arguments.points.empty() && arguments.files.size() > spec->space.size()) {
    print(stderr, "error: {} for {}\n  hint: say which point each measures with --points\n",
          counted(arguments.files.size(), "result"), counted(spec->space.size(), "point"));
    return kMistake;
  }
  const auto measured = read_measured(arguments, *spec);
  if (!measured) return kMistake;
  for (const Measured& one : *measured) {
    if (!one.result.detailed) {
      print(stderr, "note: point {}: no single requests; {}\n", one.point.index,
            arguments.verb->details);
    } else if (!one.result.timed) {
      print(stderr,
            "note: point {}: the file does not say when requests began; times of each count from "
            "its own start\n",
            one.point.index);
    }
  }
  try {
    return write_measured(arguments, *spec, *measured);
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
}

using ReadTrace = engine::Result<TracedKernels> (*)(const std::filesystem::path&);

void say_what_is_missing(const TracedKernels& traced) {
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(5, traced.left_out.size()); ++i) {
    names += fmt::format("{}{} ({:.0f}%)", i == 0 ? "" : ", ", traced.left_out[i].first,
                         100 * traced.left_out[i].second / traced.seconds);
  }
  if (!names.empty())
    print(stderr, "note: left out, since their shapes are not known: {}\n", names);
  if (traced.timeless > 0)
    print(stderr, "note: calls left out, since they took no time by the trace's clock: {}\n",
          grouped(traced.timeless));
}

int import_trace(ReadTrace read, const std::string& trace, const std::string& file) {
  if (!file.ends_with(".csv") && !file.ends_with(".csv.gz") && !file.ends_with(".parquet")) {
    print(stderr,
          "error: --output: '{}' is no table\n  hint: end it with .csv, .csv.gz or .parquet\n",
          file);
    return kMistake;
  }
  const auto traced = read(trace);
  if (!traced) {
    print(stderr, "{}", engine::to_text(traced.mistakes()));
    return kMistake;
  }
  try {
    results::write_table(file, traced->table);
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
  print("{}: {} rows from {} of {} kernels, {:.0f}% of their time\n", file, traced->table.rows(),
        grouped(traced->taken), grouped(traced->kernels),
        100 * traced->taken_seconds / traced->seconds);
  say_what_is_missing(*traced);
  print("look at it: llmsweep kernels {}\n", file);
  return kOk;
}

void add_load(CLI::App& import, const LoadVerb& load, int& exit_code) {
  auto arguments = std::make_shared<LoadArguments>();
  arguments->verb = &load;
  CLI::App* verb = import.add_subcommand(load.name, load.summary);
  verb->footer(fmt::format(
      "The sweep says what was measured: its point 0 is the first file, and so on, or as --points "
      "says. The run then has\n"
      "these points with the figures and requests of the files, and can be compared with the "
      "simulated one:\n"
      "  llmsweep import {} served.yaml rate2.json rate8.json -o runs/measured\n"
      "  llmsweep run served.yaml -o runs/simulated\n"
      "  llmsweep compare runs/measured runs/simulated --common --tolerance 10%",
      load.name));
  verb->add_option("spec", arguments->spec, "the sweep whose points were measured")
      ->required()
      ->type_name("SPEC");
  verb->add_option("files", arguments->files, load.files)->required()->type_name("FILE...");
  verb->add_option("--points", arguments->points,
                   "index of the point of each file (default: 0, 1, ...)")
      ->delimiter(',')
      ->type_name("I,J,...");
  verb->add_option("-o,--output", arguments->folder, "run folder")->required()->type_name("DIR");
  verb->callback([arguments, &exit_code] { exit_code = import_load(*arguments); });
}

// A verb that makes a kernel table of a trace: what it says, and which reader it uses.
struct TraceVerb {
  const char* name;
  const char* summary;
  const char* footer;
  const char* file;
  ReadTrace read;
};

constexpr TraceVerb kTraceVerbs[] = {
    {"profile", "A trace of the PyTorch profiler as a kernel table",
     "Products and attention whose shapes the trace has (record_shapes=True): one row for each "
     "shape and kernel, with the\n"
     "median of its times, in the columns that 'llmsweep kernels' and 'llmsweep calibrate' read.\n"
     "  llmsweep import profile trace.json.gz -o h200.csv",
     "Chrome trace, .json or .json.gz", read_profiler_trace},
    {"chakra", "A Chakra execution trace as a kernel table",
     "Of a trace that chakra_trace_link and chakra_converter made of host and device traces of "
     "PyTorch: the same rows as\n"
     "'llmsweep import profile' makes of the profiler's trace. Chakra counts whole microseconds, "
     "so short kernels come out\n"
     "up to one too short; where there is a profiler's trace, import that.\n"
     "  llmsweep import chakra rank0.et -o h200.csv",
     "execution trace, .et or .et.gz", read_chakra_trace},
};

void add_trace(CLI::App& import, const TraceVerb& trace, int& exit_code) {
  struct Arguments {
    std::string trace;
    std::string file = "kernels.csv";
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = import.add_subcommand(trace.name, trace.summary);
  verb->footer(trace.footer);
  verb->add_option("trace", arguments->trace, trace.file)->required()->type_name("FILE");
  verb->add_option("-o,--output", arguments->file, "table to write (default: kernels.csv)")
      ->type_name("FILE");
  verb->callback([arguments, read = trace.read, &exit_code] {
    exit_code = import_trace(read, arguments->trace, arguments->file);
  });
}

}  // namespace

void add_import(CLI::App& app, int& exit_code) {
  CLI::App* verb =
      app.add_subcommand("import", "What others measured, to compare with or to calibrate on");
  verb->require_subcommand(1);
  for (const LoadVerb& load : kLoadVerbs) add_load(*verb, load, exit_code);
  for (const TraceVerb& trace : kTraceVerbs) add_trace(*verb, trace, exit_code);
}

}  // namespace tools
