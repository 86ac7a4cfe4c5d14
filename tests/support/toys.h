// Devices and models with round numbers, so that a test's expectation can be worked out by hand.
#pragma once

#include "engine/scenario.h"

namespace toys {

// 100 multiprocessors, 1 PFLOP/s, 1 TB/s, 10 MB of cache at 10 TB/s, a floor of 1 us, and eight
// devices on a switch of 100 GB/s and 1 us.
inline engine::Device gpu() {
  engine::Device device;
  device.name = "toy";
  device.multiprocessors = 100;
  device.clock = engine::Hertz{1e9};
  device.peak.bf16 = device.peak.fp16 = engine::FlopsPerSecond{1e15};
  device.peak.fp8 = device.peak.int8 = engine::FlopsPerSecond{2e15};
  device.vector_peak = engine::FlopsPerSecond{1e14};
  device.memory_capacity = engine::Bytes{100e9};
  device.memory_bandwidth = engine::BytesPerSecond{1e12};
  device.l2_capacity = engine::Bytes{10e6};
  device.l2_bandwidth = engine::BytesPerSecond{10e12};
  device.launch_latency = engine::Seconds{1e-6};
  device.scale_up = {.name = "toy-switch",
                     .topology = engine::Topology::fabric,
                     .bandwidth = engine::BytesPerSecond{100e9},
                     .latency = engine::Seconds{1e-6},
                     .devices = 8};
  device.scale_out = {.name = "toy-network",
                      .topology = engine::Topology::fabric,
                      .bandwidth = engine::BytesPerSecond{10e9},
                      .latency = engine::Seconds{10e-6},
                      .devices = 1024};
  device.host_link = {.name = "toy-bus",
                      .topology = engine::Topology::fabric,
                      .bandwidth = engine::BytesPerSecond{20e9},
                      .latency = engine::Seconds{5e-6},
                      .devices = 8};
  device.rent = engine::DollarsPerSecond{3.6 / 3600};
  device.complete();
  return device;
}

// A host that adds nothing.
inline engine::HostSettings no_host() {
  engine::HostSettings host;
  host.launch_cost = host.graph_launch = host.kernel_gap = engine::Seconds{0};
  host.step_overhead = host.step_per_sequence = engine::Seconds{0};
  return host;
}

// About 1.3 billion parameters: 10 layers of 4096 with 32 heads of 128, 8 of them for keys.
inline engine::ModelSpec model() {
  engine::ModelSpec model;
  model.name = "toy-model";
  model.layers = 10;
  model.hidden = 4096;
  model.heads = 32;
  model.kv_heads = 8;
  model.head_dim = 128;
  model.intermediate = 8192;
  model.vocabulary = 32000;
  model.max_context = 131072;
  return model;
}

inline engine::ModelSpec mixture() {
  engine::ModelSpec spec = model();
  spec.name = "toy-mixture";
  spec.moe = {.experts = 16, .top_k = 2, .intermediate = 4096, .shared_intermediate = 2048};
  return spec;
}

inline engine::ModelSpec latent() {
  engine::ModelSpec spec = model();
  spec.name = "toy-latent";
  spec.mla = {.q_rank = 1024, .kv_rank = 512, .rope_dim = 64, .nope_dim = 128, .value_dim = 128};
  return spec;
}

inline engine::Scenario scenario() {
  engine::Scenario scenario;
  scenario.device = gpu();
  scenario.model = model();
  scenario.host = no_host();
  scenario.step = {.phase = engine::StepPhase::decode, .batch = 8, .context = 1024};
  return scenario;
}

}  // namespace toys
