// Every knob moves something, or says that it does not; and where its own line says that it does not count, it moves
// nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/evaluate.h"
#include "engine/leaves/leaf_use.h"
#include "engine/leaves/leaves.h"
#include "engine/tasks/task_table.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space.h"
#include "tests/support/paths.h"
#include "tests/support/with_roles.h"

namespace {

using engine::Leaf;
using engine::LeafKind;
using engine::LeafValue;
using engine::Outcome;
using engine::Scenario;

// Points that between them use everything there is. Each serves few requests: it is asked hundreds of
// times.
constexpr std::string_view kPoints = R"(
base:
  task: step
  device: h100-sxm
  model: llama-3.1-8b
  load: {rate: 20 req/s, requests: 40, lengths: {prompt: 600, output: 40}}
axes:
  - concat:
      - {name: decode, base: {step: {batch: 40, context: 900}}}
      - {name: prefill, base: {step: {phase: prefill, batch: 2, prompt: 900, cached: 300}, host: {mode: eager}}}
      - {name: roofline, base: {calibration.tier: roofline, step.batch: 4, parallel.tp: 2}}
      - {name: uneven, base: {device: a100-80gb-sxm, serving.decode_parts: even, step: {batch: 40, context: 900, longest_context: 8000}}}
      - {name: bridges, base: {device: {from: a100-80gb-pcie}, parallel.tp: 4, step.batch: 8}}
      - {name: hot, base: {device: {from: l4, power_limit: 30 W}, step: {phase: prefill, prompt: 2000}}}
      - {name: grid, base: {device: {from: h100-sxm, architecture: systolic, multiprocessors: 4, peak: {bf16: 1 PFLOP/s, fp16: 1 PFLOP/s, fp8: 1 PFLOP/s}, array: {rows: 128, columns: 128, multiply_energy: 1 pJ, buffer_energy: 2 pJ, memory_energy: 100 pJ, multiplier_area_um2: 3000, buffer_area_mm2: 3}}, step: {batch: 40, context: 900}}}
      - {name: latent, base: {device: h200-sxm, model: deepseek-v3, parallel: {tp: 8, pp: 2, ep: 8}, quant: {weights: fp8, activations: fp8}}}
      - {name: scans, base: {model: {from: bamba-9b, scan: {groups: 2}}, step: {batch: 8, context: 900}}}
      - {name: deltas, base: {model: {from: qwen3-next-80b-a3b, layers: 4, scan: {gate_rank: 64, attention_layers: 2}}, parallel.tp: 2, step: {batch: 8, context: 900}}}
      - {name: channels, base: {model: {from: kimi-linear-48b-a3b, layers: 4, scan: {attention_layers: 2}}, parallel.tp: 2, step: {phase: prefill, prompt: 900}}}
      - {name: bare, base: {model: {from: bamba-9b, mlp_layers: 20}, step: {batch: 8, context: 900}}}
      - {name: mixture, base: {model: mixtral-8x7b, parallel: {tp: 2, dp: 2, ep: 2}, step.batch: 16, quant: {weights: int4}}}
      - {name: exchange, base: {model: mixtral-8x7b, parallel: {dp: 4, ep: 4}, step: {batch: 64, context: 900}}}
      - {name: copies by load, base: {model: qwen3-30b-a3b, parallel: {dp: 16, ep: 16}, step: {batch: 64, context: 900}}}
      - {name: copies, base: {model: qwen3-30b-a3b, parallel: {dp: 8, ep: 8, redundant_experts: 8}, step: {batch: 64, context: 900}}}
      - {name: blocks, base: {model: qwen3-30b-a3b, quant: {weights: fp8, activations: fp8, group: 128}, parallel: {dp: 4, ep: 4}, step: {batch: 64, context: 900}}}
      - {name: one scale, base: {model: llama-3.1-8b, quant: {weights: fp8, activations: fp8, group: 1024}, step: {batch: 8, context: 900}}}
      - {name: windows, base: {model: gpt-oss-20b, quant: {weights: fp4, scope: experts}, step: {batch: 4, context: 9000}}}
      - {name: nodes, base: {parallel: {tp: 8, dp: 2}, step: {phase: prefill, prompt: 4000}, cluster: {devices_per_node: 4, nodes: 8, scale_up: nvlink-3, scale_out: infiniband-hdr-200}}}
      - {name: reduced, base: {parallel: {tp: 8}, step: {phase: prefill, prompt: 8000}}}
      - {name: far, base: {parallel: {tp: 16}, model: llama-3.1-70b, step: {phase: prefill, prompt: 8000}}}
      - {name: pods, base: {parallel: {tp: 16}, model: llama-3.1-70b, step: {phase: prefill, prompt: 8000}, cluster: {pod_nodes: 1, oversubscription: 3}}}
      - {name: meshes, base: {parallel: {tp: 8}, device: {from: h100-sxm, scale_up: {topology: mesh, devices: 4}, scale_out: {topology: mesh}}}}
      - {name: joined, base: {parallel: {tp: 8}, step: {phase: prefill, prompt: 8000}, cluster: {scale_up: {from: nvlink-4, topology: mesh, devices: 4}, scale_out: {from: roce-400, topology: mesh}}}}
      - {name: summed, base: {parallel: {tp: 8}, step: {phase: prefill, prompt: 8000}, cluster: {scale_up: nvlink-4}}}
      - {name: verified, base: {speculation: {method: draft_model, draft: llama-3.2-1b, tokens: 3, acceptance: [0.8, 0.7]}, step: {batch: 4, context: 900}}}
      - {name: wide drafts, base: {speculation: {method: draft_model, draft: llama-3.2-1b, tokens: 3, acceptance: 0.8, tree: [2, 2]}, step: {batch: 5, context: 900}}}
      - {name: looked up, base: {speculation: {method: ngram, tokens: 3, acceptance: 0.5}}}
      - {name: heads, base: {speculation: {method: heads, tokens: 3, acceptance: 0.5}}}
      - {name: added layer, base: {task: serve, speculation: {method: mtp, tokens: 2, acceptance: 0.7}}}
      - {name: tree, base: {speculation: {method: mtp, tokens: 3, acceptance: 0.5, tree: [2, 2], further_candidates: 0.5, draft_window: 500}, step: {batch: 4, context: 900}}}
      - {name: lengths, base: {task: serve, speculation: {method: heads, tokens: 2, acceptance: 0.5, dynamic: true}}}
      - {name: languages, base: {task: serve, serving.ordering: priority, speculation: {method: ngram, tokens: 2, acceptance: 0.5}, load: {classes: {high: {share: 0.3, acceptance: 0.9}, low: {share: 0.3, acceptance: 0.2}}}}}
      - {name: messages, base: {task: serve, load.rate: 40 req/s, serving: {stream_interval: 4, first_message: with_others, receive_interval: 8}, host: {front_end_per_message: 20 ms, front_end_processes: 2, front_end_merges: false}}}
      - {name: waits for others, base: {task: serve, load.rate: 40 req/s, serving: {batch_wait: 6, batch_wait_share: 0.1}}}
      - {name: one scale in two pools, base: {task: serve, prefill: {}, quant: {weights: fp8, activations: fp8, group: 1024}}}
      - {name: told early, base: {task: serve, prefill: {}, transfer: {first_token: prefill}}}
      - {name: as the engine does, base: {task: serve, prefill: {}}}
      - {name: kept on the host, base: {task: serve, serving: {kv_blocks: 120, preempted_to_host: true}, prefill: {serving: {kv_blocks: 2000}}, load.lengths.output: 300}}
      - {name: pushed, base: {task: serve, parallel: {tp: 4}, cluster: {devices_per_node: 2}, prefill: {host: {eager_launch_cost: 1 ms}}, transfer: {initiative: push, contention: collectives}}}
      - {name: swapped, base: {task: serve, neighbour: {}, sharing: {swap: true, slice: 500 ms}, load: {rate: 2 req/s}}}
      - {name: images, base: {task: serve, load: {image_batch: 2, images: 2, image_tokens: 100, image_patches: 300}, encode: {model: {from: llama-3.2-1b, layers: 4}}}}
      - {name: images inside, base: {task: serve, load: {images: 2}, encode: {model: {from: llama-3.2-1b, layers: 4}}, serving: {encodes_images: true}}}
      - {name: parts, base: {parallel.cp: 4, step: {phase: prefill, batch: 1, prompt: 9000}}}
      - {name: parts elsewhere, base: {task: request, request: {batch: 1, prompt: 9000, output: 5}, prefill: {parallel: {cp: 4}}}}
      - {name: few tokens elsewhere, base: {task: request, request: {batch: 1, prompt: 100, output: 3}, device: h200-sxm, model: deepseek-v3, parallel: {tp: 8, pp: 2, ep: 8}, quant: {weights: fp8, activations: fp8}, prefill: {}}}
      - {name: images made, base: {task: denoise, parallel.tp: 2, model: {from: llama-3.2-1b, modulation: 6}, denoise: {batch: 2, tokens: 1000, text: 77, steps: 5, passes: 2}}}
      - {name: images seen, base: {task: classify, model: resnet-50, classify.batch: 4, device: h200-sxm}}
      - {name: images shared, base: {task: denoise, parallel.cp: 4, model: {from: llama-3.2-1b, modulation: 6}, denoise: {tokens: 4000}, host: {mode: eager}}}
      - {name: request, base: {task: request, request: {batch: 2, prompt: 9000, cached: 100, output: 20}}}
      - {name: train, base: {task: train, parallel: {tp: 2, pp: 4, dp: 4}, cluster: {devices_per_node: 8}, train: {sequence: 2048, global_batch: 64, zero: 1, sequence_parallel: true, tokens: 1e12, first_stage_layers: 7, last_stage_layers: 7, loading: {sequence_time: 10 s, workers: 2}}}}
      - {name: rounds, base: {task: train, parallel: {pp: 4, dp: 2}, train: {sequence: 2048, global_batch: 32, schedule: interleaved, virtual_stages: 2, recompute: full, zero: 3, fused: false}}}
      - {name: shared, base: {task: train, parallel: {tp: 2, cp: 4, dp: 2}, train: {sequence: 8192, global_batch: 8, document_length: 1000, document_cv: 0.5, method: lora, device_mtbf: 1e8 s, jitter: 0.02}}}
      - {name: groups, base: {task: train, model: deepseek-v3, parallel: {dp: 64, ep: 16, pp: 4}, train: {sequence: 1024, global_batch: 64, method: lora, zero: 2, zero_group: 16, offload_activations: true, expert_overlap: true, recompute: full, recompute_layers: 2}}}
      - {name: exchanged, base: {task: train, model: qwen3-30b-a3b, quant: {weights: fp8, activations: fp8}, parallel: {dp: 16, ep: 16}, train: {sequence: 1024, global_batch: 64, batch_overlap: true}}}
      - {name: other stages, base: {task: train, parallel: {tp: 2, pp: 2, dp: 2}, tail: {device: a100-80gb-sxm, parallel: {pp: 2}}, train: {sequence: 1024, global_batch: 16, zero: 1, tail_layers: 10}}}
      - {name: planned, base: {task: train, parallel: {tp: 2, dp: 4}, train: {sequence: 1024, global_batch: 8, scaling_law: hoffmann_2022, loss: 2.2, deadline: 1e6 s, link_jitter: 0.1, jitter: 0.01}}}
      - {name: learned, base: {task: train, parallel: {tp: 2, dp: 4}, train: {sequence: 1024, global_batch: 8, zero: 1, rollout: {prompts: 24, samples: 2, lengths: {distribution: lognormal, prompt: 200, output: 50, correlation: 0.5}}}, rollout: {parallel: {tp: 1, dp: 1}, serving: {max_num_seqs: 2}}}}
      - {name: learned apart, base: {task: train, parallel: {tp: 2, dp: 4}, train: {sequence: 1024, global_batch: 8, zero: 1, rollout: {prompts: 24, samples: 2, colocated: false, lengths: {distribution: zipf, prompt: 200, output: 50, prompt_max: 400, output_max: 90}}}, rollout: {parallel: {tp: 1, dp: 1}, serving: {prefix_caching: true, replicas: 2}}}}
      - {name: tail, base: {task: train, parallel: {dp: 2}, train: {sequence: 1024, global_batch: 8, method: last_layers, trained_layers: 3, offload_optimizer: true}}}
      - {name: serve, base: {task: serve, host: {step_overhead: 3 ms, asynchronous: false}, slo: {ttft_p99: 200 ms}, output: {requests: true, timeline: 100 ms, timeline_moments: 20}}}
      - {name: intervals, base: {task: serve, output.intervals: true, slo: {tpot_mean: 10 ms}}}
      - {name: full, base: {task: serve, serving: {kv_blocks: 120, watermark: 0.05, max_num_seqs: 8, long_prefill_threshold: 200, logit_memory: 38 B}, load.lengths.output: 300}}
      - {name: sglang, base: {task: serve, serving: {from: sglang, block_size: 16, kv_blocks: 150, chunk: 256}, load: {rate: 200 req/s, lengths: {prompt: 300, output: 400}}}}
      - {name: sarathi, base: {task: serve, device: a100-80gb-sxm, serving: {policy: sarathi, replicas: 2, router: least_tokens, mixed_attention: joined}, load: {arrivals: gamma, cv: 2}}}
      - {name: static, base: {task: serve, serving: {policy: static, max_output: 100, kv_blocks: 200}, load: {lengths: {distribution: zipf, prompt_max: 2000, output_max: 400}}}}
      - {name: closed, base: {task: serve, load: {arrivals: closed, clients: 8, think_time: 100 ms, ramp: 200 ms, lengths: {distribution: lognormal, correlation: 0.5}}}}
      - {name: filled, base: {task: serve, load: {arrivals: closed, kv_fraction: 0.001, lengths: {distribution: uniform, prompt_cv: 0.3, output_cv: 0.3}}}}
      - {name: sessions, base: {task: serve, serving: {prefix_caching: true, ordering: longest_prefix}, load: {turns: 3, think_time: 50 ms, shared_prefix: 300, prefix_groups: 2}}}
      - {name: levels, base: {task: serve, serving: {ordering: priority, max_num_seqs: 2}, load: {priorities: 3, rate: 100 req/s}}}
      - {name: tenants, base: {task: serve, serving: {ordering: fair_share, max_num_seqs: 2}, load: {tenants: 3, tenant_skew: 1, rate: 100 req/s}}}
      - {name: curve, base: {task: serve, load: {arrivals: curve, curve: "0:5, 1:40"}}}
      - {name: trace, base: {task: serve, load: {arrivals: trace, trace: loads/conversations.jsonl, trace_speed: 2}}}
      - {name: drawn, base: {task: serve, load: {lengths: {distribution: empirical}, trace: loads/conversations.jsonl}}}
      - {name: fraction, base: {task: serve, load: {throughput_fraction: 0.5}}}
      - {name: tiers, base: {task: serve, serving: {prefix_caching: true, kv_blocks: 130, tiers: {host: 500 MB, host_bandwidth: 20 GB/s, disk: 2 GB, disk_bandwidth: 10 GB/s}}, load: {turns: 4, think_time: 300 ms, rate: 5 req/s, requests: 160, lengths: {prompt: 450, output: 20}}}}
      - {name: store, base: {task: serve, serving: {replicas: 2, prefix_caching: true, kv_blocks: 130, tiers: {peer: 1 GB, peer_bandwidth: 20 GB/s, store: 2 GB, store_bandwidth: 10 GB/s, store_link: 8 GB/s}}, load: {turns: 4, think_time: 300 ms, rate: 10 req/s, requests: 160, lengths: {prompt: 450, output: 20}}}}
      - {name: scaled, base: {task: serve, serving: {replicas: 3, scaling: {policy: reactive, target: 4, interval: 200 ms, cold_start: 300 ms, cooldown: 300 ms}}, load: {arrivals: curve, curve: "0:5, 1:60"}}}
      - {name: timetable, base: {task: serve, serving: {replicas: 3, scaling: {policy: scheduled, interval: 200 ms, cold_start: 300 ms, schedule: "0:1, 1:3"}}, load: {arrivals: curve, curve: "0:5, 1:60"}}}
      - {name: failing, base: {task: serve, serving: {replicas: 3, failures: {mean_time_to_failure: 1 s, mean_time_to_repair: 500 ms}}, load: {rate: 60 req/s, requests: 160}}}
      - {name: classes, base: {task: serve, serving: {ordering: priority, preemption: priority, max_num_seqs: 4, max_num_batched_tokens: 256}, slo: {ttft_p99: 300 ms, tpot_p99: 20 ms}, load: {rate: 60 req/s, requests: 120, classes: {high: {share: 0.3, ttft: 100 ms, tpot: 15 ms, e2e: 500 ms, prompt: 700, output: 20}, low: {share: 0.3, ttft: 12 s, tpot: 15 ms, e2e: 12.5 s, prompt: 900, output: 60}}}}}
      - {name: shedding, base: {task: serve, serving: {max_num_seqs: 2, admission: {max_queue: 3, shed_late: true}}, slo: {ttft_p99: 100 ms}, load: {rate: 150 req/s, requests: 120}}}
      - {name: predicted, base: {task: serve, serving: {replicas: 3, router: least_predicted, prediction_error: 0.5}, load: {rate: 200 req/s, lengths: {distribution: lognormal}}}}
      - {name: branches, base: {task: serve, serving: {prefix_caching: true, kv_blocks: 300, retention: {policy: ttl, ttl: 100 ms}}, load: {turns: 3, branches: 2, shared_prefix: 200, think_time: 100 ms, rate: 10 req/s, requests: 100}}}
      - {name: adapted, base: {step: {batch: 40, context: 900, adapters: 8}, serving.lora.slots: 9}}
      - {name: adapters, base: {task: serve, serving: {lora: {slots: 4, load_bandwidth: 1 GB/s}}, load: {adapters: 9, adapter_skew: 1}}}
      - {name: answers, base: {task: serve, serving.prefix_caching: true, load: {samples: 3, lengths: {distribution: lognormal}}}}
      - {name: clocked, base: {task: serve, device: h200-sxm, slo: {tpot_mean: 6 ms}, serving: {clock: {mode: slo}}, load: {rate: 60 req/s}}}
      - {name: capacity, base: {task: serve, capacity: {slo: {ttft_mean: 300 ms}, tolerance: 0.2}}}
)";

// Points that have each policy, and each router, in turn, whatever there is of them.
std::string point_of(std::string_view setting, std::string_view value) {
  return std::string(setting) + " " + std::string(value);
}
template <class Add>
void add_each(std::string_view setting, const std::string& name, const Scenario& base, Add&& add) {
  const Leaf& leaf = engine::leaf_at(engine::leaf_table().find_leaf(setting));
  for (std::size_t i = 0; i < leaf.names.size(); ++i) {
    Scenario scenario = base;
    engine::set_leaf(scenario, leaf, std::int64_t(i));
    add(point_of(setting, leaf.names[i]) + ", " + name, scenario);
  }
}

struct Points {
  std::vector<std::string> names;
  std::vector<Scenario> scenarios;
  std::vector<Outcome> outcomes;
  std::shared_ptr<const engine::Resources> resources;
};

const Points& points() {
  static const Points all = [] {
    Points built;
    const sweep::Library library({paths::specs("")});
    auto spec = sweep::read_sweep_text(kPoints, paths::specs("every_knob.yaml"), library);
    if (!spec) {
      ADD_FAILURE() << engine::to_text(spec.mistakes());
      return built;
    }
    built.resources = spec->resources;
    sweep::PointBuilder builder(spec->space);
    sweep::Point point;
    const auto add = [&](std::string name, const Scenario& scenario) {
      built.names.push_back(std::move(name));
      built.scenarios.push_back(scenario);
      built.outcomes.push_back(engine::evaluate(scenario, *spec->resources));
      EXPECT_EQ(built.outcomes.back().status, engine::Status::ok)
          << built.names.back() << ": " << built.outcomes.back().reason;
    };
    for (std::uint64_t i = 0; i < spec->space.size(); ++i) {
      builder.build(i, point);
      const std::string& name = spec->space.label_columns()[0].values[std::size_t(point.labels[0])];
      add(name, point.scenario);
      if (name == "full" || name == "sglang" || name == "sarathi" || name == "static") {
        add_each("serving.policy", name, point.scenario, add);
      }
      if (name == "predicted") add_each("serving.router", name, point.scenario, add);
      if (name == "decode" || name == "sarathi" || name == "sessions") {
        add(name + ", with samples", toys::with_rollout(point.scenario));
      }
      if (point.scenario.task == engine::Task::step && point.scenario.parallel.cp == 1 &&
          point.scenario.device.scale_out.bandwidth.value > 0) {
        add(name + ", prompts elsewhere", toys::with_reader(point.scenario));
        add(name + ", with a draft", toys::with_draft(point.scenario));
        if (name == "roofline" || name == "prefill") {
          add(name + ", passages looked up", toys::with_passages(point.scenario));
        }
        if (name == "roofline")
          add("tight, prompts elsewhere", toys::with_tight_reader(point.scenario));
      }
      if (point.scenario.task == engine::Task::serve && name != "answers" && name != "swapped") {
        Scenario read = toys::with_readers(point.scenario);
        add(name + ", prompts elsewhere", read);
        if (name == "classes" || name == "branches") {
          read.transfer.local_prompt = 0;
          read.prefill.deployment.serving.max_num_seqs = 1;
          add(name + ", all prompts elsewhere, one by one", read);
        }
      }
      if (name == "decode" || name == "prefill" || name == "serve") {
        add(name + ", beside a twin", toys::with_neighbour(point.scenario));
      }
    }
    return built;
  }();
  return all;
}

// Other values of a text; most texts are names, which are labels.
const std::map<std::string, std::vector<std::string>>& other_texts() {
  static const std::map<std::string, std::vector<std::string>> texts{
      {"device.architecture", {"ampere", "Volta"}},
      {"host.captured_sizes", {"64 128"}},
      {"load.curve", {"0:9"}},
      {"serving.scaling.schedule", {"0:1, 0.5:2"}},
      {"prefill.serving.scaling.schedule", {"0:1, 0.5:2"}},
      {"serving.kernels", {"vllm_0.14.0", "trtllm_1.0.0"}},
      {"calibration.name", {"h200-sxm"}},
      {"model.network", {"conv 64 from 3 side 224 kernel 7 stride 2"}},
      {"speculation.acceptance", {"0.3"}},
      {"speculation.tree", {"2 2"}},
  };
  return texts;
}

std::vector<LeafValue> other_values(const Leaf& leaf, const LeafValue& now) {
  std::vector<LeafValue> others;
  switch (leaf.kind) {
    case LeafKind::quantity:
    case LeafKind::number:
      for (const double value :
           {2 * std::get<double>(now), std::get<double>(now) / 3, 0.5, 0.02, 2e9, 40.0, 0.0}) {
        if (value >= leaf.range.low && value <= leaf.range.high && value != std::get<double>(now)) {
          others.emplace_back(value);
        }
      }
      break;
    case LeafKind::integer:
      for (const std::int64_t value :
           {2 * std::get<std::int64_t>(now), std::get<std::int64_t>(now) / 2, std::int64_t{1},
            std::int64_t{3}, std::int64_t{0}, std::int64_t{64}}) {
        if (double(value) >= leaf.range.low && value != std::get<std::int64_t>(now)) {
          others.emplace_back(value);
        }
      }
      break;
    case LeafKind::boolean:
      others.emplace_back(!std::get<bool>(now));
      break;
    case LeafKind::enumeration:
      for (std::size_t i = 0; i < leaf.names.size(); ++i) {
        if (std::int64_t(i) != std::get<std::int64_t>(now)) others.emplace_back(std::int64_t(i));
      }
      break;
    case LeafKind::text:
      if (const auto found = other_texts().find(leaf.path); found != other_texts().end()) {
        for (const std::string& text : found->second) others.emplace_back(text);
      }
      break;
  }
  return others;
}

// A label, or filled in by the reader: not a knob. A neighbour is evaluated as a point of its own, so its fields move what
// those of the main deployment move.
bool is_knob(const Leaf& leaf) {
  if (leaf.path.starts_with("neighbour.") && leaf.path != "neighbour.present") return false;
  // Read by the sweep, which gives points the powers that follow (sweep/space/powers).
  for (const std::string_view part :
       {".rated_powers.", ".energy_scale", ".power_assumed", ".rent_assumed"}) {
    if (leaf.path.find(part) != std::string::npos) return false;
  }
  return leaf.kind != LeafKind::text || other_texts().contains(leaf.path);
}

bool said_to_count_nowhere(const Leaf& leaf) {
  return std::ranges::any_of(engine::uses_of(engine::leaf_table().find_leaf(leaf.path)),
                             engine::is_never);
}

// A field of a role counts only in tasks that have the role.
bool no_task_reads(int leaf) {
  return std::ranges::none_of(engine::task_table(), [leaf](const engine::TaskEntry& entry) {
    return engine::task_reads(entry.task, leaf);
  });
}

// Everything a row of the points table or of the tables beside it would say.
std::string said(const Outcome& outcome) {
  std::string text = outcome.reason + char('0' + int(outcome.status)) +
                     char('0' + int(outcome.saturation)) + char('0' + int(outcome.bound)) +
                     char('0' + int(outcome.tier)) + char('0' + int(outcome.extrapolated));
  const auto add = [&text](const auto& value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const auto add_field = [&](std::string_view, const auto& value, std::string_view) { add(value); };
  engine::Metrics::fields(outcome.metrics, add_field);
  for (const engine::KernelRow& row : outcome.kernels) {
    add(row.op);
    engine::Work::fields(row.work,
                         [&](std::string_view, const auto& value, auto...) { add(value); });
  }
  for (const engine::RequestRow& row : outcome.requests) engine::RequestRow::fields(row, add_field);
  for (const engine::TimelineRow& row : outcome.timeline) {
    engine::TimelineRow::fields(row, add_field);
  }
  return text;
}

// Deployments that work on the same tokens have one model, and points where theirs differ are refused: a field of it changes in
// all of them.
void change(Scenario& scenario, const Leaf& leaf, const LeafValue& value) {
  const engine::ModelSpec before = scenario.model;
  engine::set_leaf(scenario, leaf, value);
  if (leaf.path.find("model.") == std::string::npos) return;
  const std::set<std::string_view> of_one_model{"prefill", "rollout", "tail"};
  std::vector<engine::Deployment*> alike;
  const engine::Deployment* changed = scenario.model != before ? &scenario : nullptr;
  engine::each_role(scenario, [&](std::string_view name, engine::Role& role) {
    if (!of_one_model.contains(name)) return;
    const int of_model = engine::leaf_table().find_leaf(std::string(name) + ".model.layers");
    if (!role.present || engine::why_inert(of_model, scenario)) return;
    alike.push_back(&role.deployment);
    if (leaf.path.starts_with(name)) changed = &role.deployment;
  });
  if (changed == nullptr) return;
  const engine::ModelSpec model = changed->model;
  alike.push_back(&scenario);
  for (engine::Deployment* one : alike) {
    if (one->model == before) one->model = model;
  }
}

// Whether another value of the leaf changes anything at a point.
bool moves(const Leaf& leaf, std::size_t point) {
  const std::string before = said(points().outcomes[point]);
  Outcome outcome;
  for (const LeafValue& value :
       other_values(leaf, engine::get_leaf(points().scenarios[point], leaf))) {
    Scenario changed = points().scenarios[point];
    change(changed, leaf, value);
    engine::evaluate_into(changed, *points().resources, outcome);
    if (said(outcome) != before) return true;
  }
  return false;
}

// Who makes samples serves them, the last stages train, and encoders and re-rankers have steps like any model: other points hold every
// field of a deployment that does to this law.
bool held_as_main(const Leaf& leaf) {
  const bool like_main = leaf.path.starts_with("rollout.") || leaf.path.starts_with("tail.") ||
                         leaf.path.starts_with("encode.") || leaf.path.starts_with("rerank.");
  return like_main && leaf.presence >= 0 && !said_to_count_nowhere(leaf);
}

TEST(EveryKnob, MovesSomethingOrSaysThatItDoesNot) {
  const std::vector<Leaf>& leaves = engine::leaf_table().leaves;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Leaf& leaf = leaves[i];
    if (!is_knob(leaf) || held_as_main(leaf)) continue;
    bool moved = false;
    for (std::size_t p = 0; p < points().scenarios.size() && !moved; ++p) {
      moved = !engine::why_inert(int(i), points().scenarios[p]) && moves(leaf, p);
    }
    EXPECT_NE(moved, said_to_count_nowhere(leaf) || no_task_reads(int(i)))
        << leaf.path << ": " << leaf.meaning;
  }
}

// Whether where a leaf counts depends on another one.
bool asks(int leaf, std::string_view path) {
  return std::ranges::any_of(engine::uses_of(leaf), [path](const engine::LeafUse& use) {
    return std::ranges::find(*use.condition, path, &engine::Test::path) != use.condition->end();
  });
}

// Deployments that a point does not have are most of the fields, all for one reason: each is tried at some of the points.
bool in_turn(const Leaf& leaf, std::size_t number, std::size_t point) {
  constexpr std::size_t one_in = 10;
  if (leaf.presence < 0) return true;
  const Leaf& presence = engine::leaf_at(leaf.presence);
  const bool there = engine::leaf_integer(points().scenarios[point], presence) != 0;
  return there || (number + point) % one_in == 0;
}

TEST(EveryKnob, MovesNothingWhereItIsSaidNotToCount) {
  const std::vector<Leaf>& leaves = engine::leaf_table().leaves;
  for (std::size_t p = 0; p < points().scenarios.size(); ++p) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!in_turn(leaves[i], i, p)) continue;
      if (!is_knob(leaves[i])) continue;
      const auto reason = engine::why_inert(int(i), points().scenarios[p]);
      if (!reason) continue;
      EXPECT_FALSE(moves(leaves[i], p)) << leaves[i].path << " moves '" << points().names[p]
                                        << "', though it counts only where " << reason->where();
    }
  }
}

// What only some policies, or some routers, read moves a point of each whose row says so; of the others the law above holds.
TEST(EveryKnob, OfAPolicyOrARouterMovesWhereItsRowSaysSo) {
  for (const char* setting : {"serving.policy", "serving.router"}) {
    const Leaf& chosen = engine::leaf_at(engine::leaf_table().find_leaf(setting));
    for (std::size_t i = 0; i < engine::leaf_table().leaves.size(); ++i) {
      const Leaf& leaf = engine::leaf_at(int(i));
      if (engine::of_role(leaf) || !asks(int(i), setting)) continue;
      for (const std::string_view value : chosen.names) {
        bool counts = false, moved = false;
        for (std::size_t p = 0; p < points().scenarios.size() && !moved; ++p) {
          if (!points().names[p].starts_with(point_of(setting, value) + ",")) continue;
          if (engine::why_inert(int(i), points().scenarios[p])) continue;
          counts = true;
          moved = moves(leaf, p);
        }
        EXPECT_EQ(counts, moved) << leaf.path << " under " << point_of(setting, value);
      }
    }
  }
}

TEST(EveryKnob, EveryTaskHasAPoint) {
  for (const engine::TaskEntry& entry : engine::task_table()) {
    EXPECT_TRUE(std::ranges::any_of(points().scenarios, [&entry](const Scenario& scenario) {
      return scenario.task == entry.task;
    })) << name_of(entry.task);
  }
}

}  // namespace
