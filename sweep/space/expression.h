// An expression over the leaves of a scenario: `require`, `when` and `derive`. The only room of
// muParser.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scenario.h"

namespace sweep {

// An expression ready to compile: names are v0, v1, ... (leaf `leaves[i]` for v_i), quantities are in
// base units, texts are their text_code. sweep/language/read_formula makes it from what the user wrote.
struct Formula {
  std::string source;              // as written, for reasons and for run.yaml
  std::string program;             // for muParser
  std::vector<int> leaves;         // position in engine::leaf_table() of each variable
  std::vector<std::string> texts;  // literals in it, which a text leaf may be derived from
};

// Why muParser refuses a program, and at which of its characters.
struct FormulaError {
  std::size_t position = 0;
  std::string what;
};
std::optional<FormulaError> compile_error(const Formula& formula);

// What stands in a program for an operator: one that takes NaN for false, where muParser's own does not.
std::string operator_name(std::string_view written);

// Functions an expression may call, sorted.
const std::vector<std::string>& function_names();

// A compiled expression. Evaluation writes to the variables inside, so each thread has its own.
class Expression {
 public:
  explicit Expression(const Formula& formula);  // compile_error() must have found nothing
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  double value(const engine::Scenario& scenario);
  // Not zero and not NaN.
  bool holds(const engine::Scenario& scenario);

 private:
  friend std::optional<FormulaError> compile_error(const Formula& formula);
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace sweep
