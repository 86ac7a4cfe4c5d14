#include "sweep/run/stop_signal.h"

#include <unistd.h>

#include <csignal>

namespace sweep {
namespace {

// A handler has no arguments of ours: the one place it can find its target is here.
std::atomic<StopSignal*> target{nullptr};

void on_signal(int signal) {
  StopSignal* stop = target.load();
  // The kernel tells of a parent that died once for each of its threads: only who presses Ctrl-C again is in a hurry.
  if (stop == nullptr || (stop->requested() && signal == SIGINT)) _exit(130);
  stop->request();
}

void install(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

StopOnSignals::StopOnSignals(StopSignal& stop) {
  target.store(&stop);
  install(on_signal);
}

StopOnSignals::~StopOnSignals() {
  install(SIG_DFL);
  target.store(nullptr);
}

}  // namespace sweep
