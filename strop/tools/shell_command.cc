#include "strop/tools/shell_command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

extern char** environ;

namespace strop::tools {
namespace {

// Spawns in a process group of its own, with no signal blocked.
int Spawn(const char* script, pid_t* child) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  for (int output : {1, 2}) posix_spawn_file_actions_addopen(&files, output, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  const char* const arguments[] = {"sh", "-c", script, nullptr};
  const int error = posix_spawn(child, "/bin/sh", &files, &attributes, const_cast<char* const*>(arguments), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

Result<CommandOutcome> RunShellCommand(const std::string& command, const std::string& file, double limit_seconds,
                                       const std::function<bool()>& stop) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::microseconds;
  const auto start = Clock::now();
  const auto seconds = [start] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  pid_t child = 0;
  if (const int error = Spawn(StrCat(command, " '", file, "'").c_str(), &child))
    return Internal("cannot start a shell for ", command, ": ", std::strerror(error));
  CommandOutcome out;
  int status = 0;
  for (microseconds nap(200);; nap = std::min(nap * 2, microseconds(5000))) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0) return Internal("lost the command ", command, ": ", std::strerror(errno));
    out.timed_out = limit_seconds > 0 && seconds() > limit_seconds;
    const bool stopped = stop && stop();
    if (out.timed_out || stopped) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      if (stopped) return Status(StatusCode::kCancelled, "interrupted");
      break;
    }
    std::this_thread::sleep_for(nap);
  }
  out.seconds = seconds();
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

}  // namespace strop::tools
