// A model laid out on devices, with the engine that runs it: what one pool of machines is.
#pragma once

#include "engine/base/deployment_role.h"
#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/hardware/cluster.h"
#include "engine/hardware/device.h"
#include "engine/host/host_settings.h"
#include "engine/model/model_spec.h"
#include "engine/model/parallelism.h"
#include "engine/serving/settings/serving_settings.h"

namespace engine {

inline constexpr Range kModelRange = any_value.where(unless_convolving);
inline constexpr Range kServingRange =
    any_value.where(where_requests_are).where(where_text_is).where(unless_convolving);

struct Deployment {
  Device device;
  Cluster cluster;
  ModelSpec model;
  Parallelism parallel;
  Quantization quant;
  HostSettings host;
  ServingSettings serving;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("device", self.device, "the accelerator",
          any_value.where(where_devices_are).where(unless_colocated));
    visit("cluster", self.cluster, "how devices are joined",
          any_value.where(where_devices_are).where(unless_colocated));
    visit("model", self.model, "the model", kModelRange);
    visit("parallel", self.parallel, "how the model is laid over devices",
          any_value.where(where_devices_are));
    visit("quant", self.quant, "number formats", any_value);
    visit("host", self.host, "what the host adds", any_value);
    visit("serving", self.serving, "the inference engine's settings", kServingRange);
  }
};

// A deployment beside the main one, for part of the work. What a sweep does not state of it is as in the
// main one.
struct Role {
  bool present = false;
  Deployment deployment;  // means something only where it is present

  Role() = default;
  Role(const Role& other) : present(other.present) {
    if (present) deployment = other.deployment;
  }
  // Most points have no such deployment, and points are copied a million times.
  Role& operator=(const Role& other) {
    present = other.present;
    if (present) deployment = other.deployment;
    return *this;
  }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("present", self.present,
          "whether there is such a deployment; stating any of its fields says so", any_value);
    Deployment::fields(self.deployment, visit);
  }
};

}  // namespace engine
