// The rules of engine/leaves/leaf_use.h about passages that are looked up for a prompt.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"

namespace engine {

using namespace leaf_use_words;

namespace {

// What of a deployment counts only where it generates tokens.
constexpr std::string_view kOfAnswers[] = {
    "rerank.host.graph_launch", "rerank.host.largest_graph", "rerank.host.captured_sizes",
    "rerank.host.graph_sizes",  "rerank.serving.attention",  "rerank.serving.decode_parts",
    "rerank.serving.sampling",
};

constexpr std::string_view kStore = "there is a store (retrieval.vectors)";

}  // namespace

std::vector<LeafUse> retrieval_uses() {
  std::vector<LeafUse> uses{of_task("retrieval", "task is request", {"request"}),
                            of_task("rerank", "task is request", {"request"}),
                            {"rerank", kStore, {above("retrieval.vectors", 0)}}};
  uses.push_back({"rerank.host.mode",
                  "rerank.host.eager_launch_cost is above 0",
                  {above("rerank.host.eager_launch_cost", 0)}});
  for (const Leaf& leaf : leaf_table().leaves) {
    const std::string_view path = leaf.path;
    if (path.starts_with("retrieval.") && path != "retrieval.vectors") {
      uses.push_back({path, kStore, {above("retrieval.vectors", 0)}});
    }
  }
  for (const std::string_view path : {"retrieval.lists", "retrieval.probes"}) {
    uses.push_back({path, "retrieval.index is ivf", {is("retrieval.index", {"ivf"})}});
  }
  for (const std::string_view path : {"retrieval.host_bandwidth", "retrieval.host_peak"}) {
    uses.push_back({path, "retrieval.place is host", {is("retrieval.place", {"host"})}});
  }
  for (const std::string_view path : {"retrieval.candidates", "retrieval.question"}) {
    uses.push_back({path, "there is a rerank deployment", {on("rerank.present")}});
  }
  for (const std::string_view path : kOfAnswers) {
    uses.push_back({path, "the deployment generates tokens, which one that ranks does not", {}});
  }
  return uses;
}

}  // namespace engine
