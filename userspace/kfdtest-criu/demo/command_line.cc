// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfdtest-criu/demo/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/parse.h"

namespace kfdtest {
namespace {

using base::Error;
using base::Status;

constexpr int kUsage = 64;
// Between two looks at the folder, which may be on another machine: a program that waits must not take the time of
// CRIU.
constexpr std::chrono::milliseconds kLookInterval{5};

Status expected(std::string_view name, const std::string& what) {
  return Error(EINVAL, std::string(name) + " wants " + what);
}

}  // namespace

CommandLine::CommandLine() {
  options_.push_back({"--dir", true, [this](const std::string& value) -> Status {
                        folder_ = value;
                        return {};
                      }});
  flag("--undisturbed", undisturbed_);
}

CommandLine& CommandLine::flag(std::string_view name, bool& value) {
  options_.push_back({name, false, [&value](const std::string&) -> Status {
                        value = true;
                        return {};
                      }});
  return *this;
}

CommandLine& CommandLine::number(std::string_view name, std::uint64_t& value, std::uint64_t least, std::uint64_t most) {
  options_.push_back({name, true, [=, &value](const std::string& text) -> Status {
                        const auto parsed = base::parse_u64(text);
                        if (!parsed.has_value() || *parsed < least || *parsed > most)
                          return expected(name, std::to_string(least) + " to " + std::to_string(most));
                        value = *parsed;
                        return {};
                      }});
  return *this;
}

CommandLine& CommandLine::words(std::string_view name, Words words) {
  options_.push_back({name, true, [name, words = std::move(words)](const std::string& text) -> Status {
                        std::string known;
                        for (const auto& [word, take] : words) {
                          if (word == text) {
                            take();
                            return {};
                          }
                          known += (known.empty() ? "" : " or ") + std::string(word);
                        }
                        return expected(name, known);
                      }});
  return *this;
}

Status CommandLine::read(std::initializer_list<std::string_view> arguments) {
  return read(std::vector<std::string>(arguments.begin(), arguments.end()));
}

Status CommandLine::read(int argc, const char* const* argv) {
  return read(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}

Status CommandLine::read(const std::vector<std::string>& arguments) {
  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    const auto option =
        std::find_if(options_.begin(), options_.end(), [&](const Option& each) { return each.name == *argument; });
    if (option == options_.end()) return Error(EINVAL, "no option " + *argument);
    if (option->has_value && ++argument == arguments.end()) return expected(option->name, "a value");
    TRY(option->take(*argument));
  }
  if (folder_.empty()) return Error(EINVAL, "--dir is needed");
  return {};
}

int run_program(int argc, const char* const* argv, CommandLine& line,
                const std::function<Status(const MessageFiles&)>& run) {
  if (const Status status = line.read(argc, argv); !status.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[0], status.error().message().c_str());
    return kUsage;
  }
  const MessageFiles messages(line.folder());
  const Status status = run(messages);
  return status.ok() ? EXIT_SUCCESS : messages.fail(status.error().message());
}

Beat counted(std::function<Status()> work) {
  return [work = std::move(work), beats = std::uint64_t{0}]() mutable -> base::Result<std::uint64_t> {
    TRY(work());
    return ++beats;
  };
}

Status wait_pending(const CommandLine& line, const MessageFiles& messages, const Beat& beat) {
  if (line.undisturbed()) return {};
  if (beat) TRY(messages.publish("beats", "0"));
  TRY(messages.publish("state", "pending " + std::to_string(::getpid())));
  while (!messages.told_to_go()) {
    if (beat && messages.take_beat()) {
      ASSIGN_OR_RETURN(const std::uint64_t beats, beat());
      TRY(messages.publish("beats", std::to_string(beats)));
    }
    std::this_thread::sleep_for(kLookInterval);
  }
  messages.say("go: the program continues");
  return {};
}

}  // namespace kfdtest
