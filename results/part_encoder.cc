#include "results/part_encoder.h"

#include "engine/base/version.h"

namespace results {
namespace {

Metadata file_metadata(const char* table, const std::string& run_yaml) {
  return {{"llmsweep.table", table},
          {"llmsweep.program_version", std::string(engine::program_version())},
          {"llmsweep.program_commit", std::string(engine::program_commit())},
          {"llmsweep.model_version", std::to_string(engine::kModelVersion)},
          {"llmsweep.arrow_version", arrow_version()},
          {"llmsweep.run_yaml", run_yaml}};
}

}  // namespace

PartEncoder::PartEncoder(const SchemaInputs& inputs, const std::string& run_yaml)
    : inputs_(inputs),
      layout_(inputs),
      points_(point_columns(inputs), file_metadata("points", run_yaml)),
      kernels_(kernel_columns(), file_metadata("kernels", run_yaml)) {}

PartEncoder::~PartEncoder() = default;

}  // namespace results
