#include "sweep/space/expression.h"

#include <muParser.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "engine/base/check.h"
#include "engine/leaves/leaves.h"
#include "sweep/space/text_code.h"

namespace sweep {
namespace {

// What is not known is neither true nor equal to anything, nor different from it.
bool is_true(double x) { return x != 0 && !std::isnan(x); }
double not_of(double x) { return is_true(x) ? 0 : 1; }
double truth_of(double x, double) { return is_true(x) ? 1 : 0; }
double both_of(double x, double y) { return is_true(x) && is_true(y) ? 1 : 0; }
double either_of(double x, double y) { return is_true(x) || is_true(y) ? 1 : 0; }
double different_of(double x, double y) { return x < y || x > y ? 1 : 0; }
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
// Of numbers of which one is not known neither the least nor the greatest is.
bool any_unknown(const double* x, int count) {
  return std::any_of(x, x + count, [](double one) { return std::isnan(one); });
}
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
double min_of(const double* x, int count) {
  return any_unknown(x, count) ? kUnknown : *std::min_element(x, x + count);
}
double max_of(const double* x, int count) {
  return any_unknown(x, count) ? kUnknown : *std::max_element(x, x + count);
}

// Operators that have another name in a program than in a spec, the longest first.
struct RenamedOperator {
  const char* written;
  const char* in_program;
};
constexpr RenamedOperator kRenamed[] = {{"!=", "#!="}, {"&&", "#&&"}, {"||", "#||"}, {"?", "#"}};
// `c ? a : b` asks whether `c # 1` is zero, so that the condition is a truth value. It binds as loosely as `||`.
constexpr std::string_view kTruth = "#";

// What was written for the operator that a program, or the rest of one, begins with; empty: it begins with none of these.
std::string written_operator(std::string_view program) {
  for (const auto& [written, in_program] : kRenamed) {
    if (program.starts_with(in_program)) return written;
  }
  return "";
}

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
  // muParser's own take what is not known for true, and for different from everything.
  parser.DefineOprt(operator_name("!="), different_of, mu::prCMP);
  parser.DefineOprt(operator_name("&&"), both_of, mu::prLAND);
  parser.DefineOprt(operator_name("||"), either_of, mu::prLOR);
  parser.DefineOprt(std::string(kTruth), truth_of, mu::prLOR);
}

std::string explanation(const mu::Parser::exception_type& error) {
  const std::string token = error.GetToken();
  const std::string renamed = written_operator(token);
  if (!renamed.empty()) return "unexpected operator '" + renamed + "'";
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

std::string operator_name(std::string_view written) {
  if (written == "?") return std::string(kTruth) + " 1 ?";
  for (const auto& [name, in_program] : kRenamed) {
    if (name == written) return in_program;
  }
  return std::string(written);
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

bool Expression::holds(const engine::Scenario& scenario) { return is_true(value(scenario)); }

}  // namespace sweep
