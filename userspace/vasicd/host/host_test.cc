// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The whole host in this process, with fake engines: guests come and go, threads sleep and wake.
#include "vasicd/host/host.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "vasicd/chip.h"
#include "vasicd/transport/fake_engines.h"
#include "vasicd/transport/ivshmem_client.h"

namespace vasicd::host_test {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kDeadline = std::chrono::seconds(20);

bool eventually(const std::function<bool()>& condition) {
  const auto end = steady_clock::now() + kDeadline;
  while (!condition()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// A guest that is connected: BAR2 mapped, eventfds at hand.
struct Guest {
  base::UniqueFd socket;
  std::vector<IvshmemMessage> messages;
  base::Mapping bar;

  explicit Guest(const std::string& path, std::uint64_t bar_size) : socket(connect_ivshmem(path)) {
    messages = receive_handshake(socket.get());
    if (messages.empty()) return;
    auto mapped = base::Mapping::shared(messages[2].fd.get(), bar_size, 0, "bar");
    if (mapped.ok()) bar = std::move(*mapped);
  }
  template <typename T>
  T& at(std::size_t offset) {
    return *reinterpret_cast<T*>(bar.data() + offset);
  }
  template <typename T>
  static T load(T& word) {
    return std::atomic_ref(word).load();
  }
  void kick() { ::eventfd_write(messages[3].fd.get(), 1); }
  // Sends one command and waits for its answer.
  bool command(std::uint32_t opcode, const vasic_cmd& cmd = {}) {
    auto& shared = at<vasic_command>(VASIC_OFF_COMMAND);
    shared.opcode = opcode;
    shared.cmd = cmd;
    const std::uint32_t seq = shared.seq + 1;
    std::atomic_ref(shared.seq).store(seq);
    kick();
    auto& reply = at<vasic_reply>(VASIC_OFF_REPLY);
    return eventually([&] { return load(reply.seq) == seq; }) && reply.status == VASIC_OK;
  }
};

struct HostTest : testing::Test {
  std::string dir = testing::TempDir() + "/vasicd-XXXXXX";
  Options options;
  // One per GPU; used by its device thread until `host` has gone, as is all it refers to.
  std::array<FakeEngines::Script, 2> scripts;
  FakeEngines::Script& script = scripts[0];
  std::atomic<bool> fire = false;
  std::unique_ptr<Host> host;
  base::UniqueFd stop{::eventfd(0, EFD_CLOEXEC)};
  std::atomic<bool> served = false;
  std::jthread thread;

  void SetUp() override {
    ASSERT_NE(::mkdtemp(dir.data()), nullptr);
    options.dir = dir;
    options.ram_size = options.ram_low = 64 << 20;
    add_gpu();
  }
  void TearDown() override {
    ::eventfd_write(stop.get(), 1);
    if (thread.joinable()) thread.join();
    host.reset();
    std::filesystem::remove_all(dir);
  }
  void add_gpu() {
    options.gpus.push_back(*parse_gpu_spec("gfx906,vram=64M", static_cast<unsigned>(options.gpus.size())));
  }
  EngineFactory engines() {
    return [this](const vasic_info& info, EngineContext context) {
      return std::make_unique<FakeEngines>(scripts[info.gpu_index], context);
    };
  }
  void start() {
    auto created = Host::create(options, engines());
    ASSERT_TRUE(created.ok()) << created.error().message();
    host = std::move(*created);
    thread = std::jthread([this] {
      EXPECT_TRUE(host->serve(stop.get()).ok());
      served = true;
    });
  }
  std::string socket(int gpu = 0) const { return dir + "/gpu" + std::to_string(gpu) + ".sock"; }
  Guest connect(int gpu = 0) { return Guest(socket(gpu), options.gpus[0].bar_size); }
};

TEST_F(HostTest, a_guest_connects_and_is_answered) {
  start();
  auto guest = connect();
  ASSERT_NE(guest.bar.data(), nullptr);
  EXPECT_EQ(guest.at<vasic_info>(VASIC_OFF_INFO).magic, VASIC_ABI_MAGIC);
  EXPECT_TRUE(guest.command(VASIC_CMD_NOP));
}

TEST_F(HostTest, guest_ram_can_be_opened_by_the_path_on_the_ready_line) {
  start();
  const std::string line = host->ready_line();
  const auto begin = line.find("ram=") + 4;
  const std::string path = line.substr(begin, line.find(' ', begin) - begin);
  EXPECT_TRUE(line.starts_with("vasicd: ready pid=" + std::to_string(::getpid()) + " ram=/proc/")) << line;
  EXPECT_TRUE(line.ends_with(" gpus=1")) << line;
  EXPECT_EQ(std::filesystem::file_size(path), options.ram_size);
}

TEST_F(HostTest, every_gpu_has_its_own_socket_and_memory) {
  add_gpu();
  start();
  auto first = connect(0);
  auto second = connect(1);
  EXPECT_EQ(first.at<vasic_info>(VASIC_OFF_INFO).gpu_index, 0u);
  EXPECT_EQ(second.at<vasic_info>(VASIC_OFF_INFO).gpu_index, 1u);
  EXPECT_TRUE(first.command(VASIC_CMD_NOP));
  EXPECT_TRUE(second.command(VASIC_CMD_NOP));
}

TEST_F(HostTest, the_next_guest_finds_a_fresh_device) {
  start();
  {
    auto guest = connect();
    guest.at<std::uint64_t>(VASIC_OFF_VRAM) = 42;
    ASSERT_TRUE(guest.command(VASIC_CMD_NOP));
  }
  // Until the host has noticed, it turns newcomers away.
  ASSERT_TRUE(eventually([&] { return connect().bar.data() != nullptr; }));
  ASSERT_TRUE(eventually([&] {
    auto guest = connect();
    return guest.bar.data() != nullptr && guest.at<std::uint64_t>(VASIC_OFF_VRAM) == 0 &&
           guest.at<vasic_command>(VASIC_OFF_COMMAND).seq == 0 && guest.command(VASIC_CMD_NOP);
  }));
}

TEST_F(HostTest, with_once_it_ends_when_the_last_guest_has_gone) {
  options.once = true;
  add_gpu();
  start();
  {
    auto first = connect(0);
    {
      auto second = connect(1);
      ASSERT_TRUE(second.command(VASIC_CMD_NOP));
    }
    ASSERT_TRUE(first.command(VASIC_CMD_NOP));
    EXPECT_FALSE(served);
  }
  EXPECT_TRUE(eventually([&] { return served.load(); }));
}

TEST_F(HostTest, a_second_host_in_the_directory_is_refused_and_the_first_not_disturbed) {
  start();
  const auto second = Host::create(options, engines());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message(),
            dir + ": another vasicd (pid " + std::to_string(::getpid()) + ") is running here");
  EXPECT_TRUE(connect().command(VASIC_CMD_NOP));
}

TEST_F(HostTest, a_missing_directory_is_named) {
  options.dir = dir + "/missing";
  const auto created = Host::create(options, engines());
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().message(), options.dir + "/vasicd.lock: No such file or directory");
}

TEST_F(HostTest, a_guest_sees_that_the_host_has_gone) {
  start();
  auto guest = connect();
  ASSERT_TRUE(guest.command(VASIC_CMD_NOP));
  ::eventfd_write(stop.get(), 1);
  thread.join();
  host.reset();
  EXPECT_EQ(Guest::load(guest.at<vasic_host_words>(VASIC_OFF_HOST).state), static_cast<std::uint32_t>(VASIC_HOST_GONE));
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(HostTest, interrupts_arrive_on_the_guests_vector) {
  script.step = [this](EngineContext& context) {
    if (fire.exchange(false)) context.interrupts.raise({.kind = InterruptKind::kCpEndOfPipe});
    return false;
  };
  start();
  auto guest = connect();
  ASSERT_TRUE(guest.command(VASIC_CMD_IH_SETUP, {.ih_setup = {.ring = 0x1000, .size = 4096, .wptr_addr = 0x2000}}));
  fire = true;
  guest.kick();
  eventfd_t count = 0;
  EXPECT_TRUE(eventually([&] { return ::eventfd_read(guest.messages[5].fd.get(), &count) == 0; }));
}

TEST_F(HostTest, peers_of_one_vm_copy_into_each_other_from_their_own_threads) {
  add_gpu();
  start();
  auto first = connect(0);
  auto second = connect(1);
  const std::uint64_t bar_size = options.gpus[0].bar_size;
  for (std::uint64_t round = 0; round < 20; ++round) {
    vasic_cmd setup{};
    setup.mc_setup.vram_base = std::uint64_t{1} << 39;
    setup.mc_setup.gart_size = 4096;
    setup.mc_setup.bar_address = bar_size * 4096;
    ASSERT_TRUE(first.command(VASIC_CMD_MC_SETUP, setup));
    setup.mc_setup.bar_address = bar_size * 4097;
    ASSERT_TRUE(second.command(VASIC_CMD_MC_SETUP, setup));
    ASSERT_TRUE(first.command(VASIC_CMD_RESET, {.reset = {.abi_version = VASIC_ABI_VERSION}}));
  }
}

TEST_F(HostTest, an_idle_device_with_user_queues_costs_little) {
  script.anything_mapped = script.user_queues_mapped = true;
  start();
  auto guest = connect();
  const auto cpu = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  auto& beats = guest.at<vasic_host_words>(VASIC_OFF_HOST).heartbeat;
  const auto beats_before = Guest::load(beats);
  const auto cpu_before = cpu();
  const auto begin = steady_clock::now();
  std::this_thread::sleep_until(begin + milliseconds(500));
  const auto used = cpu() - cpu_before;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // The aim is 2 %; a loaded machine is given some more, a busy loop (100 %) is what this catches.
  EXPECT_LT(used, (steady_clock::now() - begin) * 10 / 100);
#endif
  EXPECT_TRUE(eventually([&] { return Guest::load(beats) - beats_before > 50; })) << "it does poll";
}

}  // namespace vasicd::host_test
