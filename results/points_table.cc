#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>

#include "engine/base/version.h"
#include "results/page_encoding.h"
#include "results/part_encoder.h"

namespace results {
namespace {

// Gives the codes in use new numbers, counted from zero in order of appearance.
class Renumbering {
 public:
  explicit Renumbering(const std::vector<std::string>& texts)
      : texts_(texts), number_(texts.size(), -1) {}

  std::int32_t operator()(std::size_t code) {
    std::int32_t& number = number_[code];
    if (number < 0) {
      number = std::int32_t(used_.size());
      used_.push_back(texts_[code]);
    }
    return number;
  }
  const std::vector<std::string_view>& used() const { return used_; }

 private:
  const std::vector<std::string>& texts_;
  std::vector<std::int32_t> number_;
  std::vector<std::string_view> used_;
};

// The columns of one part of the points table.
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

  ColumnPages pages(const Column& column) {
    const auto source = std::size_t(column.source);
    switch (column.role) {
      case ColumnRole::identity:
        return source == 0 ? indices(column) : keys();
      case ColumnRole::label:
        return label(column);
      case ColumnRole::setting:
        return setting(column);
      case ColumnRole::result:
        return result(column);
      case ColumnRole::metric:
        return metric(column);
      case ColumnRole::provenance:
        return constant_number(column, std::uint64_t(engine::kModelVersion),
                               part_.rows[Table::points]);
    }
    return {};
  }

 private:
  // One value a row: get(chunk, number of the chunk) gives a function of the row.
  template <class T, class Get>
  void gather(std::vector<T>& values, Get get) const {
    values.resize(part_.rows[Table::points]);
    T* out = values.data();
    for (std::size_t c = 0; c < part_.chunks.size(); ++c) {
      const ChunkBuffer& chunk = *part_.chunks[c];
      const auto value = get(chunk, c);
      for (std::size_t i = 0; i < chunk.rows(); ++i) *out++ = T(value(i));
    }
  }

  ColumnPages indices(const Column& column) {
    gather(numbers_, [](const ChunkBuffer& chunk, std::size_t) {
      return [from = chunk.indices()](std::size_t i) { return from[i]; };
    });
    return number_pages(column, numbers_);
  }

  ColumnPages keys() const {
    std::vector<engine::Key> keys;
    gather(keys, [](const ChunkBuffer& chunk, std::size_t) {
      return [from = chunk.keys()](std::size_t i) { return from[i]; };
    });
    return key_pages(keys);
  }

  ColumnPages label(const Column& column) {
    const auto number = std::size_t(column.source);
    Renumbering renumber(inputs_.labels[number].values);
    gather(codes_, [&](const ChunkBuffer& chunk, std::size_t) {
      return [&renumber, from = chunk.label(number)](std::size_t i) {
        return from[i] < 0 ? -1 : renumber(std::size_t(from[i]));
      };
    });
    return text_pages(column, codes_, renumber.used());
  }

  ColumnPages setting(const Column& column) {
    const engine::Leaf& leaf = engine::leaf_table().leaves[std::size_t(column.source)];
    const int slot = layout_.slot_of_leaf[std::size_t(column.source)];
    return slot < 0 ? constant_setting(column, leaf)
                    : varied_setting(column, leaf, std::size_t(slot));
  }

  ColumnPages constant_setting(const Column& column, const engine::Leaf& leaf) const {
    switch (leaf.kind) {
      case engine::LeafKind::quantity:
      case engine::LeafKind::number:
        return constant_number(
            column, std::bit_cast<std::uint64_t>(engine::leaf_double(inputs_.base, leaf)),
            part_.rows[Table::points]);
      case engine::LeafKind::integer:
        return constant_number(column, std::uint64_t(engine::leaf_integer(inputs_.base, leaf)),
                               part_.rows[Table::points]);
      case engine::LeafKind::boolean:
        return constant_boolean(engine::leaf_integer(inputs_.base, leaf) != 0,
                                part_.rows[Table::points]);
      case engine::LeafKind::enumeration:
        return constant_text(leaf.names[std::size_t(engine::leaf_integer(inputs_.base, leaf))],
                             part_.rows[Table::points]);
      case engine::LeafKind::text:
        return constant_text(engine::leaf_text(inputs_.base, leaf), part_.rows[Table::points]);
    }
    return {};
  }

  ColumnPages varied_setting(const Column& column, const engine::Leaf& leaf, std::size_t slot) {
    // The value of a slot, or what stands for null in a column of this type.
    const auto slots_or = [&column, slot](std::uint64_t null) {
      return [null, nullable = column.nullable, slot](const ChunkBuffer& chunk, std::size_t) {
        return [null, nullable, from = chunk.slot(slot)](std::size_t i) {
          return nullable && from[i] == ChunkBuffer::kNullSlot ? null : from[i];
        };
      };
    };
    constexpr auto nan = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());
    switch (leaf.kind) {
      case engine::LeafKind::quantity:
      case engine::LeafKind::number:
        gather(numbers_, slots_or(nan));
        return number_pages(column, numbers_);
      case engine::LeafKind::integer:
        gather(numbers_, slots_or(std::uint64_t(kNullInteger)));
        return number_pages(column, numbers_);
      case engine::LeafKind::boolean:
        gather(flags_, slots_or(kNullBoolean));
        return boolean_pages(column, flags_);
      case engine::LeafKind::enumeration:
        gather(names_, slots_or(ChunkBuffer::kNullSlot));  // -1 as a code
        return text_pages(column, names_, leaf.names);
      case engine::LeafKind::text:
        return pooled(column, [slot](const ChunkBuffer& chunk) {
          return [from = chunk.slot(slot)](std::size_t i) { return std::uint32_t(from[i]); };
        });
    }
    return {};
  }

  // Texts by their numbers in the chunks' own pools.
  template <class Get>
  ColumnPages pooled(const Column& column, Get get) {
    Renumbering renumber(pool_.texts());
    gather(codes_, [&](const ChunkBuffer& chunk, std::size_t c) {
      return [&renumber, &known = text_codes_[c], value = get(chunk)](std::size_t i) {
        const std::uint32_t code = value(i);
        return code == ChunkBuffer::kNoText ? -1 : renumber(known[code]);
      };
    });
    return text_pages(column, codes_, renumber.used());
  }

  template <class Get>
  ColumnPages verdict_name(const Column& column, Get get) {
    gather(names_, [get, nullable = column.nullable](const ChunkBuffer& chunk, std::size_t) {
      return [get, nullable, from = chunk.verdicts()](std::size_t i) {
        // A point that does not work has no kernels whose label this could be: null, which is what -1 stands for.
        const bool absent = nullable && from[i].status != engine::Status::ok;
        return absent ? std::int8_t(-1) : std::int8_t(get(from[i]));
      };
    });
    constexpr auto names = enum_names(decltype(get(ChunkBuffer::Verdict{})){});
    return text_pages(column, names_, names);
  }

  ColumnPages share_pages(const Column& column, double ChunkBuffer::Verdict::*share) {
    gather(numbers_, [share](const ChunkBuffer& chunk, std::size_t) {
      return [share, from = chunk.verdicts()](std::size_t i) {
        return std::bit_cast<std::uint64_t>(from[i].*share);
      };
    });
    return number_pages(column, numbers_);
  }

  ColumnPages result(const Column& column) {
    using Verdict = ChunkBuffer::Verdict;
    switch (ResultColumn(column.source)) {
      case ResultColumn::status:
        return verdict_name(column, [](const Verdict& v) { return v.status; });
      case ResultColumn::reason:
        return pooled(column, [](const ChunkBuffer& chunk) {
          return [from = chunk.verdicts()](std::size_t i) { return from[i].reason; };
        });
      case ResultColumn::reason_class:
        // A point that works has no reason: null, which is what -1 stands for.
        gather(names_, [](const ChunkBuffer& chunk, std::size_t) {
          return [from = chunk.verdicts()](std::size_t i) {
            const auto code = std::int8_t(from[i].reason_class);
            return code == 0 ? std::int8_t(-1) : code;
          };
        });
        return text_pages(column, names_, enum_names(engine::ReasonClass{}));
      case ResultColumn::saturation:
        return verdict_name(column, [](const Verdict& v) { return v.saturation; });
      case ResultColumn::bound:
        return verdict_name(column, [](const Verdict& v) { return v.bound; });
      case ResultColumn::tier:
        return verdict_name(column, [](const Verdict& v) { return v.tier; });
      case ResultColumn::calibration:
        return pooled(column, [](const ChunkBuffer& chunk) {
          return [from = chunk.verdicts()](std::size_t i) { return from[i].calibration; };
        });
      case ResultColumn::extrapolated:
        gather(flags_, [](const ChunkBuffer& chunk, std::size_t) {
          return [from = chunk.verdicts()](std::size_t i) { return from[i].extrapolated; };
        });
        return boolean_pages(column, flags_);
      case ResultColumn::extrapolated_share:
        return share_pages(column, &ChunkBuffer::Verdict::extrapolated_share);
      case ResultColumn::power_limited_share:
        return share_pages(column, &ChunkBuffer::Verdict::power_limited_share);
    }
    return {};
  }

  ColumnPages metric(const Column& column) {
    const auto number = std::size_t(column.source);
    const int slot = layout_.slot_of_figure[number];
    if (slot < 0) return null_pages(part_.rows[Table::points]);
    const double scale = metric_table()[number].unit.per_base;
    gather(numbers_, [slot, scale](const ChunkBuffer& chunk, std::size_t) {
      return [scale, from = chunk.figure(std::size_t(slot))](std::size_t i) {
        return std::bit_cast<std::uint64_t>(from[i] * scale);
      };
    });
    return number_pages(column, numbers_);
  }

  const SchemaInputs& inputs_;
  const RowLayout& layout_;
  const PartRows& part_;
  TextPool pool_;
  std::vector<std::vector<std::uint32_t>> text_codes_;  // by chunk: its text's number in pool_
  // The column at hand.
  std::vector<std::uint64_t> numbers_;
  std::vector<std::int32_t> codes_;
  std::vector<std::int8_t> names_;
  std::vector<std::uint8_t> flags_;
};

}  // namespace

std::vector<ColumnPages> PartEncoder::point_pages(const PartRows& part) const {
  PointColumns columns(inputs_, layout_, part);
  std::vector<ColumnPages> pages;
  for (const Column& column : formats_[std::size_t(Table::points)].columns()) {
    pages.push_back(columns.pages(column));
  }
  return pages;
}

}  // namespace results
