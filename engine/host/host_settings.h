// What the host adds to a step, as knobs of the scenario.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/deployment_role.h"
#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/base/units.h"

namespace engine {

enum class HostMode : std::uint8_t {
  eager,  // every kernel is launched by the host
  graph,  // decode steps, and steps that make images, replay a captured graph; prefill is eager
};
constexpr std::array<std::string_view, 2> enum_names(HostMode) { return {"eager", "graph"}; }

// What engines count when they capture graphs for decode steps of some sizes.
enum class GraphSizes : std::uint8_t {
  tokens,     // vLLM: a sequence that is verified has several
  sequences,  // SGLang, TensorRT-LLM: whatever number of tokens each has
};
constexpr std::array<std::string_view, 2> enum_names(GraphSizes) { return {"tokens", "sequences"}; }

// A draft by itself has one token of a sequence in a step.
inline constexpr const Condition& with_verified_candidates =
    either<"speculation.tree has candidates", outside<"draft">, is_set<"speculation.tree">>;
inline constexpr const Condition& with_front_end = is_above<"host.front_end_per_message", 0>;

// The defaults are round figures for a PyTorch-based engine on a server of 2023 or later: operators take 8 to 16 us
// to launch, a graph 5 to 9 us to replay (specs/calibration/h200-sxm/host_terms.csv). The interval
// is that of published step overheads around their line in batch size (0.74 to 1.36 times it), widened
// because one machine's host terms double from minute to minute.
struct HostSettings {
  static constexpr std::string_view library = "hosts";

  std::string name = "default";
  HostMode mode = HostMode::graph;
  Seconds launch_cost{10e-6};
  Seconds eager_launch_cost{0};
  Seconds graph_launch{10e-6};
  Seconds kernel_gap{1e-6};
  Seconds layer_cost{0};
  std::int64_t largest_graph = 512;
  std::string captured_sizes;
  GraphSizes graph_sizes = GraphSizes::tokens;
  Seconds step_overhead{300e-6};
  Seconds step_per_sequence{3e-6};
  Seconds step_per_kv_token{0};
  Seconds front_end_per_message{0};
  std::int64_t front_end_processes = 1;
  bool front_end_merges = true;
  bool asynchronous = true;
  Seconds request_latency{0};
  double low = 0.75;
  double high = 2;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name,
          "name of the host profile, as in 'llmsweep list hosts'. Of TensorRT-LLM: tensorrt-llm is "
          "for its PyTorch runtime, tensorrt-llm-2024 for a built engine",
          a_label);
    visit(
        "mode", self.mode, "how kernels reach the device",
        any_value.where(unless_training)
            .where(either<"", where_tokens_are_generated, is_above<"host.eager_launch_cost", 0>>));
    visit("launch_cost", self.launch_cost, "host time to launch one kernel eagerly",
          non_negative.slower());
    visit("eager_launch_cost", self.eager_launch_cost,
          "mode eager: host time to launch one kernel from an engine's own Python code, where that "
          "is more than launch_cost, which is for what a compiler made of it",
          non_negative.slower()
              .where(unless_training)
              .where(is_one_of<"host.mode", HostMode::eager>));
    visit("graph_launch", self.graph_launch, "host time to replay one graph",
          non_negative.slower()
              .where(either<"task {}, or train.cuda_graphs is true", unless_training,
                            is_set<"train.cuda_graphs">>)
              .where(where_tokens_are_generated));
    visit("kernel_gap", self.kernel_gap, "idle time between two kernels", non_negative.slower());
    visit(
        "layer_cost", self.layer_cost,
        "host time that a library's or an engine's own code takes for one layer of a step that "
        "reads prompts, beside launching its kernels; a decode that no graph holds takes its "
        "launches alone. Training: of the forward pass; backward passes and mixtures of experts in "
        "proportion",
        non_negative.slower());
    visit("largest_graph", self.largest_graph,
          "largest decode batch with a captured graph; the kernels of larger ones are launched one "
          "by one (host.launch_cost)",
          non_negative.neither().where(while_generating).where(where_tokens_are_generated));
    visit("captured_sizes", self.captured_sizes,
          "decode batches with a captured graph, such as '1 2 4 8 16'; empty: 1, 2, 4, multiples "
          "of 8, and of 16 above 256",
          any_value.where(while_generating).where(where_tokens_are_generated));
    visit(
        "graph_sizes", self.graph_sizes,
        "what largest_graph and captured_sizes count: tokens, of which a sequence with a draft has "
        "several in a step (vLLM), or sequences (SGLang, TensorRT-LLM)",
        any_value.where(while_generating)
            .where(where_tokens_are_generated)
            .where(role_has<&RoleTraits::drafts, "the deployment has a draft, which {} has not">)
            .where(with_proposals)
            .where(with_method)
            .where(with_verified_candidates));
    visit("step_overhead", self.step_overhead,
          "host time of one step: scheduling, input preparation, sampling and output",
          non_negative.slower().where(unless_training).where(where_requests_are));
    visit("step_per_sequence", self.step_per_sequence,
          "host time of one step for each sequence in it: scheduling, input preparation, sampling "
          "and output",
          non_negative.slower().where(unless_training).where(where_requests_are));
    visit("step_per_kv_token", self.step_per_kv_token,
          "input preparation of one step, per token in the KV caches of its sequences: engines "
          "that list every block anew. Hidden behind the device where `asynchronous`",
          non_negative.slower().where(while_generating).where(where_requests_are));
    visit(
        "front_end_per_message", self.front_end_per_message,
        "task serve: time that a process of the front end takes for one message to a client, which "
        "carries serving.stream_interval tokens, or all that came meanwhile where "
        "host.front_end_merges. It works beside the engine, which runs ahead of it",
        non_negative.slower().where(while_serving).where(where_requests_are));
    visit(
        "front_end_processes", self.front_end_processes,
        "processes of a replica that send messages to clients side by side",
        at_least(1).faster().where(while_serving).where(where_requests_are).where(with_front_end));
    visit(
        "front_end_merges", self.front_end_merges,
        "true: tokens of an answer whose last message still waits join it, so that no more than a "
        "message of each sequence is ever in front of clients; false: each message is sent alone, "
        "and more than the front end can send queue up (column front_end_use)",
        any_value.where(while_serving)
            .where(where_requests_are)
            .where(where_tokens_are_generated)
            .where(with_front_end));
    visit("asynchronous", self.asynchronous,
          "the next step is prepared while the device works on this one",
          any_value.where(unless_training));
    visit("request_latency", self.request_latency,
          "time of the front end: a request's way from its client into the queue, and of its first "
          "token back",
          non_negative.slower()
              .where(while_serving)
              .where(where_requests_are)
              .where(where_clients_are));
    visit("low", self.low, "nine steps in ten need at least this many times the host time",
          fraction.neither().where(unless_training));
    visit("high", self.high, "nine steps in ten need at most this many times the host time",
          at_least(1).neither().where(unless_training));
  }

  bool operator==(const HostSettings&) const = default;
};

}  // namespace engine
