// What communication has in common with kernels: measured calls of it are kept in a calibration, too. Its times are
// in engine/comm.
#include "engine/base/check.h"
#include "engine/kernels/kernel_models.h"

namespace engine {
namespace {

template <class Kind>
std::size_t index(Kind kind) {
  return static_cast<std::size_t>(kind);
}

CollectiveKind kind_of(const Collective& op) {
  static constexpr CollectiveKind kinds[] = {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                             CollectiveKind::reduce_scatter,
                                             CollectiveKind::all_to_all, CollectiveKind::send_recv};
  const bool custom = op.pattern == Pattern::all_reduce && op.library == Library::custom;
  return custom && !between_nodes(op) ? CollectiveKind::custom_all_reduce
                                      : kinds[index(op.pattern)];
}

KernelTime not_a_kernel() {
  check(false, "a collective is not a kernel of one device");
  return {};
}

}  // namespace

KernelTime time_of(const Collective&, const KernelContext&) { return not_a_kernel(); }
KernelTime time_of(const ExpertExchange&, const KernelContext&) { return not_a_kernel(); }

Coordinates shape_of(const Collective& op, Family) {
  return between_nodes(op)
             ? coordinates(op.bytes, double(op.ranks) / double(op.per_node), op.per_node)
             : coordinates(op.bytes, op.ranks);
}

Coordinates shape_of(const ExpertExchange& op, Family family) {
  if (op.kernels == ExpertExchange::Kernels::gathered) return shape_of(gathered_call(op), family);
  return coordinates(op.tokens, op.hidden, op.top_k, op.experts);
}

OwnSlot slot_of(const Collective& op, const SlotContext& context) {
  const std::size_t kind = index(kind_of(op));
  if (between_nodes(op)) {
    auto& between = context.calibration.between[kind];
    return slot_in(between, between, context);
  }
  auto& inside = context.calibration.collective[kind];
  return slot_in(inside, inside, context);
}

OwnSlot slot_of(const ExpertExchange& op, const SlotContext& context) {
  if (op.kernels == ExpertExchange::Kernels::gathered) return slot_of(gathered_call(op), context);
  const bool combine = op.way == ExpertExchange::Way::combine;
  const ExchangeKind kind =
      op.kernels == ExpertExchange::Kernels::normal
          ? (combine ? ExchangeKind::normal_combine : ExchangeKind::normal_dispatch)
          : (combine ? ExchangeKind::low_latency_combine : ExchangeKind::low_latency_dispatch);
  auto& sets = context.calibration.exchange[index(kind)];
  return slot_in(sets, sets, context);
}

}  // namespace engine
