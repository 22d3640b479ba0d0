// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Stands in for CRIU: exports its symbols, with a hook table of HOST_MAX_HOOKS, loads the plugin given as argument and
// calls its hooks as a dump and a restore without AMD GPU would, and as the restore of file 1 if the image directory
// has that. Prints what it saw; status 1 when the plugin fails.
// A third argument chooses another story:
//   mapping        a mapping of this process is restored
//   failed-dump    a dump of /dev/null, which fails; CRIU takes it for a success and is about to kill the program
//   left-running   the same, with --leave-running: CRIU has already undone what it did to the program
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "plugin/criu_api.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
int image_dir_fd = -1;
struct ListHead {
  void* next;
  void* previous;
};
}  // namespace

struct PluginTable {
  ListHead head;
  ListHead hooks[HOST_MAX_HOOKS];
};
EXPORT PluginTable cr_plugin_ctl;
PluginTable cr_plugin_ctl = {};

EXPORT int criu_get_image_dir() { return image_dir_fd; }

EXPORT __attribute__((format(printf, 2, 3))) void print_on_level(unsigned level, const char* format, ...) {
  std::printf("log %u ", level);
  std::va_list arguments;
  va_start(arguments, format);
  (void)std::vprintf(format, arguments);
  va_end(arguments);
}

// What CRIU undoes at the end of a dump after which the program runs on. The newest host imitates one without them.
#if HOST_MAX_HOOKS < 15
EXPORT int opts;  // CRIU's structure begins with the state in which it leaves the programs
int opts = 2;     // TASK_DEAD
EXPORT int root_item_of_test;
int root_item_of_test = 0;
EXPORT void* root_item;
void* root_item = &root_item_of_test;

EXPORT int unsuspend_lsm() {
  std::printf("unsuspend_lsm\n");
  return 0;
}
EXPORT void network_unlock() { std::printf("network_unlock\n"); }
EXPORT void delete_link_remaps() { std::printf("delete_link_remaps\n"); }
EXPORT void clean_cr_time_mounts() { std::printf("clean_cr_time_mounts\n"); }
EXPORT void pstree_switch_state(void* root, int state) {
  std::printf("pstree_switch_state %s %d\n", root == root_item ? "root_item" : "another", state);
}
#endif

// The inventory came with CRIU 4.1.
#if HOST_MAX_HOOKS >= 12
EXPORT int add_inventory_plugin(const char* name) {
  std::printf("add to inventory: %s\n", name);
  return 0;
}

EXPORT bool check_and_remove_inventory_plugin(const char* name, std::size_t size) {
  std::printf("take from inventory: %.*s\n", static_cast<int>(size), name);
  return false;
}
#endif

// Options of plugins came after CRIU 4.2. HOST_OPTION is one, as CRIU gives it.
#if HOST_MAX_HOOKS >= 15
EXPORT int criu_plugin_get_options(int* count, char*** values) {
  static char name[] = "criu";
  static char* options[] = {name, ::getenv("HOST_OPTION"), nullptr};
  *count = options[1] == nullptr ? 1 : 2;
  *values = options;
  return 0;
}
#endif

namespace {

using plugin::criu_api::Descriptor;

template <typename Function>
Function* hook(const Descriptor& descriptor, int index) {
  return reinterpret_cast<Function*>(descriptor.hooks[index]);
}

void dump(const Descriptor& descriptor) {
  std::printf("init %d\n", descriptor.init(CR_PLUGIN_STAGE__DUMP));
  struct stat status {};
  const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  (void)::fstat(fd, &status);
  using DumpFile = int(int, int);
  using DeviceVma = int(int, const struct stat*);
  std::printf("dump_ext_file %d\n", hook<DumpFile>(descriptor, CR_PLUGIN_HOOK__DUMP_EXT_FILE)(fd, 1));
  std::printf("handle_device_vma %d\n", hook<DeviceVma>(descriptor, CR_PLUGIN_HOOK__HANDLE_DEVICE_VMA)(fd, &status));
  descriptor.exit(CR_PLUGIN_STAGE__DUMP, 0);
  ::close(fd);
}

void restore(const Descriptor& descriptor) {
  std::printf("init %d\n", descriptor.init(CR_PLUGIN_STAGE__RESTORE));
  bool retry = true;
  using RestoreFile = int(int, bool*);
  using UpdateVma = int(const char*, std::uint64_t, std::uint64_t, std::uint64_t*, int*);
  using Resume = int(int);
  std::printf("restore_ext_file %d\n", hook<RestoreFile>(descriptor, CR_PLUGIN_HOOK__RESTORE_EXT_FILE)(1, &retry));
  std::printf("retry %d\n", retry ? 1 : 0);
  std::uint64_t offset = 0;
  int fd = -1;
  std::printf("update_vma_map %d\n",
              hook<UpdateVma>(descriptor, CR_PLUGIN_HOOK__UPDATE_VMA_MAP)("/dev/dri/renderD128", 0, 0, &offset, &fd));
  std::printf("resume %d\n", hook<Resume>(descriptor, CR_PLUGIN_HOOK__RESUME_DEVICES_LATE)(::getpid()));
  descriptor.exit(CR_PLUGIN_STAGE__RESTORE, 0);
}

void restore_mapping(const Descriptor& descriptor) {
  std::printf("init %d\n", descriptor.init(CR_PLUGIN_STAGE__RESTORE));
  using UpdateVma = int(const char*, std::uint64_t, std::uint64_t, std::uint64_t*, int*);
  std::uint64_t offset = 0;
  int fd = -1;
  const int result =
      hook<UpdateVma>(descriptor, CR_PLUGIN_HOOK__UPDATE_VMA_MAP)("/dev/dri/renderD128", 0, 0, &offset, &fd);
  std::printf("the process goes on after update_vma_map %d\n", result);
}

void fail_dump(const Descriptor& descriptor, [[maybe_unused]] bool leave_running) {
#if HOST_MAX_HOOKS < 15
  if (leave_running) opts = 1;  // TASK_ALIVE
#endif
  std::printf("init %d\n", descriptor.init(CR_PLUGIN_STAGE__DUMP));
  const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  using DumpFile = int(int, int);
  std::printf("dump_ext_file %d\n", hook<DumpFile>(descriptor, CR_PLUGIN_HOOK__DUMP_EXT_FILE)(fd, 1));
  descriptor.exit(CR_PLUGIN_STAGE__DUMP, 0);
  std::printf("CRIU goes on\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 64;
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // the plugin may end this process
  image_dir_fd = ::open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  void* plugin = ::dlopen(argv[1], RTLD_LAZY);
  if (plugin == nullptr) {
    std::printf("%s\n", ::dlerror());
    return 1;
  }
  const auto* descriptor = static_cast<const Descriptor*>(::dlsym(plugin, "CR_PLUGIN_DESC"));
  if (descriptor == nullptr) return 1;
  std::printf("version %x\nmax_hooks %u\n", descriptor->version, descriptor->max_hooks);
  const std::string_view story = argc == 4 ? argv[3] : "";
  if (story == "mapping") {
    restore_mapping(*descriptor);
  } else if (!story.empty()) {
    fail_dump(*descriptor, story == "left-running");
  } else {
    dump(*descriptor);
    restore(*descriptor);
  }
  return 0;
}
