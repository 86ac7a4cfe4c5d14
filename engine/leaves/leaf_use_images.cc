// The rules of engine/leaves/leaf_use.h about images: nothing is cached, chosen or generated token by token.
#include <algorithm>
#include <iterator>
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

// What of an engine counts where no text is read or written: its memory and its kernels.
constexpr std::string_view kOfNetworks[] = {"serving.memory_utilization", "serving.memory_share",
                                            "serving.reserved_memory", "serving.kernels"};

// Convolutional networks have no decoder's layers, no experts and no engine for text. How they would be split counts, as that is refused.
bool not_in_networks(std::string_view path) {
  if (path.starts_with("model.")) {
    return path != "model.name" && path != "model.hub" && path != "model.network";
  }
  if (path.starts_with("serving.")) {
    return std::ranges::find(kOfNetworks, path) == std::end(kOfNetworks);
  }
  return path == "parallel.redundant_experts" || path == "parallel.expert_copies";
}

}  // namespace

std::vector<LeafUse> image_uses() {
  std::vector<LeafUse> uses{of_task("denoise", "task is denoise", {"denoise"}),
                            of_task("classify", "task is classify", {"classify"})};
  for (const std::string_view path : kNotInImages) {
    uses.push_back(of_task(path, "task is neither denoise nor classify",
                           {"step", "request", "serve", "train"}));
  }
  std::string_view last;
  for (const Leaf& leaf : leaf_table().leaves) {
    if (!not_in_networks(leaf.path)) continue;
    // A section inside the model or the engine is one rule.
    const std::string_view path = leaf.path;
    const std::string_view part = path.substr(0, path.find('.', path.find('.') + 1));
    if (part == last) continue;
    last = part;
    uses.push_back(
        of_task(part, "task is not classify", {"step", "request", "serve", "train", "denoise"}));
  }
  return uses;
}

}  // namespace engine
