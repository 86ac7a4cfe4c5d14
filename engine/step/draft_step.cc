#include "engine/step/draft_step.h"

#include <utility>
#include <vector>

#include "engine/kernels/power.h"
#include "engine/model/passes.h"

namespace engine {

void product_ops(const ModelShard& shard, const DraftProducts& products, std::int64_t rows,
                 OpList& ops) {
  const ModelSpec& model = *shard.model;
  // Neither is split over devices, nor quantised.
  Gemm product{.m = rows, .n = model.hidden, .k = model.hidden};
  if (products.joins > 0) {
    product.k = 2 * model.hidden;
    ops.add(OpName::draft_product, Family::gemm, double(products.joins), product);
  }
  if (products.heads == 0) return;
  product.k = model.hidden;
  const double heads = double(products.heads);
  ops.add(OpName::draft_product, Family::gemm, heads, product);
  ops.add(OpName::activation, Family::act, heads,
          activation_pass(double(rows), double(model.hidden), false));
  BatchShape batch;
  batch.decode_sequences = batch.sampled = rows;
  OpList end;
  token_ops(shard, {.layers = {}, .first = false, .last = true}, batch, end);
  for (PlannedOp op : end) {
    if (op.grows != Grows::sampled) continue;  // the norm before it is the main model's
    op.calls *= heads;
    ops.add(op);
  }
}

HostTime product_host(const DraftStep& draft, const DeviceTime& device, std::int64_t sequences) {
  const HostSettings& host = draft.beside->host;
  if (draft.products.heads > 0) {
    return host_time(device.total(), {.launches = device.launches(), .sequences = sequences},
                     LaunchMode::replay, host);
  }
  HostTime time;
  time.gap = host.kernel_gap * device.launches();
  time.low = host.low;
  time.high = host.high;
  return time;
}

StepTime draft_time(const DraftStep& draft, const DecodeRun& run, Breakdown& rows) {
  StepTime sum;
  const double steps = double(run.steps);
  Breakdown own;
  if (draft.model) {
    for (const DraftRound& round : draft.rounds) {
      DecodeRun asked = run;
      asked.context = round.middle(run.context);
      asked.pace.queries = round.queries;
      asked.times = double(round.steps);
      if (!draft.has_adapters) asked.adapters = 0;
      sum.add(decode_time(asked, *draft.model, own));
    }
  }
  std::vector<KernelRow> once;
  if (draft.beside) {
    OpList ops;
    if (draft.products.heads > 0) {
      product_ops(draft.beside->shard, draft.products, run.sequences, ops);
    } else {
      for (const DraftRound& round : draft.rounds) {
        product_ops(draft.beside->shard, {.joins = round.steps}, run.sequences * round.queries,
                    ops);
      }
    }
    StepTime one;
    one.device = device_time(ops, *draft.beside, Phase::decode, &once);
    one.host = product_host(draft, one.device, run.sequences);
    add_host_rows(one.host, {.launches = one.device.launches(), .steps = 1},
                  power_at_rest(draft.beside->device), Phase::decode, once);
    one.saved = one.device.saved();
    one.saved[Bound::host] += one.host.total();
    sum.device.add(one.device, steps);
    sum.host.add(one.host, steps);
    sum.saved.add(one.saved, steps);
  }
  if (const Seconds looked_up = draft.host(run.sequences); looked_up.value > 0) {
    HostTime host;
    host.between = looked_up;
    add_host_rows(host, {.steps = 1}, Watts{0}, Phase::decode, once);
    sum.host.between += looked_up * steps;
    sum.saved[Bound::host] += looked_up * steps;
  }
  for (const KernelRow& row : once) own.add(row, steps);
  for (KernelRow& row : std::move(own).take()) {
    row.role = DeploymentRole::draft;
    rows.add(row);
  }
  return sum;
}

}  // namespace engine
