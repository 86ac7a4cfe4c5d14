// Recorded requests in memory: read once, shared read-only by all points that replay them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace engine {

struct Trace {
  std::vector<double> arrival;  // seconds from the first row on, never falling; empty: not recorded
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> output;
  std::vector<std::int64_t> session;   // empty: not recorded
  std::vector<std::int32_t> priority;  // empty: not recorded
  std::vector<std::int32_t> tenant;    // empty: not recorded
  std::vector<std::int32_t> model;     // position in model_names; empty: not recorded
  std::vector<std::string> model_names;
  // Chained hashes of the blocks of each prompt: row i has [first_block[i], first_block[i + 1]).
  std::vector<std::uint64_t> blocks;
  std::vector<std::uint32_t> first_block;  // empty: not recorded
  std::int64_t block_tokens = 0;
  std::string checksum;  // of the file's content

  std::size_t size() const { return prompt.size(); }
  // Number of tenants; they are numbered from 0.
  std::int64_t tenants() const {
    return tenant.empty() ? 1 : std::int64_t{1} + *std::max_element(tenant.begin(), tenant.end());
  }
};

}  // namespace engine
