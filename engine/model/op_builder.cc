#include "engine/model/op_builder.h"

#include "engine/model/passes.h"

namespace engine {

void OpBuilder::norm(OpName name, double calls) const {
  ops.add(name, Family::norm, calls, norm_pass(rows, double(model.hidden)));
}

void OpBuilder::quantize(OpName name, double calls, double width) const {
  if (bytes_of(formats.activations) >= kActivationBytes) return;
  ops.add(name, Family::quantize, calls,
          Quantize{
              .rows = rows, .width = width, .format = formats.activations, .group = formats.group});
}

void OpBuilder::all_reduce(OpName name, double calls) const {
  if (shard.parallel.tp <= 1) return;
  ops.add(name, Family::all_reduce, calls,
          Collective{.pattern = Pattern::all_reduce,
                     .bytes = rows * double(model.hidden) * kActivationBytes,
                     .ranks = shard.parallel.tp,
                     .stride = 1,
                     .library = shard.all_reduce == AllReduce::nccl ? Library::general
                                                                    : Library::fastest});
}

}  // namespace engine
