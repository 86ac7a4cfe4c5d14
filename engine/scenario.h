// Everything about one point, as a plain value: what is evaluated depends on this and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/base/tier.h"
#include "engine/deployment.h"
#include "engine/serving/figures/serving_rows.h"
#include "engine/serving/settings/slo.h"
#include "engine/serving/settings/transfer_settings.h"
#include "engine/sharing/sharing_settings.h"
#include "engine/speculation/speculation_settings.h"
#include "engine/tasks/classify/classify_shape.h"
#include "engine/tasks/denoise/denoise_shape.h"
#include "engine/tasks/request/request_shape.h"
#include "engine/tasks/request/retrieval_settings.h"
#include "engine/tasks/step/step_shape.h"
#include "engine/training/settings/train_settings.h"
#include "engine/workload/load.h"

namespace engine {

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
          "checksum of all calibrations that were loaded; filled in, so that a resumed run can "
          "compare",
          a_label);
  }
};

template <Task task>
inline constexpr Condition of_task = is_one_of<"task", task>;

// Another model on the devices of the main deployment, with work of its own. What a sweep does not state of it is as in
// the main one.
struct Neighbour : Role {
  StepShape step;
  Load load;

  Neighbour() = default;
  Neighbour(const Neighbour& other) : Role(other) { take_work(other); }
  Neighbour& operator=(const Neighbour& other) {
    Role::operator=(other);
    take_work(other);
    return *this;
  }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    Role::fields(self, visit);
    visit("step", self.step, "task step: the neighbour's step",
          any_value.where(of_task<Task::step>));
    visit("load", self.load, "task serve: the neighbour's requests",
          any_value.where(while_serving));
  }

 private:
  void take_work(const Neighbour& other) {
    if (!present) return;
    step = other.step;
    load = other.load;
  }
};

inline constexpr const Condition& with_random_work =
    either<"task is serve, or train with train.rollout.prompts", while_serving, with_samples>;
inline constexpr const Condition& with_decodes =
    either<"", while_answering, is_one_of<"step.phase", StepPhase::decode>>;
inline constexpr const Condition& with_draft_model =
    is_one_of<"speculation.method", SpeculationMethod::draft_model>;
inline constexpr const Condition& with_neighbour =
    said<"there is a neighbour", is_set<"neighbour.present">>;

// Its own deployment is the main one: fields of it have no prefix.
struct Scenario : Deployment {
  Task task = Task::step;
  Role prefill;
  Role draft;
  Role rollout;
  Role tail;
  Role encode;
  Role rerank;
  Neighbour neighbour;
  StepShape step;
  RequestShape request;
  RetrievalSettings retrieval;
  DenoiseShape denoise;
  ClassifyShape classify;
  Load load;
  Slo slo;
  CapacitySearch capacity;
  Speculation speculation;
  TransferSettings transfer;
  SharingSettings sharing;
  OutputSettings output;
  TrainSettings train;
  CalibrationSettings calibration;
  std::int64_t seed = 0;
  std::int64_t replicate = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("task", self.task, "what is evaluated", any_value);
    visit("device", self.device, "the accelerator", any_value);
    visit("cluster", self.cluster, "how devices are joined", any_value);
    visit("model", self.model, "the model", kModelRange);
    visit("parallel", self.parallel, "how the model is laid over devices", any_value);
    visit("quant", self.quant, "number formats", any_value);
    visit("step", self.step, "task step: the step", any_value.where(of_task<Task::step>));
    visit("request", self.request, "task request: the request",
          any_value.where(of_task<Task::request>));
    visit("denoise", self.denoise, "task denoise: the images",
          any_value.where(of_task<Task::denoise>));
    visit("classify", self.classify, "task classify: the images",
          any_value.where(of_task<Task::classify>));
    visit("host", self.host, "what the host adds", any_value);
    visit("serving", self.serving, "the inference engine's settings", kServingRange);
    visit("load", self.load, "task serve: the requests", any_value.where(while_serving));
    visit("slo", self.slo, "task serve: limits on latency; without any, those of capacity.slo",
          any_value.where(while_serving));
    visit("capacity", self.capacity, "task serve: search for the highest rate",
          any_value.where(while_serving));
    visit("output", self.output, "rows besides the point's own", any_value.where(while_serving));
    visit("train", self.train, "task train: the training step", any_value.where(while_training));
    visit("calibration", self.calibration, "where kernel times come from", any_value);
    visit("seed", self.seed, "seed of everything random",
          any_integer.where(task_has<&TaskTraits::draws>).where(with_random_work));
    visit("replicate", self.replicate, "number of the replicate, from 0",
          non_negative.where(task_has<&TaskTraits::draws>).where(with_random_work));
    visit("prefill", self.prefill,
          "the deployment that reads prompts, where it is not the one that generates",
          any_value.where(while_answering));
    visit("speculation", self.speculation, "tokens that are proposed, then verified together",
          any_value.where(while_generating).where(with_decodes));
    visit("draft", self.draft,
          "the deployment that proposes tokens (speculation.method draft_model)",
          any_value.where(while_generating)
              .where(with_decodes)
              .where(with_draft_model)
              .where(with_proposals));
    visit("rollout", self.rollout,
          "the deployment that makes samples to train on (train.rollout), where its layout or its "
          "devices differ; what is not stated of it is as in training, parallel.dp included",
          any_value.where(while_training).where(with_samples));
    visit("tail", self.tail,
          "task train: the deployment that has the last pipeline stages, where they lie on other "
          "devices; its parallel.pp says how many they are",
          any_value.where(while_training));
    visit("encode", self.encode,
          "the deployment that turns images into tokens of prompts (load.images): its model is "
          "the encoder",
          any_value.where(while_serving).where(with_load_images));
    visit("retrieval", self.retrieval,
          "task request: passages that are looked up first and put into the prompt",
          any_value.where(task_has<&TaskTraits::retrieves>).where(with_store));
    visit("rerank", self.rerank,
          "task request: the deployment that looks at the passages found (retrieval) and chooses "
          "those for the prompt, on devices of its own: its model is the re-ranker",
          any_value.where(task_has<&TaskTraits::retrieves>).where(with_store));
    visit("transfer", self.transfer, "how KV caches get from prefill to the main deployment",
          any_value.where(while_answering).where(with_reader));
    visit("neighbour", self.neighbour, "another model on the same devices, with work of its own",
          any_value.where(task_has<&TaskTraits::shares_devices>));
    visit("sharing", self.sharing, "how the main deployment and its neighbour share the devices",
          any_value.where(task_has<&TaskTraits::shares_devices>).where(with_neighbour));
  }
};

// The deployments beside the main one: the one list of them.
template <class Self, class Visit>
void each_role(Self& scenario, Visit&& visit) {
  visit("prefill", scenario.prefill);
  visit("draft", scenario.draft);
  visit("rollout", scenario.rollout);
  visit("tail", scenario.tail);
  visit("encode", scenario.encode);
  visit("rerank", scenario.rerank);
  visit("neighbour", scenario.neighbour);
}

// Every present role becomes a copy of the main deployment, before what is stated of it is written.
inline void fill_roles(Scenario& scenario) {
  each_role(scenario, [&scenario](std::string_view, Role& role) {
    if (role.present) role.deployment = scenario;
  });
  if (!scenario.neighbour.present) return;
  scenario.neighbour.step = scenario.step;
  scenario.neighbour.load = scenario.load;
}

}  // namespace engine
