// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The trace file.
#include "vasicd/context/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace vasicd::trace_test {

struct NoClock final : Clock {
  [[nodiscard]] std::uint64_t now_ns() const override { return 1'000'002'000; }
};

TEST(Trace, lines_carry_the_gpu_and_are_in_the_file_at_once) {
  const std::string path = testing::TempDir() + "/vasicd-trace-" + std::to_string(::getpid());
  auto file = TraceFile::create(path);
  ASSERT_TRUE(file.ok());
  const NoClock clock;
  GpuTrace trace0(file->get(), 0, clock);
  GpuTrace trace1(file->get(), 1, clock);
  tracef(trace0, "gmc: fault vmid=%u", 8u);
  trace1.line("cmd: NOP ok");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  ::unlink(path.c_str());
  EXPECT_EQ(text.str(), "gpu0 gmc: fault vmid=8\ngpu1 cmd: NOP ok\n");
}

TEST(Trace, without_a_file_it_is_off) {
  const NoClock clock;
  GpuTrace trace(nullptr, 0, clock);
  EXPECT_FALSE(trace.enabled());
  tracef(trace, "nothing %d", 1);
}

TEST(Trace, overlong_lines_are_cut) {
  struct Last final : Trace {
    [[nodiscard]] bool enabled() const override { return true; }
    void line(std::string_view text) override { length = text.size(); }
    std::size_t length = 0;
  } trace;
  tracef(trace, "%s", std::string(2000, 'x').c_str());
  EXPECT_EQ(trace.length, 511u);
}

TEST(Trace, a_file_that_cannot_be_created_is_named) {
  const auto file = TraceFile::create("/nonexistent/trace");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().message(), "/nonexistent/trace: No such file or directory");
}

std::string read(const TraceBuffer& buffer, std::uint64_t& number,
                 TraceBuffer::Stamp stamp = TraceBuffer::Stamp::kNone) {
  std::string text;
  buffer.read(number, stamp, 1 << 20, text);
  return text;
}

TEST(Trace, a_reader_sees_numbered_lines_from_where_it_began) {
  const NoClock clock;
  GpuTrace trace(nullptr, 3, clock);
  trace.buffer().add_reader();
  EXPECT_TRUE(trace.enabled());
  trace.line("sdma0: fence addr=0x10");
  std::uint64_t number = trace.buffer().next_number();
  trace.line("sdma0: trap context=0x1");
  EXPECT_EQ(read(trace.buffer(), number), "2 gpu3 sdma0: trap context=0x1\n");
  EXPECT_EQ(read(trace.buffer(), number), "");
  number = 1;
  EXPECT_EQ(read(trace.buffer(), number, TraceBuffer::Stamp::kTime),
            "1 t=1.000002 gpu3 sdma0: fence addr=0x10\n2 t=1.000002 gpu3 sdma0: trap context=0x1\n");
  trace.buffer().remove_reader();
  EXPECT_FALSE(trace.enabled());
}

TEST(Trace, a_slow_reader_is_told_how_many_lines_it_missed) {
  TraceBuffer buffer;
  std::uint64_t number = buffer.next_number();
  for (std::size_t i = 0; i < TraceBuffer::kMaxLines + 5; ++i) buffer.push("", "x", 0);
  EXPECT_TRUE(read(buffer, number).starts_with("dropped 5\n6 x\n"));
  EXPECT_EQ(number, TraceBuffer::kMaxLines + 6);
}

TEST(Trace, a_reader_takes_no_more_than_it_can) {
  TraceBuffer buffer;
  for (int i = 0; i < 100; ++i) buffer.push("", "line", 0);
  std::uint64_t number = 1;
  std::string text;
  buffer.read(number, TraceBuffer::Stamp::kNone, 20, text);
  EXPECT_EQ(text, "1 line\n2 line\n3 line\n");
  EXPECT_EQ(number, 4u);
}

}  // namespace vasicd::trace_test
