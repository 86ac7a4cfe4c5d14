// Memory that points use one after another. It changes no result: only how often memory is asked for, and
// whether step times that two points share are worked out once.
#pragma once

#include <memory>

namespace engine {

class AloneRuns;
class ServingSim;
struct TrainScratch;
struct PointLog;

class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  ServingSim& serving();
  TrainScratch& training();
  // The scratch of a second model on the same devices. The two are evaluated by turns, and each finds its step times again.
  Scratch& neighbour();
  AloneRuns& alone_runs();

  // After a point that broke off it may be large.
  void forget();

  // Where the next points write down what they did when; null, as a rule: nowhere.
  void write_down(PointLog* log) { log_ = log; }
  PointLog* log() const { return log_; }

 private:
  std::unique_ptr<ServingSim> serving_;     // made by the first served point
  std::unique_ptr<TrainScratch> training_;  // made by the first one that trains
  std::unique_ptr<Scratch> neighbour_;      // made by the first point that has one,
  std::unique_ptr<AloneRuns> alone_runs_;   // as is this
  PointLog* log_ = nullptr;
};

}  // namespace engine
