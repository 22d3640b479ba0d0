// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Marshalling between the typed calls and the ioctls' arguments. No policy.
#include "kfd/client.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

#include "base/os.h"

namespace kfd {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

std::uint64_t user_pointer(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

UniqueFd closed_on_exec(std::uint32_t fd) {
  UniqueFd owner(static_cast<int>(fd));
  (void)os::fcntl(owner.get(), F_SETFD, FD_CLOEXEC);
  return owner;
}

}  // namespace

Result<Client> Client::open() {
  UniqueFd file(os::open("/dev/kfd", O_RDWR | O_CLOEXEC));
  if (!file.valid()) return Error::from_errno(errno, "/dev/kfd");
  return Client(std::move(file));
}

Status Client::call(unsigned long request, void* argument, std::string_view what) const {
  int result = 0;
  do {
    result = os::ioctl(file_.get(), request, argument);
  } while (result < 0 && errno == EINTR);
  if (result < 0) return Error::from_errno(errno, what);
  return {};
}

Status Client::acquire_vm(std::uint32_t gpu_id, int drm_fd) const {
  kfd_ioctl_acquire_vm_args args{};
  args.gpu_id = gpu_id;
  args.drm_fd = static_cast<std::uint32_t>(drm_fd);
  return call(AMDKFD_IOC_ACQUIRE_VM, &args, "AMDKFD_IOC_ACQUIRE_VM");
}

Result<std::vector<kfd_process_device_apertures>> Client::apertures(std::uint32_t limit) const {
  std::vector<kfd_process_device_apertures> found(limit);
  kfd_ioctl_get_process_apertures_new_args args{};
  args.kfd_process_device_apertures_ptr = user_pointer(found.data());
  args.num_of_nodes = limit;
  TRY(call(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args, "AMDKFD_IOC_GET_PROCESS_APERTURES_NEW"));
  found.resize(std::min(limit, args.num_of_nodes));
  return found;
}

Result<kfd_ioctl_get_clock_counters_args> Client::clock_counters(std::uint32_t gpu_id) const {
  kfd_ioctl_get_clock_counters_args args{};
  args.gpu_id = gpu_id;
  TRY(call(AMDKFD_IOC_GET_CLOCK_COUNTERS, &args, "AMDKFD_IOC_GET_CLOCK_COUNTERS"));
  return args;
}

Result<std::uint64_t> Client::available_memory(std::uint32_t gpu_id) const {
  kfd_ioctl_get_available_memory_args args{};
  args.gpu_id = gpu_id;
  TRY(call(AMDKFD_IOC_AVAILABLE_MEMORY, &args, "AMDKFD_IOC_AVAILABLE_MEMORY"));
  return std::uint64_t{args.available};
}

Result<CreatedMemory> Client::allocate(const MemoryRequest& request) const {
  kfd_ioctl_alloc_memory_of_gpu_args args{};
  args.va_addr = request.va;
  args.size = request.size;
  args.mmap_offset = request.user_address;
  args.gpu_id = request.gpu_id;
  args.flags = request.flags;
  TRY(call(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args, "AMDKFD_IOC_ALLOC_MEMORY_OF_GPU"));
  return CreatedMemory{args.handle, args.mmap_offset};
}

Status Client::free(std::uint64_t handle) const {
  kfd_ioctl_free_memory_of_gpu_args args{};
  args.handle = handle;
  return call(AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args, "AMDKFD_IOC_FREE_MEMORY_OF_GPU");
}

Status Client::map(std::uint64_t handle, std::span<const std::uint32_t> gpu_ids) const {
  kfd_ioctl_map_memory_to_gpu_args args{};
  args.handle = handle;
  args.device_ids_array_ptr = user_pointer(gpu_ids.data());
  args.n_devices = static_cast<std::uint32_t>(gpu_ids.size());
  return call(AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args, "AMDKFD_IOC_MAP_MEMORY_TO_GPU");
}

Status Client::unmap(std::uint64_t handle, std::span<const std::uint32_t> gpu_ids) const {
  kfd_ioctl_unmap_memory_from_gpu_args args{};
  args.handle = handle;
  args.device_ids_array_ptr = user_pointer(gpu_ids.data());
  args.n_devices = static_cast<std::uint32_t>(gpu_ids.size());
  return call(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &args, "AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU");
}

Result<UniqueFd> Client::export_dmabuf(std::uint64_t handle) const {
  abi::ExportDmabufArgs args{.handle = handle, .flags = O_CLOEXEC | O_RDWR, .dmabuf_fd = 0};
  TRY(call(abi::kExportDmabuf, &args, "AMDKFD_IOC_EXPORT_DMABUF"));
  return UniqueFd(static_cast<int>(args.dmabuf_fd));
}

Result<std::uint64_t> Client::import_dmabuf(std::uint32_t gpu_id, int dmabuf, std::uint64_t va) const {
  kfd_ioctl_import_dmabuf_args args{};
  args.va_addr = va;
  args.gpu_id = gpu_id;
  args.dmabuf_fd = static_cast<std::uint32_t>(dmabuf);
  TRY(call(AMDKFD_IOC_IMPORT_DMABUF, &args, "AMDKFD_IOC_IMPORT_DMABUF"));
  return std::uint64_t{args.handle};
}

Result<DmabufInfo> Client::dmabuf_info(int dmabuf) const {
  kfd_ioctl_get_dmabuf_info_args args{};
  args.dmabuf_fd = static_cast<std::uint32_t>(dmabuf);
  TRY(call(AMDKFD_IOC_GET_DMABUF_INFO, &args, "AMDKFD_IOC_GET_DMABUF_INFO"));
  return DmabufInfo{args.size, args.gpu_id, args.flags};
}

Result<CreatedQueue> Client::create_queue(const QueueRequest& request) const {
  abi::CreateQueueArgs args{};
  args.base.ring_base_address = request.ring;
  args.base.ring_size = request.ring_size;
  args.base.write_pointer_address = request.write_pointer;
  args.base.read_pointer_address = request.read_pointer;
  args.base.gpu_id = request.gpu_id;
  args.base.queue_type = static_cast<std::uint32_t>(request.type);
  args.base.queue_percentage = request.percentage;
  args.base.queue_priority = request.priority;
  args.base.eop_buffer_address = request.eop;
  args.base.eop_buffer_size = request.eop_size;
  args.base.ctx_save_restore_address = request.save_area;
  args.base.ctx_save_restore_size = request.save_area_size;
  args.base.ctl_stack_size = request.control_stack_size;
  args.sdma_engine_id = request.sdma_engine;
  TRY(call(abi::kCreateQueue, &args, "AMDKFD_IOC_CREATE_QUEUE"));
  return CreatedQueue{args.base.queue_id, args.base.doorbell_offset};
}

Status Client::destroy_queue(std::uint32_t id) const {
  kfd_ioctl_destroy_queue_args args{};
  args.queue_id = id;
  return call(AMDKFD_IOC_DESTROY_QUEUE, &args, "AMDKFD_IOC_DESTROY_QUEUE");
}

Status Client::update_queue(std::uint32_t id, std::uint64_t ring, std::uint32_t ring_size, std::uint32_t percentage,
                            std::uint32_t priority) const {
  kfd_ioctl_update_queue_args args{};
  args.queue_id = id;
  args.ring_base_address = ring;
  args.ring_size = ring_size;
  args.queue_percentage = percentage;
  args.queue_priority = priority;
  return call(AMDKFD_IOC_UPDATE_QUEUE, &args, "AMDKFD_IOC_UPDATE_QUEUE");
}

Status Client::set_cu_mask(std::uint32_t id, std::span<const std::uint32_t> mask) const {
  kfd_ioctl_set_cu_mask_args args{};
  args.queue_id = id;
  args.num_cu_mask = static_cast<std::uint32_t>(mask.size() * 32);
  args.cu_mask_ptr = user_pointer(mask.data());
  return call(AMDKFD_IOC_SET_CU_MASK, &args, "AMDKFD_IOC_SET_CU_MASK");
}

Result<WaveState> Client::wave_state(std::uint32_t id, std::uint64_t control_stack) const {
  kfd_ioctl_get_queue_wave_state_args args{};
  args.queue_id = id;
  args.ctl_stack_address = control_stack;
  TRY(call(AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &args, "AMDKFD_IOC_GET_QUEUE_WAVE_STATE"));
  return WaveState{args.ctl_stack_used_size, args.save_area_used_size};
}

Status Client::allocate_gws(std::uint32_t id, std::uint32_t count) const {
  kfd_ioctl_alloc_queue_gws_args args{};
  args.queue_id = id;
  args.num_gws = count;
  return call(AMDKFD_IOC_ALLOC_QUEUE_GWS, &args, "AMDKFD_IOC_ALLOC_QUEUE_GWS");
}

Result<CreatedEvent> Client::create_event(std::uint32_t type, bool auto_reset, std::uint64_t page) const {
  kfd_ioctl_create_event_args args{};
  args.event_page_offset = page;
  args.event_type = type;
  args.auto_reset = auto_reset ? 1 : 0;
  TRY(call(AMDKFD_IOC_CREATE_EVENT, &args, "AMDKFD_IOC_CREATE_EVENT"));
  return CreatedEvent{args.event_id, args.event_trigger_data, args.event_slot_index};
}

Status Client::destroy_event(std::uint32_t id) const {
  kfd_ioctl_destroy_event_args args{};
  args.event_id = id;
  return call(AMDKFD_IOC_DESTROY_EVENT, &args, "AMDKFD_IOC_DESTROY_EVENT");
}

Status Client::set_event(std::uint32_t id) const {
  kfd_ioctl_set_event_args args{};
  args.event_id = id;
  return call(AMDKFD_IOC_SET_EVENT, &args, "AMDKFD_IOC_SET_EVENT");
}

Status Client::reset_event(std::uint32_t id) const {
  kfd_ioctl_reset_event_args args{};
  args.event_id = id;
  return call(AMDKFD_IOC_RESET_EVENT, &args, "AMDKFD_IOC_RESET_EVENT");
}

Result<WaitResult> Client::wait_events(std::span<kfd_event_data> events, bool all, std::uint32_t limit_ms) const {
  kfd_ioctl_wait_events_args args{};
  args.events_ptr = user_pointer(events.data());
  args.num_events = static_cast<std::uint32_t>(events.size());
  args.wait_for_all = all ? 1 : 0;
  args.timeout = limit_ms;
  TRY(call(AMDKFD_IOC_WAIT_EVENTS, &args, "AMDKFD_IOC_WAIT_EVENTS"));
  return static_cast<WaitResult>(args.wait_result);
}

Result<UniqueFd> Client::smi_events(std::uint32_t gpu_id) const {
  kfd_ioctl_smi_events_args args{};
  args.gpuid = gpu_id;
  TRY(call(AMDKFD_IOC_SMI_EVENTS, &args, "AMDKFD_IOC_SMI_EVENTS"));
  return closed_on_exec(args.anon_fd);
}

// The attributes follow the arguments in the same buffer, whose size is part of the request.
Status Client::svm(std::uint32_t op, std::uint64_t address, std::uint64_t size,
                   std::span<kfd_ioctl_svm_attribute> attributes) const {
  const std::size_t bytes = sizeof(kfd_ioctl_svm_args) + attributes.size_bytes();
  std::vector<std::uint64_t> buffer((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  auto* const raw = reinterpret_cast<std::byte*>(buffer.data());
  kfd_ioctl_svm_args args{};
  args.start_addr = address;
  args.size = size;
  args.op = op;
  args.nattr = static_cast<std::uint32_t>(attributes.size());
  std::memcpy(raw, &args, sizeof(args));
  std::memcpy(raw + sizeof(args), attributes.data(), attributes.size_bytes());
  const unsigned long request =
      AMDKFD_IOC_SVM + (static_cast<unsigned long>(attributes.size_bytes()) << _IOC_SIZESHIFT);
  TRY(call(request, raw, "AMDKFD_IOC_SVM"));
  std::memcpy(attributes.data(), raw + sizeof(args), attributes.size_bytes());
  return {};
}

Status Client::svm_set(std::uint64_t address, std::uint64_t size,
                       std::span<const kfd_ioctl_svm_attribute> attributes) const {
  std::vector<kfd_ioctl_svm_attribute> copy(attributes.begin(), attributes.end());
  return svm(KFD_IOCTL_SVM_OP_SET_ATTR, address, size, copy);
}

Status Client::svm_get(std::uint64_t address, std::uint64_t size, std::span<kfd_ioctl_svm_attribute> attributes) const {
  return svm(KFD_IOCTL_SVM_OP_GET_ATTR, address, size, attributes);
}

Status Client::set_xnack(bool retry) const {
  kfd_ioctl_set_xnack_mode_args args{};
  args.xnack_enabled = retry ? 1 : 0;
  return call(AMDKFD_IOC_SET_XNACK_MODE, &args, "AMDKFD_IOC_SET_XNACK_MODE");
}

Result<bool> Client::xnack() const {
  kfd_ioctl_set_xnack_mode_args args{};
  args.xnack_enabled = -1;
  TRY(call(AMDKFD_IOC_SET_XNACK_MODE, &args, "AMDKFD_IOC_SET_XNACK_MODE"));
  return args.xnack_enabled != 0;
}

Status Client::enable_runtime() const {
  abi::RuntimeEnableArgs args{.r_debug = 0, .mode_mask = abi::kRuntimeModeEnable, .capabilities_mask = 0};
  return call(abi::kRuntimeEnable, &args, "AMDKFD_IOC_RUNTIME_ENABLE");
}

Status Client::set_trap_handler(std::uint32_t gpu_id, std::uint64_t code, std::uint64_t memory) const {
  kfd_ioctl_set_trap_handler_args args{};
  args.gpu_id = gpu_id;
  args.tba_addr = code;
  args.tma_addr = memory;
  return call(AMDKFD_IOC_SET_TRAP_HANDLER, &args, "AMDKFD_IOC_SET_TRAP_HANDLER");
}

Status Client::set_memory_policy(std::uint32_t gpu_id, const MemoryPolicy& policy) const {
  const auto word = [](bool coherent) -> std::uint32_t {
    return coherent ? KFD_IOC_CACHE_POLICY_COHERENT : KFD_IOC_CACHE_POLICY_NONCOHERENT;
  };
  kfd_ioctl_set_memory_policy_args args{};
  args.gpu_id = gpu_id;
  args.default_policy = word(policy.coherent);
  args.alternate_policy = word(policy.aperture_coherent);
  args.alternate_aperture_base = policy.base;
  args.alternate_aperture_size = policy.size;
  return call(AMDKFD_IOC_SET_MEMORY_POLICY, &args, "AMDKFD_IOC_SET_MEMORY_POLICY");
}

Status Client::set_scratch(std::uint32_t gpu_id, std::uint32_t address) const {
  kfd_ioctl_set_scratch_backing_va_args args{};
  args.gpu_id = gpu_id;
  args.va_addr = address;
  return call(AMDKFD_IOC_SET_SCRATCH_BACKING_VA, &args, "AMDKFD_IOC_SET_SCRATCH_BACKING_VA");
}

Status Client::debug_trap(abi::DebugTrapArgs& args) const {
  return call(abi::kDebugTrap, &args, "AMDKFD_IOC_DBG_TRAP");
}

}  // namespace kfd
