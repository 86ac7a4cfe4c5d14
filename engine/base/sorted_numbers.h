// Many different numbers in their order, of which some come and go: in pieces that are each moved as a whole, with the first number of
// every piece beside those of the others. With ten thousand numbers one is found, put in or taken out in a few lines of memory. (A
// tree of single numbers looks at a line for each of its fourteen levels, and allocates each.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace engine {

class SortedNumbers {
 public:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  bool empty() const { return pieces_.empty(); }
  // The least one that is at least `number`; kNone: there is none.
  std::uint64_t first_from(std::uint64_t number) const {
    if (empty()) return kNone;
    const std::size_t at = piece_of(number);
    const Piece& piece = pieces_[at];
    const auto place = std::ranges::lower_bound(piece, number);
    if (place != piece.end()) return *place;
    return at + 1 < pieces_.size() ? firsts_[at + 1] : kNone;
  }
  // One that is not there, less than kNone.
  void insert(std::uint64_t number) {
    if (empty()) return add_piece(0, {number});
    const std::size_t at = piece_of(number);
    Piece& piece = pieces_[at];
    piece.insert(std::ranges::lower_bound(piece, number), number);
    firsts_[at] = piece.front();
    if (piece.size() > kMost) split(at);
  }
  // One that is.
  void erase(std::uint64_t number) {
    const std::size_t at = piece_of(number);
    Piece& piece = pieces_[at];
    piece.erase(std::ranges::lower_bound(piece, number));
    if (piece.empty()) {
      pieces_.erase(pieces_.begin() + std::ptrdiff_t(at));
      firsts_.erase(firsts_.begin() + std::ptrdiff_t(at));
    } else {
      firsts_[at] = piece.front();
    }
  }

 private:
  using Piece = std::vector<std::uint64_t>;
  static constexpr std::size_t kMost = 64;  // of a piece: half a kilobyte

  // The last one that begins at `number` or before it; the first where none does.
  std::size_t piece_of(std::uint64_t number) const {
    const auto behind = std::ranges::upper_bound(firsts_, number) - firsts_.begin();
    return std::size_t(std::max<std::ptrdiff_t>(behind - 1, 0));
  }
  void add_piece(std::size_t at, Piece piece) {
    firsts_.insert(firsts_.begin() + std::ptrdiff_t(at), piece.front());
    pieces_.insert(pieces_.begin() + std::ptrdiff_t(at), std::move(piece));
  }
  void split(std::size_t at) {
    Piece& piece = pieces_[at];
    const auto middle = piece.begin() + std::ptrdiff_t(piece.size() / 2);
    Piece rest(middle, piece.end());
    piece.erase(middle, piece.end());
    add_piece(at + 1, std::move(rest));
  }

  std::vector<Piece> pieces_;          // none of them empty
  std::vector<std::uint64_t> firsts_;  // of each
};

}  // namespace engine
