#include "engine/leaves.h"
#include "engine/outcome.h"
#include "results/arrow_arrays.h"
#include "results/part_encoder.h"

namespace results {
namespace {

template <class E>
ArrayPtr named(Values<std::int8_t> codes) {
  const auto names = enum_names(E{});
  return coded_texts(std::move(codes), texts({names.begin(), names.end()}));
}

// Every column at once: the rows are read from memory a single time.
struct KernelColumns {
  explicit KernelColumns(const PartRows& part)
      : index(part.kernel_rows),
        point(part.kernel_rows),
        phase(part.kernel_rows),
        op(part.kernel_rows),
        family(part.kernel_rows),
        calls(part.kernel_rows),
        seconds(part.kernel_rows),
        flops(part.kernel_rows),
        bytes(part.kernel_rows),
        bound(part.kernel_rows),
        tier(part.kernel_rows),
        extrapolated(part.kernel_rows) {
    keys.reserve(part.rows);
    for (const ChunkBuffer* chunk : part.chunks) add(*chunk);
  }

  void add(const ChunkBuffer& chunk) {
    const engine::KernelRow* row = chunk.kernels().data();
    for (std::size_t i = 0; i < chunk.rows(); ++i) {
      const std::size_t end = at + chunk.kernel_counts()[i];
      const auto number = std::int32_t(keys.size());
      keys.push_back(chunk.keys()[i]);
      for (; at < end; ++at, ++row) {
        index[at] = std::int64_t(chunk.indices()[i]);
        point[at] = number;
        phase[at] = std::int8_t(row->phase);
        op[at] = std::int8_t(row->op);
        family[at] = std::int8_t(row->family);
        calls[at] = row->calls;
        seconds[at] = row->time.value;
        flops[at] = row->flops.value;
        bytes[at] = row->bytes.value;
        bound[at] = std::int8_t(row->bound);
        tier[at] = std::int8_t(row->tier);
        extrapolated[at] = std::int8_t(row->extrapolated);
      }
    }
  }

  std::size_t at = 0;
  std::vector<engine::Key> keys;  // of the points, by their place in the part
  Values<std::int64_t> index;
  Values<std::int32_t> point;
  Values<std::int8_t> phase, op, family;
  Values<double> calls, seconds, flops, bytes;
  Values<std::int8_t> bound, tier, extrapolated;
};

Encoding encoding_for(Values<double>& values) {
  return encoding_of(reinterpret_cast<const std::uint64_t*>(values.data()), values.size());
}

}  // namespace

FileBytes PartEncoder::kernels(const PartRows& part) const {
  KernelColumns c(part);
  constexpr Encoding coded = Encoding::dictionary;
  const std::vector<Encoding> encodings{Encoding::delta,
                                        coded,
                                        coded,
                                        coded,
                                        coded,
                                        coded,
                                        encoding_for(c.seconds),
                                        encoding_for(c.flops),
                                        encoding_for(c.bytes),
                                        coded,
                                        coded,
                                        coded};
  const std::vector<ArrayPtr> arrays{
      std::move(c.index).take(),
      coded_texts(std::move(c.point), hex_keys(c.keys)),
      named<engine::Phase>(std::move(c.phase)),
      named<engine::OpName>(std::move(c.op)),
      named<engine::Family>(std::move(c.family)),
      std::move(c.calls).take(),
      std::move(c.seconds).take(),
      std::move(c.flops).take(),
      std::move(c.bytes).take(),
      named<engine::Bound>(std::move(c.bound)),
      named<engine::Tier>(std::move(c.tier)),
      booleans({reinterpret_cast<std::uint8_t*>(c.extrapolated.data()), c.extrapolated.size()})};
  return kernels_.write(arrays, encodings);
}

}  // namespace results
