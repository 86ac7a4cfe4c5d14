// Laws of `bound`: it names the part whose absence would help most, not the one with the largest sum.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "engine/base/random.h"
#include "engine/evaluate.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/power.h"
#include "tests/support/random_calls.h"
#include "tests/support/serving_toys.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

constexpr std::array kKernelParts{Bound::compute, Bound::memory, Bound::l2, Bound::launch};

class Again final : public Reclocked {
 public:
  Again(const toys::Call& call, const Calibration* calibration)
      : call_(call), calibration_(calibration) {}
  KernelTime on(const Device& slower) const override {
    return kernel_time(call_.family, call_.op, slower, calibration_);
  }

 private:
  const toys::Call& call_;
  const Calibration* calibration_;
};

TEST(BoundLaws, NoPartSavesMoreThanAllThereIs) {
  for (std::uint64_t n = 0; n < 2000; ++n) {
    const Device device = toys::random_device(n);
    const toys::Call call = toys::random_call(n);
    for (const Calibration* calibration :
         {static_cast<const Calibration*>(nullptr), &toys::transfer()}) {
      const KernelTime burst = kernel_time(call.family, call.op, device, calibration);
      KernelTime unbroken = burst;
      sustain(unbroken, Again(call, calibration), call.op, device);
      for (const KernelTime& time : {burst, unbroken}) {
        for (const Bound part : kKernelParts) {
          EXPECT_GE(time.saved[part].value, -1e-18) << n << " " << name_of(part);
          EXPECT_LE(time.saved[part], time.time * (1 + 1e-12)) << n << " " << name_of(part);
        }
        EXPECT_TRUE(time.saved.any()) << n;
        EXPECT_EQ(time.saved[Bound::network].value, 0);
        EXPECT_EQ(time.saved[Bound::host].value, 0);
      }
    }
  }
}

// At the roofline a part's absence can be tried: what the kernel then takes is what it saved.
TEST(BoundLaws, AKernelSavesWhatItTakesLessWithoutThePart) {
  const auto without = [](KernelTime time, Bound part) {
    if (part == Bound::compute) time.compute = Seconds{0};
    if (part == Bound::memory) time.memory = Seconds{0};
    if (part == Bound::l2) time.l2 = Seconds{0};
    if (part == Bound::launch) time.launch = Seconds{0};
    return time.launch + std::max(time.compute, time.memory + time.l2);
  };
  for (std::uint64_t n = 0; n < 2000; ++n) {
    const toys::Call call = toys::random_call(n);
    if (call.family == Family::lora) continue;  // has a form of its own, whose parts add up
    const KernelTime time = kernel_time(call.family, call.op, toys::random_device(n), nullptr);
    for (const Bound part : kKernelParts) {
      EXPECT_NEAR((time.time - time.saved[part]).value, without(time, part).value,
                  1e-12 * time.time.value)
          << name_of(call.family) << " " << n << " without " << name_of(part);
    }
  }
}

// The same of whole steps: the device is given each part for free in turn, and the bound's turn is the fastest.
TEST(BoundLaws, NothingElseForFreeMakesAStepFaster) {
  struct Part {
    Bound bound;
    void (*free)(Scenario&);
  };
  constexpr double kFree = 1e9;
  const std::array<Part, 5> parts{
      {{Bound::compute,
        [](Scenario& s) {
          s.device.peak.bf16 *= kFree, s.device.peak.fp16 *= kFree, s.device.vector_peak *= kFree;
        }},
       {Bound::memory, [](Scenario& s) { s.device.memory_bandwidth *= kFree; }},
       {Bound::launch, [](Scenario& s) { s.device.launch_latency *= 1 / kFree; }},
       {Bound::network,
        [](Scenario& s) {
          s.device.scale_up.bandwidth *= kFree, s.device.scale_up.latency *= 1 / kFree;
        }},
       {Bound::host, [](Scenario& s) { s.host = toys::no_host(); }}}};
  std::array<int, enum_names(Bound{}).size()> seen{};
  for (std::uint64_t n = 0; n < 600; ++n) {
    toys::Draw draw(n);
    Scenario scenario = toys::scenario();
    scenario.device.memory_bandwidth = BytesPerSecond{draw.size(1e11, 1e14)};
    scenario.device.peak.bf16 = FlopsPerSecond{draw.size(1e13, 1e16)};
    scenario.device.l2_bandwidth = BytesPerSecond{1e22};  // free from the beginning
    scenario.device.launch_latency = Seconds{draw.size(100, 1e4) * 1e-9};
    scenario.device.scale_up.bandwidth = BytesPerSecond{draw.size(1e10, 1e13)};
    // A collective's kernel starts like any other, which is the network's here: leave it none.
    scenario.parallel.tp = draw.pick(1, 1, 8);
    if (scenario.parallel.tp > 1) scenario.device.launch_latency = Seconds{0};
    if (draw.pick(0, 1) == 0) scenario.host = HostSettings{};
    scenario.host.step_overhead = Seconds{draw.size(1, 1e5) * 1e-7};
    scenario.step = {.phase = draw.pick(StepPhase::prefill, StepPhase::decode, StepPhase::decode),
                     .batch = std::int64_t(draw.size(1, 256)),
                     .context = std::int64_t(draw.size(16, 8192)),
                     .prompt = std::int64_t(draw.size(16, 2048))};
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    ++seen[std::size_t(outcome.bound)];
    const auto without = [&](const Part& part) {
      Scenario improved = scenario;
      part.free(improved);
      return evaluate(improved).metrics.step_time.value;
    };
    double fastest = outcome.metrics.step_time.value, of_bound = fastest;
    for (const Part& part : parts) {
      const double time = without(part);
      fastest = std::min(fastest, time);
      if (part.bound == outcome.bound) of_bound = time;
    }
    EXPECT_LE(of_bound, fastest * (1 + 1e-6)) << "draw " << n << " " << name_of(outcome.bound);
  }
  for (const Part& part : parts) {
    EXPECT_GT(seen[std::size_t(part.bound)], 0) << "no draw is bound by " << name_of(part.bound);
  }
}

Scenario on(const char* device, const char* model) {
  Scenario scenario = toys::scenario();
  scenario.device = toys::shipped("devices", device).device;
  scenario.model = toys::shipped("models", model).model;
  return scenario;
}

// Reading weights is all that a decode of one sequence does, whatever their format.
TEST(BoundLaws, OneSequenceOfALargeModelIsBoundByMemory) {
  for (const char* device : {"a100-80gb-sxm", "h100-sxm", "h200-sxm", "b200-sxm"}) {
    for (const Dtype weights : {Dtype::bf16, Dtype::fp8, Dtype::int8, Dtype::int4}) {
      for (const TierChoice tier : {TierChoice::roofline, TierChoice::transfer}) {
        // By the tables, four bits take longer to expand than to read on an A100, and where memory is faster than an
        // H100's their kernels' start shows more.
        const bool hopper = std::string_view(device) == "h100-sxm";
        if (weights == Dtype::int4 && tier == TierChoice::transfer && !hopper) continue;
        Scenario scenario = on(device, "llama-3.1-70b");
        scenario.device.memory_capacity = Bytes{1e12};
        scenario.quant.weights = weights;
        scenario.step = {.batch = 1, .context = 1024};
        scenario.calibration.tier = tier;
        const Outcome outcome = evaluate(scenario, toys::transfer_resources());
        ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
        EXPECT_EQ(outcome.bound, Bound::memory)
            << device << " " << name_of(weights) << " " << name_of(tier);
      }
    }
  }
}

TEST(BoundLaws, AStepThatWaitsForTheHostIsBoundByIt) {
  for (const StepPhase phase : {StepPhase::decode, StepPhase::prefill}) {
    for (const bool asynchronous : {true, false}) {
      Scenario scenario = on("h100-sxm", "llama-3.1-8b");
      scenario.step = {.phase = phase, .batch = 4, .context = 1024, .prompt = 128};
      scenario.host.asynchronous = asynchronous;
      const Seconds device = evaluate(scenario, toys::transfer_resources()).metrics.step_time;
      // A little longer than the device, of which memory or arithmetic is nearly all.
      scenario.host.step_overhead = asynchronous ? device * 1.01 : device * 2;
      EXPECT_EQ(evaluate(scenario, toys::transfer_resources()).bound, Bound::host);
      scenario.host.step_overhead = device * 0.01;
      EXPECT_NE(evaluate(scenario, toys::transfer_resources()).bound, Bound::host);
    }
  }
}

// A served request alone takes the steps that it takes on its own.
TEST(BoundLaws, ServingSumsWhatItsStepsWouldSave) {
  struct Case {
    double overhead;  // of the host, in device times of a decode step
    Bound bound;
  };
  for (const Case& expected :
       {Case{0, Bound::memory}, Case{0.9, Bound::memory}, Case{1.5, Bound::host}}) {
    for (const bool stepping : {false, true}) {
      Scenario scenario = toys::served(policy_named("vllm_v1"));
      scenario.host = toys::no_host();
      scenario.serving.stepping = stepping;
      const Resources resources = toys::trace({{0, 16, 200}});
      const Seconds device = evaluate(scenario, resources).metrics.tpot;
      scenario.host.step_overhead = device * expected.overhead;
      EXPECT_EQ(evaluate(scenario, resources).bound, expected.bound) << expected.overhead;
    }
  }
}

TEST(BoundLaws, AKernelsRowNamesItsOwnPart) {
  Scenario scenario = on("h100-sxm", "llama-3.1-8b");
  scenario.task = Task::request;
  scenario.request.prompt = 4096;
  scenario.request.output = 8;
  for (const KernelRow& row : evaluate(scenario, toys::transfer_resources()).kernels) {
    if (row.op != OpName::qkv) continue;
    EXPECT_EQ(row.bound, row.phase == Phase::prefill ? Bound::compute : Bound::memory);
    EXPECT_EQ(row.bound, row.work.saved.largest());
  }
}

}  // namespace
}  // namespace engine
