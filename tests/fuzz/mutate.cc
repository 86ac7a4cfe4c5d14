#include "tests/fuzz/mutate.h"

#include <algorithm>

#include "engine/base/random.h"

namespace fuzz {
namespace {

// Longer inputs say nothing that shorter ones do not, and take longer.
constexpr std::size_t kMostBytes = 16 << 10;

// A stream of numbers that depends on the input's number only.
class Choice {
 public:
  explicit Choice(std::uint64_t number) : seed_(engine::mixed_seed(0x66757a7a, number)) {}
  std::size_t below(std::size_t count) {
    return count == 0 ? 0 : std::size_t(engine::mixed_seed(seed_, drawn_++) % count);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

struct Piece {
  std::size_t start, length;
};
Piece some_piece(const std::string& text, Choice& choice) {
  const std::size_t start = choice.below(text.size() + 1);
  // Mostly short, now and then all that follows.
  const std::size_t most =
      choice.below(4) == 0 ? text.size() - start : std::min<std::size_t>(8, text.size() - start);
  return {start, choice.below(most + 1)};
}

void change_once(std::string& text, const std::vector<std::string>& seeds,
                 const std::vector<std::string_view>& words, Choice& choice) {
  const std::size_t at = choice.below(text.size() + 1);
  switch (choice.below(8)) {
    case 0:  // a bit
      if (at < text.size()) text[at] = char(text[at] ^ (1 << choice.below(8)));
      return;
    case 1:  // a byte
      if (at < text.size()) text[at] = char(choice.below(256));
      return;
    case 2: {
      const Piece piece = some_piece(text, choice);
      text.erase(piece.start, piece.length);
      return;
    }
    case 3: {
      const Piece piece = some_piece(text, choice);
      const std::string copy = text.substr(piece.start, piece.length);
      for (std::size_t i = choice.below(6) + 1; i > 0; --i)
        text.insert(std::min(at, text.size()), copy);
      return;
    }
    case 4: {  // a piece of another seed
      const std::string& other = seeds[choice.below(seeds.size())];
      const Piece piece = some_piece(other, choice);
      text.insert(at, other.substr(piece.start, piece.length));
      return;
    }
    case 5: {  // a number becomes another one
      const std::size_t digit = text.find_first_of("0123456789", at);
      constexpr std::string_view numbers[] = {
          "0",   "-1",        "1e308", "1e-320", "9223372036854775807", "18446744073709551616",
          "0.1", "2147483648"};
      if (digit != std::string::npos)
        text.replace(digit, 1, numbers[choice.below(std::size(numbers))]);
      return;
    }
    default:
      if (!words.empty()) text.insert(at, words[choice.below(words.size())]);
  }
}

}  // namespace

std::string make_input(std::uint64_t number, const std::vector<std::string>& seeds,
                       const std::vector<std::string_view>& words) {
  if (number < seeds.size()) return seeds[std::size_t(number)];
  Choice choice(number);
  std::string text = seeds[choice.below(seeds.size())];
  for (std::size_t changes = choice.below(6) + 1; changes > 0; --changes) {
    change_once(text, seeds, words, choice);
    text.resize(std::min(text.size(), kMostBytes));
  }
  return text;
}

}  // namespace fuzz
