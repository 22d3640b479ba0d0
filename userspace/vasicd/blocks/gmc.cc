// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Registers and VMIDs.
#include "vasicd/blocks/gmc.h"

#include <algorithm>
#include <cinttypes>

#include "vasicd/context/trace.h"

namespace vasicd {
namespace {

constexpr std::uint32_t kPasidMask = 0xffff;

const char* name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kNotPresent:
      return "not-present";
    case FaultKind::kNotReadable:
      return "not-readable";
    case FaultKind::kNotWritable:
      return "not-writable";
    case FaultKind::kBadTable:
      return "bad-table";
    case FaultKind::kRefused:
      return "refused";
  }
  return "unknown";
}

}  // namespace

bool Gmc::write(std::uint32_t index, std::uint32_t value) {
  if (index == VASIC_REG_TLB_INVALIDATE) {
    memory_.invalidate(value);
    return true;
  }
  if (index >= VASIC_REG_VM_PD_LO(0) && index < VASIC_REG_VM_PD_LO(VASIC_MAX_VMID)) {
    const std::uint32_t vmid = (index - VASIC_REG_VM_PD_LO(0)) / 2;
    std::uint64_t& pd = vmids_[vmid].pd;
    const unsigned shift = index == VASIC_REG_VM_PD_HI(vmid) ? 32 : 0;
    pd = (pd & ~(std::uint64_t{0xffffffff} << shift)) | std::uint64_t{value} << shift;
    memory_.set_page_directory(vmid, pd);
    return true;
  }
  if (index >= VASIC_REG_VM_PASID(0) && index < VASIC_REG_VM_PASID(VASIC_MAX_VMID)) {
    vmids_[index - VASIC_REG_VM_PASID(0)].pasid = value & kPasidMask;
    return true;
  }
  tracef(trace_, "gmc: bad register index=0x%x value=0x%x", index, value);
  return false;
}

void Gmc::bind_vmid(unsigned vmid, std::uint64_t pd, std::uint32_t pasid) {
  if (vmid >= vmids_.size()) return;
  vmids_[vmid] = {.pd = pd, .pasid = pasid & kPasidMask};
  memory_.set_page_directory(vmid, pd);
  tracef(trace_, "gmc: bind vmid=%u pd=0x%" PRIx64 " pasid=%u", vmid, pd, pasid & kPasidMask);
}

void Gmc::unbind_vmid(unsigned vmid) {
  if (vmid >= vmids_.size()) return;
  vmids_[vmid] = {};
  memory_.set_page_directory(vmid, 0);
  tracef(trace_, "gmc: unbind vmid=%u", vmid);
}

std::uint32_t Gmc::pasid(unsigned vmid) const { return vmid < vmids_.size() ? vmids_[vmid].pasid : 0; }

void Gmc::set_retry(unsigned vmid, bool retry) { memory_.set_retry(vmid, retry && can_retry_); }

bool Gmc::report_fault(const MemoryFault& fault, std::uint64_t now_ns) {
  if (fault.retry) {
    const GpuAddr page = (fault.va & kVaMask) >> kGpuPageShift;
    const auto known = std::ranges::find_if(
        retried_, [&](const Retried& each) { return each.vmid == fault.vmid && each.page == page; });
    if (known != retried_.end() && now_ns - known->reported_ns < kRetryNs) return false;
    Retried& slot = known != retried_.end() ? *known : retried_[next_retried_++ % kRetried];
    slot = {.vmid = fault.vmid, .page = page, .reported_ns = now_ns};
  }
  tracef(trace_, "gmc: fault vmid=%u va=0x%" PRIx64 " access=%s kind=%s%s", fault.vmid, fault.va,
         fault.access == Access::kWrite ? "write" : "read", name(fault.kind), fault.retry ? " retry" : "");
  return true;
}

void Gmc::reset() {
  vmids_ = {};
  retried_ = {};
  memory_.reset();
}

}  // namespace vasicd
