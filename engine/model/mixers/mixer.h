// A mixer is the part of a layer in which tokens look at one another: ordinary heads, latent attention, a scan. Everything that
// the rest of the engine asks of one is here, so that a further structure is a file and a line of the table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/model/model_ops.h"
#include "engine/model/model_shard.h"

namespace engine {

struct OpBuilder;

// Numbers that one token has in one layer on one device while the model is trained.
struct MixerWidths {
  double query = 0;
  double keys = 0;        // keys and values, as attention reads them
  double output = 0;      // of attention: the input of the projection that follows
  double compressed = 0;  // inputs of projections that expand a latent
  double positions = 0;   // a rotary part that all heads share
  double unfused = 0;     // kept besides where rotation and attention take several kernels
};

// A field of the model that a number of ways does not divide.
struct Indivisible {
  std::string_view field;
  std::int64_t count;
};

struct Mixer {
  std::int64_t (*layers)(const ModelSpec&, const LayerCounts&);  // how many of these have it
  double (*parameters)(const ModelSpec&);                        // of one layer
  // Of one layer, held by a device beyond its even share.
  double (*repeated_parameters)(const ModelShard&);
  // Bytes that the cache keeps of one sequence with this context, all layers.
  double (*cached)(const ModelShard&, double context);
  double (*buffer)(const ModelShard&);  // numbers of one token while a layer is served
  MixerWidths (*widths)(const ModelShard&);
  std::optional<Indivisible> (*indivisible)(const ModelSpec&, std::int64_t ways);
  bool joinable;  // a kernel may take the decodes of a step with its prompts
  // Devices that share a sequence have some heads of all its tokens, whatever they exchange for attention.
  bool shares_heads;
  void (*token_ops)(const OpBuilder&, double layers);
  void (*context_ops)(const ModelShard&, const StageSpan&, const BatchShape&, OpList&);
};

extern const Mixer kHeads, kLatent, kScan;

// The whole registry.
inline constexpr std::array kMixers{&kHeads, &kLatent, &kScan};

// Those of an average layer.
MixerWidths mean_widths(const ModelShard& shard);

// Layers of a model that attend to everything keep all tokens, others those of the window.
double cached_tokens(const ModelShard& shard, double context);

// Adds attention of a step's prompts or decodes: `op` in layers that attend to everything, and what a window leaves of it
// in the others.
void add_prompt_attention(Family family, AttentionPrefill op, const ModelShard& shard,
                          const StageSpan& span, const BatchShape& batch, OpList& ops);
void add_decode_attention(Family family, AttentionDecode op, const ModelShard& shard,
                          const StageSpan& span, const BatchShape& batch, OpList& ops);

// Attention of the batch's decodes in the kernel that reads its prompts; `attention_ops` has it where
// the shard joins them.
void joined_decode_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                       OpList& ops);

}  // namespace engine
