#include "tools/trace/point_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tools/trace/trace_tracks.h"

namespace tools {
namespace {

using engine::DeploymentRole;
using engine::RequestRow;

class ServedTrace {
 public:
  explicit ServedTrace(TraceEvents& events) : events_(events) {
    events_.name_process(kQueueProcess, "queue");
  }

  void add(const RequestRow& request) {
    const std::string name = "request " + std::to_string(request.number);
    const double arrival = request.arrival.value;
    if (std::isnan(request.finish.value)) return;  // refused: it never ran
    const double scheduled = request.scheduled.value;
    const TraceTrack queue{kQueueProcess, queue_.lane(arrival, scheduled)};
    events_.slice(queue, name, "queue", arrival, scheduled, arguments(request));
    const bool read_elsewhere = !std::isnan(request.received.value);
    if (!read_elsewhere) {
      return add_answer(request, name, queue, arrival, scheduled);
    }
    const double read = request.read.value;
    const TraceTrack reader = track(DeploymentRole::prefill, request.reader, scheduled, read);
    events_.slice(reader, name, "prompt", scheduled, read, arguments(request));
    events_.arrow(name, queue, arrival, reader, scheduled);
    add_answer(request, name, reader, scheduled,
               std::min(request.received.value, request.finish.value));
  }

 private:
  static TraceArguments arguments(const RequestRow& request) {
    return {{"prompt_tokens", double(request.prompt_tokens)},
            {"output_tokens", double(request.output_tokens)},
            {"cached_tokens", double(request.cached_tokens)},
            {"preemptions", double(request.preemptions)}};
  }

  // On its replica from `begin` on: what is left of the prompt, then the answer. It comes from the slice
  // of `before` that began at `since`.
  void add_answer(const RequestRow& request, const std::string& name, TraceTrack before,
                  double since, double begin) {
    const double finish = request.finish.value;
    const TraceTrack replica = track(DeploymentRole::main, request.replica, begin, finish);
    events_.slice(replica, name, "request", begin, finish, arguments(request));
    const double first = std::clamp(request.first_token.value, begin, finish);
    if (first > begin) events_.slice(replica, "prompt", "prompt", begin, first);
    if (finish > first) events_.slice(replica, "answer", "answer", first, finish);
    events_.arrow(name, before, since, replica, begin);
  }

  TraceTrack track(DeploymentRole role, std::int64_t replica, double begin, double end) {
    const std::int64_t process = process_of(role, replica);
    events_.name_process(process, replica_name(role, replica));
    return {process, kFirstRequestThread + lanes_[process].lane(begin, end)};
  }

  TraceEvents& events_;
  TraceLanes queue_;
  std::map<std::int64_t, TraceLanes> lanes_;
};

}  // namespace

void add_served(const engine::Outcome& outcome, std::size_t most, TraceEvents& events) {
  std::vector<const RequestRow*> requests;
  requests.reserve(outcome.requests.size());
  for (const RequestRow& request : outcome.requests) requests.push_back(&request);
  std::ranges::stable_sort(requests, {}, [](const RequestRow* r) { return r->arrival.value; });
  if (requests.size() > most) requests.resize(most);
  // Lanes are given out in the order in which requests get there.
  std::ranges::stable_sort(requests, {}, [](const RequestRow* r) { return r->scheduled.value; });
  ServedTrace trace(events);
  for (const RequestRow* request : requests) trace.add(*request);
  for (const engine::TimelineRow& row : outcome.timeline) {
    const std::int64_t process = process_of(row.role, row.replica);
    const double time = row.time.value;
    events.counter(process, "requests", time,
                   {{"running", double(row.running)}, {"waiting", double(row.waiting)}});
    events.counter(process, "batch", time, {{"sequences", double(row.batch)}});
    events.counter(process, "KV cache", time, {{"percent", 100 * row.kv_use}});
    events.counter(process, "output", time, {{"tokens_per_s", row.output.value}});
  }
}

void add_kernels(const engine::Outcome& outcome, TraceEvents& events) {
  events.name_process(kKernelProcess, "kernels of one device");
  // Devices that make samples and devices that train work side by side; a request is read by one deployment and answered by the other.
  const bool side_by_side = !std::isnan(outcome.metrics.rollout_time.value);
  std::map<DeploymentRole, double> ends;
  for (std::size_t i = 0; i < outcome.kernels.size();) {
    const DeploymentRole role = outcome.kernels[i].role;
    const engine::Phase phase = outcome.kernels[i].phase;
    const TraceTrack track{kKernelProcess, 1 + std::int64_t(role)};
    events.name_thread(track, std::string(engine::name_of(role)) + ": time by phase and kernel");
    double& end = ends[side_by_side ? role : DeploymentRole::main];
    double begin = end;
    std::size_t last = i;
    while (last < outcome.kernels.size() && outcome.kernels[last].role == role &&
           outcome.kernels[last].phase == phase) {
      end += outcome.kernels[last++].work.exposed().value;
    }
    events.slice(track, std::string(engine::name_of(phase)), "phase", begin, end);
    for (; i < last; ++i) {
      const engine::KernelRow& row = outcome.kernels[i];
      const double next = i + 1 == last ? end : begin + row.work.exposed().value;
      events.slice(track, std::string(engine::name_of(row.op)),
                   std::string(engine::name_of(row.family)), begin, next,
                   {{"calls", row.work.calls},
                    {"flops", row.work.flops.value},
                    {"bytes", row.work.bytes.value},
                    {"hidden_s", row.work.hidden.value}});
      begin = next;
    }
  }
}

}  // namespace tools
