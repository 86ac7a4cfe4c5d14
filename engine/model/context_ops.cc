#include "engine/model/context_ops.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/model/mixers/mixer.h"
#include "engine/model/passes.h"

namespace engine {
namespace {

// What runs beside attention in a ring.
constexpr std::uint8_t kRingGroup = 9;

// What devices that share a sequence send one another, beside an op of theirs.
struct Travel {
  Pattern pattern;
  Family family;
  double bytes;
  double times = 1;
  Beside beside = {};
};
void add_exchange(const PlannedOp& planned, const ContextSharing& sharing, const Travel& of,
                  OpList& ops) {
  PlannedOp travel = planned;
  travel.name = OpName::context_exchange;
  travel.family = of.family;
  travel.calls *= of.times;
  travel.beside = of.beside;
  travel.op = Collective{.pattern = of.pattern,
                         .bytes = of.bytes,
                         .ranks = sharing.devices,
                         .stride = sharing.stride,
                         .library = Library::general};
  ops.add(travel);
}

struct Sharer {
  const PlannedOp& planned;
  const AttentionPrefill& attention;
  const ContextSharing& sharing;
  OpList& ops;

  double devices() const { return double(sharing.devices); }
  // Of this device's tokens.
  double query_bytes() const {
    return attention.tokens * double(attention.heads * attention.key_dim) * kActivationBytes;
  }
  double output_bytes() const {
    return attention.tokens * double(attention.heads * attention.value_dim) * kActivationBytes;
  }
  double key_bytes() const { return attention.tokens * bytes_per_key(); }
  // With those of tokens that were cached before.
  double held_key_bytes() const {
    return std::max(attention.tokens, attention.kv_tokens) * bytes_per_key();
  }
  double bytes_per_key() const {
    return double(attention.kv_heads * (attention.key_dim + attention.value_dim)) *
           kActivationBytes;
  }

  void attend(const AttentionPrefill& op, double times, Beside beside = {}) const {
    PlannedOp part = planned;
    part.calls *= times;
    part.beside = beside;
    part.op = op;
    ops.add(part);
  }
  void exchange(Pattern pattern, Family family, double bytes, double times,
                Beside beside = {}) const {
    add_exchange(planned, sharing, {pattern, family, bytes, times, beside}, ops);
  }

  // While a device attends to the keys it has, those of its neighbour arrive. Results of all rounds are merged by their
  // sums of exponentials.
  void ring() const {
    const double others = devices() - 1;
    AttentionPrefill one = attention;
    one.pairs /= devices();
    attend(one, others, {.group = kRingGroup, .stream = 0});
    exchange(Pattern::send_recv, Family::send_recv, held_key_bytes(), others,
             {.group = kRingGroup, .stream = 1});
    attend(one, 1);
    PlannedOp merge = planned;
    merge.name = OpName::context_merge;
    merge.family = Family::residual;
    merge.calls *= others;
    // A result in 16 bits into a sum in 32 bits.
    merge.op = Elementwise{.rows = attention.tokens,
                           .resident_bytes = 5 * output_bytes(),
                           .cold_bytes = 0,
                           .flops = 3 * output_bytes() / kActivationBytes};
    ops.add(merge);
  }

  // The early and the late part of a sequence see different numbers of keys: two calls, of which the mean is taken.
  void all_gather() const {
    exchange(Pattern::all_gather, Family::all_gather, devices() * held_key_bytes(), 1);
    AttentionPrefill part = attention;
    const double sequences = double(attention.sequences);
    const double queries = attention.tokens / sequences / 2;
    const double cached =
        std::max(0.0, attention.kv_tokens - attention.tokens) / sequences * devices();
    double keys = cached + queries * (2 * devices() + 1) / 2;
    if (attention.window > 0) keys = std::min(keys, double(attention.window) + queries - 1);
    part.tokens /= 2;
    part.pairs /= 2;
    part.kv_tokens = sequences * keys;
    attend(part, 2);
  }

  // Some heads of all tokens for all heads of some tokens, and back.
  void all_to_all() const {
    // Keys that fewer heads share than there are devices are sent to several.
    const double copies = std::max(1.0, devices() / double(attention.kv_heads));
    exchange(Pattern::all_to_all, Family::all_to_all, query_bytes() + copies * key_bytes(), 1);
    AttentionPrefill whole = attention;
    whole.tokens *= devices();
    whole.pairs *= devices();
    whole.kv_tokens *= devices();
    whole.heads /= sharing.devices;
    whole.kv_heads = std::max<std::int64_t>(1, attention.kv_heads / sharing.devices);
    attend(whole, 1);
    exchange(Pattern::all_to_all, Family::all_to_all, output_bytes(), 1);
  }
};

}  // namespace

BatchShape share_of(const BatchShape& batch, const ContextSharing& sharing) {
  BatchShape own = batch;
  const double devices = double(sharing.devices);
  own.prefill_tokens = (batch.prefill_tokens + sharing.devices - 1) / sharing.devices;
  own.prefill_pairs /= devices;
  own.prefill_window_pairs /= devices;
  own.prefill_kv_tokens /= devices;
  own.prefill_window_kv_tokens = std::min(own.prefill_window_kv_tokens, own.prefill_kv_tokens);
  return own;
}

std::optional<Refusal> sharing_problem(const ModelSpec& model, const Parallelism& parallel,
                                       ContextExchange exchange, std::string_view field) {
  if (exchange == ContextExchange::ring && model.window > 0) {
    return Refusal{ReasonClass::unsupported,
                   fmt::format("a ring passes on all keys, of which model.window leaves few; {}: "
                               "all_gather or all_to_all works with windows",
                               field)};
  }
  if (parallel.cp == 1) return std::nullopt;
  const std::int64_t ways = parallel.tp * parallel.cp;
  const LayerCounts layers = layer_counts(model);
  for (const Mixer* mixer : kMixers) {
    const bool split = exchange == ContextExchange::all_to_all || mixer->shares_heads;
    if (!split || mixer->layers(model, layers) == 0) continue;
    if (const auto problem = mixer->indivisible(model, ways)) {
      return Refusal{ReasonClass::divisibility,
                     fmt::format("model.{} {} cannot be split {} ways (parallel.tp x parallel.cp, "
                                 "which {} splits heads over)",
                                 problem->field, problem->count, ways,
                                 mixer->shares_heads ? "a scan of shared sequences"
                                                     : fmt::format("{}: all_to_all", field))};
    }
  }
  return std::nullopt;
}

void add_shared_attention(const PlannedOp& attention, const ContextSharing& sharing, OpList& ops) {
  const Sharer sharer{attention, std::get<AttentionPrefill>(attention.op), sharing, ops};
  switch (sharing.exchange) {
    case ContextExchange::ring:
      return sharer.ring();
    case ContextExchange::all_gather:
      return sharer.all_gather();
    case ContextExchange::all_to_all:
      return sharer.all_to_all();
  }
}

void add_shared_scan(const PlannedOp& scan, const ContextSharing& sharing, OpList& ops) {
  Scan whole = std::get<Scan>(scan.op);
  const double tokens = whole.tokens, devices = double(sharing.devices);
  const double channels = double(whole.heads * whole.head_dim);
  // Keys that fewer groups share than there are devices are sent to several, decays of channels with them.
  const double groups = double(std::max(whole.groups, sharing.devices));
  double inputs = channels + 2 * groups * double(whole.state) + double(whole.heads);
  if (whole.rule == ScanRule::channel_delta) inputs += double(whole.heads * whole.state);
  whole.tokens *= devices;
  whole.heads /= sharing.devices;
  whole.groups = std::max<std::int64_t>(1, whole.groups / sharing.devices);
  add_exchange(scan, sharing,
               {Pattern::all_to_all, Family::all_to_all, tokens * inputs * kActivationBytes}, ops);
  PlannedOp of_some_heads = scan;
  of_some_heads.op = whole;
  ops.add(of_some_heads);
  add_exchange(scan, sharing,
               {Pattern::all_to_all, Family::all_to_all, tokens * channels * kActivationBytes},
               ops);
}

double foreign_context(const ContextSharing& sharing) {
  if (sharing.devices == 1) return 0;
  switch (sharing.exchange) {
    case ContextExchange::ring:
      return 2;  // those at work and those that arrive
    case ContextExchange::all_gather:
      return double(sharing.devices);  // all
    case ContextExchange::all_to_all:
      return 0;  // as many as before
  }
  return 0;
}

}  // namespace engine
