#include "tools/trace/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sweep/language/parse_quantity.h"

namespace tools {
namespace {

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// The format counts in microseconds.
std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

// Bytes that are no UTF-8 are replaced: names come from files of others.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string object(const TraceArguments& arguments) {
  std::string text;
  for (const auto& [name, value] : arguments) {
    if (!std::isfinite(value)) continue;
    text +=
        fmt::format("{}{}:{}", text.empty() ? "" : ",", quoted(name), sweep::format_number(value));
  }
  return "{" + text + "}";
}

}  // namespace

void TraceEvents::add(std::int64_t time, std::int64_t length, std::string text) {
  events_.push_back({time, -length, std::move(text)});
}

void TraceEvents::name_process(std::int64_t process, const std::string& name) {
  if (!named_.emplace(process, -1).second) return;
  add(0, 0,
      fmt::format(
          R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"ts":0,"args":{{"name":{}}}}})",
          process, quoted(name)));
}

void TraceEvents::name_thread(TraceTrack track, const std::string& name) {
  if (!named_.emplace(track.process, track.thread).second) return;
  add(0, 0,
      fmt::format(
          R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"ts":0,"args":{{"name":{}}}}})",
          track.process, track.thread, quoted(name)));
}

void TraceEvents::slice(TraceTrack track, const std::string& name, const std::string& category,
                        double begin, double end, const TraceArguments& arguments) {
  const std::int64_t from = nanoseconds(begin);
  const std::int64_t to = nanoseconds(end);
  add(from, to - from,
      fmt::format(R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{}}})",
                  quoted(name), quoted(category), track.process, track.thread, microseconds(from),
                  microseconds(to - from), object(arguments)));
}

void TraceEvents::counter(std::int64_t process, const std::string& name, double time,
                          const TraceArguments& values) {
  const std::int64_t at = nanoseconds(time);
  add(at, 0,
      fmt::format(R"({{"ph":"C","name":{},"pid":{},"tid":0,"ts":{},"args":{}}})", quoted(name),
                  process, microseconds(at), object(values)));
}

void TraceEvents::arrow(const std::string& name, TraceTrack from, double from_time, TraceTrack to,
                        double to_time) {
  const std::int64_t id = ++arrows_;
  const auto end = [&](const char* phase, TraceTrack track, double time, const char* binding) {
    const std::int64_t at = nanoseconds(time);
    // After the slice that begins at this moment, which it belongs to.
    add(at, -1,
        fmt::format(R"({{"ph":"{}","name":{},"cat":"flow","id":{},"pid":{},"tid":{},"ts":{}{}}})",
                    phase, quoted(name), id, track.process, track.thread, microseconds(at),
                    binding));
  };
  end("s", from, from_time, "");
  end("f", to, to_time, R"(,"bp":"e")");
}

std::string TraceEvents::json(const std::vector<std::pair<std::string, std::string>>& facts,
                              const TraceArguments& figures) const {
  std::vector<const Event*> order;
  order.reserve(events_.size());
  for (const Event& event : events_) order.push_back(&event);
  // Of slices that begin together the longer one is around the other.
  std::ranges::stable_sort(
      order, {}, [](const Event* event) { return std::pair(event->time, event->longest_first); });
  std::string text = "{\"displayTimeUnit\":\"ms\",\"otherData\":{";
  for (const auto& [name, value] : facts) text += quoted(name) + ":" + quoted(value) + ",";
  text += "\"figures\":" + object(figures) + "},\"traceEvents\":[\n";
  for (std::size_t i = 0; i < order.size(); ++i) {
    text += order[i]->text;
    text += i + 1 < order.size() ? ",\n" : "\n";
  }
  return text + "]}\n";
}

std::int64_t TraceLanes::lane(double begin, double end) {
  for (std::size_t i = 0; i < busy_until_.size(); ++i) {
    if (busy_until_[i] > begin) continue;
    busy_until_[i] = end;
    return std::int64_t(i) + 1;
  }
  busy_until_.push_back(end);
  return std::int64_t(busy_until_.size());
}

}  // namespace tools
