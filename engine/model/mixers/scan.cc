// A scan (state-space layer as in Mamba-2): each head carries a state from token to token, whose size does not grow with the
// context. Its inputs pass a short convolution, and its output a gated norm.
#include <algorithm>

#include "engine/model/mixers/mixer.h"
#include "engine/model/op_builder.h"
#include "engine/model/passes.h"

namespace engine {
namespace {

constexpr double kStateBytes =
    4;  // the state adds up over all tokens, so engines keep it in 32 bits

// Widths of what one device has of a layer.
struct Widths {
  std::int64_t heads = 0;
  std::int64_t groups = 0;
  std::int64_t inner = 0;      // channels that are scanned
  std::int64_t convolved = 0;  // these, and what is written to and read from the state

  std::int64_t projected() const { return inner + convolved + heads; }  // with gates and time steps
};
Widths widths_over(const ModelSpec& model, std::int64_t devices) {
  const ScanSpec& scan = model.scan;
  Widths own{.heads = scan.heads / devices,
             .groups = std::max<std::int64_t>(1, scan.groups / devices)};
  own.inner = own.heads * scan.head_dim;
  own.convolved = own.inner + 2 * own.groups * scan.state;
  return own;
}
Widths widths_of(const ModelShard& shard) { return widths_over(*shard.model, shard.parallel.tp); }

std::int64_t layers(const ModelSpec&, const LayerCounts& counts) { return counts.scanning; }

double parameters(const ModelSpec& model) {
  const Widths all = widths_over(model, 1);
  const double hidden = double(model.hidden);
  // Filters have a bias; a head has a decay, a bias of its time step and a way past the scan.
  const double small =
      double(all.convolved) * double(model.scan.convolution + 1) + 3 * double(all.heads);
  return hidden * double(all.projected()) + double(all.inner) * (hidden + 1) + small;
}

// What groups share is repeated where there are fewer of them than devices.
double repeated_parameters(const ModelShard& shard) {
  const ModelSpec& model = *shard.model;
  const double even = double(model.scan.groups) / double(shard.parallel.tp);
  return 2 * double(model.scan.state) * double(model.hidden) *
         (double(widths_of(shard).groups) - even);
}

// The state, and the last inputs of the convolution in 16 bits.
double cached(const ModelShard& shard, double) {
  const Widths own = widths_of(shard);
  const ScanSpec& scan = shard.model->scan;
  const double state = double(own.inner) * double(scan.state) * kStateBytes;
  const double inputs = double(own.convolved) * double(scan.convolution - 1) * kActivationBytes;
  return double(shard.layers.scanning) * (state + inputs);
}

double buffer(const ModelShard& shard) {
  const Widths own = widths_of(shard);
  return double(own.projected() + own.convolved + own.inner);
}

MixerWidths widths(const ModelShard& shard) {
  const Widths own = widths_of(shard);
  // What is projected, and the scan's output, which its norm needs; then the norm's.
  return {.query = double(own.projected() + own.inner), .output = double(own.inner)};
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
  return {.sequences = sequences,
          .tokens = tokens,
          .heads = own.heads,
          .head_dim = shard.model->scan.head_dim,
          .state = shard.model->scan.state,
          .groups = own.groups};
}

void token_ops(const OpBuilder& build, double layers) {
  const Widths own = widths_of(build.shard);
  const BatchShape& batch = build.batch;
  OpList& ops = build.ops;
  ops.add(OpName::scan_in, Family::gemm, layers, build.gemm(own.projected(), build.model.hidden));
  ops.add(
      OpName::scan_convolution, Family::convolution, layers,
      Convolution{
          .tokens = build.rows, .channels = own.convolved, .width = build.model.scan.convolution});
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
                            .token_ops = token_ops,
                            .context_ops = context_ops};

}  // namespace engine
