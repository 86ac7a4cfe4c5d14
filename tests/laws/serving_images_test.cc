// Requests with images: what encoders add, and what they leave as it was.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::expect_same_figures;
using toys::sound;

// Two images of 60 tokens each; the encoder is a layer of the main model.
Scenario with_images(std::int64_t encoders) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.rate = RequestsPerSecond{20};
  scenario.load.requests = 200;
  scenario.load.lengths = {.prompt = 80, .output = 20};
  scenario.load.measure = MeasureKind::whole;
  scenario.output.requests = true;
  scenario.device.scale_out = {.name = "wire",
                               .topology = Topology::fabric,
                               .bandwidth = BytesPerSecond{1e18},
                               .latency = Seconds{0},
                               .devices = 64};
  scenario.load.images = 2;
  scenario.load.image_tokens = 60;
  scenario.encode.present = true;
  fill_roles(scenario);
  scenario.encode.deployment.model.layers = 1;
  scenario.encode.deployment.serving.replicas = encoders;
  return scenario;
}

// The same prompts as text.
Scenario as_text(Scenario scenario) {
  scenario.load.lengths.prompt += scenario.load.image_prompt();
  scenario.load.images = 0;
  scenario.encode.present = false;
  return scenario;
}

TEST(ServingImages, NoneIsAbsence) {
  Scenario none = with_images(3);
  none.load.images = 0;
  Scenario absent = none;
  absent.encode.present = false;
  const Outcome a = sound(none), b = sound(absent);
  expect_same_figures(a, b, 0);
  EXPECT_EQ(a.kernels, b.kernels);
}

// Everybody comes later by as much as their own images take.
TEST(ServingImages, EncodersWithoutQueueOrWayOnlyAddTheirTime) {
  const Outcome images = sound(with_images(100'000)), text = sound(as_text(with_images(1)));
  ASSERT_EQ(images.requests.size(), text.requests.size());
  const double own = images.metrics.encode.value;
  EXPECT_GT(own, 0);
  for (std::size_t i = 0; i < text.requests.size(); ++i) {
    EXPECT_NEAR((images.requests[i].finish - text.requests[i].finish).value, own, 1e-8);
    EXPECT_NEAR((images.requests[i].first_token - text.requests[i].first_token).value, own, 1e-8);
  }
  EXPECT_EQ(images.metrics.devices, 100'001 * text.metrics.devices);
}

// Encoders are rented from beginning to end, whatever the scaler makes of the replicas.
TEST(ServingImages, EncodersAreAlwaysOnAndPaidFor) {
  for (const bool scaled : {false, true}) {
    Scenario scenario = with_images(2);
    scenario.device.rent = scenario.encode.deployment.device.rent = DollarsPerSecond{0.001};
    scenario.serving.replicas = 4;
    if (scaled) {
      scenario.serving.scaling.policy = ScalingPolicy::scheduled;
      scenario.serving.scaling.schedule = "0:1";
    }
    const Metrics figures = sound(scenario).metrics;
    const double on = scaled ? 3 : 6;
    EXPECT_NEAR(figures.device_hours * 3600 / figures.makespan.value, on, 1e-9);
    EXPECT_NEAR(figures.rent.value, 0.001 * on, 1e-12);
  }
}

TEST(ServingImages, MoreEncodersNeverWaitLonger) {
  Scenario scenario = with_images(1);
  scenario.load.image_patches = 20'000;
  double before = 1e9;
  for (const std::int64_t encoders : {1, 2, 4, 64}) {
    scenario.encode.deployment.serving.replicas = encoders;
    const Metrics metrics = sound(scenario).metrics;
    EXPECT_LE(metrics.encode.value, before);
    EXPECT_LE(metrics.encode_utilization, 1);
    before = metrics.encode.value;
  }
}

// An image's tokens attend to one another and not to other images: twice the patches are more than twice the work.
TEST(ServingImages, PatchesAttendWithinTheirImage) {
  const auto flops = [](std::int64_t images, std::int64_t patches) {
    Scenario scenario = with_images(100'000);
    scenario.load.images = images;
    scenario.load.image_tokens = 120 / images;
    scenario.load.image_patches = patches;
    double sum = 0;
    for (const KernelRow& row : sound(scenario).kernels) {
      if (row.role == DeploymentRole::encode && is_attention(row.family)) {
        sum += row.work.flops.value;
      }
    }
    return sum;
  };
  EXPECT_NEAR(flops(2, 512), 2 * flops(1, 512), 1e-9 * flops(2, 512));
  EXPECT_NEAR(flops(1, 1024), 4 * flops(1, 512), 1e-9 * flops(1, 1024));
}

// Readers that encode themselves take the same time for it, in their own steps.
TEST(ServingImages, ReadersMayEncodeThemselves) {
  Scenario inside = with_images(1);
  inside.load.requests = 1;
  inside.output.intervals = true;
  Scenario apart = inside;
  inside.serving.encodes_images = true;
  const Outcome one = sound(inside), other = sound(apart), text = sound(as_text(apart));
  EXPECT_NEAR(one.metrics.ttft.value, other.metrics.ttft.value, 1e-9);
  // Kernels are off by as much wherever they run.
  EXPECT_NEAR(one.metrics.ttft_low.value, other.metrics.ttft_low.value, 1e-9);
  EXPECT_NEAR(one.metrics.ttft_high.value, other.metrics.ttft_high.value, 1e-9);
  EXPECT_EQ(one.metrics.devices, text.metrics.devices);
  EXPECT_GT(one.metrics.weights, text.metrics.weights);
  // Under load it costs steps.
  inside.load.requests = 400;
  const Outcome busy = sound(inside);
  EXPECT_GT(busy.metrics.encode_share, 0);
  double rows = 0;
  for (const KernelRow& row : busy.kernels) rows += row.work.exposed().value;
  const double time = busy.metrics.utilization * busy.metrics.makespan.value;
  EXPECT_NEAR(rows, time, 1e-6 * time);
  Scenario stepping = inside;
  stepping.serving.stepping = true;
  expect_same_figures(busy, sound(stepping), 1e-9);
}

TEST(ServingImages, PassEncodersBeforeAnotherPoolReadsThem) {
  Scenario scenario = with_images(2);
  scenario.prefill.present = true;
  const Role encoder = scenario.encode;
  fill_roles(scenario);
  scenario.encode = encoder;
  const Outcome three = sound(scenario);
  EXPECT_EQ(three.metrics.requests_finished, 200);
  EXPECT_GT(three.metrics.encode.value, 0);
  EXPECT_GT(three.metrics.transfer.value, 0);
  Scenario stepping = scenario;
  stepping.serving.stepping = true;
  stepping.prefill.deployment.serving.stepping = true;
  expect_same_figures(three, sound(stepping), 1e-9);
}

// Encoders that are busy take those who wait together: a weight is read once for all of them.
TEST(ServingImages, TakenTogetherWaitLess) {
  Scenario scenario = with_images(1);
  scenario.load.rate = RequestsPerSecond{2000};
  scenario.load.image_tokens = 4;
  double before = 1e9, batch = 1;
  for (const std::int64_t together : {1, 2, 8}) {
    scenario.load.image_batch = together;
    const Metrics metrics = sound(scenario).metrics;
    EXPECT_LT(metrics.encode.value, before);
    before = metrics.encode.value;
    if (together == 1) continue;
    EXPECT_GT(metrics.encode_batch, batch);
    EXPECT_LE(metrics.encode_batch, double(together));
    batch = metrics.encode_batch;
  }
  // Where an encoder is always free nobody is taken together with anybody.
  Scenario free = with_images(100'000), batched = free;
  batched.load.image_batch = 4;
  Outcome a = sound(free), b = sound(batched);
  EXPECT_EQ(b.metrics.encode_batch, 1);
  b.metrics.encode_batch = a.metrics.encode_batch;
  expect_same_figures(a, b, 1e-9);
}

TEST(ServingImages, ReadersEncodeTogetherWhatTheyBeginTogether) {
  Scenario scenario = with_images(1);
  scenario.serving.encodes_images = true;
  scenario.load.rate = RequestsPerSecond{2000};
  const Metrics apart = sound(scenario).metrics;
  scenario.load.image_batch = 8;
  const Outcome together = sound(scenario);
  EXPECT_LT(together.metrics.encode_share, apart.encode_share);
  double rows = 0;
  for (const KernelRow& row : together.kernels) rows += row.work.exposed().value;
  const double time = together.metrics.utilization * together.metrics.makespan.value;
  EXPECT_NEAR(rows, time, 1e-6 * time);
}

// What encoders draw comes on top of what the rest does.
TEST(ServingImages, EncodersDrawPower) {
  Scenario images = with_images(2);
  images.device.idle_power = Watts{100};
  images.device.busy_power = Watts{300};
  images.device.power_limit = Watts{500};
  images.device.tensor_power = Watts{100};
  images.encode.deployment.device = images.device;
  const Metrics with = sound(images).metrics, without = sound(as_text(images)).metrics;
  const double at_rest = 2 * 100 * with.makespan.value;
  EXPECT_GT(with.energy.value, without.energy.value + at_rest);
  EXPECT_LT(with.energy.value, without.energy.value + 5 * at_rest);
}

// What a replica had of images is lost with it: whoever goes on elsewhere has them encoded once more, by encoders or by the
// replica that reads the prompt again, and nobody is lost.
TEST(ServingImages, AreEncodedAgainAfterAFailure) {
  for (const bool themselves : {false, true}) {
    for (const std::int64_t together : {1, 4}) {
      Scenario scenario = with_images(2);
      scenario.serving.encodes_images = themselves;
      fill_roles(scenario);
      scenario.encode.deployment.model.layers = 1;
      scenario.encode.deployment.serving.replicas = 2;
      scenario.load.image_batch = together;
      scenario.serving.replicas = 3;
      const Outcome without = sound(scenario);
      scenario.serving.failures = {.mean_time_to_failure = Seconds{2},
                                   .mean_time_to_repair = Seconds{0.5},
                                   .attempts = 1000};
      const Outcome failing = sound(scenario);
      EXPECT_EQ(failing.metrics.requests_finished, 200);
      EXPECT_GT(failing.metrics.requests_retried, 5);
      EXPECT_GT(failing.metrics.e2e, without.metrics.e2e);
      const auto encoding = [](const Outcome& outcome) {
        double seconds = 0;
        for (const KernelRow& row : outcome.kernels) {
          if (row.role == DeploymentRole::encode) seconds += row.work.exposed().value;
        }
        return seconds;
      };
      EXPECT_GT(encoding(failing), encoding(without)) << themselves << together;
      if (together == 1) {
        const double each = encoding(without) / 200;
        const double again = encoding(failing) / each - 200;
        EXPECT_GT(again, 0);
        EXPECT_LE(again, failing.metrics.requests_retried + 1e-6);
      }
      scenario.serving.stepping = true;
      expect_same_figures(failing, sound(scenario), 1e-9);
    }
  }
}

// Whoever has images asks for its adapter when they are there; where all adapters are, images are all it waits for.
TEST(ServingImages, WaitBesideAdapters) {
  Scenario scenario = with_images(2);
  scenario.load.adapters = 20;
  scenario.load.adapter_skew = 1;
  const Outcome all = sound(scenario);
  scenario.serving.lora.slots = 4;
  scenario.serving.lora.load_bandwidth = BytesPerSecond{1e9};
  const Outcome few = sound(scenario);
  EXPECT_EQ(all.metrics.adapter_hit_rate, 1);
  EXPECT_LT(few.metrics.adapter_hit_rate, 1);
  EXPECT_EQ(few.metrics.requests_finished, 200);
  EXPECT_NEAR(few.metrics.encode.value, all.metrics.encode.value, 1e-9);
  EXPECT_GT(few.metrics.ttft, all.metrics.ttft);
  // A load takes its latency and its bytes, and waits for those before it.
  EXPECT_GT(few.metrics.adapter_load, scenario.serving.lora.load_latency);
  scenario.serving.stepping = true;
  expect_same_figures(few, sound(scenario), 1e-9);
}

TEST(ServingImages, SayWhatTheyNeed) {
  const auto reason = [](const Scenario& scenario) { return evaluate(scenario).reason; };
  Scenario blind = with_images(1);
  blind.encode.present = false;
  EXPECT_NE(reason(blind).find("load.images needs an encoder"), std::string::npos);
  Scenario far = with_images(1);
  far.device.scale_out = {};
  far.encode.deployment.device.scale_out = {};
  EXPECT_NE(reason(far).find("no link carries images"), std::string::npos);
  Scenario staged = with_images(1);
  staged.encode.deployment.parallel.pp = 2;
  EXPECT_EQ(evaluate(staged).status, Status::unsupported);
}

// A session sends its images again with every turn. They stay encoded, whether or not the prompts that have them are read again.
TEST(ServingImages, HistoriesStayEncoded) {
  for (const bool caching : {true, false}) {
    Scenario scenario = with_images(2);
    scenario.load.turns = 4;
    scenario.serving.prefix_caching = caching;
    const Metrics figures = sound(scenario).metrics;
    Scenario once = with_images(2);
    const Metrics single = sound(once).metrics;
    EXPECT_NEAR(figures.encode_utilization * figures.makespan.value,
                single.encode_utilization * single.makespan.value, 1e-9);
  }
}

}  // namespace
}  // namespace engine
