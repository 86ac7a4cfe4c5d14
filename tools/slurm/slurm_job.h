// A sweep as jobs of a Slurm cluster: an array of shards, and one that finishes what they leave.
#pragma once

#include <cstdint>
#include <string>

namespace tools {

struct SlurmJob {
  std::string program;  // paths are absolute: jobs start in another folder
  std::string spec;
  std::string folder;
  std::string logs;
  std::uint64_t limit = 0;  // most positions to run
  std::uint32_t tasks = 1;
  std::uint32_t cpus = 1;
  std::string partition;  // empty: the cluster's own default, as for the two below
  std::string time;
  std::string memory;
};

// Each task runs one shard. A task that fails goes back into the queue, at most five times, and then
// resumes where it was; so does one that is preempted or reaches its time limit, as often as it takes.
std::string shards_script(const SlurmJob& job);

// Runs when the array is over, however it ended: does what is missing, then checks that all is there.
std::string finish_script(const SlurmJob& job);

}  // namespace tools
