#include "tools/query/row_notes.h"

#include <fmt/format.h>

#include <filesystem>
#include <numeric>
#include <utility>

#include "results/replaced_folder.h"
#include "results/run_folder.h"
#include "results/table.h"
#include "tools/query/where.h"
#include "tools/terminal/number_text.h"

namespace tools {
namespace {

// A table lacks the figures of tasks that its sweep has not, and a note that asks for them says nothing.
constexpr std::string_view kAssumedEnergy =
    "have energies of a device that nobody measured: its powers are shares of its limit, as an "
    "H200 has them (device.power_assumed)";
constexpr std::string_view kStatePowers =
    "state 'device.busy_power', 'device.tensor_power' and 'device.memory_power'";

constexpr RowNote kNotes[] = {
    // Loads that were not served, or not seen.
    {"saturation == 'overloaded'",
     "finish less than arrives (saturation overloaded): waits depend on how long the run was, and "
     "prices are those of a machine that is always full",
     "state a lower 'load.rate', 'load.trace_speed' or 'load.curve', or more 'serving.replicas'"},
    {"given_up_share > 0.01",
     "turn away or fail more than 1% of what comes (given_up_share): latencies are those of the "
     "requests that were answered",
     "'serving.admission' and 'serving.failures' say who is given up"},
    {"refused_share > 0.01",
     "refuse more than 1% of the requests as too long for the model or the KV cache "
     "(refused_share): figures are those of the shorter ones",
     "'model.max_context' and the room for the KV cache decide what is too long"},
    {"capacity_req_per_s > 0 and load.turns > 1",
     "state their capacity in sessions per second (capacity_req_per_s), and their throughput in "
     "requests",
     "a session has 'load.turns' times 'load.branches' requests"},
    {"capacity_decided == 0 and load.requests > 0",
     "have a capacity that their runs were too short to decide (capacity_decided 0): it may be "
     "far off, and figures are not those of a steady load",
     "'load.requests: auto' lets a run be as long as it takes"},
    {"capacity_decided == 0 and load.requests == 0",
     "have a capacity that runs of automatic length do not decide (capacity_decided 0): it may be "
     "far off, and figures are not those of a steady load",
     "state more 'load.requests' than the row has"},
    {"saturation == 'undecided' and load.requests > 0 and not (capacity_decided == 0)",
     "were too short to tell whether the load can be served (saturation undecided): waits may grow "
     "with the length of the run",
     "'load.requests: auto' lets a run be as long as it takes"},
    {"saturation == 'undecided' and load.requests == 0 and not (capacity_decided == 0)",
     "do not tell whether the load can be served, though they last as long as automatic runs may "
     "(saturation undecided): waits may grow with the length of the run",
     "state more 'load.requests' than the row has"},
    {"failures < 30 and serving.failures.mean_time_to_failure > 0",
     "saw fewer than 30 failures (failures): what these do to figures may be far off",
     "state more 'load.requests'"},
    {"load_seen < 0.9",
     "are over before their load has come (load_seen below 0.9): of sessions mostly first turns, "
     "or only a part of a curve, a trace or the clients, so that figures are those of a lighter "
     "load",
     "state more 'load.requests', or auto; a curve ends where it says so, as in 'load.curve: 0:4, "
     "43200:50, 86400:end'"},
    {"later_turns_seen < 0.9",
     "are over before their sessions are (later_turns_seen below 0.9): figures are mostly those "
     "of first turns, whose prompts are shorter, so that rates look high",
     "state more 'load.requests', or auto"},
    {"curve_tail_s > 0",
     "follow a curve that has no end: its last number held for as long as the run took "
     "(curve_tail_s)",
     "end it, as in 'load.curve: 0:4, 43200:50, 86400:end'"},
    {"cache_drift > 0.05",
     "were measured while caches still changed what they hold (cache_drift above 0.05)",
     "state more 'load.requests', or a longer 'load.warmup'"},
    {"steady == 0 and (saturation == 'stable' or saturation == 'backlogged') and precision_met >= "
     "0",
     "are not of a system that had filled up, or saw too few failures (steady 0)",
     "state more 'load.requests', or a longer 'load.warmup'"},
    {"precision_met == 0 and load.requests > 0 and (saturation == 'stable' or saturation == "
     "'backlogged')",
     "have figures that another seed moves by more than 2% (precision_met 0)",
     "'load.requests: auto' lets a run be as long as it takes"},
    {"precision_met == 0 and load.requests == 0 and (saturation == 'stable' or saturation == "
     "'backlogged')",
     "have figures that another seed moves by more than 2%, though they last as long as automatic "
     "runs may (precision_met 0)",
     "state more 'load.requests' than the row has"},
    {"load.shared_prefix > load.lengths.prompt",
     "share more than their mean prompt (load.shared_prefix above load.lengths.prompt, of which it "
     "is a part): shorter prompts are shared but for their last token",
     "state 'load.lengths.prompt' with what is shared"},
    {"cut_share > 0.05",
     "cut off more than 5% of the tokens that load.lengths states (cut_share): means are lower "
     "than stated",
     "state a larger 'load.lengths.prompt_max' or 'load.lengths.output_max'"},
    {"front_end_use >= 1",
     "have more messages for clients than their front end can send one by one (front_end_use from "
     "1 "
     "on): messages carry several tokens, or queue up",
     "state more 'host.front_end_processes', or a larger 'serving.stream_interval'"},
    {"neighbour_overloaded > 0",
     "have a neighbour that finishes less than arrives (neighbour_overloaded 1), whatever "
     "saturation says of the main model",
     "state a lower 'neighbour.load.rate'"},
    // Hardware that is not what its name says.
    {"foreign_links > 0",
     "join their devices by links of the cluster that they have no ports for (foreign_links 1)",
     "'cluster: {nodes: 4, devices_per_node: 8}' keeps the device's own links"},
    {"cluster.scale_up.topology == 'none' and device.scale_up.devices > 1 and "
     "cluster.devices_per_node > device.scale_up.devices and devices > device.scale_up.devices",
     "have nodes of more devices than their link joins (cluster.devices_per_node above "
     "device.scale_up.devices)",
     "state how many 'device.scale_up.devices' can be, if it joins them all the same"},
    {"serving.vendor != '' and serving.vendor != device.vendor",
     "have an engine that does not run on their devices (serving.vendor): figures are what its "
     "settings and kernels would give there",
     "state the settings of an engine that does, as 'serving: vllm-v1'"},
    // Defaults that decide.
    {"expert_imbalance >= 1.5",
     "wait for the device with the most popular experts, which gets half as much again as the mean "
     "(expert_imbalance)",
     "state 'parallel.redundant_experts', or the popularity itself, 'model.moe.skew'"},
    {"parallel.ep > parallel.tp and communication_time_s > (compute_time_s + attention_time_s + "
     "communication_time_s + host_time_s + gap_time_s) / 3",
     "spend a third of their time or more on the network, most of it the exchange of tokens among "
     "experts",
     "'serving.two_batch_overlap' hides a part of it; 'parallel.ep' says how far it goes"},
    {"second_copies > 0 and parallel.redundant_experts < 0 and parallel.expert_copies == "
     "'by_load'",
     "rest on second copies of experts that nobody stated (second_copies), placed by load as "
     "recipes for wide expert parallelism have them",
     "'parallel.expert_copies: fewest' is an engine whose balancer is off"},
    {"model.moe.skew == 1 and expert_imbalance > 1.1",
     "rest on experts as unequally popular as random tokens make them (model.moe.skew 1, an "
     "assumption): of text they are more alike",
     "state 'model.moe.skew', 0.3 for text"},
    // What figures rest on.
    {"tier == 'roofline'",
     "rest on physics alone (tier roofline): their times are lower bounds, often half the real "
     "ones",
     "'llmsweep list calibrations' says which devices were measured"},
    {"extrapolated_share > 0.25",
     "spend more than a quarter of their time on kernels outside what was measured "
     "(extrapolated_share): how they rank beside points whose kernels were measured is less sure",
     "'llmsweep explain SPEC --point N' says which kernels these are"},
    {"power_limited_share > 0.2 and not (device.power_assumed == true)",
     "spend more than a fifth of their time on what their power limit adds by lowering clocks "
     "(power_limited_share)",
     "'device.power_limit: unlimited' leaves the clock as it is"},
    {"power_limited_share > 0.1 and device.power_assumed == true",
     "are slowed down by a power limit (power_limited_share), and by powers that nobody "
     "measured: shares of the limit as an H200 has them (device.power_assumed)",
     "'device.power_limit: unlimited' leaves the clock as it is"},
    {"device.power_assumed == true and energy_j_per_output_token > 0", kAssumedEnergy,
     kStatePowers},
    {"device.power_assumed == true and iteration_energy_j > 0", kAssumedEnergy, kStatePowers},
    {"device.power_assumed == true and energy_j_per_image > 0", kAssumedEnergy, kStatePowers},
    {"device.rent_assumed == true and rent_usd_per_hour > 0",
     "have prices by a rent that nobody lists (device.rent_assumed)", "state 'device.rent'"},
    {"task == 'train' and memory_free_bytes < 0.05 * device.memory_capacity",
     "leave less than 5% of the memory free, which fragments and buffers of libraries may take",
     "state 'train.reserved_memory'"},
};

// The expression's mistake, where a table lacks one of its columns: sweeps of other tasks do.
std::vector<std::uint8_t> rows_about(const RowNote& note, const RunRows& rows) {
  auto matches = rows_where(rows, std::string(note.where));
  return matches ? std::move(matches->holds) : std::vector<std::uint8_t>();
}

// `not (...)` holds for rows whose column is null, too: those are not what the note is about.
std::string without(const RowNote& note) {
  return fmt::format("--where \"not ({})\" leaves them out", note.where);
}

}  // namespace

std::span<const RowNote> row_notes() { return kNotes; }

NoteCounts::NoteCounts() : about_(std::size(kNotes)) {}

void NoteCounts::add(const RunRows& rows) {
  std::vector<std::uint32_t> all(rows.rows());
  std::iota(all.begin(), all.end(), 0);
  add(rows, std::move(all));
}

void NoteCounts::add(const RunRows& rows, std::vector<std::uint32_t> chosen) {
  const Coded status = rows.texts("status");
  std::erase_if(chosen, [&](std::uint32_t row) { return status[row] != "ok"; });
  points_ += chosen.size();
  if (chosen.empty()) return;
  for (std::size_t i = 0; i < std::size(kNotes); ++i) {
    const std::vector<std::uint8_t> about = rows_about(kNotes[i], rows);
    if (about.empty()) continue;
    for (const std::uint32_t row : chosen) about_[i] += about[row];
  }
}

std::vector<std::string> NoteCounts::texts(NoteEnd end) const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::size(kNotes); ++i) {
    if (about_[i] == 0) continue;
    const RowNote& note = kNotes[i];
    // Without all rows there is nothing to rank.
    const bool some_are_left = end == NoteEnd::without && about_[i] < points_;
    texts.push_back(fmt::format("{} of {} points {}; {}", grouped(about_[i]), grouped(points_),
                                note.says,
                                some_are_left ? without(note) : std::string(note.remedy)));
  }
  return texts;
}

engine::Result<std::vector<std::string>> notes_of_run(const std::string& folder) {
  using Texts = std::vector<std::string>;
  return results::read_again_if_replaced(folder, [&]() -> engine::Result<Texts> {
    const auto known = results::summarise(folder);
    if (!known) return known.mistakes();
    NoteCounts counts;
    for (const results::PartRecord& part : known->parts) {
      const std::string& points = part.files[results::Table::points].name;
      if (!points.empty())
        counts.add(RunRows::of(results::ParquetReader(std::filesystem::path(folder) / points)));
    }
    return counts.texts(NoteEnd::remedy);
  });
}

}  // namespace tools
