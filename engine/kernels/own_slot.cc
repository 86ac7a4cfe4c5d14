#include "engine/kernels/own_slot.h"

#include "engine/kernels/kernel_models.h"

namespace engine {

OwnSlot own_slot(Calibration& calibration, Family family, const Op& op, const Device& device) {
  const SlotContext context{calibration, family, device};
  return std::visit([&](const auto& call) { return slot_of(call, context); }, op);
}

}  // namespace engine
