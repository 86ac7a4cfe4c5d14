// A point with one more deployment: the same work with somebody beside the main one who does part of it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/scenario.h"

namespace toys {

using engine::Scenario;

// The same points, as requests whose prompts are read by a deployment of their own that is like the main one.
inline Scenario with_reader(Scenario scenario) {
  scenario.task = engine::Task::request;
  scenario.request = {.batch = 2, .prompt = 900, .cached = 100, .output = 3};
  scenario.prefill.present = true;
  engine::fill_roles(scenario);
  return scenario;
}

// One whose memory is just enough, because the engine may fill a share of what the model leaves.
inline Scenario with_tight_reader(const Scenario& scenario) {
  Scenario tight = with_reader(scenario);
  tight.prefill.deployment.serving.memory_share = engine::MemoryShare::rest;
  tight.prefill.deployment.device.memory_capacity = engine::Bytes{9e9};
  return tight;
}

// Served loads whose prompts are read by a deployment of their own that is like the main one, short ones apart,
// over a link of their own.
inline Scenario with_readers(Scenario scenario) {
  scenario.prefill.present = true;
  engine::fill_roles(scenario);
  scenario.transfer.link = {.name = "wire",
                            .topology = engine::Topology::fabric,
                            .bandwidth = engine::BytesPerSecond{2e9},
                            .latency = engine::Seconds{1e-3},
                            .devices = 64};
  scenario.transfer.local_prompt = 400;
  // Prompts are soon read: a replica has few of them inside.
  scenario.prefill.deployment.serving.scaling.target = 0.3;
  scenario.prefill.deployment.serving.scaling.interval = engine::Seconds{0.1};
  return scenario;
}

// The same points, as requests for which some layers of the model propose tokens.
inline Scenario with_draft(Scenario scenario) {
  scenario.task = engine::Task::request;
  scenario.request = {.batch = 2, .prompt = 900, .cached = 100, .output = 6};
  scenario.parallel.pp = 1;
  scenario.speculation = {
      .method = engine::SpeculationMethod::draft_model, .tokens = 2, .acceptance = "0.8 0.5"};
  scenario.draft.present = true;
  engine::fill_roles(scenario);
  engine::ModelSpec& draft = scenario.draft.deployment.model;
  draft.layers = std::min<std::int64_t>(4, scenario.model.layers);
  draft.mlp_layers = std::min(draft.mlp_layers, draft.layers);
  return scenario;
}

// Served points, as the deployment that makes samples to train adapters on.
inline Scenario with_rollout(Scenario scenario) {
  scenario.task = engine::Task::train;
  scenario.train.sequence = 512;
  scenario.train.global_batch = 4 * scenario.parallel.dp;
  scenario.train.method = engine::Method::lora;
  scenario.train.rollout = {.prompts = 6, .samples = 3, .lengths = {.prompt = 300, .output = 40}};
  scenario.train.rollout.colocated = false;
  scenario.rollout.present = true;
  engine::fill_roles(scenario);
  return scenario;
}

// The same points, as requests for which passages are looked up and ranked by a deployment of its own that is like the main one.
inline Scenario with_passages(Scenario scenario) {
  scenario.task = engine::Task::request;
  scenario.request = {.batch = 2, .prompt = 100, .output = 3};
  scenario.retrieval = {.vectors = 100'000,
                        .index = engine::VectorIndex::ivf,
                        .lists = 64,
                        .probes = 4,
                        .host_bandwidth = engine::BytesPerSecond{100e9},
                        .host_peak = engine::FlopsPerSecond{1e11}};
  scenario.rerank.present = true;
  engine::fill_roles(scenario);
  return scenario;
}

// Beside a twin, with which it shares the devices in turns that cost something.
inline Scenario with_neighbour(Scenario scenario) {
  scenario.neighbour.present = true;
  engine::fill_roles(scenario);
  return scenario;
}

}  // namespace toys
