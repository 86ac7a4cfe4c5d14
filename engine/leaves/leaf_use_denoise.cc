// The rules of engine/leaves/leaf_use.h about images: nothing is cached, chosen or generated token by token.
#include <string_view>
#include <vector>

#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"

namespace engine {

using namespace leaf_use_words;

namespace {

constexpr std::string_view kNotInImages[] = {
    "serving.sampling",    "serving.attention", "serving.decode_parts",   "host.largest_graph",
    "host.captured_sizes", "host.graph_sizes",  "host.step_per_kv_token",
};

}  // namespace

std::vector<LeafUse> denoise_uses() {
  std::vector<LeafUse> uses{of_task("denoise", "task is denoise", {"denoise"})};
  for (const std::string_view path : kNotInImages) {
    uses.push_back(of_task(path, "task is not denoise", {"step", "request", "serve", "train"}));
  }
  return uses;
}

}  // namespace engine
