#include "engine/tasks/request/request_task.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/feasibility.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/power.h"
#include "engine/step/interval.h"
#include "engine/step/step_time.h"
#include "engine/tasks/handover.h"
#include "engine/tasks/report_speculation.h"
#include "engine/tasks/request/retrieval.h"

namespace engine {
namespace {

MemoryDemand demand_of(const RequestShape& request, const Deployment& on, std::int64_t context) {
  const std::int64_t budget = on.serving.max_num_batched_tokens;
  return {.sequences = request.batch,
          .batches = on.parallel.pp,
          .context = context,
          .step_tokens = std::min(request.batch * request.prompt, budget),
          .sampled = request.batch,
          .tokens_each = request.prompt,
          .most_tokens = budget};
}

// The deployment that reads prompts, in steps of at most `budget` tokens.
struct Reader {
  const StepContext& context;
  std::int64_t budget = 1;
  Phase phase = Phase::prefill;
  DeploymentRole role = DeploymentRole::main;
};

// Prompts longer than a step's token budget are read in chunks, one after another. A draft chooses no token.
StepTime prompt_time(const RequestShape& request, const Reader& reader, Breakdown& kernels) {
  const std::int64_t budget = std::max<std::int64_t>(1, reader.budget / request.batch);
  StepTime sum;
  std::vector<KernelRow> rows;
  for (std::int64_t done = 0; done < request.prompt;) {
    const std::int64_t chunk = std::min(budget, request.prompt - done);
    BatchShape batch;
    add_prefill(batch, request.batch, chunk, request.cached + done,
                reader.context.shard.model->window);
    done += chunk;
    const bool samples = done == request.prompt && reader.role != DeploymentRole::draft;
    batch.sampled = samples ? request.batch : 0;
    rows.clear();
    reader.context.charge(kWorkOfAStep);
    const StepTime time = step_time(batch, reader.context, reader.phase, &rows);
    sum.add(time);
    for (KernelRow& row : rows) {
      row.role = reader.role;
      kernels.add(row);
    }
  }
  return sum;
}

// A prefill deployment reads for as many replicas as there are.
std::optional<Refusal> pairing_problem(const Deployment& from, const Deployment& to) {
  if (from.parallel.dp == to.parallel.dp) return std::nullopt;
  return Refusal{ReasonClass::divisibility,
                 fmt::format("prefill.parallel.dp is {} and parallel.dp {}: every replica hands "
                             "its requests to one other",
                             from.parallel.dp, to.parallel.dp)};
}

// The prompts' part of a request, wherever it runs, and the way of its KV cache to the main deployment.
struct PromptPart {
  StepTime time;
  StepTime drafts;  // once more, by the model that proposes tokens, in the prefill deployment
  std::optional<Deployment> draft;  // which is laid out like this there
  std::optional<KernelRow> carry;
  bool tells_first_token = false;    // only when the KV cache is there
  bool remakes_first_token = false;  // and anew: what reading made is dropped

  Work carried() const { return carry ? carry->work : Work{}; }
};

KernelRow carry_row(const Handover& handover, Seconds time, Bytes bytes, const Device& to) {
  KernelRow row{.phase = Phase::decode,
                .op = OpName::kv_transfer,
                .family = Family::send_recv,
                .bound = Bound::network,
                .tier = handover.tier,
                .work = {.calls = 1,
                         .time = time,
                         .low = time * handover.low,
                         .high = time * handover.high,
                         .bytes = bytes,
                         .energy = power_at_rest(to) * time}};
  row.work.saved[Bound::network] = time;
  return row;
}

// Whether the model that proposes tokens reads prompts in the prefill deployment.
bool drafts_read_there(const TaskPoint& point) {
  return point.scenario.prefill.present && point.draft != nullptr &&
         point.draft->reads_beside_readers() && point.scenario.request.output > 1;
}

std::optional<Refusal> read_prompts(const TaskPoint& point, Breakdown& kernels, PromptPart& part) {
  const Scenario& scenario = point.scenario;
  const RequestShape request = with_passages(scenario);
  if (!scenario.prefill.present) {
    part.time = prompt_time(
        request, {point.main.context(point.work), scenario.serving.max_num_batched_tokens},
        kernels);
    return std::nullopt;
  }
  const Deployment& reader = scenario.prefill.deployment;
  if (auto problem = handover_problem(reader, scenario)) return problem;
  if (auto problem = pairing_problem(reader, scenario)) return problem;
  Deployed deployed;
  if (auto problem =
          deploy(reader, scenario.calibration, point.resources.calibrations, 1, deployed)) {
    return in_role("prefill", in_layout_of(scenario, "prefill", reader, std::move(*problem)));
  }
  Draft draft;
  if (drafts_read_there(point)) {
    if (auto problem = ready_beside_readers(scenario, point.resources, 1, deployed, draft))
      return in_role("prefill", std::move(*problem));
  }
  const double here = devices_of(reader, 1), there = devices_of(scenario, 1);
  const std::int64_t tokens = request.cached + request.prompt;
  const MemoryDemand demand = demand_of(request, reader, tokens);
  if (auto problem = memory_problem(deployed, footprint_of(deployed, demand), demand))
    return in_role("prefill", std::move(*problem));
  const HandoverWay way{.transfer = scenario.transfer,
                        .from = deployed,
                        .from_devices = here,
                        .to = point.main,
                        .to_devices = there,
                        .tokens = double(tokens)};
  Handover handover;
  if (auto problem = carry_of(way, handover)) return problem;
  part.time = prompt_time(request,
                          {deployed.context(point.work), reader.serving.max_num_batched_tokens,
                           Phase::prefill, DeploymentRole::prefill},
                          kernels);
  if (drafts_read_there(point)) {
    const DraftStep step = draft.step(deployed, point.work, 0);
    part.drafts = prompt_time(
        request,
        {*step.model, reader.serving.max_num_batched_tokens, Phase::prefill, DeploymentRole::draft},
        kernels);
    part.draft = *draft.own;
  }
  if (request.output == 1) return std::nullopt;  // the prompt's last step gives the only token
  part.tells_first_token = handover.carry.tells_first_token;
  part.remakes_first_token = handover.carry.remakes_first_token;
  const double batch = double(request.batch);
  const Seconds reading = part.time.total() + part.drafts.total();
  const Seconds carried = exposed_carry(handover.carry, {batch, double(tokens)}, reading);
  const Bytes bytes = carried_kv(point.main, way, double(tokens)) * batch;
  part.carry = carry_row(handover, carried, bytes, scenario.device);
  kernels.add(*part.carry);
  return std::nullopt;
}

// The tokens after the first, which comes out of the prompt's last step.
struct AnswerPart {
  DecodeRun run;
  StepTime time;
  // The prompt once more, by the model that proposes tokens, beside the main one or on devices of its own.
  StepTime read;
  StepTime proposed;  // before each step
  // The first token, where it is made anew from the prompt's last one: a step for which nothing is proposed.
  StepTime remade;
  Interval remade_interval;
};

AnswerPart write_answer(const TaskPoint& point, bool remakes_first_token, Breakdown& kernels) {
  const Scenario& scenario = point.scenario;
  const RequestShape request = with_passages(scenario);
  AnswerPart part;
  if (remakes_first_token) {
    Breakdown first;
    part.remade = decode_time(
        {.sequences = request.batch, .context = request.cached + request.prompt, .steps = 1},
        point.main.context(point.work), first);
    const std::vector<KernelRow> rows = std::move(first).take();
    part.remade_interval = interval_of(rows);
    for (const KernelRow& row : rows) kernels.add(row);
  }
  part.run = {.sequences = request.batch, .context = request.cached + request.prompt + 1};
  if (point.draft != nullptr) part.run.pace = point.draft->pace;
  part.run.steps = part.run.pace.steps_for(0, request.output - 1);
  part.time = decode_time(part.run, point.main.context(point.work), kernels);
  if (point.draft == nullptr || part.run.steps == 0) return part;
  const DraftStep draft = point.draft->step(point.main, point.work);
  if (draft.model && draft.reads_prompts && !drafts_read_there(point)) {
    part.read = prompt_time(
        request,
        {*draft.model, scenario.serving.max_num_batched_tokens,
         scenario.prefill.present ? Phase::decode : Phase::prefill, DeploymentRole::draft},
        kernels);
  }
  part.proposed = draft_time(draft, part.run, kernels);
  return part;
}

// The first token comes once the prompt is read, also by a draft on the same devices. A draft on devices of its own reads it while the KV
// cache is on its way: then it is the second token that waits for the draft.
void report_latency(const Scenario& scenario, const RetrievalPart& passages,
                    const PromptPart& prompt, const AnswerPart& answer, Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  if (retrieves(scenario)) metrics.retrieve = passages.search.total();
  if (reranks(scenario)) metrics.rerank = passages.rerank.total();
  const Interval first = interval_of(outcome.kernels, Phase::prefill);
  const Work told = prompt.tells_first_token ? prompt.carried() : Work{};
  Seconds ttft = passages.total() + prompt.time.total() + prompt.drafts.total();
  Seconds rest = answer.time.total() + answer.proposed.total();
  (scenario.prefill.present ? rest : ttft) += answer.read.total();
  metrics.ttft = ttft + told.time + answer.remade.total();
  metrics.ttft_low = first.low + told.low + answer.remade_interval.low;
  metrics.ttft_high = first.high + told.high + answer.remade_interval.high;
  if (scenario.request.output == 1) return;
  const double tokens = double(scenario.request.output - 1);
  const Interval later = interval_of(outcome.kernels, Phase::decode);
  metrics.tpot = (rest + prompt.carried().time - told.time) / tokens;
  metrics.tpot_low = (later.low - told.low - answer.remade_interval.low) / tokens;
  metrics.tpot_high = (later.high - told.high - answer.remade_interval.high) / tokens;
}

// Batches at the same time: as many as the pipeline that answers has, but no more than the deployments keep up with that read prompts
// and rank passages for it.
double requests_in_flight(const TaskPoint& point, const RetrievalPart& passages,
                          const PromptPart& prompt, const AnswerPart& answer, Seconds total) {
  const Scenario& scenario = point.scenario;
  double batches = batches_in_flight(point, total, answer.read.total() + answer.proposed.total());
  const auto keep_up = [&batches, total](const Deployment& on, Seconds busy) {
    if (busy.value > 0) batches = std::min(batches, double(on.parallel.pp) * (total / busy));
  };
  if (scenario.prefill.present) {
    keep_up(scenario.prefill.deployment, prompt.time.total() + prompt.drafts.total());
  }
  if (reranks(scenario)) keep_up(scenario.rerank.deployment, passages.rerank.total());
  return batches;
}

// What is shared out among several deployments, and between a model and its draft.
void report_shares(const TaskPoint& point, const RetrievalPart& passages, const PromptPart& prompt,
                   const AnswerPart& answer, const SharedTime& shared, Metrics& metrics) {
  const Scenario& scenario = point.scenario;
  const bool reads = scenario.prefill.present;
  const bool others = drafts_on_others(point);
  DeviceTime main = answer.time.device, draft = answer.read.device, reading = prompt.time.device;
  main.add(answer.remade.device);
  main.add(passages.search.device);
  draft.add(answer.proposed.device);
  if (!reads) main.add(reading);
  if (!others) main.add(draft);
  std::vector<DeploymentWork> work{{scenario, main}};
  if (reads) work.push_back({scenario.prefill.deployment, reading});
  if (prompt.draft) work.push_back({*prompt.draft, prompt.drafts.device, true});
  if (others) work.push_back({*point.draft->own, draft, !point.draft->apart});
  if (reranks(scenario)) work.push_back({scenario.rerank.deployment, passages.rerank.device});
  if (work.size() > 1) report_shared_work(work, shared, metrics);
  if (point.draft == nullptr) return;
  const RequestShape request = with_passages(scenario);
  const Pace& pace = answer.run.pace;
  const std::int64_t beyond = pace.made_by(answer.run.steps) - (request.output - 1);
  report_speculation({.proposed = double(point.draft->tokens),
                      .per_step = double(pace.tokens) / double(pace.steps),
                      .sequence_steps = double(request.batch * answer.run.steps),
                      .beyond_end = double(request.batch * beyond),
                      .proposing = answer.proposed.total(),
                      .decoding = answer.proposed.total() + answer.time.total()},
                     metrics);
}

}  // namespace

std::optional<Refusal> request_problem(const Scenario& scenario) {
  if (auto problem = retrieval_problem(scenario)) return problem;
  const RequestShape request = with_passages(scenario);
  const std::int64_t proposed = proposed_positions(scenario);
  const std::int64_t tokens = request.cached + request.prompt + request.output + proposed;
  if (retrieves(scenario)) {
    return too_long("the request, its passages (retrieval) and what is proposed of its answer",
                    tokens, scenario.model);
  }
  return too_long(proposed > 0
                      ? "request.cached + request.prompt + request.output + speculation.tokens"
                      : "request.cached + request.prompt + request.output",
                  tokens, scenario.model);
}

MemoryDemand request_demand(const Scenario& scenario, const Resources&, Scratch&) {
  const RequestShape request = with_passages(scenario);
  const std::int64_t proposed = proposed_tokens(scenario);
  MemoryDemand demand =
      demand_of(request, scenario, request.cached + request.prompt + request.output + proposed);
  if (proposed == 0) return demand;
  demand.sampled *= proposed + 1;
  demand.step_tokens = std::max(demand.step_tokens, demand.sampled);
  return demand;
}

void run_request(const TaskPoint& point, Outcome& outcome) {
  const Scenario& scenario = point.scenario;
  const RequestShape request = with_passages(scenario);
  Breakdown kernels;
  RetrievalPart passages;
  if (auto problem = retrieve(point, kernels, passages)) {
    return outcome.refuse(std::move(*problem));
  }
  PromptPart prompt;
  if (auto problem = read_prompts(point, kernels, prompt)) {
    return outcome.refuse(std::move(*problem));
  }
  const AnswerPart answer = write_answer(point, prompt.remakes_first_token, kernels);
  outcome.kernels = std::move(kernels).take();
  report_latency(scenario, passages, prompt, answer, outcome);
  StepTime all = prompt.time;
  if (retrieves(scenario)) {
    all.add(passages.search);
    all.add(passages.rerank);
  }
  if (point.draft != nullptr) {
    all.add(prompt.drafts);
    all.add(answer.read);
    all.add(answer.proposed);
  }
  all.add(answer.remade);
  all.add(answer.time);
  if (prompt.carry) {
    all.device.add(*prompt.carry);
    all.saved.add(prompt.carry->work.saved);
  }
  Metrics& metrics = outcome.metrics;
  const Interval whole = interval_of(outcome.kernels);
  metrics.e2e = all.total();
  metrics.e2e_low = whole.low;
  metrics.e2e_high = whole.high;
  const double batch = double(request.batch);
  const SharedTime shared{
      .total = all.total(),
      .in_flight = requests_in_flight(point, passages, prompt, answer, all.total())};
  report_time(scenario, all,
              {.prompt = batch * double(request.prompt),
               .generated = batch * double(request.output),
               .all = batch * double(request.output + request.prompt),
               .in_flight = shared.in_flight},
              outcome);
  report_shares(point, passages, prompt, answer, shared, metrics);
}

std::string request_headline(const Scenario& scenario) {
  const RequestShape request = with_passages(scenario);
  std::string text = fmt::format("{} request(s): {} prompt tokens after {} cached, {} generated\n",
                                 request.batch, request.prompt, request.cached, request.output);
  if (retrieves(scenario)) {
    text += fmt::format("with {} passages, searched for among {} vectors\n",
                        scenario.retrieval.passages, scenario.retrieval.vectors);
  }
  if (scenario.prefill.present) {
    const Deployment& reader = scenario.prefill.deployment;
    text +=
        fmt::format("prompts are read on {} x {}\n", reader.parallel.devices(), reader.device.name);
  }
  return text;
}

}  // namespace engine
