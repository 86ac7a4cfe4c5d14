#include "engine/base/result.h"

namespace engine {

std::string to_text(const std::vector<Mistake>& mistakes) {
  std::string text;
  for (const Mistake& mistake : mistakes) {
    if (!mistake.where.file.empty()) {
      text += mistake.where.file + ":";
      if (mistake.where.line > 0) {
        text +=
            std::to_string(mistake.where.line) + ":" + std::to_string(mistake.where.column) + ":";
      }
      text += " ";
    }
    text += "error: " + mistake.what + "\n";
    if (!mistake.hint.empty()) text += "  hint: " + mistake.hint + "\n";
  }
  return text;
}

}  // namespace engine
