// How late would the first token of a request be, by what is known when it arrives? Pools may turn away those that would come too late.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/serving/mechanisms/fleet.h"

namespace engine {

// All questions are about `Fleet::request`.
class Shedding {
 public:
  // True where some pool turns requests away.
  bool start(Fleet& fleet);

  // Whether the replica that would read it turns it away. It may also be the one that writes.
  bool sheds(std::size_t replica, Served served);
  // The same of a replica that would first set blocks aside for it, at `time`; and of one that would read it after `writer` has.
  bool sheds_before_room(std::size_t writer, double time);
  bool sheds_reading(std::size_t reader, std::size_t writer);
  // The same where it would wait so many seconds before any replica takes it, and `replica` is one of those.
  bool sheds_after(double wait, std::size_t replica);

 private:
  // Seconds to read what is not cached of its prompt where that would be read now.
  double reading();
  // What it would wait for at the replica that writes its answer, and on the way there, with `unread` before it.
  Prospects::Elsewhere at_writer(std::size_t writer, std::int64_t unread) const;
  bool sheds_it(std::size_t replica, double time, const Prospects::Elsewhere& elsewhere);
  // Until its images would be encoded.
  double images(double time) const;

  Fleet* fleet_ = nullptr;
};

}  // namespace engine
