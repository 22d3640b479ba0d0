// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The DMA ring of a GPU through libdrm_amdgpu. Every wait has a limit; after a fence that did not come, the device is
// used no more.
#include "plugin/copy/sdma.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "base/mapping.h"
#include "base/os.h"
#include "plugin/copy/drm.h"
#include "plugin/copy/sdma_copier.h"

namespace plugin::copy {
namespace {

using base::Error;
using base::Result;
using base::Status;

constexpr timespec kFencePause{0, 50'000};
constexpr std::uint64_t kVaAlign = 2U << 20;        // lets the page tables use large entries
constexpr std::uint64_t kSmallVaAlign = 64U << 10;  // of BOs that are smaller: many share a page table
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kIbBytes = kIbDwords * sizeof(std::uint32_t);
constexpr std::uint32_t kRing = 0;

class Device {
 public:
  Device() = default;
  explicit Device(amdgpu_device_handle handle) : handle_(handle) {}
  Device(Device&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Device& operator=(Device&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Device() {
    if (handle_ != nullptr) drm_release(amdgpu_device_deinitialize, handle_);
  }
  [[nodiscard]] amdgpu_device_handle get() const { return handle_; }

 private:
  amdgpu_device_handle handle_ = nullptr;
};

// A BO with a GPU address in the copier's own VM.
class MappedBo final : public GpuMemory {
 public:
  MappedBo() = default;
  MappedBo(MappedBo&& other) noexcept { swap(other); }
  MappedBo& operator=(MappedBo&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedBo() override {
    if (cpu_ != nullptr) drm_release(amdgpu_bo_cpu_unmap, bo_);
    if (mapped_) drm_release(amdgpu_bo_va_op, bo_, 0, size_, va_, 0, AMDGPU_VA_OP_UNMAP);
    if (range_ != nullptr) drm_release(amdgpu_va_range_free, range_);
    if (bo_ != nullptr) drm_release(amdgpu_bo_free, bo_);
  }

  static Result<MappedBo> import(const Device& device, int dmabuf, std::uint64_t size) {
    amdgpu_bo_import_result imported{};
    TRY(drm_call("importing a BO", amdgpu_bo_import, device.get(), amdgpu_bo_handle_type_dma_buf_fd,
                 static_cast<std::uint32_t>(dmabuf), &imported));
    MappedBo result;
    result.bo_ = imported.buf_handle;
    if (imported.alloc_size < size) return Error(EINVAL, "importing a BO: smaller than KFD says");
    TRY(result.map(device, size));
    return result;
  }

  // Ordinary memory that the GPU may reach as well. A mapping of a GTT BO would do for memcpy, but the kernel refuses
  // to do direct or zero-copy I/O on one (EFAULT).
  static Result<MappedBo> staging(const Device& device, std::uint64_t size) {
    MappedBo result;
    ASSIGN_OR_RETURN(result.memory_, base::Mapping::anonymous(size, "allocating a staging buffer"));
    std::memset(result.memory_.data(), 0, size);  // there before it is pinned
    TRY(drm_call("giving a staging buffer to the GPU", amdgpu_create_bo_from_user_mem, device.get(),
                 result.memory_.data(), size, &result.bo_));
    TRY(result.map(device, size));
    return result;
  }

  static Result<MappedBo> commands(const Device& device, std::uint64_t size) {
    amdgpu_bo_alloc_request request{};
    request.alloc_size = size;
    request.phys_alignment = kPage;
    request.preferred_heap = AMDGPU_GEM_DOMAIN_GTT;
    MappedBo result;
    TRY(drm_call("allocating an indirect buffer", amdgpu_bo_alloc, device.get(), &request, &result.bo_));
    TRY(drm_call("mapping an indirect buffer", amdgpu_bo_cpu_map, result.bo_, &result.cpu_));
    TRY(result.map(device, size));
    return result;
  }

  [[nodiscard]] amdgpu_bo_handle bo() const { return bo_; }
  [[nodiscard]] std::uint64_t va() const override { return va_; }
  [[nodiscard]] std::span<std::byte> bytes() const {
    if (cpu_ == nullptr) return memory_.bytes();
    return {static_cast<std::byte*>(cpu_), size_};
  }

 private:
  Status map(const Device& device, std::uint64_t size) {
    const std::uint64_t rounded = (size + kPage - 1) / kPage * kPage;
    TRY(drm_call("reserving a GPU address", amdgpu_va_range_alloc, device.get(), amdgpu_gpu_va_range_general, rounded,
                 rounded < kVaAlign ? kSmallVaAlign : kVaAlign, 0, &va_, &range_, 0));
    TRY(drm_call("mapping a BO to the GPU", amdgpu_bo_va_op, bo_, 0, rounded, va_, 0, AMDGPU_VA_OP_MAP));
    size_ = rounded;
    mapped_ = true;
    return {};
  }
  void swap(MappedBo& other) {
    std::swap(bo_, other.bo_);
    std::swap(range_, other.range_);
    std::swap(va_, other.va_);
    std::swap(size_, other.size_);
    std::swap(cpu_, other.cpu_);
    std::swap(memory_, other.memory_);
    std::swap(mapped_, other.mapped_);
  }

  amdgpu_bo_handle bo_ = nullptr;
  amdgpu_va_handle range_ = nullptr;
  std::uint64_t va_ = 0;
  std::uint64_t size_ = 0;
  void* cpu_ = nullptr;
  base::Mapping memory_;
  bool mapped_ = false;
};

class Context {
 public:
  Context() = default;
  explicit Context(amdgpu_context_handle handle) : handle_(handle) {}
  Context(Context&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Context& operator=(Context&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Context() {
    if (handle_ != nullptr) drm_release(amdgpu_cs_ctx_free, handle_);
  }
  [[nodiscard]] amdgpu_context_handle get() const { return handle_; }

 private:
  amdgpu_context_handle handle_ = nullptr;
};

class BoList {
 public:
  BoList() = default;
  explicit BoList(amdgpu_bo_list_handle handle) : handle_(handle) {}
  BoList(const BoList&) = delete;
  BoList& operator=(const BoList&) = delete;
  BoList(BoList&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~BoList() {
    if (handle_ != nullptr) drm_release(amdgpu_bo_list_destroy, handle_);
  }
  [[nodiscard]] amdgpu_bo_list_handle get() const { return handle_; }

 private:
  amdgpu_bo_list_handle handle_ = nullptr;
};

// A staging buffer, the IB that copies to or from it, and the submission under way.
struct RingSlot {
  MappedBo buffer;
  MappedBo ib;
  std::optional<std::uint64_t> fence;
};

class DrmEngine final : public SdmaEngine {
 public:
  DrmEngine(Device device, Context context, std::array<RingSlot, kSlots> slots, std::chrono::seconds timeout)
      : device_(std::move(device)), slots_(std::move(slots)), context_(std::move(context)), timeout_(timeout) {}

  Result<std::unique_ptr<GpuMemory>> import(int dmabuf, std::uint64_t size) override {
    ASSIGN_OR_RETURN(MappedBo bo, MappedBo::import(device_, dmabuf, size));
    return std::unique_ptr<GpuMemory>(std::make_unique<MappedBo>(std::move(bo)));
  }

  [[nodiscard]] std::span<std::byte> staging(std::size_t slot) const override { return slots_[slot].buffer.bytes(); }
  [[nodiscard]] std::uint64_t staging_va(std::size_t slot) const override { return slots_[slot].buffer.va(); }
  [[nodiscard]] bool hung() const override { return hung_; }

  Status submit(std::size_t index, packets::WordView words, std::span<const GpuMemory* const> bos) override {
    RingSlot& slot = slots_[index];
    ASSIGN_OR_RETURN(const BoList list, make_list(slot, bos));
    std::memcpy(slot.ib.bytes().data(), words.data(), words.size_bytes());
    amdgpu_cs_ib_info ib{};
    ib.ib_mc_address = slot.ib.va();
    ib.size = static_cast<std::uint32_t>(words.size());
    amdgpu_cs_request request{};
    request.ip_type = AMDGPU_HW_IP_DMA;
    request.ring = kRing;
    request.resources = list.get();
    request.number_of_ibs = 1;
    request.ibs = &ib;
    TRY(drm_call("submitting a copy to SDMA", amdgpu_cs_submit, context_.get(), 0, &request, 1));
    slot.fence = request.seq_no;
    return {};
  }

  // After a hang there is nothing to wait for: the kernel keeps the BOs for as long as the ring may use them.
  Status wait(std::size_t index) override {
    RingSlot& slot = slots_[index];
    if (hung_) slot.fence.reset();
    if (!slot.fence) return {};
    amdgpu_cs_fence fence{};
    fence.context = context_.get();
    fence.ip_type = AMDGPU_HW_IP_DMA;
    fence.ring = kRing;
    fence.fence = *slot.fence;
    slot.fence.reset();
    std::uint32_t expired = 0;
    // A timeout of 0 makes the kernel answer without waiting, and we ask again: the kernel takes deadlines by the
    // host's clock, but CRIU restores a task in a time namespace, whose clock differs.
    const auto deadline = std::chrono::steady_clock::now() + timeout_;
    Status status;
    while ((status = drm_call("waiting for SDMA", amdgpu_cs_query_fence_status, &fence, 0,
                              AMDGPU_QUERY_FENCE_TIMEOUT_IS_ABSOLUTE, &expired))
               .ok() &&
           expired == 0 && std::chrono::steady_clock::now() < deadline)
      (void)os::nanosleep(&kFencePause);
    if (!status.ok() || expired == 0) hung_ = true;
    TRY(std::move(status));
    if (expired == 0)
      return Error(ETIMEDOUT, "SDMA did not finish a copy in " + std::to_string(timeout_.count()) +
                                  " s; see the kernel log for a hung ring");
    return {};
  }

 private:
  Result<BoList> make_list(const RingSlot& slot, std::span<const GpuMemory* const> bos) {
    std::vector<amdgpu_bo_handle> handles = {slot.buffer.bo(), slot.ib.bo()};
    for (const GpuMemory* bo : bos) handles.push_back(static_cast<const MappedBo*>(bo)->bo());
    amdgpu_bo_list_handle list = nullptr;
    TRY(drm_call("making a list of BOs", amdgpu_bo_list_create, device_.get(),
                 static_cast<std::uint32_t>(handles.size()), handles.data(), nullptr, &list));
    return BoList(list);
  }

  Device device_;
  std::array<RingSlot, kSlots> slots_;
  Context context_;
  std::chrono::seconds timeout_;
  bool hung_ = false;
};

Result<const packets::sdma::Format*> check_ring(const Device& device) {
  amdgpu_gpu_info info{};
  TRY(drm_call("asking for the GPU's family", amdgpu_query_gpu_info, device.get(), &info));
  if (info.family_id < AMDGPU_FAMILY_CI) return Error(ENOTSUP, "SDMA packets of GPUs before gfx7 are not implemented");
  drm_amdgpu_info_hw_ip ip{};
  TRY(drm_call("asking for the DMA rings", amdgpu_query_hw_ip_info, device.get(), AMDGPU_HW_IP_DMA, 0, &ip));
  if ((ip.available_rings & 1U) == 0) return Error(ENODEV, "the GPU has no DMA ring");
  return &packets::sdma::format_of_family(info.family_id);
}

}  // namespace

Result<std::unique_ptr<Copier>> make_sdma_copier(int render_fd, std::chrono::seconds fence_timeout) {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  amdgpu_device_handle handle = nullptr;
  TRY(drm_call("amdgpu_device_initialize", amdgpu_device_initialize, render_fd, &major, &minor, &handle));
  Device device(handle);
  ASSIGN_OR_RETURN(const packets::sdma::Format* format, check_ring(device));

  std::array<RingSlot, kSlots> slots;
  for (RingSlot& slot : slots) {
    ASSIGN_OR_RETURN(slot.buffer, MappedBo::staging(device, kSliceSize));
    ASSIGN_OR_RETURN(slot.ib, MappedBo::commands(device, kIbBytes));
  }
  amdgpu_context_handle context = nullptr;
  TRY(drm_call("making a GPU context", amdgpu_cs_ctx_create, device.get(), &context));
  return make_sdma_copier(
      std::make_unique<DrmEngine>(std::move(device), Context(context), std::move(slots), fence_timeout), *format);
}

}  // namespace plugin::copy
