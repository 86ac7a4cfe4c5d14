#include "sweep/language/read_formula.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sweep/language/formula_tokens.h"
#include "sweep/language/parse_quantity.h"
#include "sweep/language/suggest.h"

namespace sweep {
namespace {

using engine::Leaf;
using engine::LeafKind;

const Leaf* leaf_of(const Token& token) {
  return token.leaf < 0 ? nullptr : &engine::leaf_table().leaves[std::size_t(token.leaf)];
}

bool is_text(const Token& token) {
  const Leaf* leaf = leaf_of(token);
  return token.kind == Token::Kind::text ||
         (leaf != nullptr && (leaf->kind == LeafKind::text || leaf->kind == LeafKind::enumeration));
}
bool is_number(const Token& token) {
  return token.kind == Token::Kind::number || (token.leaf >= 0 && !is_text(token));
}

std::vector<std::string> names_of(const Leaf& leaf) {
  return {leaf.names.begin(), leaf.names.end()};
}

// What the types of neighbours say: texts are compared, not added; quantities meet quantities.
class NeighbourCheck {
 public:
  NeighbourCheck(const Node& node, const std::vector<Token>& tokens, Reading& reading)
      : node_(node), tokens_(tokens), reading_(reading) {}

  // `target` is the leaf that takes the value, or nullptr for a condition.
  bool run(const Leaf* target) {
    chained_comparisons();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind == Token::Kind::equality) equality(i);
      if (tokens_[i].kind == Token::Kind::equality || tokens_[i].kind == Token::Kind::comparison) {
        units(i - 1, i + 1);
        units(i + 1, i - 1);
      }
      if (is_text(tokens_[i])) text(i, target);
    }
    return ok_;
  }

 private:
  const Token* at(std::size_t i) const { return i < tokens_.size() ? &tokens_[i] : nullptr; }
  bool is(std::size_t i, Token::Kind kind) const { return at(i) != nullptr && at(i)->kind == kind; }

  void wrong(const Token& token, std::string what, std::string hint) {
    reading_.mistake(place_in(node_, token.offset), std::move(what), std::move(hint));
    ok_ = false;
  }

  // 1 < x < 5 would compare a truth value with 5, and x == y == 5 likewise.
  void chained_comparisons() {
    std::vector<bool> compared{false};
    for (const Token& token : tokens_) {
      switch (token.kind) {
        case Token::Kind::open:
          compared.push_back(false);
          break;
        case Token::Kind::close:
          if (compared.size() > 1) compared.pop_back();
          break;
        case Token::Kind::comparison:
        case Token::Kind::equality:
          if (compared.back()) {
            wrong(token, "comparisons cannot be chained", "write 'a < b && b < c'");
          }
          compared.back() = true;
          break;
        case Token::Kind::logic:
        case Token::Kind::choice:
        case Token::Kind::comma:
          compared.back() = false;
          break;
        default:
          break;
      }
    }
  }

  void equality(std::size_t i) {
    const Token* left = at(i - 1);
    const Token* right = at(i + 1);
    if (left == nullptr || right == nullptr) return;
    const Token& name = is_text(*left) ? *left : *right;
    const Token& other = is_text(*left) ? *right : *left;
    if (is_text(name) && is_number(other)) {
      wrong(other, "'" + name.written + "' is a name and '" + other.written + "' a number",
            "compare names with quoted texts, as in \"step.phase == 'decode'\"");
      return;
    }
    for (const auto& [leaf, literal] : {std::pair{left, right}, std::pair{right, left}}) {
      if (literal->kind != Token::Kind::text || leaf->leaf < 0) continue;
      if (leaf_of(*leaf)->kind == LeafKind::enumeration) {
        known_name(*leaf_of(*leaf), leaf->written, *literal);
      } else {
        reading_.compared.push_back(
            {leaf->leaf, literal->written, place_in(node_, literal->offset)});
      }
    }
  }

  void known_name(const Leaf& leaf, const std::string& said, const Token& literal) {
    const std::vector<std::string> names = names_of(leaf);
    if (std::find(names.begin(), names.end(), literal.written) != names.end()) return;
    const std::string near = nearest(literal.written, names);
    wrong(literal, "'" + said + "' is never '" + literal.written + "'",
          (near.empty() ? "" : "did you mean '" + near + "'? ") +
              "one of: " + listing(names, names.size()));
  }

  // A quantity alone on its side of a comparison, against a bare number or another dimension.
  void units(std::size_t quantity, std::size_t number) {
    const Token* token = at(quantity);
    const Token* other = at(number);
    if (token == nullptr || other == nullptr || other->kind != Token::Kind::number) return;
    const Leaf* leaf = leaf_of(*token);
    if (leaf == nullptr || is_text(*token)) return;
    for (const std::size_t beyond : {quantity + quantity - (quantity + number) / 2,
                                     number + number - (quantity + number) / 2}) {
      if (is(beyond, Token::Kind::arithmetic)) return;
    }
    if (leaf->kind != LeafKind::quantity) {
      if (other->unit.empty()) return;
      return wrong(*other,
                   "'" + other->written + "' has a unit, and '" + token->written + "' has none",
                   "write a plain number");
    }
    if (other->unit == leaf->unit.symbol) return;
    if (other->unit.empty() && other->program == "0") return;
    wrong(*other, "'" + other->written + "' is not a quantity in " + leaf->unit.symbol,
          "'" + token->written + "' is compared with a number and its unit, as in '" +
              std::string(example_of(leaf->unit)) + "'");
  }

  void text(std::size_t i, const Leaf* target) {
    const Token& token = tokens_[i];
    const bool compared = is(i - 1, Token::Kind::equality) || is(i + 1, Token::Kind::equality);
    for (const std::size_t beside : {i - 1, i + 1}) {
      if (is(beside, Token::Kind::arithmetic) || is(beside, Token::Kind::comparison) ||
          (!compared && (is(beside, Token::Kind::logic) || is(beside, Token::Kind::comma)))) {
        wrong(token, "'" + token.written + "' is a name, not a number", "compare it with == or !=");
        return;
      }
    }
    if (compared) return;
    // What is left is the value of the expression.
    const bool takes_names = target != nullptr && (target->kind == LeafKind::text ||
                                                   target->kind == LeafKind::enumeration);
    if (!takes_names) {
      wrong(token, "'" + token.written + "' is a name, not a number", "compare it with == or !=");
    } else if (target->kind == LeafKind::enumeration && token.kind == Token::Kind::text) {
      known_name(*target, target->path, token);
    }
  }

  const Node& node_;
  const std::vector<Token>& tokens_;
  Reading& reading_;
  bool ok_ = true;
};

Formula assemble(const Node& node, std::vector<Token>& tokens, std::vector<std::size_t>& starts) {
  Formula formula;
  formula.source = node.text;
  while (!formula.source.empty() && formula.source.back() == '\n') formula.source.pop_back();
  bool after_function = false;
  for (Token& token : tokens) {
    if (token.leaf >= 0) {
      auto place = std::find(formula.leaves.begin(), formula.leaves.end(), token.leaf);
      token.program = "v" + std::to_string(place - formula.leaves.begin());
      if (place == formula.leaves.end()) formula.leaves.push_back(token.leaf);
    }
    if (token.kind == Token::Kind::text) formula.texts.push_back(token.written);
    // muParser wants a function's bracket right behind its name.
    if (!formula.program.empty() && !after_function) formula.program += ' ';
    after_function = token.kind == Token::Kind::function;
    starts.push_back(formula.program.size());
    formula.program += token.program;
  }
  return formula;
}

std::optional<Formula> read_formula(const Node& node, const Leaf* target, std::string_view said,
                                    Reading& reading) {
  if (!node.is_scalar()) {
    reading.mistake(
        node.where,
        std::string(said) + ": " + std::string(name_of(node.kind)) + " is not an expression",
        "write a text, as in \"step.batch * step.context <= 1000000\"");
    return std::nullopt;
  }
  if (std::int64_t(node.text.size()) > reading.limits.expression_bytes) {
    reading.mistakes.add(beyond_limit(
        node.where,
        std::string(said) + ": more than " + limit_text(reading.limits.expression_bytes),
        "expression_bytes"));
    return std::nullopt;
  }
  std::vector<Token> tokens;
  if (!tokenize(node, tokens, reading)) return std::nullopt;
  std::vector<std::size_t> starts;
  Formula formula = assemble(node, tokens, starts);
  if (const auto error = compile_error(formula)) {
    // The token the position falls in, or the end.
    std::size_t offset = node.text.size();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (error->position < starts[i] + tokens[i].program.size()) {
        offset = tokens[i].offset;
        break;
      }
    }
    reading.mistake(place_in(node, offset), std::string(said) + ": " + error->what,
                    "in \"" + formula.source + "\"");
    return std::nullopt;
  }
  if (!NeighbourCheck(node, tokens, reading).run(target)) return std::nullopt;
  return formula;
}

}  // namespace

std::optional<Formula> read_condition(const Node& node, std::string_view said, Reading& reading) {
  return read_formula(node, nullptr, said, reading);
}

std::optional<Formula> read_derivation(const Node& node, const Leaf& target, std::string_view said,
                                       Reading& reading) {
  return read_formula(node, &target, said, reading);
}

}  // namespace sweep
