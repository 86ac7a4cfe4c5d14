// llmsweep evaluate: points for optimisers over an open pipe.
#include <cerrno>
#include <iostream>
#include <memory>
#include <system_error>

#include "tools/cli/cli.h"
#include "tools/evaluate/evaluation_server.h"

namespace tools {

void add_evaluate(CLI::App& app, int& exit_code) {
  auto threads = std::make_shared<int>(0);
  CLI::App* verb = app.add_subcommand(
      "evaluate", "Answer scenarios from the standard input, batch by batch, until it ends");
  verb->footer(
      "For programs that ask again and again, such as optimisers; llmsweep.evaluate in Python uses "
      "it.\n"
      "A request is one line of JSON. Every list under 'set' has a value for each scenario:\n"
      "  {\"base\": {\"task\": \"step\", \"model\": \"llama-3.1-8b\"}, \"set\": {\"device\": "
      "[\"h100-sxm\", \"l4\"]},\n"
      "   \"columns\": [\"status\", \"step_time_s\"]}                          (without 'columns': "
      "all)\n"
      "Its answer is {\"rows\": 2, \"bytes\": 1400} in a line of its own and so many bytes of a "
      "Parquet file, a row\n"
      "for each scenario in their order; or {\"error\": \"...\", \"scenarios\": [1]} with what is "
      "wrong, and where.");
  verb->add_option("-j,--threads", *threads, "threads (default: all)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  verb->callback([threads, &exit_code] {
    std::ios::sync_with_stdio(false);
    EvaluationServer(standard_library(), *threads).serve(std::cin, std::cout);
    if (!std::cout.flush()) {
      throw std::system_error(errno, std::generic_category(), "cannot write the output");
    }
    exit_code = kOk;
  });
}

}  // namespace tools
