// Everything about one point, as a plain value: what is evaluated depends on this and nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/tier.h"
#include "engine/hardware/cluster.h"
#include "engine/hardware/device.h"
#include "engine/host/host_settings.h"
#include "engine/model/model_spec.h"
#include "engine/model/parallelism.h"
#include "engine/serving/serving_rows.h"
#include "engine/serving/serving_settings.h"
#include "engine/serving/slo.h"
#include "engine/workload/load.h"

namespace engine {

enum class Task : std::uint8_t {
  step,     // one prefill or decode step
  request,  // one request from prompt to last token
  serve,    // a load of requests over time
};
constexpr std::array<std::string_view, 3> enum_names(Task) { return {"step", "request", "serve"}; }

enum class StepPhase : std::uint8_t { prefill, decode };
constexpr std::array<std::string_view, 2> enum_names(StepPhase) { return {"prefill", "decode"}; }

struct StepShape {
  StepPhase phase = StepPhase::decode;
  std::int64_t batch = 1;
  std::int64_t context = 1024;
  std::int64_t longest_context = 0;  // 0: all are alike
  std::int64_t prompt = 1024;
  std::int64_t cached = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("phase", self.phase, "prefill: prompts are read; decode: one token a sequence",
          any_value);
    visit("batch", self.batch, "sequences in the step, per replica", at_least(1));
    visit("context", self.context,
          "decode: tokens a sequence attends to, its new one included; the mean, where they differ",
          at_least(1));
    visit(
        "longest_context", self.longest_context,
        "decode: the same of the longest sequence; it matters where serving.decode_parts are even",
        non_negative_or("equal"));
    visit("prompt", self.prompt, "prefill: new tokens of each sequence", at_least(1));
    visit("cached", self.cached, "prefill: tokens before them whose KV is already there",
          non_negative);
  }
};

struct RequestShape {
  std::int64_t batch = 1;
  std::int64_t prompt = 1024;
  std::int64_t cached = 0;
  std::int64_t output = 128;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("batch", self.batch, "identical requests that start together, per replica", at_least(1));
    visit("prompt", self.prompt, "new prompt tokens of each request", at_least(1));
    visit("cached", self.cached, "prompt tokens whose KV is already there", non_negative);
    visit("output", self.output, "tokens generated, the first one included", at_least(1));
  }
};

struct CalibrationSettings {
  TierChoice tier = TierChoice::best;
  std::string name;      // empty: the device's
  std::string checksum;  // of what was loaded

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("tier", self.tier,
          "how kernel times are found; best: measured, else transfer, else roofline", any_value);
    visit(
        "name", self.name,
        "measured calibration to use, whatever it was measured on; empty: one that was measured on "
        "such a device, if there is one",
        a_label);
    visit("checksum", self.checksum,
          "of all calibrations that were loaded; filled in, so that a resumed run can compare",
          a_label);
  }
};

struct Scenario {
  Task task = Task::step;
  Device device;
  Cluster cluster;
  ModelSpec model;
  Parallelism parallel;
  Quantization quant;
  StepShape step;
  RequestShape request;
  HostSettings host;
  ServingSettings serving;
  Load load;
  Slo slo;
  CapacitySearch capacity;
  OutputSettings output;
  CalibrationSettings calibration;
  std::int64_t seed = 0;
  std::int64_t replicate = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("task", self.task, "what is evaluated", any_value);
    visit("device", self.device, "the accelerator", any_value);
    visit("cluster", self.cluster, "how devices are joined", any_value);
    visit("model", self.model, "the model", any_value);
    visit("parallel", self.parallel, "how the model is laid over devices", any_value);
    visit("quant", self.quant, "number formats", any_value);
    visit("step", self.step, "task step: the step", any_value);
    visit("request", self.request, "task request: the request", any_value);
    visit("host", self.host, "what the host adds", any_value);
    visit("serving", self.serving, "the inference engine's settings", any_value);
    visit("load", self.load, "task serve: the requests", any_value);
    visit("slo", self.slo, "task serve: limits on latency", any_value);
    visit("capacity", self.capacity, "task serve: search for the highest rate", any_value);
    visit("output", self.output, "rows besides the point's own", any_value);
    visit("calibration", self.calibration, "where kernel times come from", any_value);
    visit("seed", self.seed, "seed of everything random", any_integer);
    visit("replicate", self.replicate, "number of the replicate, from 0", non_negative);
  }
};

}  // namespace engine
