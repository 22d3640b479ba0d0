// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The command lines of programs that are checkpointed: each has --dir and --undisturbed (message_files.h), and options
// of its own. Not of the tools, which use CLI11: these programs report errors without exceptions, and print no help.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kfdtest-criu/demo/message_files.h"

namespace kfdtest {

// An option that may be given several times does its last value's work last. What is given by reference must live
// until read().
class CommandLine {
 public:
  // What to do for each of the words that are a value.
  using Words = std::vector<std::pair<std::string_view, std::function<void()>>>;

  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine() = default;

  CommandLine& flag(std::string_view name, bool& value);
  CommandLine& number(std::string_view name, std::uint64_t& value, std::uint64_t least, std::uint64_t most);
  CommandLine& words(std::string_view name, Words words);

  [[nodiscard]] base::Status read(std::initializer_list<std::string_view> arguments);
  [[nodiscard]] base::Status read(int argc, const char* const* argv);
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] bool undisturbed() const { return undisturbed_; }

 private:
  struct Option {
    std::string_view name;
    bool has_value;
    std::function<base::Status(const std::string&)> take;
  };
  [[nodiscard]] base::Status read(const std::vector<std::string>& arguments);

  std::vector<Option> options_;
  std::string folder_;
  bool undisturbed_ = false;
};

// The body of main(): reads the command line and runs the program, which waits at `pending`. Returns the status.
[[nodiscard]] int run_program(int argc, const char* const* argv, CommandLine& line,
                              const std::function<base::Status(const MessageFiles&)>& run);

// Lets the GPU do something that changes nothing that is in the result; how often it did, as the GPU or the completion
// of its work counts.
using Beat = std::function<base::Result<std::uint64_t>()>;

// Does `work`, and counts how often.
[[nodiscard]] Beat counted(std::function<base::Status()> work);

// Says that the program can be checkpointed, and waits without a limit until it may continue. Undisturbed, it does not.
// Meanwhile it beats when the script asks for that, which tells whether its GPU works; a program without a GPU has no
// beat.
[[nodiscard]] base::Status wait_pending(const CommandLine& line, const MessageFiles& messages,
                                        const Beat& beat = nullptr);

}  // namespace kfdtest
