// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One function per hook of CRIU: call, log a failure once, convert to CRIU's convention. -ENOTSUP means "not ours", and
// lets CRIU ask the next plugin, so no failure may have that value.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/os.h"
#include "base/text_file.h"
#include "plugin/criu_api.h"
#include "plugin/session.h"

namespace plugin {
namespace {

using base::Error;
using criu_api::Level;
using criu_api::RealCriu;
using criu_api::Stage;

// The one mutable global: CRIU's hooks have no argument for context. Made by init, deleted by exit; CRIU calls hooks
// from one thread. A restored task is a fork of CRIU and has a copy.
struct State {
  RealCriu criu;
  std::unique_ptr<Session> session;
  std::vector<base::UniqueFd> shm_locks;  // of a dump, which makes names in /dev/shm for its restore
  bool in_inventory = false;
};
State* g_state = nullptr;

Dump* current_dump() { return g_state != nullptr ? g_state->session->dump() : nullptr; }
Restore* current_restore() { return g_state != nullptr ? g_state->session->restore() : nullptr; }

int fail(const Error& error) {
  criu_api::log(Level::kError, error.message());
  return error.code() == ENOTSUP || error.code() <= 0 ? -EIO : -error.code();
}

int answer(const base::Result<Claim>& result) {
  if (!result.ok()) return fail(result.error());
  return *result == Claim::kMine ? 0 : -ENOTSUP;
}

Mode mode_of(int stage) {
  switch (static_cast<Stage>(stage)) {
    case Stage::kRestore:
      return Mode::kRestore;
    case Stage::kPreDump:
      return Mode::kPreDump;
    default:
      return Mode::kDump;
  }
}

base::Result<Options> options_of_user() {
  ASSIGN_OR_RETURN(std::string file, base::read_text_if_there(kOptionsFile));
  return read_options(
      {criu_api::plugin_options(), std::move(file), [](const char* name) -> const char* { return std::getenv(name); }});
}

// A restore without this plugin would restore a program without its GPU, so CRIU has to refuse it.
int require_at_restore() {
  if (g_state->in_inventory) return 0;
  if (!criu_api::add_to_inventory()) return fail(Error(ENOMEM, "cannot add the plugin to CRIU's inventory"));
  g_state->in_inventory = true;
  return 0;
}

// The next dump may want the same names, also of a semaphore that libhsakmt has made anew by then.
void remove_links() {
  for (const std::string& name : g_state->session->system().remove_stale_links(std::nullopt))
    criu_api::log(Level::kInfo, "removed /dev/shm/" + name + ": a restore makes this name of CRIU's again");
}

int init(int stage) noexcept {
  delete std::exchange(g_state, nullptr);
  if (stage == static_cast<int>(Stage::kRestore)) criu_api::take_from_inventory();
  auto state = std::make_unique<State>();
  auto session = Session::create(mode_of(stage), state->criu, options_of_user());
  if (!session.ok()) return fail(session.error());
  state->session = std::move(session).value();
  g_state = state.release();
  if (Restore* restore = current_restore()) {
    restore->prepare();
    if (const auto notice = restore->notice(); !notice.empty()) criu_api::log(Level::kWarning, notice);
    return 0;
  }
  remove_links();
  // The files may belong to programs that are not dumped, so a failure to lock one does not end the dump.
  auto locks = g_state->session->system().lock_links();
  for (const Error& error : locks.failures) criu_api::log(Level::kWarning, error.message());
  g_state->shm_locks = std::move(locks.files);
  return 0;
}

void exit_stage(int /*stage*/, int result) noexcept {
  Dump::End end;
  if (Dump* dump = current_dump()) end = dump->finish(result);
  for (const Error& error : end.errors) (void)fail(error);
  if (end.committed) {
    g_state->shm_locks.clear();
    remove_links();
  }
  delete std::exchange(g_state, nullptr);
  if (!end.must_end_criu) return;
  // CRIU has no way to learn of it here, and would kill the programs next. When CRIU ends instead, the programs
  // continue.
  for (const std::string& text : criu_api::release_programs()) criu_api::log(Level::kError, text);
  criu_api::log(Level::kError, "there is no image of the GPUs: CRIU ends here, and the programs run on");
  ::_exit(EXIT_FAILURE);
}

int dump_ext_file(int fd, int id) noexcept {
  Dump* dump = current_dump();
  if (dump == nullptr || id < 0) return -ENOTSUP;
  const auto claim = dump->dump_file(fd, static_cast<std::uint32_t>(id));
  if (!claim.ok() || *claim != Claim::kMine) return answer(claim);
  return require_at_restore();
}

// CRIU before MAX 14 passes only the first argument.
int restore_ext_file(int id, bool* retry_needed) noexcept {
  if (criu_api::host_max_hooks() >= criu_api::kRetryMaxHooks && retry_needed != nullptr) *retry_needed = false;
  Restore* restore = current_restore();
  if (restore == nullptr || id < 0) return -ENOTSUP;
  const auto fd = restore->restore_file(static_cast<std::uint32_t>(id));
  if (!fd.ok()) return fail(fd.error());
  if (fd->has_value()) criu_api::log(Level::kInfo, "restored device file " + std::to_string(id));
  return fd->value_or(-ENOTSUP);
}

int handle_device_vma(int /*fd*/, const struct stat* status) noexcept {
  if (g_state == nullptr || status == nullptr) return -ENOTSUP;
  if (Dump* dump = current_dump()) {
    const auto claim = dump->handle_vma(*status);
    if (!claim.ok() || *claim != Claim::kMine) return answer(claim);
    return require_at_restore();
  }
  const auto device = g_state->session->system().identify(*status);
  if (!device.ok()) return fail(device.error());
  return device->kind == DeviceKind::kNotOurs ? -ENOTSUP : 0;
}

int update_vma_map(const char* path, std::uint64_t addr, std::uint64_t old_offset, std::uint64_t* new_offset,
                   int* fd) noexcept {
  Restore* restore = current_restore();
  if (restore == nullptr || path == nullptr) return -ENOTSUP;
  const auto found = restore->update_vma(path, addr, old_offset);
  if (!found.ok()) {
    (void)fail(found.error());
    // CRIU takes a failure for "map the old offset", which is other memory or none. This is the task itself. The init
    // of a pid namespace survives its own signals.
    (void)os::kill(os::getpid(), SIGKILL);
    ::_exit(EXIT_FAILURE);
  }
  if (!*found) return -ENOTSUP;
  *new_offset = (*found)->offset;
  *fd = (*found)->fd;
  return 1;
}

int resume_devices_late(int pid) noexcept {
  Restore* restore = current_restore();
  if (restore == nullptr) return -ENOTSUP;
  const auto result = restore->resume(pid);
  if (!result.ok()) {
    criu_api::log(Level::kError, "ending process " + std::to_string(pid) + ": it would wait for its GPU for ever");
    // CRIU ignores a failure at this point.
    (void)os::kill(pid, SIGKILL);
  }
  return answer(result);
}

}  // namespace
}  // namespace plugin

extern "C" __attribute__((visibility("default"))) plugin::criu_api::Descriptor CR_PLUGIN_DESC;
plugin::criu_api::Descriptor CR_PLUGIN_DESC = {plugin::criu_api::kPluginName,
                                               plugin::init,
                                               plugin::exit_stage,
                                               plugin::criu_api::kVersion,
                                               plugin::criu_api::kFirstMaxHooks,
                                               {}};

namespace plugin {
namespace {

// Runs inside dlopen(), before CRIU looks at the descriptor.
__attribute__((constructor)) void fill_descriptor() {
  auto set = [](int hook, auto* function) { CR_PLUGIN_DESC.hooks[hook] = reinterpret_cast<void*>(function); };
  set(CR_PLUGIN_HOOK__DUMP_EXT_FILE, dump_ext_file);
  set(CR_PLUGIN_HOOK__RESTORE_EXT_FILE, restore_ext_file);
  set(CR_PLUGIN_HOOK__HANDLE_DEVICE_VMA, handle_device_vma);
  set(CR_PLUGIN_HOOK__UPDATE_VMA_MAP, update_vma_map);
  set(CR_PLUGIN_HOOK__RESUME_DEVICES_LATE, resume_devices_late);
  CR_PLUGIN_DESC.max_hooks = criu_api::host_max_hooks();
}

}  // namespace
}  // namespace plugin
