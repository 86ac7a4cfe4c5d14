#include "sweep/space/expression.h"

#include <muParser.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/check.h"
#include "engine/leaves/leaves.h"
#include "sweep/space/text_code.h"

namespace sweep {
namespace {

double not_of(double x) { return x == 0 ? 1 : 0; }
double floor_of(double x) { return std::floor(x); }
double ceil_of(double x) { return std::ceil(x); }
double round_of(double x) { return std::round(x); }
double abs_of(double x) { return std::abs(x); }
double sqrt_of(double x) { return std::sqrt(x); }
double log2_of(double x) { return std::log2(x); }
double log10_of(double x) { return std::log10(x); }
double ln_of(double x) { return std::log(x); }
double exp_of(double x) { return std::exp(x); }
double remainder_of(double x, double y) { return x - y * std::floor(x / y); }
double min_of(const double* x, int count) { return *std::min_element(x, x + count); }
double max_of(const double* x, int count) { return *std::max_element(x, x + count); }

void define_language(mu::Parser& parser) {
  parser.ClearFun();
  parser.ClearConst();
  parser.DefineFun("abs", abs_of);
  parser.DefineFun("ceil", ceil_of);
  parser.DefineFun("exp", exp_of);
  parser.DefineFun("floor", floor_of);
  parser.DefineFun("ln", ln_of);
  parser.DefineFun("log10", log10_of);
  parser.DefineFun("log2", log2_of);
  parser.DefineFun("max", max_of);
  parser.DefineFun("min", min_of);
  parser.DefineFun("mod", remainder_of);
  parser.DefineFun("round", round_of);
  parser.DefineFun("sqrt", sqrt_of);
  // It binds more loosely than a comparison: `!a == b`, as `not a == b`, denies the comparison.
  parser.DefineInfixOprt("!", not_of, mu::prLAND + 1);
  parser.DefineOprt("%", remainder_of, mu::prMUL_DIV);
}

std::string explanation(const mu::Parser::exception_type& error) {
  const std::string token = error.GetToken();
  switch (error.GetCode()) {
    case mu::ecUNEXPECTED_EOF:
    case mu::ecEMPTY_EXPRESSION:
      return "the expression ends too soon";
    case mu::ecMISSING_PARENS:
      return "a ')' is missing";
    case mu::ecUNEXPECTED_PARENS:
      return "unexpected '" + token + "'";
    case mu::ecTOO_MANY_PARAMS:
      return "too many arguments for '" + token + "'";
    case mu::ecTOO_FEW_PARAMS:
      return "too few arguments for '" + token + "'";
    case mu::ecMISPLACED_COLON:
      return "':' without its '?'";
    case mu::ecMISSING_ELSE_CLAUSE:
      return "'?' without its ':'";
    case mu::ecUNEXPECTED_VAL:
    case mu::ecUNEXPECTED_VAR:
    case mu::ecUNEXPECTED_FUN:
      return "an operator is missing before this";
    case mu::ecUNEXPECTED_OPERATOR:
      return "unexpected operator '" + token + "'";
    case mu::ecUNEXPECTED_ARG_SEP:
      return "unexpected ','";
    case mu::ecUNEXPECTED_ARG:
      return "unexpected argument";
    default:
      return "the expression makes no sense from here on";
  }
}

// How a variable gets its value from a scenario.
struct Variable {
  const engine::Leaf* leaf = nullptr;
  std::vector<double> name_codes;  // of an enumeration
  double value = 0;
};

}  // namespace

struct Expression::Compiled {
  mu::Parser parser;
  std::vector<Variable> variables;

  // Throws what muParser throws.
  explicit Compiled(const Formula& formula) {
    define_language(parser);
    variables.resize(formula.leaves.size());  // the parser keeps addresses: never resized again
    for (std::size_t i = 0; i < variables.size(); ++i) {
      Variable& variable = variables[i];
      variable.leaf = &engine::leaf_table().leaves[std::size_t(formula.leaves[i])];
      for (const std::string_view name : variable.leaf->names) {
        variable.name_codes.push_back(text_code(name));
      }
      parser.DefineVar("v" + std::to_string(i), &variable.value);
    }
    parser.SetExpr(formula.program);
    parser.Eval();  // compiles
  }
};

std::optional<FormulaError> compile_error(const Formula& formula) {
  try {
    const Expression::Compiled compiled(formula);
    int results = 0;
    compiled.parser.Eval(results);
    if (results != 1)
      return FormulaError{formula.program.size(), "this is more than one expression"};
    return std::nullopt;
  } catch (const mu::Parser::exception_type& error) {
    const int position = error.GetPos();
    return FormulaError{position < 0 ? formula.program.size() : std::size_t(position),
                        explanation(error)};
  }
}

const std::vector<std::string>& function_names() {
  static const std::vector<std::string> names{"abs",  "ceil", "exp", "floor", "ln",    "log10",
                                              "log2", "max",  "min", "mod",   "round", "sqrt"};
  return names;
}

Expression::Expression(const Formula& formula) {
  try {
    compiled_ = std::make_unique<Compiled>(formula);
  } catch (const mu::Parser::exception_type&) {
    engine::check(false, "a formula that compiled once compiles again");
  }
}
Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;

double Expression::value(const engine::Scenario& scenario) {
  for (Variable& variable : compiled_->variables) {
    const engine::Leaf& leaf = *variable.leaf;
    if (leaf.presence >= 0 && !engine::is_present(scenario, leaf)) {
      variable.value = std::numeric_limits<double>::quiet_NaN();
      continue;
    }
    switch (leaf.kind) {
      case engine::LeafKind::text:
        variable.value = text_code(engine::leaf_text(scenario, leaf));
        break;
      case engine::LeafKind::enumeration:
        variable.value = variable.name_codes[std::size_t(engine::leaf_integer(scenario, leaf))];
        break;
      default:
        variable.value = engine::leaf_as_double(scenario, leaf);
    }
  }
  try {
    return compiled_->parser.Eval();
  } catch (const mu::Parser::exception_type&) {
    // Builds of muParser may be told to throw where arithmetic gives NaN.
    return std::numeric_limits<double>::quiet_NaN();
  }
}

bool Expression::holds(const engine::Scenario& scenario) {
  const double result = value(scenario);
  return result != 0 && !std::isnan(result);
}

}  // namespace sweep
