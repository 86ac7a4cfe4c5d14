#include "tools/query/where.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "sweep/language/parse_quantity.h"
#include "sweep/language/suggest.h"

namespace tools {
namespace {

using Numbers = std::vector<double>;

// What a part of the expression comes to, row by row.
struct Value {
  enum class Kind : std::uint8_t { number, text, literal_number, literal_text };
  Kind kind = Kind::number;
  Numbers numbers;      // of a literal one for all rows
  Coded texts;          // of a column of texts
  std::string literal;  // of a text in quotes
  std::string name;     // of a column
  std::string unit;     // of a column, or of a number with a unit the dimension's symbol
  std::size_t offset = 0;

  bool is_text() const { return kind == Kind::text || kind == Kind::literal_text; }
  double at(std::size_t row) const { return numbers.size() == 1 ? numbers[0] : numbers[row]; }
};

struct Stop {
  engine::Mistake mistake;
};

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}
bool in_unit(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '/'; }

// How many base units one of a column's unit is: a column in USD/h is compared with a quantity in USD/s.
double base_units(const sweep::KnownUnit& unit) {
  return std::pow(10.0, unit.exponent) * unit.factor / unit.divisor;
}

// Reads and works out at once: every rule returns the value of what it has read.
class Evaluation {
 public:
  Evaluation(const RunRows& rows, std::string_view text) : rows_(rows), text_(text) {}

  Numbers whole() {
    const Value value = disjunction();
    skip_space();
    if (at_ < text_.size()) stop(at_, "this was not expected here", "");
    return spread(numeric(value));
  }
  // What may be a slip of the pen: told, and the answer stands.
  std::vector<std::string> notes() { return std::move(notes_); }

 private:
  [[noreturn]] void stop(std::size_t offset, const std::string& what,
                         const std::string& hint) const {
    throw Stop{{{.file = "--where", .line = 1, .column = int(offset) + 1}, what, hint}};
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  // Takes a word or a sign if it comes next.
  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    const std::size_t end = at_ + token.size();
    if (starts_name(token[0]) && end < text_.size() && in_name(text_[end])) return false;
    at_ = end;
    return true;
  }

  const Value& numeric(const Value& value) const {
    if (value.is_text())
      stop(value.offset, "a text is not true or false, nor a number",
           "compare it, as in device == 'h100-sxm'");
    return value;
  }
  Numbers spread(const Value& value) const {
    return value.numbers.size() == 1 ? Numbers(rows_.rows(), value.numbers[0]) : value.numbers;
  }

  template <class Combine>
  Value combined(const Value& left, const Value& right, Combine combine) const {
    numeric(left);
    numeric(right);
    Value result{.offset = left.offset};
    const std::size_t size =
        left.numbers.size() == 1 && right.numbers.size() == 1 ? 1 : rows_.rows();
    result.kind = size == 1 ? Value::Kind::literal_number : Value::Kind::number;
    result.numbers.resize(size);
    for (std::size_t i = 0; i < size; ++i) result.numbers[i] = combine(left.at(i), right.at(i));
    return result;
  }

  static bool is_true(double value) { return value == value && value != 0; }

  Value disjunction() {
    Value left = conjunction();
    while (take("||") || take("or")) {
      left = combined(left, conjunction(),
                      [](double a, double b) { return double(is_true(a) || is_true(b)); });
    }
    return left;
  }
  Value conjunction() {
    Value left = comparison();
    while (take("&&") || take("and")) {
      left = combined(left, comparison(),
                      [](double a, double b) { return double(is_true(a) && is_true(b)); });
    }
    return left;
  }

  Value comparison() {
    Value left = sum();
    if (take("==")) return equality(std::move(left), true);
    if (take("!=")) return equality(std::move(left), false);
    if (take("<=")) return ordered(std::move(left), sum(), std::less_equal<double>());
    if (take(">=")) return ordered(std::move(left), sum(), std::greater_equal<double>());
    if (take("<")) return ordered(std::move(left), sum(), std::less<double>());
    if (take(">")) return ordered(std::move(left), sum(), std::greater<double>());
    skip_space();
    if (at_ < text_.size() && text_[at_] == '=') stop(at_, "'=' compares nothing", "write '=='");
    return left;
  }

  template <class Compare>
  Value ordered(Value left, Value right, Compare compare) {
    same_unit(left, right);
    return combined(left, right, [&compare](double a, double b) {
      return double(a == a && b == b && compare(a, b));
    });
  }

  Value equality(Value left, bool equal) {
    beside_text_ = left.is_text();
    Value right = sum();
    beside_text_ = false;
    if (!left.is_text() && !right.is_text()) {
      same_unit(left, right);
      return combined(left, right, [equal](double a, double b) {
        return double(a == a && b == b && (a == b) == equal);
      });
    }
    if (!left.is_text() || !right.is_text()) {
      stop(right.offset, "a text is compared with a number",
           "names are quoted: device == 'h100-sxm'");
    }
    note_unknown_text(left, right, equal);
    note_unknown_text(right, left, equal);
    Value result{.offset = left.offset};
    result.numbers.resize(rows_.rows());
    for (std::size_t i = 0; i < rows_.rows(); ++i) {
      const auto a = text_at(left, i), b = text_at(right, i);
      result.numbers[i] = double(a && b && (*a == *b) == equal);
    }
    return result;
  }

  // A text that a column has nowhere holds for no row, or for all. Whoever leaves one out that is not there and is like
  // none that is has made no mistake: `task != 'train'`.
  void note_unknown_text(const Value& column, const Value& written, bool equal) {
    if (column.kind != Value::Kind::text || written.kind != Value::Kind::literal_text) return;
    const std::vector<std::string>& known = column.texts.names;
    if (std::ranges::find(known, written.literal) != known.end()) return;
    if (!equal && sweep::likely(written.literal, known).empty()) return;
    const std::string hint = sweep::suggestion(written.literal, known, "known values");
    notes_.push_back(fmt::format("--where:1:{}: no point has '{}' as {}{}", written.offset + 1,
                                 written.literal, column.name, hint.empty() ? "" : "; " + hint));
  }
  static std::optional<std::string_view> text_at(const Value& value, std::size_t row) {
    if (value.kind == Value::Kind::literal_text) return value.literal;
    if (value.texts.codes[row] == Coded::kNone) return std::nullopt;
    return value.texts[row];
  }

  // A quantity beside a column must have its dimension, and is brought to the column's unit.
  void same_unit(Value& left, Value& right) const {
    Value* quantity = !left.unit.empty() && left.kind == Value::Kind::literal_number     ? &left
                      : !right.unit.empty() && right.kind == Value::Kind::literal_number ? &right
                                                                                         : nullptr;
    if (quantity == nullptr) return;
    const Value& other = quantity == &left ? right : left;
    if (other.kind != Value::Kind::number) return;
    const auto unit = sweep::find_unit(other.unit);
    if (!unit || unit->symbol != quantity->unit) {
      stop(quantity->offset,
           other.unit.empty() ? "this number has a unit, and what it is compared with has none"
                              : "this unit does not measure what the column is in: " + other.unit,
           other.unit.empty() ? "write a plain number" : "write a number in " + other.unit);
    }
    quantity->numbers[0] /= base_units(*unit);
  }

  Value sum() {
    Value left = product();
    for (;;) {
      if (take("+")) {
        left = combined(left, product(), std::plus<double>());
      } else if (take("-")) {
        left = combined(left, product(), std::minus<double>());
      } else {
        return left;
      }
    }
  }
  Value product() {
    Value left = unary();
    for (;;) {
      if (take("*")) {
        left = combined(left, unary(), std::multiplies<double>());
      } else if (take("/")) {
        left = combined(left, unary(), std::divides<double>());
      } else if (take("%")) {
        left = combined(left, unary(), [](double a, double b) { return std::fmod(a, b); });
      } else {
        return left;
      }
    }
  }
  // An expression of a thousand brackets is no question; it would only use up the stack.
  static constexpr int kDeepest = 200;

  Value unary() {
    skip_space();
    const std::size_t offset = at_;
    if (++depth_ > kDeepest) stop(offset, "too many brackets inside one another", "");
    Value value;
    if (take("-")) {
      value = combined({.kind = Value::Kind::literal_number, .numbers = {0}, .offset = offset},
                       unary(), std::minus<double>());
    } else if (!text_.substr(at_).starts_with("!=") && (take("!") || take("not"))) {
      value = unary_not(offset);
    } else {
      value = power();
    }
    --depth_;
    return value;
  }
  // `not a < b` is `not (a < b)`, as people read it; `!` binds like that, too.
  Value unary_not(std::size_t offset) {
    return combined({.kind = Value::Kind::literal_number, .numbers = {0}, .offset = offset},
                    comparison(), [](double, double b) { return double(!is_true(b)); });
  }
  Value power() {
    const Value base = primary();
    if (!take("^")) return base;
    return combined(base, unary(), [](double a, double b) { return std::pow(a, b); });
  }

  Value primary() {
    skip_space();
    const std::size_t offset = at_;
    if (take("(")) {
      Value inside = disjunction();
      if (!take(")")) stop(at_, "a bracket is not closed", "write ')'");
      return inside;
    }
    if (at_ == text_.size()) stop(offset, "something is missing at the end", "");
    const char next = text_[at_];
    if (next == '\'' || next == '"') return quoted(next);
    if (starts_name(next)) return column();
    if (std::isdigit(static_cast<unsigned char>(next)) != 0 || next == '.') return number();
    stop(offset, "'" + std::string(1, next) + "' was not expected here", "");
  }

  Value quoted(char quote) {
    const std::size_t offset = at_;
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) stop(offset, "the quote is not closed", "");
    Value value{.kind = Value::Kind::literal_text, .offset = offset};
    value.literal = std::string(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  // Beside a text it is more likely one that lacks its quotes than a column.
  engine::Mistake unknown_name(const std::string& name, std::size_t offset) const {
    engine::Mistake mistake =
        unknown_column(rows_, name, {.file = "--where", .line = 1, .column = int(offset) + 1});
    if (beside_text_) mistake.hint = "names are quoted: device == 'h100-sxm'";
    return mistake;
  }

  Value column() {
    const std::size_t offset = at_;
    while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    const std::string name(text_.substr(offset, at_ - offset));
    if (name == "true" || name == "false") {
      return {.kind = Value::Kind::literal_number,
              .numbers = {double(name == "true")},
              .offset = offset};
    }
    const results::Column* column = rows_.find(name);
    if (column == nullptr) throw Stop{unknown_name(name, offset)};
    Value value{.name = name, .unit = column->unit, .offset = offset};
    if (is_number(*column)) {
      value.numbers = rows_.numbers(name);
    } else {
      value.kind = Value::Kind::text;
      value.texts = rows_.texts(name);
    }
    return value;
  }

  Value number() {
    const std::size_t offset = at_;
    const std::size_t length = sweep::leading_number(text_.substr(at_));
    const auto plain = sweep::parse_number(text_.substr(at_, length));
    if (length == 0 || !plain) stop(offset, "this is not a number", "");
    at_ += length;
    Value value{.kind = Value::Kind::literal_number, .numbers = {*plain}, .offset = offset};
    std::size_t start = at_;
    while (start < text_.size() && text_[start] == ' ') ++start;
    std::size_t end = start;
    while (end < text_.size() && in_unit(text_[end])) ++end;
    const std::string_view word = text_.substr(start, end - start);
    if (word.empty() || word[0] == '/' || word == "and" || word == "or") return value;
    const auto quantity = sweep::parse_quantity(text_.substr(offset, end - offset));
    if (!quantity) stop(start, "'" + std::string(word) + "' is not a unit", "as in 50 ms or 80 GB");
    at_ = end;
    value.numbers = {quantity->value};
    value.unit = quantity->unit.symbol;
    return value;
  }

  const RunRows& rows_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool beside_text_ = false;  // what is read next is compared with a text
  std::vector<std::string> notes_;
};

}  // namespace

engine::Result<Matches> rows_where(const RunRows& rows, const std::string& text) {
  try {
    Matches matches;
    Evaluation evaluation(rows, text);
    for (const double value : evaluation.whole()) {
      matches.holds.push_back(value == value && value != 0 ? 1 : 0);
    }
    matches.notes = evaluation.notes();
    return matches;
  } catch (const Stop& stop) {
    return stop.mistake;
  }
}

}  // namespace tools
