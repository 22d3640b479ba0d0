// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One function per group of sources.
#include "vasicd/blocks/ih_encode.h"

#include "vasicd/mem/page_walker.h"

namespace vasicd {
namespace {

namespace ih = packets::ih;

constexpr std::uint32_t kGc943 = VASIC_IP_VERSION(9u, 4u, 3u);
constexpr std::uint32_t kSdmaOfArcturus = VASIC_IP_VERSION(4u, 2u, 2u);
constexpr std::uint32_t kSdma52 = VASIC_IP_VERSION(5u, 2u, 0u);
constexpr std::uint32_t kSdma60 = VASIC_IP_VERSION(6u, 0u, 0u);
constexpr unsigned kFirstSdmaOfMmhub1 = 5;  // as Arcturus has it in sdma_v4_0.c
constexpr unsigned kVmidOfMmhub = 1;
constexpr unsigned kHighPageShift = 32;

std::uint8_t ring_of_fault(FaultKind kind, unsigned client) {
  std::uint32_t ring = ih::kFaultRingClient.put(client);
  if (kind == FaultKind::kNotReadable) {
    ring |= ih::kFaultRingNotReadable.mask();
  } else if (kind == FaultKind::kNotWritable) {
    ring |= ih::kFaultRingNotWritable.mask();
  } else {
    ring |= ih::kFaultRingNotPresent.mask();
  }
  return static_cast<std::uint8_t>(ring);
}

}  // namespace

bool IhEncoder::has_nodes() const { return info_.gc_ip == kGc943; }

std::uint8_t IhEncoder::xcc_node(unsigned xcc) const { return has_nodes() ? ih::xcc_node_id(xcc) : 0; }

std::uint8_t IhEncoder::sdma_client(unsigned instance) const {
  if (has_nodes() && info_.sdma_per_aid != 0) instance %= info_.sdma_per_aid;
  if (instance == 3 && info_.sdma_ip >= kSdma52 && info_.sdma_ip < kSdma60) return ih::kSdma3ClientGfx103;
  return ih::kSdmaClients[instance % ih::kSdmaClients.size()];
}

void IhEncoder::set_sdma(unsigned instance, unsigned queue, Entry* entry) const {
  switch (info_.ih_format) {
    case VASIC_IH_CIK:
      entry->ring_id = static_cast<std::uint8_t>(ih::kCikSdmaInstance.put(instance) | ih::kCikSdmaQueue.put(queue));
      break;
    case VASIC_IH_SOC21:
      entry->client_id = ih::kClientGfxSoc21;
      entry->ring_id = static_cast<std::uint8_t>(ih::kSoc21SdmaInstance.put(instance) | ih::kSoc21SdmaQueue.put(queue));
      break;
    default:
      entry->client_id = sdma_client(instance);
      entry->ring_id = static_cast<std::uint8_t>(queue);
      if (has_nodes() && info_.sdma_per_aid != 0) entry->node_id = ih::aid_node_id(instance / info_.sdma_per_aid);
      break;
  }
}

void IhEncoder::set_sq(std::uint32_t encoding, std::uint32_t value, Entry* entry) const {
  const bool is_error = encoding == ih::kSqEncodingError;
  if (info_.gfx_level < 9) {
    entry->data[0] = ih::kSqEncodingGfx9.put(encoding) | ih::kSqDataCik.put(is_error ? 0 : value);
    return;
  }
  if (info_.gfx_level == 9) {
    entry->data[0] = ih::kSqEncodingGfx9.put(encoding);
    if (is_error) {
      entry->data[1] = ih::kSqErrorTypeGfx9.put(value);
    } else {
      entry->data[0] |= ih::kSqDataLowGfx9.put(value) | ih::kSqDataMiddleGfx9.put(value >> ih::kSqDataLowGfx9.width);
      entry->data[1] = ih::kSqDataHighGfx9.put(value >> (ih::kSqDataLowGfx9.width + ih::kSqDataMiddleGfx9.width));
    }
    return;
  }
  const bool is_gfx10 = info_.gfx_level == 10;
  const auto error_type = is_gfx10 ? ih::kSqErrorTypeGfx10 : ih::kSqErrorTypeGfx11;
  const auto data = is_gfx10 ? ih::kSqDataGfx10 : ih::kSqDataGfx11;
  entry->data[0] = is_error ? error_type.put(value) : data.put(value);
  entry->data[1] = ih::kSqEncodingGfx10.put(encoding);
}

// Marks a message as that of a trap handler.
void IhEncoder::set_sq_privileged(Entry* entry) const {
  const auto field = info_.gfx_level == 9    ? ih::kSqPrivilegedGfx9
                     : info_.gfx_level == 10 ? ih::kSqPrivilegedGfx10
                                             : ih::kSqPrivilegedGfx11;
  entry->data[0] |= field.put(1);
}

packets::ih::Entry IhEncoder::entry(const Interrupt& interrupt) const {
  const bool is_cik = info_.ih_format == VASIC_IH_CIK;
  const bool is_soc21 = info_.ih_format == VASIC_IH_SOC21;
  Entry entry{.client_id = is_cik ? ih::kClientIh : ih::kClientGrbmCp,
              .ring_id = interrupt.ring_id,
              .vmid = interrupt.vmid,
              .node_id = xcc_node(interrupt.xcc),
              .data = {interrupt.data[0], interrupt.data[1], interrupt.data[2], interrupt.data[3]}};
  switch (interrupt.kind) {
    case InterruptKind::kCpEndOfPipe:
      entry.source_id = ih::kSourceCpEndOfPipe;
      break;
    case InterruptKind::kCpBadOpcode:
      entry.source_id = ih::kSourceCpBadOpcode;
      entry.data = {ih::bad_opcode_context(interrupt.data[0], interrupt.data[1])};
      break;
    case InterruptKind::kCpPrivilegedRegister:
      entry.source_id = ih::kSourceCpPrivilegedRegister;
      break;
    case InterruptKind::kCpPrivilegedInstruction:
      entry.source_id = ih::kSourceCpPrivilegedInstruction;
      break;
    case InterruptKind::kSqMessage:
    case InterruptKind::kSqError:
    case InterruptKind::kSqTrap:
      if (!is_cik) entry.client_id = is_soc21 ? ih::kClientGfxSoc21 : ih::kClientSe0Sh;
      entry.source_id = ih::kSourceSqInterrupt;
      entry.data = {};
      if (interrupt.kind == InterruptKind::kSqTrap) {
        set_sq(ih::kSqEncodingWave, ih::trap_message(interrupt.data[0], interrupt.data[1]), &entry);
        set_sq_privileged(&entry);
        break;
      }
      set_sq(interrupt.kind == InterruptKind::kSqError ? ih::kSqEncodingError : ih::kSqEncodingWave, interrupt.data[0],
             &entry);
      break;
    case InterruptKind::kSdmaTrap:
      entry.source_id = is_soc21 ? ih::kSourceSdmaTrapSoc21 : ih::kSourceSdmaTrap;
      set_sdma(interrupt.instance, interrupt.ring_id, &entry);
      break;
    case InterruptKind::kSdmaPrivilegedRegister:
      entry.source_id = is_soc21 ? ih::kSourceSdmaSrbmWriteSoc21 : ih::kSourceSdmaSrbmWrite;
      set_sdma(interrupt.instance, interrupt.ring_id, &entry);
      break;
  }
  return entry;
}

// The hub: SDMA goes through the MMHUB up to gfx9, through the GFXHUB later (sdma_v*.c: ring->vm_hub).
void IhEncoder::set_fault_client(const FaultClient& client, Entry* entry) const {
  if (client.unit == FaultClient::Unit::kSdma && info_.gfx_level == 9) {
    const bool is_mmhub1 = info_.sdma_ip == kSdmaOfArcturus && client.instance >= kFirstSdmaOfMmhub1;
    entry->client_id = is_mmhub1 ? ih::kClientVmc1 : ih::kClientVmc;
    entry->vmid_type = kVmidOfMmhub;
    if (has_nodes() && info_.sdma_per_aid != 0) entry->node_id = ih::aid_node_id(client.instance / info_.sdma_per_aid);
    return;
  }
  entry->client_id = info_.ih_format == VASIC_IH_SOC21 ? ih::kClientGfxSoc21 : ih::kClientUtcl2;
  entry->node_id = xcc_node(client.xcc);
}

void IhEncoder::set_cik_fault(const MemoryFault& fault, Entry* entry) const {
  const bool is_protection = fault.kind == FaultKind::kNotReadable || fault.kind == FaultKind::kNotWritable;
  std::uint32_t protections = ih::kCikNotPresent;
  if (fault.kind == FaultKind::kNotReadable) protections = ih::kCikNotReadable;
  if (fault.kind == FaultKind::kNotWritable) protections = ih::kCikNotWritable;
  entry->source_id = is_protection ? ih::kSourceProtectionCik : ih::kSourcePageInvalidCik;
  entry->data = {static_cast<std::uint32_t>((fault.va & kVaMask) >> kGpuPageShift),
                 ih::kCikFaultProtections.put(protections) |
                     ih::kCikFaultWrite.put(fault.access == Access::kWrite ? 1 : 0) |
                     ih::kCikFaultVmid.put(fault.vmid)};
}

packets::ih::Entry IhEncoder::entry(const MemoryFault& fault, const FaultClient& client) const {
  Entry entry{.vmid = static_cast<std::uint8_t>(fault.vmid)};
  if (info_.ih_format == VASIC_IH_CIK) {
    set_cik_fault(fault, &entry);
    return entry;
  }
  entry.source_id = ih::kSourceVmFault;
  entry.ring_id = ring_of_fault(fault.kind, client.unit == FaultClient::Unit::kSdma ? client.instance : 0);
  set_fault_client(client, &entry);
  const std::uint64_t page = (fault.va & kVaMask) >> kGpuPageShift;
  entry.data = {static_cast<std::uint32_t>(page),
                ih::kFaultHighPage.put(static_cast<std::uint32_t>(page >> kHighPageShift)) |
                    ih::kFaultWrite.put(fault.access == Access::kWrite ? 1 : 0) |
                    ih::kFaultRetry.put(fault.retry ? 1 : 0)};
  return entry;
}

}  // namespace vasicd
