#include "engine/model/op_builder.h"

#include "engine/model/passes.h"

namespace engine {
namespace {

Library library_of(AllReduce choice) {
  switch (choice) {
    case AllReduce::nccl:
      return Library::general;
    case AllReduce::one_shot:
      return Library::one_shot;
    case AllReduce::custom:
      break;
  }
  return Library::fastest;
}

}  // namespace

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
                     .library = library_of(shard.all_reduce)});
}

}  // namespace engine
