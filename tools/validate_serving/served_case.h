// A measured serving run beside the scenario that should reproduce it, and what came of that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/scenario.h"

namespace tools {

struct ServedCase {
  std::string source;  // the folder it comes from
  std::string id;
  std::string engine;
  std::string version;
  engine::Scenario scenario;
  // Where there are any, it was one of these instead; nobody says which.
  std::vector<engine::Scenario> recipes;
  double ttft = 0;         // measured, mean over requests, seconds
  double tpot = 0;         // likewise
  double output_rate = 0;  // measured tokens a second of all; 0: not stated
  std::string left_out;    // why it is not compared; empty: it is
};

// One quantity of one run, measured and predicted.
struct Figure {
  std::string name;  // "ttft_mean_s"
  double measured = 0;
  double predicted = 0;
  double low = 0;  // the 90% interval of the prediction; both 0: none was asked for
  double high = 0;
};

struct ComparedCase {
  const ServedCase* served = nullptr;
  std::string variant;  // which calibration, which block count
  // What was evaluated; of several recipes, the nearest to the measured time per token.
  const engine::Scenario* scenario = nullptr;
  std::vector<Figure> figures;
  double kv_blocks = 0;  // predicted or given
  std::string failure;   // the point could not be evaluated
};

}  // namespace tools
