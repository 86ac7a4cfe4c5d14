// What a sequence that is split over tensor-parallel devices adds to a backward pass.
#pragma once

#include "engine/model/model_ops.h"
#include "engine/training/pipeline/stages.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// Devices keep their own part of a product's input and gather it once more for the gradient of its weights, while the gradient
// of the input is computed; that one is scattered while the gradient of the weights is (Korthikanti et al., 2022, section
// 4.2.2; Transformer Engine). What is gathered is cast before, by the device that has it.
void gather_again(const ModelShard& shard, const LayerChunk& chunk, const TrainSettings& train,
                  OpList& inputs, OpList& weights);

// Without a split sequence, gradients of inputs are summed up over devices while those of weights are computed (Megatron, Transformer
// Engine).
void sum_beside_weights(const LayerChunk& chunk, const TrainSettings& train, OpList& inputs,
                        OpList& weights);

// What every device has whole (norms, routers, weights that make latents) works on the device's own part of a split sequence
// (Megatron).
void take_part(double parts, PlannedOp& op);

// What is gathered for the next layer's mixer, over the residual stream. Latent attention: in place of the stream the latents, which
// devices have made of their own parts; queries without a latent are made of the stream.
double gathered_for_mixers(const ModelShard& shard);

// The largest of the largest values, of which each device knows its own part's; nothing where blocks have scales of their own.
void agree_on_scale(const PlannedOp& cast, std::int64_t sharers, OpList& ops);

// Products beside which rows arrive or leave piece by piece (train.tp_overlap) are multiplied in as many pieces as devices. On an
// H200 pieces take as long as they do one after the other, on however many streams (specs/calibration/h200-sxm/train_pieces.csv).
void multiply_in_pieces(std::int64_t pieces, OpList& forward);
// Gradients of the inputs of products that scatter their output: its gradient arrives piece by piece.
void multiply_gathered_in_pieces(std::int64_t pieces, OpList& inputs);

}  // namespace engine
