#include "engine/base/version.h"

namespace engine {

std::string_view program_version() { return LLMSWEEP_VERSION; }

}  // namespace engine
