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
#include "tools/query/where_value.h"

namespace tools {
namespace {

using Numbers = std::vector<double>;

using Value = WhereValue;

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}
// Letters beyond ASCII, too: the unit of microseconds has one.
bool in_unit(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '/' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Reads and works out at once: every rule returns the value of what it has read.
class Evaluation {
 public:
  Evaluation(const RunRows& rows, std::string_view text) : rows_(rows), text_(text) {}

  Numbers whole() {
    const Value value = disjunction();
    skip_space();
    if (at_ < text_.size()) {
      stop_where(at_, "this was not expected here",
                 "comparisons are joined by 'and' or 'or', as in a > 1 and a < 9");
    }
    return spread(numeric(value));
  }
  // What may be a slip of the pen: told, and the answer stands.
  std::vector<std::string> notes() { return std::move(notes_); }

 private:
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
      stop_where(value.offset, "a text is not true or false, nor a number",
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
    const bool literal = left.is_literal() && right.is_literal();
    result.kind = literal ? Value::Kind::literal_number : Value::Kind::number;
    const bool one = left.numbers.size() == 1 && right.numbers.size() == 1;
    result.numbers.resize(one ? 1 : rows_.rows());
    for (std::size_t i = 0; i < result.numbers.size(); ++i) {
      result.numbers[i] = combine(left.at(i), right.at(i));
    }
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
    if (at_ < text_.size() && text_[at_] == '=')
      stop_where(at_, "'=' compares nothing", "write '=='");
    return left;
  }

  template <class Compare>
  Value ordered(Value left, Value right, Compare compare) {
    match_units(left, right);
    return combined(left, right, [&compare](double a, double b) {
      return double(a == a && b == b && compare(a, b));
    });
  }

  Value equality(Value left, bool equal) {
    beside_text_ = left.is_text();
    Value right = sum();
    beside_text_ = false;
    if (!left.is_text() && !right.is_text()) {
      match_units(left, right);
      return combined(left, right, [equal](double a, double b) {
        return double(a == a && b == b && (a == b) == equal);
      });
    }
    if (!left.is_text() || !right.is_text()) {
      stop_where(right.offset, "a text is compared with a number",
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
    // Answers show the labels of an axis under its name, and those have a column of their own.
    const std::string axis = std::string(kAxisPrefix) + column.name;
    const bool is_label = rows_.find(axis) != nullptr && has_text(axis, written.literal);
    if (!equal && !is_label && sweep::likely(written.literal, known).empty()) return;
    const std::string hint = is_label ? fmt::format("it is a label of the axis: write {}", axis)
                                      : sweep::suggestion(written.literal, known, "known values");
    notes_.push_back(fmt::format("--where:1:{}: no point has '{}' as {}{}", written.offset + 1,
                                 written.literal, column.name, hint.empty() ? "" : "; " + hint));
  }
  bool has_text(const std::string& column, const std::string& text) const {
    const std::vector<std::string> names = rows_.texts(column).names;
    return std::ranges::find(names, text) != names.end();
  }
  static std::optional<std::string_view> text_at(const Value& value, std::size_t row) {
    if (value.kind == Value::Kind::literal_text) return value.literal;
    if (value.texts.codes[row] == Coded::kNone) return std::nullopt;
    return value.texts[row];
  }

  template <class Combine>
  Value summed(Value left, Value right, Combine combine) const {
    numeric(left);
    match_units(left, right);
    Value result = combined(left, right, combine);
    result.unit = unit_of_sum(left, right);
    return result;
  }
  Value sum() {
    Value left = product();
    for (;;) {
      if (take("+")) {
        left = summed(std::move(left), product(), std::plus<double>());
      } else if (take("-")) {
        left = summed(std::move(left), product(), std::minus<double>());
      } else {
        return left;
      }
    }
  }
  Value times(const Value& left, const Value& right) const {
    Value result = combined(left, right, std::multiplies<double>());
    result.unit = unit_of_product(left, right);
    return result;
  }
  Value over(Value left, Value right) const {
    std::string unit = unit_of_ratio(left, right);
    Value result = combined(left, right, std::divides<double>());
    result.unit = std::move(unit);
    return result;
  }
  // As in `require`: its sign is that of the divisor.
  static double remainder(double a, double b) { return a - b * std::floor(a / b); }
  Value product() {
    Value left = unary();
    for (;;) {
      if (take("*")) {
        left = times(left, unary());
      } else if (take("/")) {
        left = over(std::move(left), unary());
      } else if (take("%")) {
        left = combined(left, unary(), remainder);
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
    if (++depth_ > kDeepest) stop_where(offset, "too many brackets inside one another", "");
    Value value;
    if (take("-")) {
      value = unary();
      numeric(value);
      for (double& number : value.numbers) number = -number;
      value.offset = offset;
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
      if (!take(")")) stop_where(at_, "a bracket is not closed", "write ')'");
      return inside;
    }
    if (at_ == text_.size()) stop_where(offset, "something is missing at the end", "");
    const char next = text_[at_];
    if (next == '\'' || next == '"') return quoted(next);
    if (starts_name(next)) return column();
    if (std::isdigit(static_cast<unsigned char>(next)) != 0 || next == '.') return number();
    stop_where(offset, "'" + std::string(1, next) + "' was not expected here", "");
  }

  Value quoted(char quote) {
    const std::size_t offset = at_;
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) stop_where(offset, "the quote is not closed", "");
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
    if (column == nullptr) throw WhereStop{unknown_name(name, offset)};
    Value value{.name = name, .unit = column->unit, .offset = offset};
    if (is_number(*column)) {
      value.numbers = rows_.numbers(name);
    } else {
      value.kind = Value::Kind::text;
      value.texts = rows_.texts(name);
    }
    return value;
  }

  bool ends_unit(std::size_t start, std::size_t end) const {
    const bool whole = end == text_.size() || !(in_name(text_[end]) || text_[end] == '(');
    return whole && sweep::find_unit(text_.substr(start, end - start)).has_value();
  }

  Value number() {
    const std::size_t offset = at_;
    const std::size_t length = sweep::leading_number(text_.substr(at_));
    const auto plain = sweep::parse_number(text_.substr(at_, length));
    if (length == 0 || !plain) stop_where(offset, "this is not a number", "");
    at_ += length;
    Value value{.kind = Value::Kind::literal_number, .numbers = {*plain}, .offset = offset};
    std::size_t start = at_;
    while (start < text_.size() && text_[start] == ' ') ++start;
    std::size_t end = start;
    while (end < text_.size() && in_unit(text_[end])) ++end;
    const std::string_view word = text_.substr(start, end - start);
    if (word.empty() || word[0] == '/' || word == "and" || word == "or") return value;
    // The longest that is one: "GB/s", but "GB" in "80 GB/parallel.tp".
    while (end > start && !ends_unit(start, end)) --end;
    if (end == start)
      stop_where(start, "'" + std::string(word) + "' is not a unit", "as in 50 ms or 80 GB");
    const auto quantity = sweep::parse_quantity(text_.substr(offset, end - offset));
    if (!quantity) stop_where(offset, "this is not a number", "");
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
  } catch (const WhereStop& stop) {
    return stop.mistake;
  }
}

}  // namespace tools
