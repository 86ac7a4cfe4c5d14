// The rules of engine/leaves/leaf_use.h about messages to clients, and about prompts that wait for others.
#include <string_view>
#include <vector>

#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"

namespace engine {

using namespace leaf_use_words;

namespace {

constexpr std::string_view kServedMessages[] = {
    "host.front_end_per_message", "host.front_end_processes", "host.front_end_merges",
    "serving.stream_interval",    "serving.first_message",    "serving.receive_interval",
    "serving.batch_wait",         "serving.batch_wait_share",
};

}  // namespace

std::vector<LeafUse> message_uses() {
  std::vector<LeafUse> uses{
      {"serving.first_message",
       "serving.stream_interval is above 1",
       {above("serving.stream_interval", 1)}},
      {"serving.batch_wait_share",
       "serving.batch_wait is above 0",
       {above("serving.batch_wait", 0)}},
  };
  for (const std::string_view path : {"host.front_end_processes", "host.front_end_merges"}) {
    uses.push_back(
        {path, "host.front_end_per_message is above 0", {above("host.front_end_per_message", 0)}});
  }
  for (const std::string_view path : kServedMessages) uses.push_back(of_serving(path));
  return uses;
}

}  // namespace engine
