#include "engine/tasks/serve/image_encoder.h"

#include <algorithm>
#include <utility>

#include "engine/comm/sends.h"

namespace engine {
namespace {

const Deployment& reading(const Scenario& scenario) {
  return scenario.prefill.present ? scenario.prefill.deployment : scenario;
}

std::int64_t patches_of(const Load& load) {
  return load.image_patches > 0 ? load.image_patches : load.image_tokens;
}

// Every patch of an image attends to all others; images do not see one another.
BatchShape images_of(const Load& load, std::int64_t requests) {
  BatchShape batch;
  add_images(batch, load.images * requests, patches_of(load));
  return batch;
}

ImageEncoder::Batch timed(const BatchShape& batch, const StepContext& context) {
  // Layers alone: patches are no words, and no word is chosen.
  const StageSpan layers{.layers = context.shard.layers, .first = false, .last = true};
  OpList ops;
  token_ops(context.shard, layers, batch, ops);
  attention_ops(context.shard, layers, batch, ops);
  ImageEncoder::Batch made;
  const StepWork work{.layers = double(layers.layers.all()), .sequences = batch.prefill_sequences};
  const StepTime time = ops_time(ops, work, LaunchMode::eager, context, Phase::prefill, &made.rows);
  for (KernelRow& row : made.rows) row.role = DeploymentRole::encode;
  made.seconds = time.total().value;
  return made;
}

void time_images(const Load& load, const StepContext& context, ImageEncoder& encoder) {
  for (std::int64_t requests = 1; requests <= load.image_batch; ++requests) {
    encoder.batches.push_back(timed(images_of(load, requests), context));
    encoder.seconds.push_back(encoder.batches.back().seconds);
  }
}

// What one image becomes is as wide as the language model, in 16 bits.
Bytes embeddings_of(const Scenario& scenario) {
  return Bytes{2.0 * double(scenario.load.image_prompt()) * double(scenario.model.hidden)};
}

std::optional<Refusal> images_problem(const Scenario& scenario) {
  const auto unsupported = [](std::string text) {
    return Refusal{ReasonClass::unsupported, std::move(text)};
  };
  if (scenario.encode.deployment.parallel.pp > 1) {
    return unsupported("an encoder in stages: state encode.parallel.pp: 1");
  }
  return std::nullopt;
}

std::optional<Refusal> send_from(const TaskPoint& point, const Deployed& readers,
                                 ImageEncoder& encoder) {
  const Deployment& on = *encoder.deployed.spec;
  const SendWay from{encoder.deployed.fabric.scale_out}, to{readers.fabric.scale_out};
  if (!from.possible() || !to.possible()) {
    return Refusal{ReasonClass::links,
                   "no link carries images from encode to where prompts are read: state "
                   "device.scale_out or cluster.scale_out of both"};
  }
  const MessageLine out = sends_over(from, on.device, encoder.deployed.calibration).line;
  const MessageLine in = sends_over(to, readers.spec->device, readers.calibration).line;
  const Bytes bytes = embeddings_of(point.scenario);
  const auto seconds = [&bytes](const MessageLine& line, const Deployed& deployed) {
    return bytes.value * line.seconds_per_byte /
           double(deployed.shard.parallel.devices_of_replica());
  };
  encoder.apart = {.replicas = on.serving.replicas * on.parallel.dp,
                   .seconds = encoder.seconds,
                   .sending = std::max(seconds(out, encoder.deployed), seconds(in, readers)),
                   .latency = std::max(out.start, in.start).value};
  return std::nullopt;
}

}  // namespace

bool encodes(const Scenario& scenario) {
  return scenario.task == Task::serve && scenario.load.images > 0 && scenario.encode.present;
}

bool readers_encode(const Scenario& scenario) {
  return encodes(scenario) && reading(scenario).serving.encodes_images;
}

Bytes encoder_weights_beside(const Scenario& scenario, const Parallelism& readers) {
  if (!readers_encode(scenario)) return Bytes{0};
  const double parameters = parameter_counts(scenario.encode.deployment.model).total();
  return Bytes{2 * parameters / double(readers.tp)};
}

std::optional<Refusal> ready_encoder(const TaskPoint& point, const Deployed& readers,
                                     ImageEncoder& encoder) {
  const Scenario& scenario = point.scenario;
  if (auto problem = images_problem(scenario)) return problem;
  const Deployment& on = scenario.encode.deployment;
  if (auto problem = deploy(on, scenario.calibration, point.resources.calibrations,
                            double(on.serving.replicas), encoder.deployed))
    return in_role("encode", std::move(*problem));
  const std::int64_t images = scenario.load.images * scenario.load.image_batch;
  const std::int64_t tokens = images * patches_of(scenario.load);
  const MemoryDemand demand{
      .sequences = images, .context = patches_of(scenario.load), .step_tokens = tokens};
  if (readers_encode(scenario)) {
    // On the devices of the readers, split as the model they hold.
    encoder.deployed.fabric = readers.fabric;
    const StepContext context{readers.spec->device,         readers.fabric,
                              encoder.deployed.shard,       readers.spec->host,
                              encoder.deployed.calibration, &point.work};
    time_images(scenario.load, context, encoder);
    return std::nullopt;
  }
  if (auto problem =
          memory_problem(encoder.deployed, footprint_of(encoder.deployed, demand), demand))
    return in_role("encode", std::move(*problem));
  time_images(scenario.load, encoder.deployed.context(point.work), encoder);
  return send_from(point, readers, encoder);
}

double devices_beside_served(const Scenario& scenario, const Deployment& role) {
  if (&role == &scenario.encode.deployment) {
    if (!encodes(scenario) || readers_encode(scenario)) return 0;
  }
  return devices_of(role, double(role.serving.replicas));
}

}  // namespace engine
