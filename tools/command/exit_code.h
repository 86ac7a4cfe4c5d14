// What a shell learns from llmsweep and llmsweep-calibrate.
#pragma once

namespace tools {

enum ExitCode : int {
  kOk = 0,
  kFailure = 1,  // the disk, or another thing beyond the user's files
  kMistake = 2,  // the user's: options or specs
  kStopped = 3,  // Ctrl-C; the run can be resumed
  kNoPoint = 4,  // it ran, and not one point works
};

}  // namespace tools
