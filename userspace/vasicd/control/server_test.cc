// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The control socket with real device threads and fake engines: what it answers, and clients that behave badly.
#include "vasicd/control/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "control/client.h"
#include "vasicd/transport/fake_engines.h"
#include "vasicd/transport/loopback.h"

namespace vasicd::control::server_test {

using ::control::Client;

constexpr std::chrono::seconds kDeadline{20};

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// One GPU with a thread; what the test holds outlives the thread.
struct Gpu {
  Gpu(VirtualMachine& vm, unsigned index)
      : trace(nullptr, index, clock),
        thread(DeviceSlot{.gpu = index,
                          .info = vm.info(index),
                          .region = vm.region(index),
                          .bus = vm.bus(),
                          .line = line,
                          .trace = trace,
                          .clock = clock,
                          .workers = workers},
               FakeEngines::factory(script), kick.get()) {}

  FakeEngines::Script script;
  CountingLine line;
  SteadyClock clock;
  WorkerPool workers{1};
  GpuTrace trace;
  base::UniqueFd kick{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  DeviceThread thread;
};

struct ServerTest : testing::Test {
  std::string dir = testing::TempDir() + "/vasicd-control-XXXXXX";
  VirtualMachine vm{{}, 2};
  Gpu gpu0{vm, 0};
  Gpu gpu1{vm, 1};
  std::unique_ptr<Server> server;

  void SetUp() override {
    ASSERT_NE(::mkdtemp(dir.data()), nullptr);
    auto started = Server::start(path(), {{gpu0.thread, gpu0.trace.buffer()}, {gpu1.thread, gpu1.trace.buffer()}});
    ASSERT_TRUE(started.ok()) << started.error().message();
    server = std::move(*started);
  }
  void TearDown() override {
    server.reset();
    EXPECT_FALSE(std::filesystem::exists(path()));
    std::filesystem::remove_all(dir);
  }
  std::string path() const { return dir + "/control.sock"; }
  Client connect() {
    auto client = Client::connect(path(), kDeadline);
    EXPECT_TRUE(client.ok()) << client.error().message();
    return std::move(*client);
  }
  // The reply's lines, or "refused: WHY".
  static std::string ask(Client& client, std::string_view line) {
    auto reply = client.request(line);
    return reply.ok() ? *reply : "refused: " + reply.error().message();
  }
  std::string ask(std::string_view line) {
    auto client = connect();
    return ask(client, line);
  }
  base::UniqueFd raw() const {
    base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  static void send(const base::UniqueFd& fd, std::string_view text) {
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // Reads until the server closes the connection.
  static std::string rest(const base::UniqueFd& fd) {
    std::string text;
    char byte = 0;
    pollfd wait{.fd = fd.get(), .events = POLLIN, .revents = 0};
    while (::poll(&wait, 1, 20000) > 0 && ::recv(fd.get(), &byte, 1, 0) == 1) text += byte;
    return text;
  }
};

TEST_F(ServerTest, only_its_owner_may_connect) {
  struct stat info {};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST_F(ServerTest, a_request_is_executed_by_the_gpu_it_names) {
  EXPECT_EQ(ask("gpu=1 hang sdma0"), "");
  EXPECT_NE(ask("gpu=1 status").find("\nhung sdma0\n"), std::string::npos);
  EXPECT_EQ(ask("gpu=0 status").find("hung sdma0"), std::string::npos);
  EXPECT_EQ(ask("status"), "refused: gpu=N is needed: there are 2 GPUs");
  EXPECT_EQ(ask("gpu=2 status"), "refused: no gpu=2: there are 2 GPUs");
}

TEST_F(ServerTest, status_tells_chip_state_and_what_is_injected) {
  EXPECT_EQ(ask("gpu=0 drop-interrupt 3 eop"), "");
  EXPECT_EQ(ask("gpu=0 link 100"), "");
  EXPECT_EQ(ask("gpu=0 status"),
            "gpu 0 chip=gfx906 state=ready running=all commands=0 interrupts=0 interrupts-dropped=0 "
            "interrupts-waiting=0\n"
            "link limit=100 crossed=0\n"
            "inject drop-interrupt=3 fail-unmap=0 vm-fault=0 hold-interrupts=off\n");
  EXPECT_EQ(ask("gpu=0 hold-interrupts on"), "");
  EXPECT_NE(ask("gpu=0 status").find(" hold-interrupts=on\n"), std::string::npos);
}

TEST_F(ServerTest, a_gpu_that_is_told_to_be_hung_needs_a_reset_and_one_removed_is_gone) {
  EXPECT_EQ(ask("gpu=0 reset"), "");
  EXPECT_NE(ask("gpu=0 status").find(" state=hung "), std::string::npos);
  EXPECT_EQ(ask("gpu=0 reset"), "refused: the GPU is hung");
  EXPECT_EQ(ask("gpu=1 quit-gpu"), "");
  EXPECT_NE(ask("gpu=1 status").find(" state=gone "), std::string::npos);
}

TEST_F(ServerTest, steps_need_a_pause) {
  EXPECT_EQ(ask("gpu=0 step"), "refused: the GPU is not paused");
  EXPECT_EQ(ask("gpu=0 pause"), "");
  EXPECT_EQ(ask("gpu=0 step 3"), "");
  EXPECT_EQ(ask("gpu=0 resume"), "");
}

TEST_F(ServerTest, a_step_says_what_ran_and_what_it_did) {
  // The device's own thread must do this, because it reads the script whenever it polls.
  ASSERT_TRUE(gpu1.thread.post([this](Device&) {
    gpu1.script.step = [](EngineContext& context) {
      context.trace.line("sdma0: fence addr=0x10 data=0x1");
      return true;
    };
  }));
  EXPECT_EQ(ask("gpu=1 pause"), "");
  const std::string reply = ask("gpu=1 step 2");
  EXPECT_TRUE(reply.starts_with("step queue=fake\ntrace ")) << reply;
  EXPECT_EQ(std::count(reply.begin(), reply.end(), '\n'), 4);
  EXPECT_NE(reply.find(" gpu1 sdma0: fence addr=0x10 data=0x1\n"), std::string::npos);
}

TEST_F(ServerTest, the_trace_is_read_after_it_was_turned_on) {
  EXPECT_EQ(ask("gpu=0 trace read"), "refused: trace on comes first");
  EXPECT_EQ(ask("gpu=0 trace on"), "");
  gpu0.trace.line("cmd: NOP ok");
  EXPECT_EQ(ask("gpu=0 trace read"), "1 gpu0 cmd: NOP ok\n");
  EXPECT_EQ(ask("gpu=0 trace read"), "");
  EXPECT_EQ(ask("gpu=0 trace off"), "");
  EXPECT_FALSE(gpu0.trace.enabled());
}

TEST_F(ServerTest, the_trace_is_followed_until_another_line_is_sent) {
  const auto fd = raw();
  send(fd, "gpu=0 trace follow\n");
  ASSERT_TRUE(eventually([&] { return gpu0.trace.enabled(); }));
  gpu0.trace.line("sdma0: trap context=0x1");
  char text[64] = {};
  ASSERT_GT(::recv(fd.get(), text, sizeof(text) - 1, 0), 0);
  EXPECT_STREQ(text, "1 gpu0 sdma0: trap context=0x1\n");
  send(fd, "echo on\n");
  ASSERT_EQ(::shutdown(fd.get(), SHUT_WR), 0);
  EXPECT_EQ(rest(fd), "ok\necho on\nok\n");
  EXPECT_TRUE(eventually([&] { return !gpu0.trace.enabled(); }));
}

TEST_F(ServerTest, who_follows_and_does_not_read_loses_lines_and_is_told_so) {
  const auto fd = raw();
  send(fd, "gpu=0 trace follow\n");
  ASSERT_TRUE(eventually([&] { return gpu0.trace.enabled(); }));
  const std::string line = "sdma0: " + std::string(200, 'x');
  constexpr int kLines = 20000;
  for (int i = 0; i < kLines; ++i) gpu0.trace.line(line);
  std::string all;
  EXPECT_TRUE(eventually([&] {
    char bytes[65536];
    const ssize_t got = ::recv(fd.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0) all.append(bytes, static_cast<std::size_t>(got));
    return all.find("\n" + std::to_string(kLines) + " gpu0 ") != std::string::npos;
  }));
  EXPECT_NE(all.find("dropped "), std::string::npos);
  EXPECT_EQ(ask("echo on"), "echo on\n");
}

TEST_F(ServerTest, vram_truth_finds_what_anybody_wrote) {
  EXPECT_EQ(ask("gpu=0 vram-truth read"), "refused: vram-truth start comes first");
  EXPECT_EQ(ask("gpu=0 vram-truth start"), "vram page=4096 pages=16384 changed=0\n");
  const auto vram = vm.region(0).vram();
  vram[5 * 4096 + 17] = std::byte{1};
  vram[6 * 4096] = std::byte{1};
  vram[vram.size() - 1] = std::byte{1};
  vram[9 * 4096] = std::byte{0};  // written, not changed
  const std::string changed =
      "vram page=4096 pages=16384 changed=3\nrange first=5 count=2\nrange first=16383 count=1\n";
  EXPECT_EQ(ask("gpu=0 vram-truth read"), changed);
  EXPECT_EQ(ask("gpu=0 vram-truth diff"), changed);
  EXPECT_EQ(ask("gpu=0 vram-truth diff"), "vram page=4096 pages=16384 changed=0\n");
  EXPECT_EQ(ask("gpu=0 vram-truth more 0"), "vram page=4096 pages=16384 changed=0\n");
}

TEST_F(ServerTest, many_changed_ranges_come_in_parts) {
  EXPECT_EQ(ask("gpu=0 vram-truth start"), "vram page=4096 pages=16384 changed=0\n");
  for (std::size_t page = 0; page < 10000; page += 2) vm.region(0).vram()[page * 4096] = std::byte{1};
  EXPECT_TRUE(ask("gpu=0 vram-truth read").ends_with("range first=8190 count=1\nmore 8191\n"));
  EXPECT_TRUE(ask("gpu=0 vram-truth more 8191").ends_with("range first=9998 count=1\n"));
}

TEST_F(ServerTest, a_sleeping_device_is_woken) {
  auto client = connect();
  auto fastest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    ask(client, "gpu=0 status");
    fastest = std::min(fastest, std::chrono::steady_clock::now() - begin);
  }
  // Nothing is mapped, so the device's thread wakes up by itself only every 100 ms. Without a kick for each request,
  // every request but the first would wait that long.
  EXPECT_LT(fastest, std::chrono::milliseconds(30));
}

TEST_F(ServerTest, several_lines_at_once_are_answered_in_order) {
  const auto fd = raw();
  send(fd, "echo 1\ngpu=0 hang a\nfoo\necho 2\n");
  ASSERT_EQ(::shutdown(fd.get(), SHUT_WR), 0);
  const std::string all = rest(fd);
  EXPECT_TRUE(all.starts_with("echo 1\nok\nok\nerror: unknown command 'foo'")) << all;
  EXPECT_TRUE(all.ends_with("\necho 2\nok\n")) << all;
}

TEST_F(ServerTest, a_line_without_end_is_refused_and_the_connection_ended) {
  const auto fd = raw();
  send(fd, std::string(3000, 'x'));
  EXPECT_EQ(rest(fd), "error: line is longer than 1024 bytes\n");
  EXPECT_EQ(ask("echo on"), "echo on\n");
}

TEST_F(ServerTest, a_half_line_is_no_request) {
  auto fd = raw();
  send(fd, "gpu=0 hang sdma0");
  fd.reset();
  const std::string status = ask("gpu=0 status");
  EXPECT_TRUE(status.starts_with("gpu 0 ")) << status;
  EXPECT_EQ(status.find("hung"), std::string::npos);
}

TEST_F(ServerTest, a_client_that_leaves_with_a_request_in_flight_does_no_harm) {
  const std::string line = "gpu=0 status\ngpu=1 status\n";
  for (int i = 0; i < 200; ++i) {
    const auto fd = raw();
    (void)::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL);
  }
  // Some may still count as clients.
  EXPECT_TRUE(eventually([&] { return ask("echo on") == "echo on\n"; }));
}

TEST_F(ServerTest, a_client_that_does_not_read_stops_only_itself) {
  const auto fd = raw();
  ASSERT_EQ(::fcntl(fd.get(), F_SETFL, O_NONBLOCK), 0);
  const std::string lines = "help\nhelp\nhelp\nhelp\n";
  std::size_t sent = 0;
  // Send until nothing more is taken: then the buffers of both sides are full.
  ASSERT_TRUE(eventually([&] {
    pollfd wait{.fd = fd.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&wait, 1, 200) <= 0) return true;
    if (const auto n = ::send(fd.get(), lines.data(), lines.size(), MSG_NOSIGNAL); n > 0) {
      sent += static_cast<std::size_t>(n);
    }
    return false;
  }));
  EXPECT_LT(sent, 8u << 20);
  EXPECT_EQ(ask("echo on"), "echo on\n");
}

TEST_F(ServerTest, clients_beyond_the_limit_are_told_so) {
  std::vector<base::UniqueFd> clients;
  for (std::size_t i = 0; i < kMaxClients; ++i) {
    clients.push_back(raw());
    send(clients.back(), "echo\n");
    char reply[8];
    ASSERT_GT(::recv(clients.back().get(), reply, sizeof(reply), 0), 0);
  }
  EXPECT_EQ(rest(raw()), "error: more than 16 clients\n");
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return ask("echo on") == "echo on\n"; }));
}

TEST_F(ServerTest, garbage_does_no_harm) {
  std::string garbage;
  for (unsigned i = 0; i < 4000; ++i) garbage += static_cast<char>(i * 2654435761u >> 13);
  for (std::size_t size = 1; size < garbage.size(); size += 97) {
    const auto fd = raw();
    (void)::send(fd.get(), garbage.data(), size, MSG_NOSIGNAL);
  }
  EXPECT_TRUE(eventually([&] { return ask("gpu=0 link off").empty(); }));
}

TEST_F(ServerTest, a_file_in_its_place_is_not_removed) {
  const std::string file = dir + "/file";
  base::UniqueFd(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  const auto started = Server::start(file, {});
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().message(), file + ": exists and is not a socket");
}

}  // namespace vasicd::control::server_test
