// Events of a trace in the Chrome trace-event format, which Perfetto and chrome://tracing show.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tools {

using TraceArguments = std::vector<std::pair<std::string, double>>;

// Where a slice stands: a process (a replica) and a thread in it (a lane).
struct TraceTrack {
  std::int64_t process = 0;
  std::int64_t thread = 0;
};

// Times go in as seconds and are kept as whole nanoseconds, so that what lies within another before
// does so after rounding.
class TraceEvents {
 public:
  // What is named again keeps its first name.
  void name_process(std::int64_t process, const std::string& name);
  void name_thread(TraceTrack track, const std::string& name);
  // Slices of one track lie within one another or apart.
  void slice(TraceTrack track, const std::string& name, const std::string& category, double begin,
             double end, const TraceArguments& arguments = {});
  void counter(std::int64_t process, const std::string& name, double time,
               const TraceArguments& values);
  // An arrow from a slice to another, each found by its track and a moment within it.
  void arrow(const std::string& name, TraceTrack from, double from_time, TraceTrack to,
             double to_time);

  // JSON, events in the order of their times; `facts` are put beside them.
  std::string json(const std::vector<std::pair<std::string, std::string>>& facts,
                   const TraceArguments& figures) const;

 private:
  struct Event {
    std::int64_t time = 0;  // nanoseconds
    std::int64_t longest_first = 0;
    std::string text;
  };
  void add(std::int64_t time, std::int64_t length, std::string text);

  std::vector<Event> events_;
  std::set<std::pair<std::int64_t, std::int64_t>>
      named_;  // process and thread; -1: the process itself
  std::int64_t arrows_ = 0;
};

// The first thread whose slices so far end by `begin`, so that no two of one thread overlap.
class TraceLanes {
 public:
  std::int64_t lane(double begin, double end);

 private:
  std::vector<double> busy_until_;
};

}  // namespace tools
