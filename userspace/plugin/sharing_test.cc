// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Plans for memory that processes and files of render nodes share: each shape by name, then random ones, which are
// restored by the plan over a KFD and render nodes that follow the kernel's rules, in random order, with each process
// waiting as the plan says.
#include "plugin/sharing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/kfd_ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "kfd/fake_kfd.h"
#include "plugin/fake_render_driver.h"
#include "plugin/render_objects.h"

namespace plugin::sharing {
namespace {

constexpr std::uint32_t kVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
constexpr std::uint32_t kGtt = KFD_IOC_ALLOC_MEM_FLAGS_GTT;
constexpr std::uint64_t kSize = 4096;
constexpr std::uint32_t kGpu = 0x1111;

Bo allocated(std::uint64_t inode, std::uint32_t flags = kVram) { return {inode, kSize, flags, false, false}; }
Bo imported(std::uint64_t inode, std::uint32_t flags = kVram) { return {inode, kSize, flags, true, false}; }

std::vector<Process> named(std::vector<std::vector<Bo>> bos) {
  std::vector<Process> processes;
  for (auto& each : bos) processes.push_back({"process " + std::to_string(processes.size()), false, std::move(each)});
  return processes;
}

Process& as_render_node(Process& process) {
  process.is_render_node = true;
  return process;
}

Plan plan_of(const std::vector<Process>& processes) {
  auto plan = Plan::make(processes);
  EXPECT_TRUE(plan.ok()) << plan.error().message();
  return plan.ok() ? *plan : Plan();
}

void expect_refused(const std::vector<Process>& processes, const std::string& why) {
  const auto plan = Plan::make(processes);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message().find(why), std::string::npos) << plan.error().message();
  EXPECT_NE(plan.error().message().find("process "), std::string::npos) << plan.error().message();
}

TEST(Sharing, memory_of_one_process_and_memory_without_a_number_are_not_in_the_plan) {
  const auto plan = plan_of(named({{allocated(1), imported(1), allocated(0), allocated(0)}, {allocated(2)}}));
  EXPECT_TRUE(plan.memories().empty());
}

TEST(Sharing, three_holders_wait_for_the_one_that_allocated) {
  const auto plan = plan_of(named({{imported(5)}, {allocated(3), allocated(5)}, {imported(5), imported(5)}}));
  ASSERT_EQ(plan.memories().size(), 1U);
  const Memory& memory = plan.memories()[0];
  EXPECT_TRUE(memory.has_provider);
  EXPECT_EQ(memory.origin, (Place{1, 1}));
  EXPECT_EQ(memory.holders, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(plan.find(5), 0U);
  EXPECT_EQ(plan.find(3), std::nullopt);
}

TEST(Sharing, in_a_chain_all_memory_has_its_provider) {
  const auto plan = plan_of(named({{allocated(1)}, {imported(1), allocated(2)}, {imported(1), imported(2)}}));
  ASSERT_EQ(plan.memories().size(), 2U);
  EXPECT_TRUE(plan.memories()[0].has_provider);
  EXPECT_TRUE(plan.memories()[1].has_provider);
}

TEST(Sharing, of_a_cycle_one_memory_is_made_apart_on_its_own_gpu) {
  const auto plan =
      plan_of(named({{allocated(1), imported(3)}, {imported(1), allocated(2)}, {imported(2), allocated(3)}}));
  ASSERT_EQ(plan.memories().size(), 3U);
  const auto apart = [](const Memory& memory) { return !memory.has_provider; };
  EXPECT_EQ(std::count_if(plan.memories().begin(), plan.memories().end(), apart), 1);
  EXPECT_EQ(plan.memories()[2].origin, (Place{2, 1}));
}

TEST(Sharing, memory_that_nobody_allocated_is_made_apart_even_for_one_process) {
  const auto plan = plan_of(named({{imported(1)}, {imported(1)}, {imported(2)}}));
  ASSERT_EQ(plan.memories().size(), 2U);
  EXPECT_FALSE(plan.memories()[0].has_provider);
  EXPECT_FALSE(plan.memories()[1].has_provider);
  EXPECT_EQ(plan.memories()[1].holders, (std::vector<std::size_t>{2}));
}

TEST(Sharing, memory_that_nobody_allocated_is_where_a_bo_calls_it_vram) {
  EXPECT_EQ(plan_of(named({{imported(1, kGtt)}, {imported(1)}})).memories()[0].origin, (Place{1, 0}));
}

TEST(Sharing, nobody_waits_for_a_late_process_and_a_late_one_may_wait) {
  auto processes = named({{imported(1), allocated(3)}, {allocated(1), allocated(2)}, {imported(2), imported(3)}});
  processes[1].is_late = true;
  processes[2].is_late = true;
  const auto plan = plan_of(processes);
  ASSERT_EQ(plan.memories().size(), 3U);
  EXPECT_FALSE(plan.memories()[0].has_provider);
  EXPECT_FALSE(plan.memories()[1].has_provider) << "a late process waits for another late one";
  EXPECT_EQ(plan.memories()[1].origin, (Place{1, 1}));
  EXPECT_TRUE(plan.memories()[2].has_provider);
}

TEST(Sharing, memory_that_no_kernel_has_is_refused_with_the_process) {
  auto processes = named({{allocated(1)}, {imported(1)}});
  processes[1].bos[0].size = 8192;
  expect_refused(processes, "process 0 has 4096 bytes of it");
  expect_refused(named({{allocated(1)}, {allocated(1)}}), "it was allocated for this BO and for one of process 0");
  expect_refused(named({{allocated(1), allocated(1)}, {imported(1)}}), "it was allocated for this BO");
  expect_refused(named({{allocated(1, kGtt)}, {imported(1)}}), "it is VRAM, and process 0 has allocated GTT");
  expect_refused(named({{allocated(1)}, {imported(1, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)}}), "cannot be shared");
}

TEST(Sharing, nobody_waits_for_a_process_that_gives_memory_to_a_render_node) {
  auto processes = named({{allocated(1), allocated(2)}, {imported(1), imported(2)}, {imported(1)}});
  as_render_node(processes[2]);
  const auto plan = plan_of(processes);
  ASSERT_EQ(plan.memories().size(), 2U);
  EXPECT_FALSE(plan.memories()[0].has_provider);
  EXPECT_FALSE(plan.memories()[0].is_gem);
  EXPECT_EQ(plan.memories()[0].origin, (Place{0, 0}));
  EXPECT_EQ(plan.memories()[0].holders, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_TRUE(plan.memories()[1].has_provider);
}

TEST(Sharing, memory_of_a_gem_object_is_made_as_one_whoever_has_it) {
  auto processes = named({{imported(1)}, {allocated(1), allocated(2)}, {imported(1)}, {allocated(3)}});
  for (const std::size_t i : {1U, 2U, 3U}) as_render_node(processes[i]);
  const auto plan = plan_of(processes);
  ASSERT_EQ(plan.memories().size(), 1U) << "objects of one file are created there";
  EXPECT_TRUE(plan.memories()[0].is_gem);
  EXPECT_FALSE(plan.memories()[0].has_provider);
  EXPECT_EQ(plan.memories()[0].origin, (Place{1, 0}));
  const auto needed = Plan::make(processes, {3});
  ASSERT_TRUE(needed.ok());
  ASSERT_EQ(needed->memories().size(), 2U);
  EXPECT_FALSE(needed->memories()[1].has_provider);
}

TEST(Sharing, memory_that_kfd_has_freed_is_made_as_a_bo_of_kfd_says) {
  auto processes = named({{imported(1)}, {imported(1, kGtt)}, {imported(1)}});
  as_render_node(processes[0]);
  const auto plan = plan_of(processes);
  ASSERT_EQ(plan.memories().size(), 1U);
  EXPECT_FALSE(plan.memories()[0].is_gem);
  EXPECT_EQ(plan.memories()[0].origin, (Place{2, 0}));
}

TEST(Sharing, graphs_of_gem_objects_that_no_kernel_has_are_refused) {
  auto processes = named({{imported(1)}, {imported(1)}});
  for (Process& process : processes) as_render_node(process);
  expect_refused(processes, "process 0: a BO of 4096 bytes shares its memory, but it was allocated for no BO");
  processes[0].bos[0].imported = processes[1].bos[0].imported = false;
  expect_refused(processes, "it was allocated for this BO and for one of process 0");
  processes[1].bos[0].imported = true;
  EXPECT_TRUE(Plan::make(processes).ok());
  processes[1].bos[0].size += kSize;
  expect_refused(processes, "process 0 has 4096 bytes of it");
  processes = named({{allocated(1)}, {allocated(1)}});
  as_render_node(processes[1]);
  expect_refused(processes, "it was allocated for this BO and for one of process 0");
  processes = named({{allocated(1, kGtt)}, {imported(1)}});
  as_render_node(processes[1]);
  expect_refused(processes, "it is VRAM, and process 0 has allocated GTT");
}

TEST(Sharing, contents_are_stored_with_one_bo_of_each_memory) {
  auto processes = named({{allocated(1)}, {imported(1)}, {imported(2), allocated(0)}});
  const auto plan = plan_of(processes);
  processes[0].bos[0].stored = true;
  processes[2].bos[1].stored = true;  // not of the plan
  const auto missing = find_contents(plan, processes);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message().find("process 2: the contents of shared memory of 4096 bytes are not stored"),
            std::string::npos);
  processes[2].bos[0].stored = true;
  const auto places = find_contents(plan, processes);
  ASSERT_TRUE(places.ok());
  EXPECT_EQ(*places, (std::vector<Place>{{0, 0}, {2, 0}}));
  processes[1].bos[0].stored = true;
  EXPECT_FALSE(find_contents(plan, processes).ok());
}

// ---- random graphs ----

// What a kernel can have: some memories, each allocated by a process or by nobody of these, and imported by some. An
// open file of a render node has one object of each memory at most, and memory that KFD never had was allocated for one
// of these objects.
std::vector<Process> random_processes(std::mt19937& random) {
  std::vector<Process> processes(1 + random() % 8);
  const std::size_t memories = random() % 12;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    processes[i].name = "process " + std::to_string(i);
    processes[i].is_render_node = random() % 3 == 0;
    processes[i].is_late = !processes[i].is_render_node && random() % 4 == 0;
  }
  for (std::uint64_t inode = 1; inode <= memories; ++inode) {
    const std::uint32_t flags = random() % 2 == 0 ? kVram : kGtt;
    const std::uint64_t size = kSize * (1 + random() % 3);
    bool is_of_kfd = false;
    const auto give = [&](bool is_imported) {
      Process& process = processes[random() % processes.size()];
      auto& bos = process.bos;
      const auto has_it = [inode](const Bo& bo) { return bo.inode == inode; };
      if (process.is_render_node && std::any_of(bos.begin(), bos.end(), has_it)) return;
      is_of_kfd = is_of_kfd || !process.is_render_node;
      bos.insert(bos.begin() + static_cast<std::ptrdiff_t>(random() % (bos.size() + 1)),
                 {inode, size, flags, is_imported, false});
    };
    const bool is_allocated = random() % 4 != 0;
    if (is_allocated) give(false);
    for (std::size_t i = random() % 6; i > 0; --i) give(true);
    if (is_allocated || is_of_kfd) continue;
    for (Process& process : processes) std::erase_if(process.bos, [inode](const Bo& bo) { return bo.inode == inode; });
  }
  return processes;
}

bool has(const Memory& memory, std::size_t process) {
  return std::count(memory.holders.begin(), memory.holders.end(), process) != 0;
}

bool provides(const Memory& memory, std::size_t process) {
  return memory.has_provider && memory.origin.process == process;
}

// An order in which processes can be restored, each of which waits as the plan says; nothing when some would wait for
// ever. Late processes are restored after the others. CRIU may make any of them wait for any other, as it does for
// shared anonymous memory, so they come in an order that the plan has no say in.
std::optional<std::vector<std::size_t>> order_of(const std::vector<Process>& processes, const Plan& plan,
                                                 std::mt19937& random) {
  std::set<std::uint64_t> given;
  const auto may_run = [&](std::size_t process) {
    return std::all_of(plan.memories().begin(), plan.memories().end(), [&](const Memory& memory) {
      return !memory.has_provider || !has(memory, process) || provides(memory, process) || given.contains(memory.inode);
    });
  };
  std::vector<std::size_t> order;
  for (const bool is_late : {false, true}) {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < processes.size(); ++i)
      if (processes[i].is_late == is_late) open.push_back(i);
    std::shuffle(open.begin(), open.end(), random);
    while (!open.empty()) {
      const auto next = is_late ? open.begin() : std::find_if(open.begin(), open.end(), may_run);
      if (next == open.end() || !may_run(*next)) return std::nullopt;
      for (const Memory& memory : plan.memories())
        if (provides(memory, *next)) given.insert(memory.inode);
      order.push_back(*next);
      open.erase(next);
    }
  }
  return order;
}

// Restores processes and files of render nodes by a plan.
class Restorer {
 public:
  Restorer(const std::vector<Process>& processes, const Plan& plan) : processes_(processes), plan_(plan) {
    kfd_.abi = kfd::Abi::kExtensible;
    kfd_.keeps_memory = true;
  }

  // False when processes wait for each other.
  bool run(std::mt19937& random) {
    const auto order = order_of(processes_, plan_, random);
    if (!order) return false;
    for (const std::size_t process : *order) restore(process);
    return true;
  }

  void expect_rebuilt() {
    std::map<std::uint64_t, std::uint64_t> numbers;  // by inode at the dump
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      ASSERT_EQ(memories_[i].size(), processes_[i].bos.size());
      for (std::size_t b = 0; b < processes_[i].bos.size(); ++b)
        EXPECT_EQ(numbers.try_emplace(processes_[i].bos[b].inode, memories_[i][b]).first->second, memories_[i][b]);
    }
    std::set<std::uint64_t> different;
    for (const auto& [inode, number] : numbers) different.insert(number);
    EXPECT_EQ(different.size(), numbers.size());
  }

 private:
  static std::uint64_t number_of(int fd) {
    struct stat status {};
    EXPECT_EQ(::fstat(fd, &status), 0);
    return status.st_ino;
  }

  base::UniqueFd make(const Memory& memory) {
    if (!memory.is_gem) {
      auto made = kfd_.allocate(file_.get(), {memory.size, kGpu, kVram, file_.get()});
      EXPECT_TRUE(made.ok());
      return made.ok() ? std::move(*made) : base::UniqueFd();
    }
    const base::UniqueFd file = open_file();
    auto made = render_objects::make_apart(driver_, file.get(), image::GemObject{77, image::kGemVram}, memory.size);
    EXPECT_TRUE(made.ok());
    driver_.files.pop_back();
    return made.ok() ? std::move(*made) : base::UniqueFd();
  }

  static base::UniqueFd open_file() { return base::UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

  // What the process or file has not allocated itself, by inode.
  std::map<std::uint64_t, int> take(std::size_t process) {
    std::map<std::uint64_t, int> taken;
    for (const Memory& memory : plan_.memories()) {
      if (!has(memory, process) || provides(memory, process)) continue;
      if (!given_.contains(memory.inode)) given_[memory.inode] = make(memory);
      taken.emplace(memory.inode, given_[memory.inode].get());
    }
    return taken;
  }

  void restore_render_node(std::size_t process) {
    const auto taken = take(process);
    image::RenderFile render;
    std::map<std::size_t, int> given;
    for (const Bo& bo : processes_[process].bos) {
      if (const auto found = taken.find(bo.inode); found != taken.end())
        given.emplace(render.bos.size(), found->second);
      render.objects.gem.push_back({static_cast<std::uint32_t>(100 - render.bos.size()), image::kGemVram});
      render.bos.push_back({{0, bo.size, 0, kGpu, bo.alloc_flags}});
    }
    const base::UniqueFd file = open_file();
    ASSERT_TRUE(render_objects::create(driver_, file.get(), render, given).ok());
    for (const image::GemObject& object : render.objects.gem)
      memories_[process].push_back(number_of(driver_.file(file.get()).gem.at(object.handle).memory.get()));
  }

  void restore(std::size_t process) {
    if (processes_[process].is_render_node) {
      restore_render_node(process);
      return;
    }
    kfd::RestoreRequest request;
    for (const Bo& bo : processes_[process].bos) {
      request.bos.push_back({0, bo.size, 0, kGpu, bo.alloc_flags});
      request.origins.push_back({bo.inode, bo.imported});
    }
    for (const auto& [inode, dmabuf] : take(process)) request.memories.push_back({inode, dmabuf});
    auto restored = kfd_.restore(file_.get(), std::move(request));
    ASSERT_TRUE(restored.ok()) << restored.error().message();
    for (const base::UniqueFd& memory : kfd_.restored_memories.back())
      memories_[process].push_back(number_of(memory.get()));
    for (const Memory& memory : plan_.memories())
      if (provides(memory, process)) {
        auto given = kfd_.export_restored(file_.get(), {}, (*restored)[memory.origin.bo]);
        ASSERT_TRUE(given.ok());
        given_[memory.inode] = std::move(*given);
      }
  }

  const std::vector<Process>& processes_;
  const Plan& plan_;
  base::UniqueFd file_{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  kfd::FakeKfd kfd_;
  testing::FakeRenderDriver driver_;
  std::map<std::uint64_t, base::UniqueFd> given_;
  std::map<std::size_t, std::vector<std::uint64_t>> memories_;  // numbers, by process and BO
};

TEST(Sharing, ten_thousand_random_graphs_are_rebuilt_exactly) {
  std::mt19937 random(30);
  std::size_t provided = 0;
  std::size_t apart = 0;
  std::size_t gem = 0;
  for (int i = 0; i < 10'000; ++i) {
    SCOPED_TRACE(i);
    const auto processes = random_processes(random);
    const Plan plan = plan_of(processes);
    Restorer restorer(processes, plan);
    ASSERT_TRUE(restorer.run(random)) << "the processes wait for each other";
    restorer.expect_rebuilt();
    if (::testing::Test::HasFailure()) return;
    for (const Memory& memory : plan.memories()) ++(memory.has_provider ? provided : memory.is_gem ? gem : apart);
  }
  EXPECT_GT(gem, 1000U);
  EXPECT_GT(provided, 1000U);
  EXPECT_GT(apart, 1000U);
}

// Values of a crafted image: whatever they are, the plan is refused, or no process waits for ever by it. Whether the
// kernel takes the BOs is not asked.
TEST(Sharing, ten_thousand_impossible_graphs_are_refused_or_can_be_restored) {
  std::mt19937 random(31);
  std::size_t refused = 0;
  std::size_t provided = 0;
  for (int i = 0; i < 10'000; ++i) {
    SCOPED_TRACE(i);
    auto processes = random_processes(random);
    for (Process& process : processes) {
      for (Bo& bo : process.bos) {
        if (random() % 8 == 0) bo.imported = !bo.imported;
        if (random() % 16 == 0) bo.size += kSize;
        if (random() % 16 == 0) bo.inode = random() % 12;
        if (random() % 16 == 0) bo.alloc_flags = 1U << (random() % 6);
      }
      if (random() % 16 == 0) process.is_render_node = !process.is_render_node;
    }
    const auto plan = Plan::make(processes);
    if (!plan.ok()) {
      ++refused;
      continue;
    }
    ASSERT_TRUE(order_of(processes, *plan, random)) << "the processes wait for each other";
    for (const Memory& memory : plan->memories()) {
      ASSERT_TRUE(has(memory, memory.origin.process));
      const Process& origin = processes[memory.origin.process];
      ASSERT_FALSE(memory.has_provider && origin.bos[memory.origin.bo].imported);
      ASSERT_EQ(memory.is_gem, origin.is_render_node);
      for (const std::size_t holder : memory.holders)
        ASSERT_FALSE(memory.has_provider && processes[holder].is_render_node);
      if (memory.has_provider) ++provided;
    }
  }
  EXPECT_GT(provided, 200U);
  EXPECT_GT(refused, 1000U);
  EXPECT_LT(refused, 10'000U);
}

}  // namespace
}  // namespace plugin::sharing
