#include "tests/support/paths.h"

namespace paths {
namespace {

std::string joined(const char* folder, const std::string& below) {
  return below.empty() ? folder : std::string(folder) + "/" + below;
}

}  // namespace

std::string source(const std::string& below) { return joined(LLMSWEEP_SOURCE_DIR, below); }
std::string specs(const std::string& below) { return joined(LLMSWEEP_SOURCE_DIR "/specs", below); }
std::string shared(const std::string& below) { return joined(LLMSWEEP_SHARED_DIR, below); }
std::string binary() { return LLMSWEEP_BINARY; }

}  // namespace paths
