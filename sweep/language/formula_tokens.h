// An expression cut into tokens, each with its place: names become leaves, quantities base units, and
// texts codes. What the operators mean is muParser's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/leaves/leaves.h"
#include "sweep/language/node.h"
#include "sweep/language/reading.h"

namespace sweep {

struct Token {
  enum class Kind : std::uint8_t {
    number,
    text,        // 'prefill'
    leaf,        // step.phase
    function,    // min
    comparison,  // < <= > >=
    equality,    // == !=
    arithmetic,  // + - * / ^ %
    logic,       // && || !
    choice,      // ? :
    open,
    close,
    comma,
  };
  Kind kind = Kind::number;
  std::string written;     // as the user wrote it
  std::size_t offset = 0;  // in the user's text
  std::string program;     // for muParser
  int leaf = -1;           // of a leaf
  std::string_view unit;   // of a number with a unit: the dimension's symbol
};

// The place of a character of a scalar, as well as it can be told.
engine::Location place_in(const Node& scalar, std::size_t offset);

// False where a mistake was found; the tokens then end there or lack a part.
bool tokenize(const Node& scalar, std::vector<Token>& tokens, Reading& reading);

}  // namespace sweep
