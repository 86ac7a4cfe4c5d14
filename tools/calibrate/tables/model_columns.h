// The columns that describe a model of one device in tables of measured steps.
#pragma once

#include "engine/model/model_spec.h"
#include "tools/calibrate/tables/table_row.h"

namespace tools {

inline engine::ModelSpec model_of_columns(const TableRow& row) {
  engine::ModelSpec model;
  model.name = row.text("model");
  model.layers = row.count("layers");
  model.hidden = row.count("hidden");
  model.heads = row.count("q_heads");
  model.kv_heads = row.count("kv_heads");
  model.head_dim = row.count("head_dim");
  model.intermediate = row.count("inter");
  model.vocabulary = row.count("vocabulary");
  return model;
}

}  // namespace tools
