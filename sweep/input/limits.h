// How much a file may ask of its reader. Far above what honest files need, so that a hostile or broken
// one ends in a message, not in minutes or gigabytes. LLMSWEEP_LIMITS=name=value,... sets others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace sweep {

struct InputLimits {
  std::int64_t spec_bytes = 64 << 20;
  std::int64_t table_bytes = std::int64_t{2} << 30;
  std::int64_t expansion = 50;
  std::int64_t nodes = 2'000'000;
  std::int64_t depth = 100;
  std::int64_t keys = 100'000;
  std::int64_t key_bytes = 1024;
  std::int64_t scalar_bytes = 1 << 20;
  std::int64_t text_bytes = 64 << 10;
  std::int64_t expression_bytes = 16 << 10;
  std::int64_t line_bytes = 16 << 20;
  std::int64_t files = 1000;
  std::int64_t file_depth = 32;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("spec_bytes", self.spec_bytes,
          "bytes of a spec, model configuration or calibration; of YAML also once its aliases are "
          "put in place");
    visit("table_bytes", self.table_bytes, "bytes of a trace or table of kernels, unpacked");
    visit("expansion", self.expansion,
          "bytes unpacked from one byte of a gzipped file that holds more than 64 MiB");
    visit("nodes", self.nodes,
          "values, lists and maps of a YAML file once its aliases are put in place");
    visit("depth", self.depth, "lists and maps inside one another");
    visit("keys", self.keys, "keys of one map");
    visit("key_bytes", self.key_bytes, "bytes of a key");
    visit("scalar_bytes", self.scalar_bytes, "bytes of a value in YAML or JSON");
    visit("text_bytes", self.text_bytes,
          "bytes of a field or label that is a text, such as a name");
    visit("expression_bytes", self.expression_bytes, "bytes of an expression");
    visit("line_bytes", self.line_bytes, "bytes of a line of a trace or table");
    visit("files", self.files, "files that one sweep includes or names");
    visit("file_depth", self.file_depth,
          "files that include, or are made from, one another in a chain");
  }
};

// A gzipped file may hold this much however small it is: text that repeats itself packs well. What is made of a text takes up to ten
// times its bytes.
inline constexpr std::int64_t kAlwaysUnpacked = 64 << 20;

// The name of the environment variable that sets other limits.
inline constexpr const char* kLimitsVariable = "LLMSWEEP_LIMITS";

// The defaults with "name=value,name=value" over them. A value is a whole number, at least 1; K, M and
// G behind it are powers of 1024.
engine::Result<InputLimits> parse_limits(std::string_view text);

// The limits in force: the environment's where they can be read, else the defaults.
InputLimits input_limits();

// "more than 100 levels deep": what was exceeded, with the limit's name and the way to raise it.
engine::Mistake beyond_limit(engine::Location where, std::string what, std::string_view limit);

// "64 MiB", "1000": a limit for messages.
std::string limit_text(std::int64_t value);

}  // namespace sweep
