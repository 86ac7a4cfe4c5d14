#include "engine/step/step_basis.h"

namespace engine {

StepBasis::StepBasis(const StepContext& context)
    : device_(context.device),
      fabric_(context.fabric),
      model_(*context.shard.model),
      parallel_(context.shard.parallel),
      quant_(context.shard.quant),
      sampling_(context.shard.sampling),
      all_reduce_(context.shard.all_reduce),
      joined_attention_(context.shard.joined_attention),
      even_parts_(context.shard.even_parts),
      host_(context.host),
      calibration_(context.calibration) {
  if (calibration_ != nullptr) checksum_ = calibration_->checksum;
  // One made in memory has no checksum to be known by.
  known_ = calibration_ == nullptr || !checksum_.empty();
}

bool StepBasis::holds_for(const StepContext& context) const {
  const Calibration* calibration = context.calibration;
  return known_ && calibration == calibration_ &&
         (calibration == nullptr || calibration->checksum == checksum_) &&
         context.device == device_ && context.fabric == fabric_ && *context.shard.model == model_ &&
         context.shard.parallel == parallel_ && context.shard.quant == quant_ &&
         context.shard.sampling == sampling_ && context.shard.all_reduce == all_reduce_ &&
         context.shard.joined_attention == joined_attention_ &&
         context.shard.even_parts == even_parts_ && context.host == host_;
}

}  // namespace engine
