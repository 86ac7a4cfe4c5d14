// The keys of one config.json, with a mistake for each that is missing or of the wrong kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/model_spec.h"
#include "sweep/language/node.h"

namespace sweep {

class HfFields {
 public:
  HfFields(const Node& map, std::string architecture, std::vector<engine::Mistake>& mistakes)
      : map_(map), architecture_(std::move(architecture)), mistakes_(mistakes) {}

  // A key that is there and not null.
  bool has(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;  // must be there
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  bool boolean(std::string_view key, bool otherwise) const;
  double share(std::string_view key, double otherwise) const;  // from 0 to 1
  std::int64_t entries(std::string_view list) const;           // 0 where there is no such list
  // What the key says has no place in a model here.
  void refuse(std::string_view key, std::string why) const;
  const Node* find(std::string_view key) const { return map_.find(key); }

  // The same for a map inside ("text_config").
  HfFields inside(std::string_view key) const;

 private:
  std::int64_t read_integer(std::string_view key, const Node& node) const;

  const Node& map_;
  std::string architecture_;
  std::vector<engine::Mistake>& mistakes_;
};

// How an architecture's keys become a model.
struct HfArchitecture {
  std::string_view name;
  void (*read)(const HfFields& fields, engine::ModelSpec& model);
};
const std::vector<HfArchitecture>& hf_table();

// What layers of an architecture have that a model here cannot say, and what to write instead; null: nothing is known of it.
struct HfUnmodelled {
  std::string_view architecture;
  std::string_view has;
  std::string_view hint;
};
const HfUnmodelled* hf_unmodelled(std::string_view architecture);

}  // namespace sweep
