// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The table of commands.
#include "vasicd/control/command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <vector>

#include "base/parse.h"

namespace vasicd::control {
namespace {

constexpr std::size_t kMaxWords = 16;
constexpr std::size_t kMaxName = 32;
constexpr std::uint64_t kMegabyte = 1'000'000;
constexpr std::uint64_t kMaxMegabytes = 1'000'000;

using Words = std::vector<std::string_view>;  // without the verb
using Parsed = base::Result<Command>;

struct Verb {
  std::string_view name;
  std::string_view arguments;
  std::string_view meaning;
  Parsed (*parse)(const Verb& self, const Words& words);
};

base::Error usage(const Verb& verb) {
  std::string text = "usage: " + std::string(verb.name);
  if (!verb.arguments.empty()) text += " " + std::string(verb.arguments);
  return base::Error(EINVAL, std::move(text));
}

bool is_name(std::string_view word) {
  return !word.empty() && word.size() <= kMaxName && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

std::optional<unsigned> count_in(std::string_view word, unsigned most) {
  const auto value = base::parse_u64(word);
  if (!value || *value > most) return std::nullopt;
  return static_cast<unsigned>(*value);
}

std::optional<std::uint64_t> address_in(std::string_view word) {
  return word.starts_with("0x") ? base::parse_u64(word, 16) : base::parse_u64(word);
}

template <typename T>
Parsed plain(const Verb& self, const Words& words) {
  if (!words.empty()) return usage(self);
  return Command(T{});
}

Parsed parse_echo(const Verb&, const Words& words) {
  Echo echo;
  for (const auto word : words) echo.text += (echo.text.empty() ? "" : " ") + std::string(word);
  return Command(std::move(echo));
}

Parsed parse_pause(const Verb& self, const Words& words) {
  if (words.empty()) return Command(SetRunning{Running::kNothing});
  if (words.size() == 1 && words[0] == "user") return Command(SetRunning{Running::kKernel});
  return usage(self);
}

Parsed parse_step(const Verb& self, const Words& words) {
  if (words.empty()) return Command(Step{});
  const auto packets = words.size() == 1 ? count_in(words[0], kMaxSteps) : std::nullopt;
  if (!packets || *packets == 0) return usage(self);
  return Command(Step{*packets});
}

std::optional<std::string> queue_name(const Words& words) {
  if (words.size() != 1 || !is_name(words[0])) return std::nullopt;
  return std::string(words[0]);
}

Parsed parse_hang(const Verb& self, const Words& words) {
  auto queue = queue_name(words);
  if (!queue) return usage(self);
  return Command(Hang{std::move(*queue)});
}

Parsed parse_cure(const Verb& self, const Words& words) {
  auto queue = queue_name(words);
  if (!queue) return usage(self);
  return Command(Cure{std::move(*queue)});
}

constexpr std::array kKinds{InterruptClass::kEndOfPipe, InterruptClass::kTrap, InterruptClass::kMessage,
                            InterruptClass::kFault, InterruptClass::kError};

Parsed parse_drop_interrupt(const Verb& self, const Words& words) {
  DropInterrupts drop;
  if (words.size() > 2) return usage(self);
  auto word = words.begin();
  if (word != words.end() && !word->empty() && word->front() >= '0' && word->front() <= '9') {
    const auto count = count_in(*word++, kMaxCount);
    if (!count) return usage(self);
    drop.count = *count;
  }
  if (word != words.end()) {
    const auto kind = std::ranges::find(kKinds, *word++, [](InterruptClass k) { return name(k); });
    if (kind == kKinds.end()) return usage(self);
    drop.kind = *kind;
  }
  if (word != words.end()) return usage(self);
  return Command(drop);
}

Parsed parse_hold_interrupts(const Verb& self, const Words& words) {
  if (words.size() != 1 || (words[0] != "on" && words[0] != "off")) return usage(self);
  return Command(HoldInterrupts{words[0] == "on"});
}

Parsed parse_fail_unmap(const Verb& self, const Words& words) {
  if (words.empty()) return Command(FailUnmaps{});
  const auto count = words.size() == 1 ? count_in(words[0], kMaxCount) : std::nullopt;
  if (!count) return usage(self);
  return Command(FailUnmaps{*count});
}

Parsed parse_vm_fault(const Verb& self, const Words& words) {
  if (words.empty() || words.size() > 2 || !is_name(words[0])) return usage(self);
  VmFault fault{std::string(words[0]), std::nullopt};
  if (words.size() == 2) {
    fault.address = address_in(words[1]);
    if (!fault.address) return usage(self);
  }
  return Command(std::move(fault));
}

Parsed parse_link(const Verb& self, const Words& words) {
  if (words.size() != 1) return usage(self);
  if (words[0] == "off") return Command(LinkSpeed{0});
  const auto megabytes = base::parse_u64(words[0]);
  if (!megabytes || *megabytes == 0 || *megabytes > kMaxMegabytes) return usage(self);
  return Command(LinkSpeed{*megabytes * kMegabyte});
}

Parsed parse_resume(const Verb& self, const Words& words) {
  if (!words.empty()) return usage(self);
  return Command(SetRunning{Running::kAll});
}

Parsed parse_trace(const Verb& self, const Words& words) {
  if (words.empty() || words.size() > 2) return usage(self);
  auto stamp = TraceBuffer::Stamp::kNone;
  if (words.size() == 2) {
    if (words[1] != "time") return usage(self);
    stamp = TraceBuffer::Stamp::kTime;
  }
  if (words[0] == "read") return Command(TraceRead{stamp});
  if (words[0] == "follow") return Command(TraceFollow{stamp});
  if (words.size() == 2 || (words[0] != "on" && words[0] != "off")) return usage(self);
  return Command(TraceRecord{words[0] == "on" ? TraceRecord::State::kOn : TraceRecord::State::kOff});
}

Parsed parse_vram_truth(const Verb& self, const Words& words) {
  using Verbs = VramTruthCommand::Verb;
  if (words.size() == 2 && words[0] == "more") {
    const auto page = base::parse_u64(words[1]);
    if (!page) return usage(self);
    return Command(VramTruthCommand{Verbs::kMore, *page});
  }
  if (words.size() != 1) return usage(self);
  if (words[0] == "start") return Command(VramTruthCommand{Verbs::kStart, 0});
  if (words[0] == "read") return Command(VramTruthCommand{Verbs::kRead, 0});
  if (words[0] == "diff") return Command(VramTruthCommand{Verbs::kDiff, 0});
  return usage(self);
}

template <Remove::Way kWay>
Parsed parse_remove(const Verb& self, const Words& words) {
  if (!words.empty()) return usage(self);
  return Command(Remove{kWay});
}

constexpr std::array kVerbs{
    Verb{"status", "", "the GPU, its queues, what is still to be injected", plain<Status>},
    Verb{"pause", "[user]", "execute no packets; user: of user queues only", parse_pause},
    Verb{"resume", "", "execute packets again", parse_resume},
    Verb{"step", "[1..1024]", "while paused: execute that many packets and say which", parse_step},
    Verb{"hang", "NAME", "the queue executes nothing more, until a reset or cure", parse_hang},
    Verb{"cure", "NAME", "undo hang", parse_cure},
    Verb{"drop-interrupt", "[0..1000000] [eop|trap|message|fault|error]", "lose the next interrupts (1, of any kind)",
         parse_drop_interrupt},
    Verb{"hold-interrupts", "on|off", "entries reach the ring, the guest is notified when this ends",
         parse_hold_interrupts},
    Verb{"fail-unmap", "[0..1000000]", "leave the next requests to unmap user queues (1) without an answer",
         parse_fail_unmap},
    Verb{"vm-fault", "NAME [ADDRESS]", "the queue's next packet faults, at the address (its own)", parse_vm_fault},
    Verb{"link", "1..1000000|off", "limit copies that leave or enter VRAM to that many MB/s (10^6 bytes)", parse_link},
    Verb{"vram-truth", "start|read|diff|more PAGE", "which pages of VRAM have other contents than at the start",
         parse_vram_truth},
    Verb{"trace", "on|off|read [time]|follow [time]",
         "keep trace lines; what was kept; all that come, until a line is sent", parse_trace},
    Verb{"reset", "", "the GPU declares itself hung; the driver has to reset it", plain<Reset>},
    Verb{"quit-gpu", "", "the GPU goes away and says so, as when vasicd ends", parse_remove<Remove::Way::kAnnounced>},
    Verb{"kill", "", "the GPU stops answering, as when vasicd is killed", parse_remove<Remove::Way::kSilent>},
    Verb{"echo", "[TEXT]", "answers TEXT", parse_echo},
    Verb{"version", "", "of this protocol and of the guest ABI", plain<Version>},
    Verb{"help", "", "this list", plain<Help>},
};

base::Error unknown_verb(std::string_view word) {
  std::string text = "unknown command '" + std::string(word.substr(0, kMaxName)) + "', one of:";
  for (const Verb& verb : kVerbs) text += " " + std::string(verb.name);
  return base::Error(EINVAL, std::move(text));
}

base::Result<Words> split(std::string_view line) {
  if (line.size() > kMaxLine) return base::Error(EINVAL, "line is longer than " + std::to_string(kMaxLine) + " bytes");
  if (!std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; })) {
    return base::Error(EINVAL, "line has bytes that are not printable ASCII");
  }
  Words words;
  while (true) {
    const auto begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    if (words.size() == kMaxWords) return base::Error(EINVAL, "more than " + std::to_string(kMaxWords) + " words");
    const auto end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

}  // namespace

std::string_view name(InterruptClass kind) {
  switch (kind) {
    case InterruptClass::kEndOfPipe:
      return "eop";
    case InterruptClass::kTrap:
      return "trap";
    case InterruptClass::kMessage:
      return "message";
    case InterruptClass::kFault:
      return "fault";
    case InterruptClass::kError:
      break;
  }
  return "error";
}

std::string_view name(Running running) {
  switch (running) {
    case Running::kAll:
      return "all";
    case Running::kKernel:
      return "kernel";
    case Running::kNothing:
      break;
  }
  return "nothing";
}

base::Result<Request> parse(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  ASSIGN_OR_RETURN(Words words, split(line));
  Request request;
  static constexpr std::string_view kGpu = "gpu=";
  if (const auto word = std::ranges::find_if(words, [](auto w) { return w.starts_with(kGpu); }); word != words.end()) {
    request.gpu = count_in(word->substr(kGpu.size()), kMaxCount);
    if (!request.gpu) return base::Error(EINVAL, "gpu= needs a number");
    words.erase(word);
  }
  if (words.empty()) return base::Error(EINVAL, "no command; try help");
  const auto verb = std::ranges::find(kVerbs, words.front(), &Verb::name);
  if (verb == kVerbs.end()) return unknown_verb(words.front());
  words.erase(words.begin());
  ASSIGN_OR_RETURN(request.command, verb->parse(*verb, words));
  return request;
}

std::string help_text() {
  std::string text;
  for (const Verb& verb : kVerbs) {
    text += verb.name;
    if (!verb.arguments.empty()) text += " " + std::string(verb.arguments);
    text += ": " + std::string(verb.meaning) + "\n";
  }
  return text;
}

}  // namespace vasicd::control
