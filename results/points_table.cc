#include "results/part_encoder.h"

#include <algorithm>
#include <bit>

#include "engine/base/version.h"
#include "results/arrow_arrays.h"

namespace results {
namespace {

template <class Names>
ArrayPtr name_array(const Names& names) {
  return texts(std::vector<std::string_view>(names.begin(), names.end()));
}

// The columns of one part of the points table, in the order they are asked for.
class PointColumns {
 public:
  PointColumns(const SchemaInputs& inputs, const RowLayout& layout, const PartRows& part)
      : inputs_(inputs), layout_(layout), part_(part) {
    for (const ChunkBuffer* chunk : part.chunks) {
      std::vector<std::uint32_t>& codes = text_codes_.emplace_back();
      std::uint32_t last = 0;
      for (const std::string& text : chunk->texts()) codes.push_back(pool_.code(text, last));
    }
  }

  ArrayPtr array(const Column& column) {
    encoding = Encoding::dictionary;
    const auto source = std::size_t(column.source);
    switch (column.role) {
      case ColumnRole::identity:
        encoding = source == 0 ? Encoding::delta : Encoding::plain;
        return source == 0 ? indices() : keys();
      case ColumnRole::label:
        return label(source);
      case ColumnRole::setting:
        return setting(source);
      case ColumnRole::result:
        return result(ResultColumn(source));
      case ColumnRole::metric:
        return metric(source);
      case ColumnRole::provenance:
        return constant(engine::kModelVersion);
    }
    return nullptr;
  }

  Encoding encoding = Encoding::dictionary;  // that suits the array built last

 private:
  // One value a row, taken chunk by chunk.
  template <class T, class Get>
  Values<T> gather(Get get) const {
    Values<T> values(part_.rows);
    T* out = values.data();
    for (std::size_t c = 0; c < part_.chunks.size(); ++c) {
      const ChunkBuffer& chunk = *part_.chunks[c];
      const auto row = get(chunk, c);
      for (std::size_t i = 0; i < chunk.rows(); ++i) *out++ = row(i);
    }
    return values;
  }

  template <class T>
  ArrayPtr constant(T value) const {
    Values<T> values(part_.rows);
    std::fill_n(values.data(), values.size(), value);
    return std::move(values).take();
  }

  ArrayPtr indices() const {
    return gather<std::int64_t>([](const ChunkBuffer& chunk, std::size_t) {
             return [from = chunk.indices()](std::size_t i) { return std::int64_t(from[i]); };
           })
        .take();
  }

  ArrayPtr keys() const {
    std::vector<engine::Key> keys;
    keys.reserve(part_.rows);
    for (const ChunkBuffer* chunk : part_.chunks) {
      keys.insert(keys.end(), chunk->keys(), chunk->keys() + chunk->rows());
    }
    return hex_keys(keys);
  }

  ArrayPtr label(std::size_t number) const {
    const std::vector<std::string>& labels = inputs_.labels[number].values;
    Renumbering renumber(labels.size());
    auto codes = gather<std::int32_t>([&](const ChunkBuffer& chunk, std::size_t) {
      return [&renumber, from = chunk.label(number)](std::size_t i) {
        return from[i] < 0 ? -1 : renumber(std::size_t(from[i]));
      };
    });
    return coded_texts(std::move(codes), used_texts(renumber, labels));
  }

  static ArrayPtr used_texts(const Renumbering& renumber, const std::vector<std::string>& all) {
    std::vector<std::string_view> used;
    for (const std::size_t code : renumber.used()) used.push_back(all[code]);
    return texts(used);
  }

  ArrayPtr setting(std::size_t number) {
    const engine::Leaf& leaf = engine::leaf_table().leaves[number];
    const int slot = layout_.slot_of_leaf[number];
    return slot < 0 ? constant_setting(leaf) : varied_setting(leaf, std::size_t(slot));
  }

  ArrayPtr constant_setting(const engine::Leaf& leaf) const {
    switch (leaf.kind) {
      case engine::LeafKind::quantity:
      case engine::LeafKind::number:
        return constant(engine::leaf_double(inputs_.base, leaf));
      case engine::LeafKind::integer:
        return constant(engine::leaf_integer(inputs_.base, leaf));
      case engine::LeafKind::boolean:
        return booleans(std::vector<std::uint8_t>(
            part_.rows, std::uint8_t(engine::leaf_integer(inputs_.base, leaf))));
      case engine::LeafKind::enumeration:
        return constant_text(leaf.names[std::size_t(engine::leaf_integer(inputs_.base, leaf))],
                             part_.rows);
      case engine::LeafKind::text:
        return constant_text(engine::leaf_text(inputs_.base, leaf), part_.rows);
    }
    return nullptr;
  }

  ArrayPtr varied_setting(const engine::Leaf& leaf, std::size_t slot) {
    const auto slots = [slot](const ChunkBuffer& chunk, std::size_t) {
      return [from = chunk.slot(slot)](std::size_t i) { return from[i]; };
    };
    switch (leaf.kind) {
      case engine::LeafKind::quantity:
      case engine::LeafKind::number:
        return numbers(gather<double>([slot](const ChunkBuffer& chunk, std::size_t) {
          return
              [from = chunk.slot(slot)](std::size_t i) { return std::bit_cast<double>(from[i]); };
        }));
      case engine::LeafKind::integer: {
        auto values = gather<std::int64_t>(slots);
        encoding = encoding_of(reinterpret_cast<std::uint64_t*>(values.data()), values.size());
        return std::move(values).take();
      }
      case engine::LeafKind::boolean: {
        auto values = gather<std::int8_t>(slots);
        return booleans({reinterpret_cast<std::uint8_t*>(values.data()), values.size()});
      }
      case engine::LeafKind::enumeration:
        return coded_texts(gather<std::int8_t>(slots), name_array(leaf.names));
      case engine::LeafKind::text:
        return pooled([slot](const ChunkBuffer& chunk) {
          return [from = chunk.slot(slot)](std::size_t i) { return std::uint32_t(from[i]); };
        });
    }
    return nullptr;
  }

  // Texts by their numbers in the chunks' own pools.
  template <class Get>
  ArrayPtr pooled(Get get) const {
    Renumbering renumber(pool_.texts().size());
    auto codes = gather<std::int32_t>([&](const ChunkBuffer& chunk, std::size_t c) {
      return [&renumber, &known = text_codes_[c], row = get(chunk)](std::size_t i) {
        const std::uint32_t code = row(i);
        return code == ChunkBuffer::kNoReason ? -1 : renumber(known[code]);
      };
    });
    return coded_texts(std::move(codes), used_texts(renumber, pool_.texts()));
  }

  ArrayPtr numbers(Values<double> values) {
    encoding = encoding_of(reinterpret_cast<std::uint64_t*>(values.data()), values.size());
    return std::move(values).take();
  }

  template <class Get>
  ArrayPtr verdict_code(Get get) const {
    using E = decltype(get(ChunkBuffer::Verdict{}));
    auto codes = gather<std::int8_t>([get](const ChunkBuffer& chunk, std::size_t) {
      return [get, from = chunk.verdicts()](std::size_t i) { return std::int8_t(get(from[i])); };
    });
    return coded_texts(std::move(codes), name_array(enum_names(E{})));
  }

  ArrayPtr result(ResultColumn column) const {
    using Verdict = ChunkBuffer::Verdict;
    switch (column) {
      case ResultColumn::status:
        return verdict_code([](const Verdict& v) { return v.status; });
      case ResultColumn::reason:
        return pooled([](const ChunkBuffer& chunk) {
          return [from = chunk.verdicts()](std::size_t i) { return from[i].reason; };
        });
      case ResultColumn::bound:
        return verdict_code([](const Verdict& v) { return v.bound; });
      case ResultColumn::tier:
        return verdict_code([](const Verdict& v) { return v.tier; });
      case ResultColumn::extrapolated: {
        auto values = gather<std::int8_t>([](const ChunkBuffer& chunk, std::size_t) {
          return [from = chunk.verdicts()](std::size_t i) { return from[i].extrapolated; };
        });
        return booleans({reinterpret_cast<std::uint8_t*>(values.data()), values.size()});
      }
    }
    return nullptr;
  }

  ArrayPtr metric(std::size_t number) {
    auto values = gather<double>([number](const ChunkBuffer& chunk, std::size_t) {
      return [from = chunk.metric(number)](std::size_t i) { return from[i]; };
    });
    encoding = encoding_of(reinterpret_cast<std::uint64_t*>(values.data()), values.size());
    const double scale = metric_table()[number].unit.per_base;
    if (scale != 1) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] *= scale;
    }
    return nullable_numbers(std::move(values));
  }

  const SchemaInputs& inputs_;
  const RowLayout& layout_;
  const PartRows& part_;
  TextPool pool_;
  std::vector<std::vector<std::uint32_t>> text_codes_;  // by chunk: its text's number in pool_
};

}  // namespace

FileBytes PartEncoder::points(const PartRows& part) const {
  PointColumns columns(inputs_, layout_, part);
  std::vector<ArrayPtr> arrays;
  std::vector<Encoding> encodings;
  for (const Column& column : points_.columns()) {
    arrays.push_back(columns.array(column));
    encodings.push_back(columns.encoding);
  }
  return points_.write(arrays, encodings);
}

}  // namespace results
