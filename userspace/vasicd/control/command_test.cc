// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The language: every command, and what is refused.
#include "vasicd/control/command.h"

#include <gtest/gtest.h>

#include <random>

namespace vasicd::control::command_test {

template <typename T>
T parsed(std::string_view line) {
  const auto request = parse(line);
  EXPECT_TRUE(request.ok()) << line << ": " << request.error().message();
  if (!request.ok()) return T{};
  const T* command = std::get_if<T>(&request->command);
  EXPECT_NE(command, nullptr) << line;
  return command == nullptr ? T{} : *command;
}

std::string refusal(std::string_view line) {
  const auto request = parse(line);
  return request.ok() ? "" : request.error().message();
}

TEST(Command, arguments_become_values) {
  EXPECT_EQ(parsed<SetRunning>("pause").running, Running::kNothing);
  EXPECT_EQ(parsed<SetRunning>("pause user").running, Running::kKernel);
  EXPECT_EQ(parsed<SetRunning>("resume").running, Running::kAll);
  EXPECT_EQ(parsed<Step>("step").packets, 1u);
  EXPECT_EQ(parsed<Step>("step 7").packets, 7u);
  EXPECT_EQ(parsed<Hang>("hang cp.p0.q1").name, "cp.p0.q1");
  EXPECT_EQ(parsed<Hang>("hang sdma0").name, "sdma0");
  EXPECT_EQ(parsed<Cure>("cure sdma0.q2").name, "sdma0.q2");
  EXPECT_EQ(parsed<FailUnmaps>("fail-unmap 3").count, 3u);
  EXPECT_EQ(parsed<LinkSpeed>("link 500").bytes_per_second, 500'000'000u);
  EXPECT_EQ(parsed<LinkSpeed>("link off").bytes_per_second, 0u);
  EXPECT_EQ(parsed<Remove>("quit-gpu").way, Remove::Way::kAnnounced);
  EXPECT_EQ(parsed<Remove>("kill").way, Remove::Way::kSilent);
  EXPECT_EQ(parsed<Echo>("echo a  b").text, "a b");
  parsed<Status>("status");
  EXPECT_EQ(parsed<TraceRecord>("trace off").state, TraceRecord::State::kOff);
  EXPECT_EQ(parsed<TraceRead>("trace read").stamp, TraceBuffer::Stamp::kNone);
  EXPECT_EQ(parsed<TraceFollow>("trace follow time").stamp, TraceBuffer::Stamp::kTime);
  EXPECT_EQ(parsed<VramTruthCommand>("vram-truth diff").verb, VramTruthCommand::Verb::kDiff);
  EXPECT_EQ(parsed<VramTruthCommand>("vram-truth more 7").page, 7u);
  parsed<Reset>("reset");
  parsed<Version>("version");
  parsed<Help>("help");
}

TEST(Command, interrupts_are_dropped_by_count_and_kind) {
  EXPECT_EQ(parsed<DropInterrupts>("drop-interrupt").count, 1u);
  EXPECT_TRUE(parsed<HoldInterrupts>("hold-interrupts on").held);
  EXPECT_FALSE(parsed<HoldInterrupts>("hold-interrupts off").held);
  EXPECT_NE(refusal("hold-interrupts"), "");
  EXPECT_EQ(parsed<DropInterrupts>("drop-interrupt 5").count, 5u);
  EXPECT_EQ(parsed<DropInterrupts>("drop-interrupt eop").kind, InterruptClass::kEndOfPipe);
  EXPECT_EQ(parsed<DropInterrupts>("drop-interrupt 2 fault").kind, InterruptClass::kFault);
  EXPECT_EQ(parsed<DropInterrupts>("drop-interrupt 2 fault").count, 2u);
  EXPECT_NE(refusal("drop-interrupt fault 2"), "");
  EXPECT_NE(refusal("drop-interrupt 2 nmi"), "");
}

TEST(Command, a_vm_fault_has_an_address_or_takes_that_of_the_packet) {
  EXPECT_EQ(parsed<VmFault>("vm-fault sdma0.q2").address, std::nullopt);
  EXPECT_EQ(parsed<VmFault>("vm-fault sdma0.q2 0xdead000").address, 0xdead000u);
  EXPECT_EQ(parsed<VmFault>("vm-fault sdma0.q2 4096").address, 4096u);
  EXPECT_EQ(refusal("vm-fault sdma0.q2 0x"), "usage: vm-fault NAME [ADDRESS]");
  EXPECT_EQ(refusal("vm-fault sdma0.q2 12g"), "usage: vm-fault NAME [ADDRESS]");
}

TEST(Command, the_gpu_is_named_anywhere_in_the_line) {
  EXPECT_EQ(parse("status")->gpu, std::nullopt);
  EXPECT_EQ(parse("gpu=2 status")->gpu, 2u);
  EXPECT_EQ(parse("hang gpu=1 sdma0")->gpu, 1u);
  EXPECT_EQ(parse("status gpu=0\r")->gpu, 0u);
  EXPECT_EQ(refusal("status gpu="), "gpu= needs a number");
  EXPECT_EQ(refusal("status gpu=-1"), "gpu= needs a number");
  EXPECT_EQ(refusal("status gpu=0 gpu=1"), "usage: status");
}

TEST(Command, a_refusal_says_what_is_allowed) {
  EXPECT_EQ(refusal(""), "no command; try help");
  EXPECT_EQ(refusal("link"), "usage: link 1..1000000|off");
  EXPECT_EQ(refusal("link 0"), "usage: link 1..1000000|off");
  EXPECT_EQ(refusal("step 0"), "usage: step [1..1024]");
  EXPECT_EQ(refusal("step 1025"), "usage: step [1..1024]");
  EXPECT_EQ(refusal("hang"), "usage: hang NAME");
  EXPECT_EQ(refusal("hang Sdma/../0"), "usage: hang NAME");
  EXPECT_EQ(refusal("hang ring sdma0"), "usage: hang NAME");
  EXPECT_EQ(refusal("hang " + std::string(40, 'a')), "usage: hang NAME");
  EXPECT_TRUE(refusal("frobnicate").starts_with("unknown command 'frobnicate', one of: status "));
  EXPECT_EQ(refusal(std::string(kMaxLine + 1, 'x')), "line is longer than 1024 bytes");
  EXPECT_EQ(refusal("status \x01"), "line has bytes that are not printable ASCII");
  EXPECT_EQ(refusal("echo 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"), "more than 16 words");
}

TEST(Command, help_has_a_line_for_each_command_that_is_known) {
  const std::string help = help_text();
  const std::string known = refusal("?");
  const auto lines = std::count(help.begin(), help.end(), '\n');
  const auto names = std::count(known.begin() + static_cast<long>(known.find(':')), known.end(), ' ');
  EXPECT_EQ(lines, names);
}

TEST(Command, garbage_is_refused_and_never_more) {
  std::mt19937 random(1);
  const std::string words[] = {"hang", "gpu=1", "step", "99999999999999999999", " ", "vm-fault", "0x",
                               "\n",   "\xff",  "eop"};
  for (int i = 0; i < 20000; ++i) {
    std::string line;
    for (auto n = random() % 20; n > 0; --n) {
      line +=
          random() % 3 == 0 ? std::string(1, static_cast<char>(random())) : words[random() % std::size(words)] + " ";
    }
    const auto request = parse(line);
    if (!request.ok()) {
      EXPECT_FALSE(request.error().message().empty());
      EXPECT_EQ(request.error().message().find('\n'), std::string::npos);
    }
  }
}

}  // namespace vasicd::control::command_test
