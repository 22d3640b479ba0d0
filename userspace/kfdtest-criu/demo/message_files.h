// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// How the demo program and the script that checkpoints it exchange messages: files in one folder, each opened, used and
// closed at once, so that a checkpoint finds none open.
//   log      one line a phase, with the monotonic time
//   state    "pending PID" when everything is in place and may be checkpointed, or "failed MESSAGE"
//   beat     made by the script while the program waits: its GPU has to do something; the program removes it
//   beats    how often the GPU did; there from the beginning if the program can do this
//   go       made by the script: the program may continue
//   result   "RESULT <16 hexadecimal digits>", or "FAILED MESSAGE"
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace kfdtest {

class MessageFiles {
 public:
  explicit MessageFiles(std::string folder) : folder_(std::move(folder)) {}

  // Writes a line to standard output and to the log.
  void say(std::string_view phase) const;
  // Replaces a file whole: a reader sees the old text or the new one.
  base::Status publish(std::string_view file, std::string_view text) const;
  // Writes and publishes the result, a checksum in hexadecimal digits.
  base::Status publish_result(std::string_view checksum) const;
  [[nodiscard]] bool told_to_go() const;
  // Whether the script has asked for a beat, which it has to do again for the next one.
  [[nodiscard]] bool take_beat() const;
  // Tells of an error in `log`, in `result`, and in `state` unless it has the process id. Returns EXIT_FAILURE.
  [[nodiscard]] int fail(std::string_view message) const;

 private:
  [[nodiscard]] std::string path(std::string_view file) const { return folder_ + "/" + std::string(file); }
  std::string folder_;
};

}  // namespace kfdtest
