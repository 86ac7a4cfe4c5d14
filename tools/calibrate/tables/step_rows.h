// Whole steps of one device, as rows of tables that tools/gpu measured.
#pragma once

#include "engine/model/batch_shape.h"
#include "engine/model/model_spec.h"
#include "tools/calibrate/tables/model_columns.h"
#include "tools/calibrate/tables/table_row.h"

namespace tools {

// One device's part of a model, without its collectives.
inline engine::ModelSpec model_of_step(const TableRow& row) {
  engine::ModelSpec model = model_of_columns(row);
  model.tied_embeddings = false;
  return model;
}

inline engine::BatchShape batch_of_step(const TableRow& row) {
  engine::BatchShape batch;
  const std::string_view phase = row.text("phase");
  if (phase != "prefill")
    engine::add_decode(batch, row.count("batch"), row.count("context_len"), 0);
  if (phase == "prefill") {
    engine::add_prefill(batch, row.count("batch"), row.count("query_len"),
                        row.count("context_len") - row.count("query_len"), 0);
  } else if (phase == "mixed") {
    engine::add_prefill(batch, 1, row.count("query_len"),
                        row.count("chunk_context_len") - row.count("query_len"), 0);
  }
  batch.sampled = batch.prefill_sequences + batch.decode_sequences;
  return batch;
}

}  // namespace tools
