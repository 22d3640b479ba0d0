// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Restore under CRIU's rules about processes, descriptors and mappings, over a fake KFD and a machine made of files.
#include "plugin/restore.h"

#include <gtest/gtest.h>
#include <linux/kcmp.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <sstream>

#include "kfd/fake_kfd.h"
#include "plugin/fake_criu_restore.h"
#include "plugin/image/writer.h"
#include "plugin/inert_file.h"

namespace plugin {
namespace {

using base::UniqueFd;
using testing::FakeCriu;
using testing::FakeCriuImages;
using testing::FakeMachine;
using testing::MappingModel;
using testing::same_open_file;
using testing::TempDir;
using testing::write_file;

constexpr std::uint64_t kSession = 99;
constexpr std::uint32_t kGpu = 0x1111;
constexpr std::uint32_t kOtherGpu = 0x2222;
constexpr std::uint32_t kDoorbell = KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL;
constexpr std::uint64_t kBoAddr = 0x7f0000000000;
constexpr std::uint64_t kBoOffset = 0x100000000;
constexpr std::uint64_t kBoSize = 0x100000;
constexpr std::uint64_t kDoorbellAddr = 0x7e0000000000;
constexpr std::uint64_t kDoorbellOffset = 3ULL << 62;
constexpr int kTestNumbers = 2000;  // this test's own descriptors are at and above

// The fakes of the machine of the restore, and the images that it reads.
class Fakes {
 public:
  Fakes() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    machine.add_gpu(1, kGpu, 128);
    criu.task = 77;
  }

  static topology::Node node(std::uint32_t gpu_id, std::uint32_t index) {
    topology::Node result;
    result.node_id = index;
    result.gpu_id = gpu_id;
    result.properties = {{"simd_count", 240}, {"gfx_target_version", 90006}, {"drm_render_minor", 127 + index}};
    return result;
  }

  // Writes the whole dump again, with one more file.
  void save(std::uint32_t id, decltype(image::File::contents) kind) {
    files.push_back({id, std::move(kind)});
    auto writer = image::SessionWriter::create(criu.image_dir(), kSession);
    ASSERT_TRUE(writer.ok()) << writer.error().message();
    image::Session session;
    session.nodes = nodes;
    session.kernel_release = "6.12";
    session.abi = abi;
    const std::vector<std::byte> contents(kBoSize, std::byte{0x17});
    for (const image::File& file : files) {
      if (const auto* process = std::get_if<image::KfdFile>(&file.contents)) {
        session.processes.push_back({process->pid, "program"});
        for (const image::BoRecord& record : process->bos)
          if (image::stores_contents(record)) {
            ASSERT_TRUE((*writer)->file(file.id).append(std::span(contents).first(record.bo.size)).ok());
          }
      }
      ASSERT_TRUE((*writer)->add(file).ok());
    }
    const auto prepared = (*writer)->prepare(std::move(session));
    ASSERT_TRUE(prepared.ok()) << prepared.error().message();
    ASSERT_TRUE((*writer)->commit().ok());
  }

  // A process with a BO of its own for each GPU, and a doorbell.
  void save_process(std::uint32_t id, std::uint32_t pid, const std::vector<std::uint32_t>& gpus = {kGpu}) {
    image::KfdFile file;
    file.pid = pid;
    file.num_objects = 1;
    file.priv_data.assign(16, std::byte{1});
    std::uint64_t index = 0;
    for (const std::uint32_t gpu : gpus) {
      file.devices.push_back({gpu, gpu});
      file.bos.push_back(
          {{kBoAddr + index * kBoSize, kBoSize, kBoOffset + index * kBoSize, gpu, KFD_IOC_ALLOC_MEM_FLAGS_VRAM}, {}});
      ++index;
    }
    file.bos.push_back({{kDoorbellAddr, 0x2000, kDoorbellOffset | (std::uint64_t{gpus[0]} << 46), gpus[0], kDoorbell}});
    save(id, file);
  }
  void save_render(std::uint32_t id, std::uint32_t gpu = kGpu, image::Binding binding = image::Binding::kKfd) {
    save(id, image::RenderFile{gpu, 0, binding});
  }

  image::Abi abi = image::Abi::kReleased;
  std::vector<topology::Node> nodes{node(kGpu, 1), node(kOtherGpu, 2)};
  std::vector<image::File> files;

  void write_criu_images() { images.write(dir.path()); }

  TempDir dir;
  FakeMachine machine;
  FakeCriu criu{dir.path()};
  FakeCriuImages images;
  System system{machine.roots()};
  kfd::FakeKfd kfd;
  Services services{
      criu, system, kfd,
      [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> { return copy::make_cpu_copier(); },
      Options{}};
};

// Descriptors of device files that are not this test's, nor of whoever started it.
std::set<int> device_descriptors(const System& system) {
  static const std::vector<int> inherited = *system.descriptors();
  std::set<int> numbers;
  const std::vector<int> present = *system.descriptors();
  for (const int fd : present) {
    const std::string path = *system.descriptor_path(fd);
    if (std::find(inherited.begin(), inherited.end(), fd) != inherited.end()) continue;
    if (fd < kTestNumbers && (path.starts_with("/dev/") || path.starts_with("/etc/"))) numbers.insert(fd);
  }
  return numbers;
}

// CRIU gives a file its number.
void plant(base::Result<std::optional<int>> fd, const std::vector<int>& numbers) {
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  ASSERT_TRUE(fd->has_value());
  const UniqueFd file(**fd);
  for (const int number : numbers) ASSERT_EQ(::dup2(file.get(), number), number);
}

// ---- Mappings ----

struct MappingCase {
  bool takes_fd;
  bool has_render_fd;
};
class Mappings : public ::testing::TestWithParam<MappingCase> {};

FakeCriuImages::Vma random_vma(std::mt19937& random, std::uint64_t start) {
  FakeCriuImages::Vma vma;
  vma.start = start;
  switch (random() % 6) {
    case 0:
      vma.status |= FakeCriuImages::kFilePrivate;
      vma.file_id = 50 + random() % 2;
      vma.flags = O_RDONLY;
      vma.premapped = random() % 2 == 0;
      break;
    case 1:
      vma.status |= FakeCriuImages::kFileShared;
      vma.file_id = 60 + random() % 2;
      break;
    case 2:
      vma.status |= FakeCriuImages::kAnonymousShared;
      break;
    default:
      vma.status |= FakeCriuImages::kAnonymousPrivate;
  }
  return vma;
}

FakeCriuImages::Vma device_vma(std::uint32_t gpu_index, std::uint64_t page) {
  FakeCriuImages::Vma vma;
  vma.start = kBoAddr + gpu_index * kBoSize + page * 0x1000;
  vma.offset = kBoOffset + gpu_index * kBoSize + page * 0x1000;
  vma.file_id = 70 + gpu_index;
  vma.status |= FakeCriuImages::kFileShared | FakeCriuImages::kPlugin;
  vma.path = "/dev/dri/renderD" + std::to_string(128 + gpu_index);
  return vma;
}

TEST_P(Mappings, of_any_order_leave_the_programs_descriptors_and_no_other) {
  const auto [takes_fd, has_render_fd] = GetParam();
  for (unsigned seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Fakes fakes;
    fakes.machine.add_gpu(2, kOtherGpu, 129);
    fakes.criu.new_rule = takes_fd;
    fakes.save_process(4, 77, {kGpu, kOtherGpu});
    fakes.save_render(9, kGpu);
    fakes.save_render(10, kOtherGpu);
    auto& task = fakes.images.tasks[77];
    task.files = {{200, 4}};
    if (has_render_fd) task.files.insert(task.files.end(), {{201, 9}, {202, 10}, {203, 9}});
    // The doorbell lies below all BOs.
    FakeCriuImages::Vma doorbell;
    doorbell.start = kDoorbellAddr;
    doorbell.offset = kDoorbellOffset | (std::uint64_t{kGpu} << 46);
    doorbell.file_id = 80;
    doorbell.status |= FakeCriuImages::kFileShared | FakeCriuImages::kPlugin;
    doorbell.path = "/dev/kfd";
    task.vmas.push_back(doorbell);
    std::size_t count = 1;
    for (std::uint32_t gpu = 0; gpu < 2; ++gpu) {
      for (std::uint64_t page = 0; page < 40; ++page) {
        const bool is_device = random() % 2 == 0 || page < 2;  // two mappings of each GPU at least
        task.vmas.push_back(is_device ? device_vma(gpu, page)
                                      : random_vma(random, kBoAddr + gpu * kBoSize + page * 0x1000));
        if (is_device && random() % 8 == 0) task.vmas.back().flags = O_RDONLY;
        count += is_device ? 1 : 0;
      }
    }
    fakes.write_criu_images();
    ASSERT_EQ(device_descriptors(fakes.system), std::set<int>{});
    Restore restore(fakes.services);
    restore.prepare();
    plant(restore.restore_file(4), {200});
    if (has_render_fd) {
      plant(restore.restore_file(9), {201, 203});
      plant(restore.restore_file(10), {202});
    }
    MappingModel model(takes_fd);
    ASSERT_TRUE(model.open_vmas(restore, task.vmas));
    ASSERT_TRUE(model.map_all());
    std::size_t seen = 0;
    for (const auto& mapped : model.mapped()) {
      if (mapped.start == kDoorbellAddr) {
        EXPECT_TRUE(same_open_file(mapped.file.get(), fakes.kfd.restored_files[0].get()));
        ++seen;
      }
      for (const auto& vma : task.vmas) {
        if (vma.start != mapped.start || (vma.status & FakeCriuImages::kPlugin) == 0 || vma.file_id == 80) continue;
        const std::size_t gpu = vma.file_id - 70;
        EXPECT_TRUE(same_open_file(mapped.file.get(), fakes.kfd.restored_files[1 + gpu].get()));
        EXPECT_EQ(mapped.offset, kfd::fake_restored_offset(gpu) + (vma.start - kBoAddr - gpu * kBoSize));
        ++seen;
      }
    }
    EXPECT_EQ(seen, count);
    const std::set<int> expected = has_render_fd ? std::set{200, 201, 202, 203} : std::set{200};
    EXPECT_EQ(device_descriptors(fakes.system), expected);
    for (const int fd : expected) ::close(fd);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, Mappings,
                         ::testing::Values(MappingCase{false, true}, MappingCase{false, false}, MappingCase{true, true},
                                           MappingCase{true, false}));

TEST(Restore, mappings_are_found_without_the_recorded_path) {
  Fakes fakes;
  fakes.save_process(4, 77);
  fakes.images.tasks[77].files = {{200, 4}};
  fakes.images.tasks[77].vmas = {device_vma(0, 3), device_vma(0, 9)};
  fakes.write_criu_images();
  Restore restore(fakes.services);
  plant(restore.restore_file(4), {200});
  for (const char* path : {"/dev/dri/renderD155", "/dev/.amdgpu_plugin.5.128 (deleted)"}) {
    const auto answer = restore.update_vma(path, kBoAddr + 0x3000, kBoOffset + 0x3000);
    ASSERT_TRUE(answer.ok() && answer->has_value()) << path;
    EXPECT_EQ((*answer)->offset, kfd::fake_restored_offset(0) + 0x3000);
    EXPECT_TRUE(same_open_file((*answer)->fd, fakes.kfd.restored_files[1].get()));
  }
  const auto doorbell = restore.update_vma("/dev/.amdgpu_plugin.5.0 (deleted)", kDoorbellAddr,
                                           kDoorbellOffset | (std::uint64_t{kGpu} << 46));
  ASSERT_TRUE(doorbell.ok() && doorbell->has_value());
  EXPECT_TRUE(same_open_file((*doorbell)->fd, fakes.kfd.restored_files[0].get()));
  const auto foreign = restore.update_vma("/dev/nvidia0", kBoAddr + 0x3000, 0x77000);
  ASSERT_TRUE(foreign.ok());
  EXPECT_FALSE(foreign->has_value());
  ::close(200);
}

TEST(Restore, twenty_gpus_leave_no_descriptor_below_the_programs_highest) {
  Fakes fakes;
  std::vector<std::uint32_t> gpus = {kGpu};
  for (std::uint32_t i = 0; i < 19; ++i) {
    fakes.machine.add_gpu(2 + i, 0x3000 + i, 129 + i);
    gpus.push_back(0x3000 + i);
  }
  image::KfdFile kfd;
  kfd.pid = 77;
  kfd.priv_data.assign(16, std::byte{1});
  std::vector<topology::Node> nodes;
  for (std::uint32_t i = 0; i < gpus.size(); ++i) {
    kfd.devices.push_back({gpus[i], gpus[i]});
    nodes.push_back(fakes.node(gpus[i], 1 + i));
  }
  fakes.nodes = nodes;
  fakes.save(4, kfd);
  fakes.images.tasks[77].files = {{200, 4}};
  fakes.write_criu_images();
  Restore restore(fakes.services);
  plant(restore.restore_file(4), {200});
  ASSERT_EQ(fakes.kfd.restored->devices.size(), 20U);
  for (const auto& device : fakes.kfd.restored->devices) EXPECT_GE(device.drm_fd, fakes.criu.unused_fd());
  ::close(200);
}

TEST(Restore, many_bos_need_no_descriptor_each_with_the_extensible_abi) {
  Fakes fakes;
  fakes.abi = image::Abi::kExtensible;
  image::KfdFile file;
  file.pid = 77;
  file.devices = {{kGpu, kGpu}};
  file.priv_data.assign(16, std::byte{1});
  for (std::uint64_t i = 0; i < 2000; ++i)
    file.bos.push_back({{kBoAddr + i * 4096, 4096, kBoOffset + i * 4096, kGpu, KFD_IOC_ALLOC_MEM_FLAGS_VRAM}, {}});
  fakes.save(4, file);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 1024;  // the default, which also leaves room for what is held above the program's numbers
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  {
    Restore restore(fakes.services);
    const auto fd = restore.restore_file(4);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_TRUE(fd.ok()) << fd.error().message();
    const UniqueFd owned(**fd);
  }
  EXPECT_EQ(fakes.kfd.restored_contents(1999), std::vector<std::byte>(4096, std::byte{0x17}));
}

// ---- Processes ----

// A tree in which the files of owners are shared with any others, whatever the pids are.
struct Tree {
  struct File {
    std::uint32_t id = 0;
    std::uint32_t owner = 0;
    bool is_kfd = false;
    std::map<std::uint32_t, std::vector<int>> numbers;  // by pid
    [[nodiscard]] std::uint32_t master() const { return numbers.begin()->first; }
  };
  std::vector<std::uint32_t> pids;
  std::vector<File> files;
};

Tree random_tree(std::mt19937& random, Fakes& fakes) {
  Tree tree;
  std::set<std::uint32_t> pids;
  while (pids.size() < 2 + random() % 4) pids.insert(static_cast<std::uint32_t>(100 + random() % 900));
  tree.pids.assign(pids.begin(), pids.end());
  std::shuffle(tree.pids.begin(), tree.pids.end(), random);
  const std::size_t owners = 1 + random() % 2;
  std::uint32_t id = 4;
  std::map<std::uint32_t, int> next_number;
  auto give = [&](Tree::File& file, std::uint32_t pid) {
    auto& next = next_number.try_emplace(pid, 200).first->second;
    for (std::uint32_t i = 0; i < 1 + random() % 2; ++i) file.numbers[pid].push_back(next++);
  };
  for (std::size_t i = 0; i < owners; ++i) {
    const std::uint32_t owner = tree.pids[i];
    for (const bool is_kfd : {true, false}) {
      Tree::File file{id++, owner, is_kfd, {}};
      give(file, owner);
      // A render node of an owner is not given to another owner: an image of version 1 does not say whose it is.
      for (const std::uint32_t pid : tree.pids) {
        const bool other_owner = std::find(tree.pids.begin(), tree.pids.begin() + static_cast<long>(owners), pid) !=
                                 tree.pids.begin() + static_cast<long>(owners);
        if (pid != owner && (is_kfd || !other_owner) && random() % 2 == 0) give(file, pid);
      }
      if (is_kfd)
        fakes.save_process(file.id, owner);
      else
        fakes.save_render(file.id);
      tree.files.push_back(file);
    }
  }
  for (const std::uint32_t pid : tree.pids) {
    auto& task = fakes.images.tasks[pid];
    for (const Tree::File& file : tree.files) {
      const auto found = file.numbers.find(pid);
      if (found == file.numbers.end()) continue;
      for (const int number : found->second)
        task.files.push_back({number, file.id, true, static_cast<unsigned>(number) % 2U});
    }
  }
  return tree;
}

bool send_file(int socket, int fd, std::uint32_t id) {
  iovec data{&id, sizeof(id)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return ::sendmsg(socket, &message, 0) == sizeof(id);
}

std::pair<UniqueFd, std::uint32_t> receive_file(int socket) {
  std::uint32_t id = 0;
  iovec data{&id, sizeof(id)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(socket, &message, 0) != sizeof(id)) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
  return {UniqueFd(fd), id};
}

// What CRIU does in the task `pid`; the exit status of the task.
int run_task(Fakes& fakes, Restore& restore, const Tree& tree, std::uint32_t pid,
             const std::map<std::uint32_t, std::array<int, 2>>& sockets) {
  fakes.criu.task = static_cast<pid_t>(pid);
  std::size_t to_receive = 0;
  for (const Tree::File& file : tree.files) {
    if (file.numbers.contains(pid) && file.master() != pid) ++to_receive;
    if (file.master() != pid) continue;
    const auto fd = restore.restore_file(file.id);
    if (!fd.ok() || !fd->has_value()) return 10;
    const UniqueFd opened(**fd);
    for (const auto& [receiver, numbers] : file.numbers) {
      if (receiver != pid && !send_file(sockets.at(receiver)[1], opened.get(), file.id)) return 11;
      if (receiver == pid)
        for (const int number : numbers)
          if (::dup3(opened.get(), number, number % 2 == 0 ? 0 : O_CLOEXEC) != number) return 12;
    }
  }
  for (; to_receive > 0; --to_receive) {
    const auto [fd, id] = receive_file(sockets.at(pid)[0]);
    if (!fd.valid()) return 13;
    for (const Tree::File& file : tree.files)
      if (file.id == id)
        for (const int number : file.numbers.at(pid))
          if (::dup3(fd.get(), number, number % 2 == 0 ? 0 : O_CLOEXEC) != number) return 14;
  }
  bool is_owner = false;
  for (const Tree::File& file : tree.files) is_owner = is_owner || file.owner == pid;
  if (is_owner) {
    const auto answer = restore.update_vma("/dev/dri/renderD128", kBoAddr, kBoOffset);
    if (!answer.ok() || !answer->has_value()) return 15;
    if (!same_open_file((*answer)->fd, fakes.kfd.restored_files[1].get())) return 16;
    if (fakes.criu.new_rule) ::close((*answer)->fd);
  }
  if (is_owner != !fakes.kfd.calls.empty()) return 17;
  std::set<int> expected;
  for (const Tree::File& file : tree.files) {
    if (!file.numbers.contains(pid)) continue;
    for (const int number : file.numbers.at(pid)) {
      expected.insert(number);
      if (::fcntl(number, F_GETFD) != number % 2) return 18;
      if (file.owner == pid && !same_open_file(number, fakes.kfd.restored_files[file.is_kfd ? 0 : 1].get())) return 19;
    }
  }
  const std::set<int> found = device_descriptors(fakes.system);
  for (const int fd : found)
    if (!expected.contains(fd))
      std::printf("process %u: descriptor %d %s\n", pid, fd, fakes.system.descriptor_path(fd)->c_str());
  std::fflush(stdout);
  return found == expected ? 0 : 20;
}

class Processes : public ::testing::TestWithParam<bool> {};

TEST_P(Processes, of_any_pids_get_their_own_state_and_exactly_their_descriptors) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Fakes fakes;
    (void)device_descriptors(fakes.system);
    fakes.criu.new_rule = GetParam();
    const Tree tree = random_tree(random, fakes);
    for (auto& [pid, task] : fakes.images.tasks) task.vmas.push_back(device_vma(0, 0));
    fakes.write_criu_images();
    Restore restore(fakes.services);
    restore.prepare();
    EXPECT_TRUE(fakes.criu.warnings.empty());
    std::map<std::uint32_t, std::array<int, 2>> sockets;
    for (const std::uint32_t pid : tree.pids)
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets[pid].data()), 0);
    std::map<pid_t, std::uint32_t> children;
    for (const std::uint32_t pid : tree.pids) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(run_task(fakes, restore, tree, pid, sockets));
      children[child] = pid;
    }
    for (const auto& [child, pid] : children) {
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
          << "seed " << seed << ", process " << pid << ": status " << WEXITSTATUS(status);
    }
    for (const auto& [pid, pair] : sockets)
      for (const int fd : pair) ::close(fd);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, Processes, ::testing::Bool());

TEST(Restore, a_process_that_inherited_a_mapping_gets_it_through_the_owners_file) {
  Fakes fakes;
  fakes.save_process(4, static_cast<std::uint32_t>(::getpid()));
  fakes.images.tasks[static_cast<std::uint32_t>(::getpid())].files = {{200, 4}};
  fakes.images.tasks[static_cast<std::uint32_t>(::getpid())].vmas = {device_vma(0, 0), device_vma(0, 1)};
  fakes.images.tasks[5].vmas = {device_vma(0, 2)};
  fakes.write_criu_images();
  Restore restore(fakes.services);
  fakes.criu.task = ::getpid();
  restore.prepare();
  plant(restore.restore_file(4), {200});
  ASSERT_TRUE(restore.update_vma("/dev/dri/renderD128", kBoAddr, kBoOffset).ok());
  fakes.criu.task = 5;
  fakes.criu.new_rule = true;
  const auto answer = restore.update_vma("/dev/dri/renderD128", kBoAddr + 0x2000, kBoOffset + 0x2000);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_TRUE(answer->has_value());
  const UniqueFd file((*answer)->fd);
  EXPECT_TRUE(same_open_file(file.get(), fakes.kfd.restored_files[1].get()));
  EXPECT_EQ((*answer)->offset, kfd::fake_restored_offset(0) + 0x2000);
  ::close(200);
}

TEST(Restore, a_process_that_inherited_a_mapping_waits_as_long_as_the_owner_lives) {
  Fakes fakes;
  const pid_t owner = ::fork();
  if (owner == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(owner, nullptr, 0), owner);
  fakes.save_process(4, static_cast<std::uint32_t>(owner));
  fakes.images.tasks[static_cast<std::uint32_t>(owner)].files = {{200, 4}};
  fakes.images.tasks[5].vmas = {device_vma(0, 2)};
  fakes.write_criu_images();
  Restore restore(fakes.services);
  restore.prepare();
  fakes.criu.task = 5;
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = restore.update_vma("/dev/dri/renderD128", kBoAddr + 0x2000, kBoOffset + 0x2000);
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message().find("has ended"), std::string::npos) << answer.error().message();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(Restore, a_process_that_inherited_a_mapping_sees_that_the_owner_ended_before_its_parent_does) {
  Fakes fakes;
  const pid_t owner = ::fork();
  if (owner == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(owner), &info, WEXITED | WNOWAIT), 0);  // it stays a zombie
  fakes.save_process(4, static_cast<std::uint32_t>(owner));
  fakes.images.tasks[static_cast<std::uint32_t>(owner)].files = {{200, 4}};
  fakes.images.tasks[5].vmas = {device_vma(0, 2)};
  fakes.write_criu_images();
  Restore restore(fakes.services);
  restore.prepare();
  fakes.criu.task = 5;
  fakes.services.longest_wait = std::chrono::minutes(1);
  const auto answer = restore.update_vma("/dev/dri/renderD128", kBoAddr + 0x2000, kBoOffset + 0x2000);
  ::waitpid(owner, nullptr, 0);
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message().find("process " + std::to_string(owner) +
                                          ", whose memory this one has mapped, "
                                          "has ended"),
            std::string::npos)
      << answer.error().message();
}

TEST(Restore, a_process_that_inherited_a_mapping_does_not_wait_for_ever_for_an_owner_that_is_not_restored) {
  Fakes fakes;
  const auto owner = static_cast<std::uint32_t>(::getpid());
  fakes.save_process(4, owner);
  fakes.images.tasks[owner].files = {{200, 4}};
  fakes.images.tasks[5].vmas = {device_vma(0, 2)};
  fakes.write_criu_images();
  Restore restore(fakes.services);
  restore.prepare();
  fakes.criu.task = 5;
  fakes.services.longest_wait = std::chrono::milliseconds(20);
  const auto answer = restore.update_vma("/dev/dri/renderD128", kBoAddr + 0x2000, kBoOffset + 0x2000);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), ETIMEDOUT);
  EXPECT_NE(answer.error().message().find("process " + std::to_string(owner)), std::string::npos)
      << answer.error().message();
}

// ---- Descriptors ----

// A restored process with pid 5000, which knows itself as 77.
class Descriptors : public ::testing::Test {
 protected:
  Descriptors() {
    (void)device_descriptors(fakes_.system);
    fakes_.save_process(4, 77);
    fakes_.machine.add_tracee(5000, 77, "");
  }
  ~Descriptors() override {
    for (const int number : {200, 201}) ::close(number);
  }
  FakeCriuImages::Task& task() { return fakes_.images.tasks[77]; }
  void expect_not_resumed(Restore& restore) {
    EXPECT_FALSE(restore.resume(5000).ok());
    EXPECT_TRUE(fakes_.kfd.resumed.empty());
  }
  void expect_resumed(Restore& restore) {
    const auto claim = restore.resume(5000);
    ASSERT_TRUE(claim.ok()) << claim.error().message();
    EXPECT_EQ(fakes_.kfd.resumed, std::vector<pid_t>{5000});
  }
  Fakes fakes_;
};

TEST_F(Descriptors, that_could_not_be_replaced_fail_every_later_mapping_and_the_resume) {
  task() = {0, {}, {{200, 4}}, {device_vma(0, 0), device_vma(0, 1)}};
  fakes_.write_criu_images();
  Restore restore(fakes_.services);
  restore.prepare();
  const auto fd = restore.restore_file(4);
  ASSERT_TRUE(fd.ok() && fd->has_value());
  ::close(**fd);
  const UniqueFd other(::open("/etc/passwd", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::dup2(other.get(), 200), 200);
  for (const std::uint64_t page : {0U, 1U}) {
    const auto answer = restore.update_vma("/dev/dri/renderD128", kBoAddr + page * 0x1000, kBoOffset + page * 0x1000);
    ASSERT_FALSE(answer.ok()) << page;
    EXPECT_NE(answer.error().message().find("descriptor 200"), std::string::npos) << answer.error().message();
  }
  expect_not_resumed(restore);
}

TEST_F(Descriptors, of_a_process_that_was_asked_for_no_mapping_are_not_settled) {
  task() = {0, {}, {{200, 4}}, {device_vma(0, 0)}};
  fakes_.write_criu_images();
  Restore restore(fakes_.services);
  restore.prepare();
  plant(restore.restore_file(4), {200});
  expect_not_resumed(restore);
}

TEST_F(Descriptors, after_a_mapping_that_failed_the_process_is_not_resumed) {
  task() = {0, {}, {{200, 4}}, {device_vma(0, 0), device_vma(0, 1)}};
  fakes_.write_criu_images();
  Restore restore(fakes_.services);
  restore.prepare();
  plant(restore.restore_file(4), {200});
  ASSERT_TRUE(restore.update_vma("/dev/dri/renderD128", kBoAddr, kBoOffset).ok());
  EXPECT_FALSE(restore.update_vma("/dev/dri/renderD128", kBoAddr - kBoSize, 0x7000).ok());
  expect_not_resumed(restore);
}

class NoMapping : public Descriptors, public ::testing::WithParamInterface<std::vector<std::uint32_t>> {};

// CRIU asks such a process for nothing after its last file.
TEST_P(NoMapping, leaves_the_programs_descriptors_and_no_other) {
  fakes_.machine.add_gpu(2, kOtherGpu, 129);
  fakes_.files.clear();
  fakes_.save_process(4, 77, {kGpu, kOtherGpu});
  fakes_.save_render(9);
  fakes_.images.tasks[300].files = {{7, 4}, {8, 9}};
  for (const std::uint32_t id : GetParam()) task().files.push_back({id == 4 ? 200 : 201, id});
  FakeCriuImages::Vma anonymous;
  anonymous.start = 0x10000;
  anonymous.status |= FakeCriuImages::kAnonymousPrivate;
  task().vmas = {anonymous};
  fakes_.write_criu_images();
  Restore restore(fakes_.services);
  restore.prepare();
  std::set<int> expected;
  for (const FakeCriuImages::Fd& fd : task().files) {
    plant(restore.restore_file(fd.file_id), {fd.number});
    expected.insert(fd.number);
  }
  for (const FakeCriuImages::Fd& fd : task().files)
    EXPECT_TRUE(same_open_file(fd.number, fakes_.kfd.restored_files[fd.file_id == 4 ? 0 : 1].get()));
  EXPECT_EQ(device_descriptors(fakes_.system), expected);
  expect_resumed(restore);
}

INSTANTIATE_TEST_SUITE_P(Files, NoMapping,
                         ::testing::Values(std::vector<std::uint32_t>{4}, std::vector<std::uint32_t>{4, 9},
                                           std::vector<std::uint32_t>{9, 4}));

TEST_F(Descriptors, of_a_process_without_mappings_with_a_stand_in_are_not_settled) {
  fakes_.save_render(9);
  fakes_.images.tasks[20].files = {{8, 9}};  // CRIU asks it for the render node
  task().files = {{200, 4}, {201, 9}};
  fakes_.write_criu_images();
  Restore restore(fakes_.services);
  restore.prepare();
  plant(restore.restore_file(4), {200});
  expect_not_resumed(restore);
}

// ---- RESUME ----

class Resume : public ::testing::Test {
 protected:
  Resume() {
    fakes_.save_process(4, 77);
    fakes_.machine.add_tracee(5000, 77, "");
  }
  void restore_it(Restore& restore) {
    plant(restore.restore_file(4), {200});
    ::close(200);
    fakes_.kfd.calls.clear();
  }
  Fakes fakes_;
};

TEST_F(Resume, leaves_a_process_alone_whose_pid_an_image_of_another_dump_has) {
  fakes_.images.tasks[77];  // uses no file of ours
  fakes_.write_criu_images();
  Restore restore(fakes_.services);
  restore.prepare();
  EXPECT_EQ(*restore.resume(5000), Claim::kNotMine);
  EXPECT_TRUE(fakes_.kfd.calls.empty());
}

TEST_F(Resume, reads_no_image_again) {
  fakes_.images.tasks[77].files = {{200, 4}};
  fakes_.write_criu_images();
  Restore restore(fakes_.services);
  restore_it(restore);
  std::filesystem::remove_all(fakes_.dir.path());
  EXPECT_EQ(*restore.resume(5000), Claim::kMine);
}

TEST_F(Resume, learns_from_shared_memory_what_a_task_has_restored) {
  fakes_.images.tasks[77].files = {{200, 4}};
  fakes_.write_criu_images();
  Restore restore(fakes_.services);
  restore.prepare();
  const pid_t task = ::fork();
  if (task == 0) ::_exit(restore.restore_file(4).ok() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(task, &status, 0), task);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(*restore.resume(5000), Claim::kMine);
  EXPECT_EQ(fakes_.kfd.resumed, std::vector<pid_t>{5000});
}

TEST_F(Resume, refuses_a_process_whose_state_was_not_restored) {
  fakes_.images.tasks[77].files = {{200, 4}};
  fakes_.write_criu_images();
  Restore restore(fakes_.services);
  restore.prepare();
  const auto claim = restore.resume(5000);
  ASSERT_FALSE(claim.ok());
  EXPECT_NE(claim.error().message().find("process 5000: its GPU state was not restored"), std::string::npos);
  fakes_.kfd.fail_at = "restore";
  EXPECT_FALSE(restore.restore_file(4).ok());
  EXPECT_FALSE(restore.resume(5000).ok());
}

TEST_F(Resume, that_takes_longer_than_the_kernel_waits_is_a_warning) {
  Restore restore(fakes_.services);
  restore_it(restore);
  fakes_.criu.warnings.clear();
  fakes_.kfd.fail_at = "resume";
  fakes_.kfd.fail_errno = ETIME;
  EXPECT_EQ(*restore.resume(5000), Claim::kMine);
  ASSERT_EQ(fakes_.criu.warnings.size(), 1U);
  EXPECT_NE(fakes_.criu.warnings[0].find("process 5000"), std::string::npos);
}

// A process that can be read: this one. Its smaps say that memory of the test is to come later.
class LazyResume : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = 700 * 4096;  // more pages than one call loads
  LazyResume() {
    fakes_.save_process(4, 77);
    fakes_.machine.add_tracee(::getpid(), 77, "");
    memory_ =
        static_cast<std::byte*>(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    // A huge page of the memory beside it would reach into this one.
    (void)::madvise(memory_, kSize, MADV_NOHUGEPAGE);
  }
  ~LazyResume() override { ::munmap(memory_, kSize); }
  base::Result<Claim> resume() {
    Restore restore(fakes_.services);
    plant(restore.restore_file(4), {200});
    ::close(200);
    fakes_.criu.warnings.clear();
    return restore.resume(::getpid());
  }
  void write_smaps(const std::string& flags) {
    std::ostringstream text;
    text << std::hex << reinterpret_cast<std::uintptr_t>(memory_) << '-'
         << reinterpret_cast<std::uintptr_t>(memory_) + kSize
         << " rw-p 00000000 00:00 0 \nSize: 2800 kB\nVmFlags: " << flags
         << "\n1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd wr mr ac \n"
         << "2000-3000 ---p 00000000 00:00 0 \nVmFlags: mr um ac \n";
    write_file(fakes_.machine.root() + "/proc/" + std::to_string(::getpid()) + "/smaps", text.str());
  }
  // What /proc/PID/pagemap says of a page of the memory; nothing of the others.
  void write_pagemap(std::size_t page, std::uint64_t entry) {
    const std::string path = fakes_.machine.root() + "/proc/" + std::to_string(::getpid()) + "/pagemap";
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const auto at = static_cast<off_t>((reinterpret_cast<std::uintptr_t>(memory_) / 4096 + page) * sizeof(entry));
    ASSERT_EQ(::pwrite(file.get(), &entry, sizeof(entry), at), static_cast<ssize_t>(sizeof(entry)));
  }
  [[nodiscard]] std::size_t resident_pages() const {
    std::vector<unsigned char> pages(kSize / 4096);
    if (::mincore(memory_, kSize, pages.data()) != 0) return 0;
    return static_cast<std::size_t>(
        std::count_if(pages.begin(), pages.end(), [](auto page) { return (page & 1) != 0; }));
  }
  Fakes fakes_;
  std::byte* memory_ = nullptr;
};

TEST_F(LazyResume, loads_each_page_that_was_to_come_later) {
  write_smaps("rd wr mr mw me um ac ");
  const auto claim = resume();
  ASSERT_TRUE(claim.ok()) << claim.error().message();
  EXPECT_EQ(*claim, Claim::kMine);
  EXPECT_EQ(resident_pages(), kSize / 4096);
  ASSERT_EQ(fakes_.criu.warnings.size(), 1U);
  EXPECT_NE(fakes_.criu.warnings[0].find("loaded 2 MiB"), std::string::npos) << fakes_.criu.warnings[0];
  EXPECT_NE(fakes_.criu.warnings[0].find("--lazy-pages"), std::string::npos);
}

TEST_F(LazyResume, loads_nothing_that_is_there) {
  write_smaps("rd wr mr mw me ac ");
  ASSERT_TRUE(resume().ok());
  EXPECT_EQ(resident_pages(), 0U);
  EXPECT_TRUE(fakes_.criu.warnings.empty());
}

// Nobody brings the last page: reading it fails, as it does when `criu lazy-pages` has ended in the middle.
TEST_F(LazyResume, without_a_page_that_was_to_come_later_fails) {
  write_smaps("rd wr mr mw me um ac ");
  ASSERT_EQ(::mprotect(memory_ + kSize - 4096, 4096, PROT_NONE), 0);
  const auto claim = resume();
  ASSERT_FALSE(claim.ok());
  std::ostringstream page;
  page << "page at 0x" << std::hex << reinterpret_cast<std::uintptr_t>(memory_) + kSize - 4096;
  EXPECT_NE(claim.error().message().find(page.str()), std::string::npos) << claim.error().message();
  EXPECT_TRUE(fakes_.kfd.resumed.empty());
}

// Linux 6.13 and later: nobody can read a guard page (MADV_GUARD_INSTALL), and nobody brings it. Linux before 6.15
// shows it in pagemap as a page that is swapped out, later ones have a bit for it.
TEST_F(LazyResume, loads_nothing_of_guard_pages) {
  constexpr std::uint64_t kSwapped = 1ULL << 62, kGuard = 1ULL << 58;
  write_smaps("rd wr mr mw me um ac ");
  const std::size_t guards[] = {0, 1, 600, kSize / 4096 - 1};
  for (const std::size_t page : guards) {
    ASSERT_EQ(::mprotect(memory_ + page * 4096, 4096, PROT_NONE), 0);
    write_pagemap(page, page == 1 ? kSwapped : kSwapped | kGuard);
  }
  const auto claim = resume();
  ASSERT_TRUE(claim.ok()) << claim.error().message();
  EXPECT_EQ(*claim, Claim::kMine);
  EXPECT_EQ(resident_pages(), kSize / 4096 - std::size(guards));
}

// ---- Choice of GPUs, errors ----

TEST(Restore, a_gpu_with_sdma_queues_of_others_is_the_last_choice) {
  Fakes fakes;
  fakes.machine.add_gpu(2, kOtherGpu, 129);
  fakes.machine.add_queue(812, "tenant", kGpu);
  fakes.save_process(4, 77);
  Restore restore(fakes.services);
  plant(restore.restore_file(4), {200});
  EXPECT_EQ(fakes.kfd.restored->devices[0].actual_id, kOtherGpu);
  ::close(200);
}

TEST(Restore, a_place_that_is_taken_names_who_has_it) {
  Fakes fakes;
  fakes.machine.add_queue(812, "tenant", kGpu);
  fakes.save_process(4, 77);
  fakes.kfd.fail_at = "restore";
  fakes.kfd.fail_errno = EBUSY;
  Restore restore(fakes.services);
  const auto fd = restore.restore_file(4);
  ASSERT_FALSE(fd.ok());
  EXPECT_NE(fd.error().message().find("process 812 (tenant) on GPU 4369"), std::string::npos) << fd.error().message();
}

TEST(Restore, what_is_wrong_with_options_or_gpus_is_said_at_the_first_file_of_ours) {
  Fakes fakes;
  fakes.save_process(4, 77);
  fakes.services.options_status = base::Error(EINVAL, "AMDGPU_PLUGIN_COPY=magic");
  {
    Restore restore(fakes.services);
    restore.prepare();
    EXPECT_FALSE(restore.restore_file(1234)->has_value());
    const auto fd = restore.restore_file(4);
    ASSERT_FALSE(fd.ok());
    EXPECT_EQ(fd.error().message(), "AMDGPU_PLUGIN_COPY=magic");
  }
  fakes.services.options_status = {};
  std::filesystem::remove_all(fakes.machine.root() + "/sys");
  Restore restore(fakes.services);
  restore.prepare();
  EXPECT_FALSE(restore.restore_file(1234)->has_value());
  EXPECT_FALSE(restore.restore_file(4).ok());
}

TEST(Restore, tasks_need_no_sysfs) {
  Fakes fakes;
  fakes.save_process(4, 77);
  fakes.images.tasks[77].files = {{200, 4}};
  fakes.write_criu_images();
  Restore restore(fakes.services);
  restore.prepare();
  std::filesystem::remove_all(fakes.machine.root() + "/sys");
  plant(restore.restore_file(4), {200});
  ::close(200);
}

// ---- CRIU's images ----

TEST(CriuImages, say_descriptors_mappings_and_free_pids) {
  Fakes fakes;
  fakes.images.tasks[300] = {1, {300, 301}, {{7, 4, true, FD_CLOEXEC}, {8, 5, false, 0}}, {device_vma(1, 3)}};
  fakes.images.tasks[340] = {300, {340}, {}, {}};
  fakes.write_criu_images();
  const auto images = CriuImages::read(fakes.criu.image_dir());
  ASSERT_TRUE(images.ok()) << images.error().message();
  const CriuTask* task = images->find(300);
  ASSERT_NE(task, nullptr);
  ASSERT_EQ(task->files.size(), 1U);
  EXPECT_EQ(task->files[0].file_id, 4U);
  EXPECT_EQ(task->files[0].number, 7);
  EXPECT_TRUE(task->files[0].close_on_exec);
  ASSERT_EQ(task->vmas.size(), 1U);
  EXPECT_EQ(task->vmas[0].start, device_vma(1, 3).start);
  EXPECT_EQ(task->vmas[0].offset, device_vma(1, 3).offset);
  EXPECT_EQ(task->vmas[0].source, CriuVma::Source::kPlugin);
  EXPECT_EQ(images->find(340)->parent, 300U);
  EXPECT_TRUE(images->uses_file(4));
  EXPECT_FALSE(images->uses_file(5));
  EXPECT_EQ(images->unused_pid(0), 302U);
  EXPECT_EQ(images->unused_pid(37), 339U);
  EXPECT_EQ(images->unused_pid(38), 341U);
  EXPECT_EQ(images->unused_pid(100'000), 100'303U);
}

TEST(CriuImages, cut_at_any_byte_are_refused_or_read_and_never_more) {
  Fakes fakes;
  fakes.images.tasks[300] = {1, {300, 301}, {{7, 4}}, {device_vma(0, 1), device_vma(0, 2)}};
  fakes.write_criu_images();
  for (const char* name : {"pstree.img", "ids-300.img", "fdinfo-1300.img", "mm-300.img"}) {
    const std::string path = fakes.dir.path() + "/" + name;
    const std::string whole = testing::read_file(path);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      write_file(path, whole.substr(0, length));
      (void)CriuImages::read(fakes.criu.image_dir());
      std::string changed = whole;
      changed[length] = static_cast<char>(changed[length] ^ 0xff);
      write_file(path, changed);
      (void)CriuImages::read(fakes.criu.image_dir());
      // Eight bytes are an image without messages.
      if (length >= 8) continue;
      write_file(path, whole.substr(0, length));
      EXPECT_FALSE(CriuImages::read(fakes.criu.image_dir()).ok()) << name << " " << length;
    }
    write_file(path, whole);
  }
  EXPECT_TRUE(CriuImages::read(fakes.criu.image_dir()).ok());
}

TEST(CriuImages, that_are_missing_are_a_warning_and_no_failure) {
  Fakes fakes;
  fakes.save_process(4, 77);
  Restore restore(fakes.services);
  restore.prepare();
  EXPECT_EQ(fakes.criu.warnings.size(), 1U);
  plant(restore.restore_file(4), {200});
  ::close(200);
}

// ---- Names in /dev/shm, devices ----

TEST(StaleLinks, to_libhsakmts_files_are_removed_unless_a_dump_or_restore_needs_them) {
  Fakes fakes;
  const std::string shm = fakes.machine.root() + "/dev/shm/";
  write_file(shm + "sem.hsakmt_semaphore", "semaphore");
  write_file(shm + "link_remap.7", "another file");
  std::filesystem::create_hard_link(shm + "sem.hsakmt_semaphore", shm + "link_remap.24");
  std::filesystem::create_hard_link(shm + "sem.hsakmt_semaphore", shm + "not_crius");
  {
    const auto locks = fakes.system.lock_links();
    EXPECT_EQ(locks.files.size(), 1U);
    EXPECT_TRUE(fakes.system.remove_stale_links(std::nullopt).empty());
  }
  EXPECT_EQ(fakes.system.remove_stale_links(std::nullopt), std::vector<std::string>{"link_remap.24"});
  EXPECT_FALSE(std::filesystem::exists(shm + "link_remap.24"));
  EXPECT_TRUE(std::filesystem::exists(shm + "link_remap.7"));
  EXPECT_TRUE(std::filesystem::exists(shm + "not_crius"));
  EXPECT_EQ(testing::read_file(shm + "sem.hsakmt_semaphore"), "semaphore");
}

TEST(StaleLinks, that_cannot_be_locked_are_reported_and_the_others_are_locked) {
  Fakes fakes;
  const std::string shm = fakes.machine.root() + "/dev/shm/";
  const std::string first = shm + std::string(image::kSharedFileNames[0]);
  EXPECT_TRUE(fakes.system.lock_links().files.empty());
  for (const std::string_view name : image::kSharedFileNames) write_file(shm + std::string(name), "shared");
  const auto expect_only_the_first_fails = [&](int code) {
    const auto locks = fakes.system.lock_links();
    EXPECT_EQ(locks.files.size(), image::kSharedFileNames.size() - 1);
    ASSERT_EQ(locks.failures.size(), 1U);
    EXPECT_EQ(locks.failures[0].code(), code);
    EXPECT_NE(locks.failures[0].message().find(first), std::string::npos) << locks.failures[0].message();
  };
  {
    const UniqueFd file(::open(first.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(file.get(), LOCK_EX), 0);
    expect_only_the_first_fails(EWOULDBLOCK);
  }
  EXPECT_EQ(fakes.system.lock_links().files.size(), image::kSharedFileNames.size());
  std::filesystem::remove(first);
  std::filesystem::create_symlink("elsewhere", first);
  expect_only_the_first_fails(ELOOP);
}

// Without --restore-detached CRIU lives as long as the program does.
TEST(StaleLinks, are_kept_for_a_restore_until_its_first_process_is_resumed) {
  Fakes fakes;
  const std::string shm = fakes.machine.root() + "/dev/shm/";
  write_file(shm + "sem.hsakmt_semaphore", "semaphore");
  std::filesystem::create_hard_link(shm + "sem.hsakmt_semaphore", shm + "link_remap.24");
  fakes.save_process(4, 77);
  fakes.machine.add_tracee(5000, 77, "");
  fakes.machine.add_tracee(5001, 78, "");
  Restore restore(fakes.services);
  restore.prepare();
  EXPECT_TRUE(fakes.system.remove_stale_links(std::nullopt).empty());
  (void)restore.resume(5001);  // it has no GPU
  EXPECT_EQ(fakes.system.remove_stale_links(std::nullopt), std::vector<std::string>{"link_remap.24"});
}

TEST(Devices, a_path_that_is_another_device_is_not_opened) {
  Fakes fakes;
  const std::string path = fakes.machine.root() + "/dev/dri/renderD128";
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/dev/full", path);
  const auto fd = fakes.system.open_render(128);
  struct stat status {};
  if (fd.ok()) {  // permitted to make a node
    ASSERT_EQ(::fstat(fd->get(), &status), 0);
    EXPECT_EQ(status.st_rdev, makedev(1, 5));
    EXPECT_EQ(status.st_nlink, 0U);
  } else {
    EXPECT_NE(fd.error().message().find("renderD128 is another device"), std::string::npos) << fd.error().message();
    EXPECT_NE(fd.error().message().find("mknod"), std::string::npos) << fd.error().message();
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(fakes.machine.root() + "/dev/dri"), {}), 1);
}

TEST(Devices, a_node_that_somebody_has_replaced_is_not_opened) {
  const TempDir directory;
  const UniqueFd at(::open(directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const dev_t zero = makedev(1, 5);
  std::filesystem::create_symlink("/dev/zero", directory.path() + "/link");
  EXPECT_EQ(open_device_at(at.get(), "link", zero, O_RDWR | O_CLOEXEC).error().code(), ELOOP);
  write_file(directory.path() + "/file", "");
  EXPECT_EQ(open_device_at(at.get(), "file", zero, O_RDWR | O_CLOEXEC).error().code(), ENXIO);
  const UniqueFd dev(::open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(open_device_at(dev.get(), "full", zero, O_RDWR | O_CLOEXEC).error().code(), ENXIO);
  EXPECT_TRUE(open_device_at(dev.get(), "zero", zero, O_RDWR | O_CLOEXEC).ok());
}

TEST(InertFile, is_opened_by_another_process_and_leaves_nothing_but_itself) {
  Fakes fakes;
  const auto before = testing::open_descriptors();
  {
    const auto node = fakes.system.kfd_node();
    const auto fd = open_inert(fakes.system, *node, 0, [] { return 0U; });
    ASSERT_TRUE(fd.ok()) << fd.error().message();
    EXPECT_EQ(::fcntl(fd->get(), F_GETFD), FD_CLOEXEC);
    struct stat status {};
    ASSERT_EQ(::fstat(fd->get(), &status), 0);
    EXPECT_EQ(status.st_rdev, node->number);
    EXPECT_EQ(testing::open_descriptors(), before + 1);
    EXPECT_FALSE(open_inert(fakes.system, DeviceNode{"missing", makedev(250, 250)}, 0, [] { return 0U; }).ok());
  }
  EXPECT_EQ(testing::open_descriptors(), before);
}

// The kernel cannot have two entries of one pid in sysfs.
TEST(InertFile, is_opened_by_a_process_whose_pid_no_other_inert_file_has) {
  Fakes fakes;
  // A large one, which nobody is likely to have now.
  const auto taken = static_cast<std::uint32_t>(std::stoul(testing::read_file("/proc/sys/kernel/pid_max"))) - 100;
  std::filesystem::create_directories(fakes.machine.root() + "/sys/class/kfd/kfd/proc/" + std::to_string(taken));
  std::vector<std::uint32_t> asked;
  const auto fd = open_inert(fakes.system, *fakes.system.kfd_node(), 0, [&] {
    asked.push_back(taken + static_cast<std::uint32_t>(asked.size()));
    return asked.back();
  });
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  EXPECT_EQ(asked.front(), taken);
  EXPECT_GE(asked.size(), 2U);
}

// EINVAL is what the kernel says when a pid is larger than it allows. With a pid that the kernel chooses, the child
// could be in CRIU's way.
TEST(InertFile, is_not_opened_by_a_process_with_any_pid_when_the_pids_are_used_up) {
  Fakes fakes;
  const auto fd = open_inert(fakes.system, *fakes.system.kfd_node(), 0, [] { return 1U << 30; });
  ASSERT_FALSE(fd.ok());
  EXPECT_EQ(fd.error().code(), EINVAL);
}

TEST(RestoreBoard, gives_each_task_another_number) {
  const auto board = RestoreBoard::create({});
  ASSERT_TRUE(board.ok());
  EXPECT_EQ(board->next_number(), 0U);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(board->next_number() == 1 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(board->next_number(), 2U);
}

}  // namespace
}  // namespace plugin
