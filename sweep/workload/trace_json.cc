// Traces as JSON lines: an object a row.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sweep/workload/trace_rows.h"

namespace sweep {
namespace {

using Json = nlohmann::json;

// Takes the values of one line as they are read, without building an object for each of a million.
class RowReader final : public Json::json_sax_t {
 public:
  enum class End { row, not_json, not_an_object, wrong_value };

  void start(TraceRowText& row, std::vector<std::string>* keys) {
    row_ = &row;
    keys_ = keys;
    depth_ = 0;
    listing_ = false;
    column_ = {};
    end_ = End::row;
  }
  End end() const { return end_; }
  const std::string& key() const { return key_; }     // of a wrong value
  std::size_t position() const { return position_; }  // where it is not JSON

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(Json::number_integer_t value) override {
    // Not unsigned, so below zero: no name of a block.
    return hashed() ? refuse(End::wrong_value) : number(double(value));
  }
  bool number_unsigned(Json::number_unsigned_t value) override {
    if (!hashed()) return number(double(value));
    row_->hashes.push_back(value);
    return true;
  }
  bool number_float(Json::number_float_t value, const std::string&) override {
    return hashed() ? refuse(End::wrong_value) : number(value);
  }
  bool string(std::string& value) override { return name(std::move(value)) || other(); }
  bool binary(Json::binary_t&) override { return other(); }
  bool start_object(std::size_t) override {
    if (depth_ == 1 && column_.field != TraceField::none) return refuse(End::wrong_value);
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ != 1) return true;
    key_ = std::move(name);
    column_ = trace_column(key_);
    if (keys_ != nullptr) keys_->push_back(key_);
    row_->places[std::size_t(column_.field)] = TraceRowText::kAfterItsName;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0) return refuse(End::not_an_object);
    if (depth_ == 1) {
      if (column_.field != TraceField::none && column_.field != TraceField::hashes) {
        return refuse(End::wrong_value);
      }
      listing_ = column_.field == TraceField::hashes;
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    if (--depth_ == 1) listing_ = false;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    position_ = position;
    return refuse(End::not_json);
  }

 private:
  bool hashed() const { return listing_ && depth_ == 2; }
  bool refuse(End end) {
    end_ = end;
    return false;
  }
  // Takes the text of a column that holds names.
  bool name(std::string text) {
    if (depth_ != 1) return false;
    const auto keep = [&text](std::string& kept, std::string_view& of_row) {
      kept = std::move(text);
      of_row = kept;
      return true;
    };
    if (column_.field == TraceField::tenant) return keep(tenant_, row_->tenant);
    if (column_.field == TraceField::model) return keep(model_, row_->model);
    if (column_.field == TraceField::id) return keep(id_, row_->id);
    return false;
  }
  bool number(double value) {
    const bool may_be_name = column_.field == TraceField::id || column_.field == TraceField::tenant;
    if (may_be_name && name(fmt::format("{}", value))) return true;
    const bool wanted = column_.field != TraceField::hashes && column_.field != TraceField::model;
    if (depth_ != 1 || !wanted) return other();
    row_->set(column_, value);
    return true;
  }
  // A value of a type no known column has.
  bool other() {
    if (depth_ == 0) return refuse(End::not_an_object);
    const bool known = listing_ || (depth_ == 1 && column_.field != TraceField::none);
    return known ? refuse(End::wrong_value) : true;
  }

  TraceRowText* row_ = nullptr;
  std::vector<std::string>* keys_ = nullptr;  // of the first row
  int depth_ = 0;
  bool listing_ = false;  // inside the list of hashes
  TraceColumn column_;
  std::string key_, tenant_, model_, id_;
  End end_ = End::row;
  std::size_t position_ = 0;
};

// What was written for a key, as far as it matters, and where.
struct Written {
  std::string_view text;
  int place;
};
Written written_for(const std::string& key, std::string_view line) {
  const std::size_t name = line.find('"' + key + '"');
  if (name == std::string_view::npos) return {"", 1};
  std::size_t at = line.find(':', name + key.size() + 2) + 1;
  while (at < line.size() && line[at] == ' ') ++at;
  const bool list = at < line.size() && line[at] == '[';
  std::size_t end = line.find_first_of(list ? "]" : ",}", at);
  end = std::min(list ? end + 1 : end, line.size());
  return {trimmed(line.substr(at, end - at)), int(at) + 1};
}

}  // namespace

engine::Result<std::shared_ptr<const engine::Trace>> parse_json_trace(std::string_view text,
                                                                      const std::string& name) {
  TraceBuilder builder(name, text);
  RowReader reader;
  TraceRowText row;
  bool first = true;
  bool readable = true;
  int number = 0;
  for (std::size_t start = 0; start < text.size() && readable;) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    start = end + 1;
    ++number;
    if (!builder.within(line, number) || trimmed(line).empty()) continue;
    row.clear();
    std::vector<std::string> keys;
    reader.start(row, first ? &keys : nullptr);
    Json::sax_parse(line.begin(), line.end(), &reader);
    switch (reader.end()) {
      case RowReader::End::not_json:
        builder.mistake(number, int(std::min(reader.position(), line.size())),
                        "the line is not JSON up to its end");
        break;
      case RowReader::End::not_an_object:
        builder.mistake(number, 1, "the line is not a JSON object");
        break;
      case RowReader::End::wrong_value: {
        const Written written = written_for(reader.key(), line);
        builder.mistake(number, written.place,
                        fmt::format("'{}' is not a value of {}", written.text, reader.key()));
        break;
      }
      case RowReader::End::row:
        if (first) {
          std::vector<TraceBuilder::Name> names;
          for (const std::string& key : keys) names.push_back({key, 1});
          readable = builder.columns(names, number);
          first = false;
        }
        if (readable) builder.add_row(row, number, line);
        break;
    }
  }
  return builder.finish();
}

}  // namespace sweep
