// The fields of a message in the wire format of Protocol Buffers, one after another. A reader of six fields needs no
// generated classes and no library: the format is a handful of rules that never change.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tools {

struct WireField {
  std::uint64_t number = 0;
  bool is_bytes = false;
  std::uint64_t value = 0;  // of a number
  std::string_view bytes;   // of a text, a message or packed numbers
};

class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message), size_(message.size()) {}

  // The next field, or nothing: at the end, or where the message is damaged.
  std::optional<WireField> next();
  // A number as it stands in a list of packed numbers, or before a message of a file.
  std::optional<std::uint64_t> number();
  // So many bytes as they stand.
  std::optional<std::string_view> bytes(std::uint64_t count);

  bool at_end() const { return rest_.empty(); }
  bool damaged() const { return damaged_; }
  std::size_t position() const { return size_ - rest_.size(); }

 private:
  std::string_view rest_;
  std::size_t size_;
  bool damaged_ = false;
};

}  // namespace tools
