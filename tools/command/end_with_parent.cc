#include "tools/command/end_with_parent.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>

namespace tools {

void end_with_parent() {
  const char* stated = std::getenv(kParentVariable);
  if (stated == nullptr) return;
  const std::string_view text = stated;
  pid_t parent = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), parent);
  if (read.ec != std::errc{} || parent <= 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It may have gone before that.
  if (::kill(parent, 0) != 0 && errno == ESRCH) ::raise(SIGTERM);
  // What this program starts has this one as its parent.
  ::unsetenv(kParentVariable);
}

}  // namespace tools
