// Shapes of the operations a step consists of. A variant: the compiler lists what a new one needs.
#pragma once

#include <cstdint>
#include <variant>

#include "engine/hardware/dtype.h"
#include "engine/model/op_names.h"

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
};

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
  Dtype kv = Dtype::bf16;
  Dtype activations = Dtype::bf16;
};

// Attention of one new token a sequence. Latent attention is one KV head whose values are part of
// its keys (`values_in_keys`), so they are read once.
struct AttentionDecode {
  std::int64_t sequences = 1;
  double kv_tokens = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t key_dim = 128;
  std::int64_t value_dim = 128;
  bool values_in_keys = false;
  Dtype kv = Dtype::bf16;
  Dtype activations = Dtype::bf16;
};

// One pass over data with little arithmetic: norms, activations, copies, sampling.
struct Elementwise {
  double resident_bytes = 0;  // activations, which the kernel before left in the cache if they fit
  double cold_bytes = 0;      // from or to memory in any case
  double flops = 0;
};

enum class Pattern : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, send_recv };

struct Collective {
  Pattern pattern = Pattern::all_reduce;
  double bytes = 0;  // the whole message: what each device ends with, or starts from
  std::int64_t ranks = 1;
  std::int64_t stride = 1;  // distance between neighbouring ranks in the device order
};

using Op =
    std::variant<Gemm, GroupedGemm, AttentionPrefill, AttentionDecode, Elementwise, Collective>;

// An operation in its place: what it is for, how its time is modelled, and how often a step does it.
struct PlannedOp {
  OpName name = OpName::qkv;
  Family family = Family::gemm;
  double calls = 1;
  Op op;
};

}  // namespace engine
