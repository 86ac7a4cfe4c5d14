#include "tools/validate_serving/served_parts.h"

namespace tools {

engine::Result<engine::Scenario> served_scenario(NamedSpecs& specs, const ServedParts& parts) {
  const engine::Scenario* model = specs.find("models", parts.model);
  const engine::Scenario* device = specs.find("devices", parts.device);
  const engine::Scenario* cluster = specs.find("clusters", parts.cluster);
  const engine::Scenario* serving = specs.find("serving", parts.serving);
  const engine::Scenario* host = specs.find("hosts", parts.host);
  if (!model || !device || !cluster || !serving || !host) return specs.mistakes();
  engine::Scenario scenario;
  scenario.task = engine::Task::serve;
  scenario.model = model->model;
  scenario.device = device->device;
  scenario.cluster = cluster->cluster;
  scenario.serving = serving->serving;
  scenario.host = host->host;
  return scenario;
}

engine::Load all_at_once(std::int64_t requests, std::int64_t prompt, std::int64_t output) {
  engine::Load load;
  load.arrivals = engine::ArrivalKind::deterministic;
  load.rate = engine::RequestsPerSecond{1e6};
  load.requests = requests;
  load.measure = engine::MeasureKind::whole;
  load.lengths.prompt = prompt;
  load.lengths.output = output;
  return load;
}

}  // namespace tools
