// A scan (state-space layer as in Mamba-2, delta rule as in Qwen3-Next and Kimi Linear): each head carries a state from token to
// token, whose size does not grow with the context. Its inputs pass a short convolution, and its output a gated norm.
#include <algorithm>

#include "engine/model/mixers/mixer.h"
#include "engine/model/op_builder.h"
#include "engine/model/passes.h"

namespace engine {
namespace {

// Widths of what one device has of a layer.
struct Widths {
  std::int64_t heads = 0;
  std::int64_t groups = 0;
  std::int64_t inner = 0;      // channels that are scanned
  std::int64_t convolved = 0;  // these, and what is written to and read from the state
  std::int64_t of_heads = 0;   // numbers that each head has one of: time steps, decays, strengths
  std::int64_t gates = 0;      // of the output, and decays of every channel
  std::int64_t ranks = 0;  // of those that are projected through a rank, which all devices compute

  // In one product with the residual stream.
  std::int64_t projected() const { return convolved + of_heads + (ranks > 0 ? ranks : gates); }
  // In products with what has that rank.
  std::int64_t expanded() const { return ranks > 0 ? gates : 0; }
};

// Decays of every channel are a second set of gates.
std::int64_t sets_of_gates(const ScanSpec& scan) {
  return scan.rule == ScanRule::channel_delta ? 2 : 1;
}

Widths widths_over(const ModelSpec& model, std::int64_t devices) {
  const ScanSpec& scan = model.scan;
  Widths own{.heads = scan.heads / devices,
             .groups = std::max<std::int64_t>(1, scan.groups / devices)};
  own.inner = own.heads * scan.head_dim;
  own.convolved = own.inner + 2 * own.groups * scan.state;
  own.of_heads = (scan.rule == ScanRule::delta ? 2 : 1) * own.heads;
  own.gates = own.inner;
  if (scan.rule == ScanRule::channel_delta) own.gates += own.heads * scan.state;
  own.ranks = sets_of_gates(scan) * scan.gate_rank;
  return own;
}
Widths widths_of(const ModelShard& shard) { return widths_over(*shard.model, shard.parallel.tp); }

std::int64_t layers(const ModelSpec&, const LayerCounts& counts) { return counts.scanning; }

// Filters, decays and their biases, and the weights of the norm.
double small_parameters(const ModelSpec& model, const Widths& all) {
  const ScanSpec& scan = model.scan;
  const double filters = double(all.convolved) * double(scan.convolution);
  switch (scan.rule) {
    case ScanRule::add:
      // Filters have a bias; a head has a decay, a bias of its time step and a way past the scan.
      return filters + double(all.convolved) + 3 * double(all.heads) + double(all.inner);
    case ScanRule::delta:
      return filters + 2 * double(all.heads) + double(scan.head_dim);
    case ScanRule::channel_delta:
      break;
  }
  return filters + double(all.heads) * double(1 + scan.state) + double(scan.head_dim);
}

double parameters(const ModelSpec& model) {
  const Widths all = widths_over(model, 1);
  const double hidden = double(model.hidden);
  return hidden * double(all.projected() + all.inner) +
         double(model.scan.gate_rank) * double(all.expanded()) + small_parameters(model, all);
}

// What groups share is repeated where there are fewer of them than devices, and ranks in any case.
double repeated_parameters(const ModelShard& shard) {
  const ModelSpec& model = *shard.model;
  const double devices = double(shard.parallel.tp);
  const Widths own = widths_of(shard);
  const double groups = double(own.groups) - double(model.scan.groups) / devices;
  return double(model.hidden) *
         (2 * double(model.scan.state) * groups + double(own.ranks) * (1 - 1 / devices));
}

// The state, and the last inputs of the convolution in 16 bits.
double cached(const ModelShard& shard, double) {
  const Widths own = widths_of(shard);
  const ScanSpec& scan = shard.model->scan;
  const double state = double(own.inner) * double(scan.state) * bytes_of(shard.quant.state);
  const double inputs = double(own.convolved) * double(scan.convolution - 1) * kActivationBytes;
  return double(shard.layers.scanning) * (state + inputs);
}

double buffer(const ModelShard& shard) {
  const Widths own = widths_of(shard);
  return double(own.projected() + own.expanded() + own.convolved + own.inner);
}

MixerWidths widths(const ModelShard& shard) {
  const Widths own = widths_of(shard);
  const ScanRule rule = shard.model->scan.rule;
  // What is projected, and the scan's output, which its norm needs; then the norm's.
  double kept = double(own.projected() + own.expanded() + own.inner);
  // Kernels of delta rules keep what the convolution gave, and the inverse of each chunk's triangle.
  if (takes_back(rule)) kept += double(own.convolved) + double(own.heads) * pace_of(rule).chunk;
  return {.query = kept, .output = double(own.inner)};
}

std::optional<Indivisible> indivisible(const ModelSpec& model, std::int64_t ways) {
  const ScanSpec& scan = model.scan;
  if (scan.heads % ways != 0) return Indivisible{"scan.heads", scan.heads};
  if (scan.groups % ways != 0 && ways % scan.groups != 0) {
    return Indivisible{"scan.groups", scan.groups};
  }
  return std::nullopt;
}

Scan scan_of(const ModelShard& shard, std::int64_t sequences, double tokens) {
  const Widths own = widths_of(shard);
  return {.rule = shard.model->scan.rule,
          .sequences = sequences,
          .tokens = tokens,
          .heads = own.heads,
          .head_dim = shard.model->scan.head_dim,
          .state = shard.model->scan.state,
          .groups = own.groups,
          .format = shard.quant.state};
}

// Gates from their ranks: one product each.
void expand_gates(const OpBuilder& build, const Widths& own, double layers) {
  if (own.expanded() == 0) return;
  const ScanSpec& scan = build.model.scan;
  build.ops.add(OpName::scan_gates, Family::gemm, layers, build.gemm(own.inner, scan.gate_rank));
  if (own.gates == own.inner) return;
  build.ops.add(OpName::scan_gates, Family::gemm, layers,
                build.gemm(own.gates - own.inner, scan.gate_rank));
}

// Delta rules want queries and keys of length one, and decays in 32 bits.
void normalise_keys(const OpBuilder& build, const Widths& own, double layers) {
  const double keys = double(own.convolved - own.inner);
  const double decays = double(own.of_heads + own.gates - own.inner);
  build.ops.add(OpName::qk_norm, Family::norm, layers,
                pass_over(build.rows, build.rows * (keys + decays),
                          build.rows * (keys + 2 * decays), build.rows * (4 * keys + 10 * decays)));
}

void token_ops(const OpBuilder& build, double layers) {
  const Widths own = widths_of(build.shard);
  const BatchShape& batch = build.batch;
  OpList& ops = build.ops;
  ops.add(OpName::scan_in, Family::gemm, layers, build.gemm(own.projected(), build.model.hidden));
  expand_gates(build, own, layers);
  ops.add(
      OpName::scan_convolution, Family::convolution, layers,
      Convolution{
          .tokens = build.rows, .channels = own.convolved, .width = build.model.scan.convolution});
  if (takes_back(build.model.scan.rule)) normalise_keys(build, own, layers);
  if (batch.decode_sequences > 0) {
    const std::int64_t decodes = batch.decode_sequences + batch.padding;
    Scan scan = scan_of(build.shard, decodes, double(decodes * batch.decode_queries));
    scan.written = batch.decode_queries;
    ops.add(OpName::scan, Family::linear_attention, layers, scan, Grows::decodes);
  }
  const double values = build.rows * double(own.inner);
  Elementwise norm = pass_over(build.rows, 2 * values, values, 6 * values);
  norm.backward = kScanNormBackward;
  ops.add(OpName::scan_norm, Family::norm, layers, norm);
  build.quantize(OpName::quantize_attention, layers, double(own.inner));
  ops.add(OpName::scan_out, Family::gemm, layers, build.gemm(build.model.hidden, own.inner));
}

// Prompts: how many sequences they are of is not told by the number of tokens.
void context_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                 OpList& ops) {
  if (batch.prefill_tokens == 0) return;
  ops.add(OpName::scan, Family::linear_attention, double(span.layers.scanning),
          scan_of(shard, std::max<std::int64_t>(1, batch.prefill_sequences),
                  double(batch.prefill_tokens)),
          Grows::context);
}

}  // namespace

constinit const Mixer kScan{.layers = layers,
                            .parameters = parameters,
                            .repeated_parameters = repeated_parameters,
                            .cached = cached,
                            .buffer = buffer,
                            .widths = widths,
                            .indivisible = indivisible,
                            .joinable = true,
                            .shares_heads = true,
                            .token_ops = token_ops,
                            .context_ops = context_ops};

}  // namespace engine
