// Steps that tools/gpu trained on an H200 in plain PyTorch, as points: what their tables have in common.
#pragma once

#include <cstdint>
#include <string>

#include "engine/scenario.h"
#include "tests/support/csv_rows.h"
#include "tests/support/shipped.h"

namespace toys {

inline engine::Scenario measured_train_step(const CsvRow& row) {
  const auto number = [&row](const char* name) { return std::int64_t(std::stoll(row.at(name))); };
  static const engine::Device device = shipped("devices", "h200-sxm").device;
  static const engine::HostSettings none = shipped("hosts", "none").host;
  engine::Scenario scenario;
  scenario.task = engine::Task::train;
  scenario.device = device;
  scenario.host = none;
  scenario.model.layers = number("layers");
  scenario.model.hidden = number("hidden");
  scenario.model.heads = number("q_heads");
  scenario.model.kv_heads = number("kv_heads");
  scenario.model.head_dim = number("head_dim");
  scenario.model.intermediate = number("inter");
  scenario.model.vocabulary = number("vocabulary");
  scenario.model.mlp = row.at("gated") == "1" ? engine::MlpKind::gated : engine::MlpKind::plain;
  scenario.train = {.sequence = number("sequence"),
                    .micro_batch = number("micro_batch"),
                    .global_batch = number("micro_batch"),
                    .gradients = engine::StateFormat::bf16,
                    .master_weights = engine::StateFormat::none,
                    .moments = engine::StateFormat::bf16,
                    .fused = false,
                    .fused_loss = false,
                    .reserved_memory = engine::Bytes{0},
                    .early_stop = true,
                    .fused_gradients = false};
  return scenario;
}

}  // namespace toys
