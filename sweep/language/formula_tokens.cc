#include "sweep/language/formula_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "engine/outcome.h"
#include "sweep/language/parse_quantity.h"
#include "sweep/language/read_fields.h"
#include "sweep/language/suggest.h"
#include "sweep/space/expression.h"
#include "sweep/space/text_code.h"

namespace sweep {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Enough digits for muParser to read the very same double.
std::string exact(double value) {
  std::array<char, 40> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.17g", value);
  return buffer.data();
}

// A figure that a point has once it is computed, by its name or by that of its column, which ends in its unit.
bool is_figure(std::string_view word) {
  const engine::Metrics none;
  bool found = false;
  engine::Metrics::fields(
      none, [&]<class T>(std::string_view name, const T&, std::string_view /*meaning*/) {
        found = found || word == name;
        if constexpr (engine::IsQuantity<T>) {
          found = found || word == std::string(name) + "_" + engine::UnitOf<T>::unit.suffix;
        }
      });
  return found;
}

class Tokenizer {
 public:
  Tokenizer(const Node& scalar, std::vector<Token>& tokens, Reading& reading)
      : scalar_(scalar), text_(scalar.text), tokens_(tokens), reading_(reading) {}

  bool run() {
    while (ok_) {
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
      if (at_ >= text_.size()) break;
      const char c = text_[at_];
      if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
        number();
      } else if (c == '\'' || c == '"') {
        literal(c);
      } else if (is_letter(c)) {
        name();
      } else {
        symbol();
      }
    }
    return ok_ && !unknown_name_;
  }

 private:
  void wrong(std::size_t offset, std::string what, std::string hint) {
    reading_.mistake(place_in(scalar_, offset), std::move(what), std::move(hint));
    ok_ = false;
  }

  Token& push(Token::Kind kind, std::size_t length, std::string program) {
    Token token;
    token.kind = kind;
    token.offset = at_;
    token.written = text_.substr(at_, length);
    token.program = std::move(program);
    tokens_.push_back(std::move(token));
    at_ += length;
    return tokens_.back();
  }

  // The unit that follows a number: the longest word there that is one ("GB/s", but "GB" in
  // "80 GB/step.batch").
  std::size_t unit_length(std::size_t from) const {
    std::size_t end = from;
    while (end < text_.size() && (is_letter(text_[end]) || text_[end] == '/' ||
                                  static_cast<unsigned char>(text_[end]) >= 0x80)) {
      ++end;
    }
    for (; end > from; --end) {
      const bool whole = end == text_.size() || !(is_letter(text_[end]) || is_digit(text_[end]) ||
                                                  text_[end] == '.' || text_[end] == '(');
      if (whole && find_unit(text_.substr(from, end - from))) return end - from;
    }
    return 0;
  }

  void number() {
    const std::size_t digits = leading_number(text_.substr(at_));
    std::size_t after = at_ + digits;
    while (after < text_.size() && text_[after] == ' ') ++after;
    const std::size_t unit = unit_length(after);
    if (unit > 0) {
      const std::string written(text_.substr(at_, after + unit - at_));
      const auto quantity = parse_quantity(written);
      if (!quantity) return wrong(at_, "'" + written + "' is not a quantity", "");
      push(Token::Kind::number, written.size(), exact(quantity->value)).unit =
          quantity->unit.symbol;
      return;
    }
    const auto value = parse_number(text_.substr(at_, digits));
    if (!value)
      return wrong(at_, "'" + std::string(text_.substr(at_, digits)) + "' is not a number", "");
    push(Token::Kind::number, digits, exact(*value));
  }

  void literal(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) {
      return wrong(at_, "a quote is opened here and never closed",
                   std::string("close it with another ") + quote);
    }
    const std::string inside(text_.substr(at_ + 1, end - at_ - 1));
    push(Token::Kind::text, end + 1 - at_, exact(text_code(inside))).written = inside;
  }

  void name() {
    std::size_t end = at_;
    while (end < text_.size() &&
           (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '.')) {
      ++end;
    }
    const std::string word(text_.substr(at_, end - at_));
    if (word == "and") return void(push(Token::Kind::logic, word.size(), operator_name("&&")));
    if (word == "or") return void(push(Token::Kind::logic, word.size(), operator_name("||")));
    if (word == "not") return void(push(Token::Kind::logic, word.size(), "!"));
    if (word == "true") return void(push(Token::Kind::number, word.size(), "1"));
    if (word == "false") return void(push(Token::Kind::number, word.size(), "0"));
    std::size_t next = end;
    while (next < text_.size() && text_[next] == ' ') ++next;
    if (next < text_.size() && text_[next] == '(') return function(word);
    leaf(word);
  }

  void function(const std::string& word) {
    const std::vector<std::string>& known = function_names();
    if (!std::binary_search(known.begin(), known.end(), word)) {
      return wrong(at_, "unknown function '" + word + "'", suggestion(word, known, "functions"));
    }
    push(Token::Kind::function, word.size(), word);
  }

  void leaf(const std::string& word) {
    const engine::LeafTable& table = engine::leaf_table();
    int leaf = table.find_leaf(word);
    if (leaf < 0) {
      const int section = table.find_section(word);
      // `device` stands for its name.
      if (section >= 0) leaf = table.find_leaf(word + ".name");
      if (section >= 0 && leaf < 0) {
        const std::string field =
            table.leaves[table.sections[std::size_t(section)].first_leaf].path;
        return wrong(at_, "'" + word + "' has many fields",
                     "name one of them, as in '" + field + "'");
      }
    }
    if (leaf < 0) {
      unknown(word);
      push(Token::Kind::leaf, word.size(), "0");
      return;
    }
    push(Token::Kind::leaf, word.size(), "").leaf = leaf;
  }

  // Noted, but the rest is still read: there may be more of them.
  void unknown(const std::string& word) {
    unknown_name_ = true;
    const bool after_number = !tokens_.empty() && tokens_.back().kind == Token::Kind::number;
    if (after_number) {
      reading_.mistake(place_in(scalar_, at_), "'" + word + "' is not a unit",
                       "units are like GB, TB/s, TFLOP/s, ms, GHz, W, USD/h");
      return;
    }
    reading_.mistake(place_in(scalar_, at_), "unknown name '" + word + "'",
                     [&] { return path_hint(word); });
  }

  static std::string path_hint(const std::string& word) {
    const auto has_name = [&](const engine::Leaf& leaf) {
      return std::find(leaf.names.begin(), leaf.names.end(), word) != leaf.names.end();
    };
    const auto& leaves = engine::leaf_table().leaves;
    if (std::any_of(leaves.begin(), leaves.end(), has_name)) {
      return "a text is quoted, as in \"step.phase == 'decode'\"";
    }
    if (is_figure(word)) {
      return "it is a result, and this is asked before a point is computed; limits on latencies go "
             "to 'slo' or 'capacity.slo', and 'llmsweep top DIR --where' chooses among rows";
    }
    const std::vector<std::string> paths = all_paths();
    std::string near = nearest(word, paths);
    if (!near.empty()) return "did you mean '" + near + "'?";
    return "names are paths, as in 'step.batch'; texts are quoted, as in \"step.phase == "
           "'decode'\"";
  }

  void symbol() {
    struct Symbol {
      std::string_view text;
      Token::Kind kind;
    };
    constexpr Symbol symbols[] = {
        {"&&", Token::Kind::logic},      {"||", Token::Kind::logic},
        {"==", Token::Kind::equality},   {"!=", Token::Kind::equality},
        {"<=", Token::Kind::comparison}, {">=", Token::Kind::comparison},
        {"<", Token::Kind::comparison},  {">", Token::Kind::comparison},
        {"+", Token::Kind::arithmetic},  {"-", Token::Kind::arithmetic},
        {"*", Token::Kind::arithmetic},  {"/", Token::Kind::arithmetic},
        {"^", Token::Kind::arithmetic},  {"%", Token::Kind::arithmetic},
        {"!", Token::Kind::logic},       {"?", Token::Kind::choice},
        {":", Token::Kind::choice},      {"(", Token::Kind::open},
        {")", Token::Kind::close},       {",", Token::Kind::comma},
    };
    for (const Symbol& symbol : symbols) {
      if (text_.substr(at_).starts_with(symbol.text)) {
        return void(push(symbol.kind, symbol.text.size(), operator_name(symbol.text)));
      }
    }
    const std::string c(text_.substr(at_, 1));
    if (c == "=") return wrong(at_, "'=' does not compare", "write '=='");
    if (c == "&" || c == "|") return wrong(at_, "unexpected '" + c + "'", "write '" + c + c + "'");
    wrong(at_, "unexpected '" + c + "'", "");
  }

  const Node& scalar_;
  std::string_view text_;
  std::vector<Token>& tokens_;
  Reading& reading_;
  std::size_t at_ = 0;
  bool ok_ = true;
  bool unknown_name_ = false;
};

}  // namespace

engine::Location place_in(const Node& scalar, std::size_t offset) {
  engine::Location where = scalar.where;
  // Only the start of a text over several lines is known.
  if (scalar.text.find('\n') == std::string::npos)
    where.column += int(offset) + (scalar.quoted ? 1 : 0);
  return where;
}

bool tokenize(const Node& scalar, std::vector<Token>& tokens, Reading& reading) {
  return Tokenizer(scalar, tokens, reading).run();
}

}  // namespace sweep
