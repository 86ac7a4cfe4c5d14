#include "engine/base/version.h"

namespace engine {

std::string_view program_version() { return LLMSWEEP_VERSION; }
std::string_view program_commit() { return LLMSWEEP_COMMIT; }
std::string_view compiler() { return LLMSWEEP_COMPILER; }

}  // namespace engine
