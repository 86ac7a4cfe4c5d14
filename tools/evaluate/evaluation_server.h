// Points for optimisers, without a process for each question: requests come in, rows go out, until the input ends.
#pragma once

#include <istream>
#include <list>
#include <ostream>
#include <string>
#include <utility>

#include "sweep/language/batch_reader.h"
#include "sweep/language/library.h"
#include "tools/evaluate/batch_request.h"

namespace tools {

class EvaluationServer {
 public:
  // 0 threads: as many as the machine has.
  EvaluationServer(sweep::Library library, int threads)
      : library_(std::move(library)), threads_(threads) {}

  // A line of JSON for every request, and its answer: {"rows": 2, "bytes": 5120} in a line of its own and so many bytes of a
  // Parquet file, one row for each scenario in the order given; or {"error": "...", "scenarios": [17]} where the
  // request, or some scenarios of it, cannot be read.
  void serve(std::istream& in, std::ostream& out);

 private:
  void answer(const std::string& line, std::ostream& out);
  engine::Result<sweep::BatchReader*> reader_of(const std::string& base);

  sweep::Library library_;
  int threads_;
  // By the text of the base, the one used last in front.
  std::list<std::pair<std::string, sweep::BatchReader>> readers_;
};

}  // namespace tools
