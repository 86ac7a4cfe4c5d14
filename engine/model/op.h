// Shapes of the operations a step consists of. A variant: the compiler lists what a new one needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "engine/hardware/dtype.h"
#include "engine/model/four_bit_experts.h"
#include "engine/model/op_counts.h"
#include "engine/model/op_names.h"
#include "engine/model/scan_op.h"

namespace engine {

// C[m, n] = A[m, k] W[k, n], `batch` times over. Weights narrower than the activations are
// expanded on the fly.
struct Gemm {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t batch = 1;
  Dtype weights = Dtype::bf16;
  Dtype activations = Dtype::bf16;
  std::int64_t group = 128;  // weights that share a scale, where the format has scales
  // The call also quantises its input from 16 bits (as tables of fp8 engines have it). In a step
  // that is an op of its own.
  bool quantizes_input = false;
  // Sums of narrow products are kept in 32 bits throughout, as gradients want them.
  bool precise = false;

  bool operator==(const Gemm&) const = default;
};

// One projection of the routed experts that live on this device.
struct GroupedGemm {
  double rows = 1;     // token copies over all local experts
  double touched = 1;  // local experts with at least one token
  std::int64_t n = 1;
  std::int64_t k = 1;
  Dtype weights = Dtype::bf16;
  Dtype activations = Dtype::bf16;
  std::int64_t group = 128;

  bool operator==(const GroupedGemm&) const = default;
};

// A convolution of images, in each of `groups` groups of channels the product it is computed as: C[rows, n] = A[rows, k] W[k, n] with a
// row for each pixel of the output. Filters overlap, so A has most values of the input several times over; they come from
// memory once. Filters of one channel each are no products, but a pass.
struct ImageConvolution {
  double rows = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t groups = 1;
  double values_in = 1;   // of the whole input, and of what is added to the output
  double values_out = 1;  // of the whole output, which has the input's format
  Dtype weights = Dtype::bf16;
  Dtype activations = Dtype::bf16;
  std::int64_t group = 128;  // weights that share a scale

  bool operator==(const ImageConvolution&) const = default;
};

// All routed experts of this device in one call: routing, both projections, the activation between
// them, and the weighted sum.
struct Moe {
  double tokens = 1;  // of all devices that share the experts
  std::int64_t hidden = 1;
  std::int64_t intermediate = 1;  // of one expert, as far as it is on this device
  std::int64_t top_k = 1;
  std::int64_t experts = 1;        // on all devices that share them, second copies included
  std::int64_t redundant = 0;      // of these: second copies of popular ones
  std::int64_t local_experts = 1;  // on this device
  // An exchange brought this device a row for every copy sent to it and sums what goes back. Else
  // every token is here, and the call picks, moves and sums the copies itself.
  bool exchanged = false;
  bool gated = true;  // three matrices an expert; else two
  // Tokens go round the experts in turn (a microbenchmark's choice). Else they choose at random, by
  // a power law of exponent `skew`; 0: all experts alike.
  bool balanced = false;
  double skew = 0;
  // Deviation of an expert's load from the one that second copies were placed for.
  double drift = 0;
  Dtype weights = Dtype::bf16;
  Dtype activations = Dtype::bf16;
  std::int64_t group = 128;
  bool quantizes_input = false;
  bool precise = false;     // as above
  bool one_by_one = false;  // each expert has kernels of its own, casts as well
  FourBitExperts kernels = FourBitExperts::own;  // where weights of four bits meet inputs of 16

  bool operator==(const Moe&) const = default;
};

// Copies of tokens that reach a device, on average over those that share the experts.
constexpr double copies_on_a_device(const Moe& op) {
  return op.tokens * double(op.top_k) * double(op.local_experts) / double(op.experts);
}

// Parts of a device's rows that have kernels of their own.
constexpr double parts_of(const Moe& op) { return op.one_by_one ? double(op.local_experts) : 1; }

// Attention of prompt chunks over cached and new keys.
struct AttentionPrefill {
  std::int64_t sequences = 1;
  double tokens = 1;     // queries
  double pairs = 1;      // query-key pairs that the mask leaves
  double kv_tokens = 1;  // keys, summed over sequences
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t key_dim = 128;
  std::int64_t value_dim = 128;
  std::int64_t window = 0;  // most keys a query sees; 0: all. kv_tokens are counted with it
  std::int64_t latent = 0;  // width of the cached latent that new keys are written as; 0: none
  bool backward = false;    // its gradients: pairs count five products instead of two
  // How many times longer kernels of an earlier generation take than the fastest ones, forward and backward.
  float slower = 1;
  float backward_slower = 1;
  // Decodes that ride along in a kernel for prompts: each head of each has a tile to itself.
  bool decodes = false;
  double overhang = 0;  // of such decodes: as below
  // Multiprocessors that few queries leave idle take parts of the cached keys, as in kernels that divide work by its size
  // (FlashInfer, FlashAttention-3). Kernels of tables do not.
  bool shares_keys = false;
  // The call also stores the new keys and values, and plans its work, as tables of engines have it.
  // In a step that is an op of its own.
  bool stores_kv = false;
  Dtype kv = Dtype::bf16;
  Dtype activations = Dtype::bf16;

  bool operator==(const AttentionPrefill&) const = default;
};

// Attention of one new token a sequence, or of a few that are verified together and share its keys. Latent
// attention is one KV head whose values are part of its keys (`values_in_keys`), so they are read once.
struct AttentionDecode {
  std::int64_t sequences = 1;
  std::int64_t queries = 1;  // new tokens of each sequence
  double kv_tokens = 1;      // that the last of them sees
  // Keys by which the longest sequence outlasts the mean, where the kernel gives every sequence the
  // same number of parts; 0: all are alike, or long ones get more.
  double overhang = 0;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t key_dim = 128;
  std::int64_t value_dim = 128;
  bool values_in_keys = false;
  std::int64_t window = 0;  // as above
  bool warm = false;  // the same call was just made (a microbenchmark): the cache holds its keys
  bool stores_kv = false;  // as above
  Dtype kv = Dtype::bf16;
  Dtype activations = Dtype::bf16;

  // Query-key pairs: each new token sees one key more than the one before it.
  double pairs() const {
    const double count = double(queries);
    return count * kv_tokens - double(sequences) * count * (count - 1) / 2;
  }

  bool operator==(const AttentionDecode&) const = default;
};

// One pass over data with little arithmetic: norms, activations, copies, sampling.
struct Elementwise {
  double rows = 1;            // tokens
  double resident_bytes = 0;  // activations, which the kernel before left in the cache if they fit
  double cold_bytes = 0;      // from or to memory in any case
  double flops = 0;
  // Bytes of its backward pass over its own: it reads what this one read and the gradient of.
  double backward = 1.5;
  // what it wrote, and writes the gradient of the former

  bool operator==(const Elementwise&) const = default;
};

// Matrix inputs from 16 bits to a narrower format.
struct Quantize {
  double rows = 1;
  double width = 1;
  Dtype format = Dtype::fp8;
  std::int64_t group = 128;
  bool cold = false;  // its input is not in the cache (a microbenchmark); in a step it is

  bool operator==(const Quantize&) const = default;
};

// A copy within the device's memory, or between it and the host's.
enum class CopyPath : std::uint8_t { device, host_to_device, device_to_host };
struct Copy {
  double bytes = 0;
  CopyPath path = CopyPath::device;

  bool operator==(const Copy&) const = default;
};

// Low-rank updates of several adapters in one batch: x A B added to a projection's output.
struct Lora {
  double tokens = 1;
  double adapters = 1;  // different ones among the tokens
  std::int64_t rank = 16;
  std::int64_t input = 1;
  std::int64_t output = 1;
  Dtype weights = Dtype::bf16;

  bool operator==(const Lora&) const = default;
};

enum class Pattern : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, send_recv };

// Whose all-reduce runs inside a node: engines bring one of their own for small messages.
// One shot: of the engine's own kernels only that in which every device reads all inputs, or the general library's.
enum class Library : std::uint8_t { fastest, general, custom, one_shot };

struct Collective {
  Pattern pattern = Pattern::all_reduce;
  double bytes = 0;  // the whole message: what each device ends with, or starts from
  std::int64_t ranks = 1;
  std::int64_t stride = 1;  // distance between neighbouring ranks in the device order
  Library library = Library::fastest;
  // Ranks that share a node; 0: as many as its size and the stride allow.
  std::int64_t per_node = 0;
  // Of an all-to-all of unequal messages: what the device that gets most gets, over the mean of all, which `bytes` is.
  double fullest = 1;

  bool operator==(const Collective&) const = default;
};

// Whether a call says by itself that its ranks lie on several nodes.
constexpr bool between_nodes(const Collective& op) {
  return op.per_node > 0 && op.per_node < op.ranks;
}

// Tokens to the devices that hold their experts, or results back.
struct ExpertExchange {
  enum class Way : std::uint8_t { dispatch, combine };
  enum class Kernels : std::uint8_t { fastest, low_latency, normal, gathered };
  // An exchange lasts as long as it does for the device whose experts are sent most. Or, where devices have unequal numbers of
  // tokens: as long as if all were sent as much; and what it lasts longer for the fullest of them.
  enum class Receiver : std::uint8_t { fullest, mean, excess };
  Way way = Way::dispatch;
  double tokens = 1;  // of one device
  std::int64_t hidden = 1;
  std::int64_t top_k = 1;
  std::int64_t experts = 1;     // on all devices, second copies included
  std::int64_t redundant = 0;   // of these: second copies of popular ones
  double skew = 0;              // exponent by which tokens favour experts, as above
  double drift = 0;             // as above
  std::int64_t groups = 1;      // that the experts are divided into
  std::int64_t top_groups = 1;  // the most of these groups in which a token's experts may lie
  std::int64_t ranks = 1;
  double value_bytes = 2;  // of one number on the way
  Kernels kernels = Kernels::fastest;
  Receiver receiver = Receiver::fullest;
  std::int64_t multiprocessors = 20;  // that the normal kernels occupy

  bool operator==(const ExpertExchange&) const = default;
};

// The collective that a gathered exchange is: all tokens to all devices, or sums back to where the tokens came from.
constexpr Collective gathered_call(const ExpertExchange& op) {
  const bool combine = op.way == ExpertExchange::Way::combine;
  return {.pattern = combine ? Pattern::reduce_scatter : Pattern::all_gather,
          .bytes = op.tokens * double(op.ranks * op.hidden) * op.value_bytes,
          .ranks = op.ranks};
}

using Op =
    std::variant<Gemm, GroupedGemm, Moe, AttentionPrefill, AttentionDecode, Elementwise, Quantize,
                 Copy, Lora, Scan, Convolution, ImageConvolution, Collective, ExpertExchange>;

// The one number of a step that an operation's time follows from, everything else being equal.
enum class Grows : std::uint8_t {
  tokens,     // that go through the model, padding included
  sampled,    // sequences that produce a token
  decodes,    // sequences that decode, padding included
  exchanged,  // tokens that travel to their experts; with prompts among them by other kernels
  context,    // keys attended to
};

// What an operation runs beside. Operations of one group run at the same time, in streams: those of one stream one after
// another. The first stream is the main one; what others do is hidden as far as the streams before them last.
struct Beside {
  std::uint8_t group = 0;  // 0: nothing; the step waits for it
  std::uint8_t stream = 0;
  std::uint16_t multiprocessors = 0;  // that it takes from the first stream while both run
};
constexpr std::size_t kMostStreams = 4;

// An operation in its place: what it is for, how its time is modelled, how often a step does it, what its time follows
// from and what it runs beside.
struct PlannedOp {
  OpName name = OpName::qkv;
  Family family = Family::gemm;
  double calls = 1;
  Grows grows = Grows::tokens;
  Beside beside;
  // It runs beside something longer, which leaves it what memory and arithmetic take at their peaks and hides the rest.
  bool hides_floor = false;
  Op op;
};

}  // namespace engine
