// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Writes the immediates that LLVM's notation has names for.
#include <array>
#include <bit>

#include "gcn/text/printer.h"

namespace gcn {
namespace {

constexpr std::uint32_t bits(std::uint32_t word, unsigned low, unsigned count) {
  return word >> low & ((1u << count) - 1);
}

std::string call(std::string_view name, std::initializer_list<std::string> arguments) {
  std::string text(name);
  text += '(';
  std::string_view separator;
  for (const std::string& argument : arguments) {
    text += separator;
    text += argument;
    separator = ", ";
  }
  return text + ')';
}

constexpr std::array<std::string_view, 20> kHardwareRegisters = {"",
                                                                 "HW_REG_MODE",
                                                                 "HW_REG_STATUS",
                                                                 "HW_REG_TRAPSTS",
                                                                 "HW_REG_HW_ID",
                                                                 "HW_REG_GPR_ALLOC",
                                                                 "HW_REG_LDS_ALLOC",
                                                                 "HW_REG_IB_STS",
                                                                 "",
                                                                 "",
                                                                 "",
                                                                 "",
                                                                 "",
                                                                 "",
                                                                 "",
                                                                 "HW_REG_SH_MEM_BASES",
                                                                 "HW_REG_TBA_LO",
                                                                 "HW_REG_TBA_HI",
                                                                 "HW_REG_TMA_LO",
                                                                 "HW_REG_TMA_HI"};

constexpr std::array<std::string_view, 16> kMessages = {"",
                                                        "MSG_INTERRUPT",
                                                        "MSG_GS",
                                                        "MSG_GS_DONE",
                                                        "MSG_SAVEWAVE",
                                                        "MSG_STALL_WAVE_GEN",
                                                        "MSG_HALT_WAVES",
                                                        "MSG_ORDERED_PS_DONE",
                                                        "MSG_EARLY_PRIM_DEALLOC",
                                                        "MSG_GS_ALLOC_REQ",
                                                        "MSG_GET_DOORBELL",
                                                        "",
                                                        "",
                                                        "",
                                                        "",
                                                        "MSG_SYSMSG"};
constexpr std::uint32_t kGs = 2;
constexpr std::uint32_t kGsDone = 3;
constexpr std::uint32_t kSysmsg = 15;
constexpr std::array<std::string_view, 4> kGsOps = {"GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"};
constexpr std::array<std::string_view, 5> kSysmsgOps = {"", "SYSMSG_OP_ECC_ERR_INTERRUPT", "SYSMSG_OP_REG_RD",
                                                        "SYSMSG_OP_HOST_TRAP_ACK", "SYSMSG_OP_TTRACE_PC"};

// An empty name means that the message has no operation with this number.
std::string_view message_operation(std::uint32_t id, std::uint32_t operation) {
  if (id == kSysmsg) return operation < kSysmsgOps.size() ? kSysmsgOps[operation] : "";
  if (operation >= kGsOps.size() || (id == kGs && operation == 0)) return "";
  return kGsOps[operation];
}

std::string quad_permutation(std::uint32_t lanes, std::string_view separator) {
  std::string text;
  for (unsigned i = 0; i < 4; ++i) {
    if (i != 0) text += separator;
    text += std::to_string(bits(lanes, 2 * i, 2));
  }
  return text;
}

// Writes what happens to each bit of the lane's number, the highest first: set to 0, set to 1, preserved or inverted.
std::string lane_bits(std::uint32_t and_mask, std::uint32_t or_mask, std::uint32_t xor_mask) {
  std::string text;
  for (std::uint32_t bit = 16; bit != 0; bit /= 2) {
    const bool of_0 = ((or_mask ^ xor_mask) & bit) != 0;
    const bool of_1 = (((and_mask | or_mask) ^ xor_mask) & bit) != 0;
    if (of_0 == of_1) {
      text += of_0 ? '1' : '0';
    } else {
      text += of_1 ? 'p' : 'i';
    }
  }
  return text;
}

std::string bit_swizzle(std::uint32_t offset) {
  const std::uint32_t and_mask = bits(offset, 0, 5);
  const std::uint32_t or_mask = bits(offset, 5, 5);
  const std::uint32_t xor_mask = bits(offset, 10, 5);
  const std::uint32_t group = 32 - and_mask;
  if (and_mask == 31 && or_mask == 0 && std::has_single_bit(xor_mask)) return "SWAP," + std::to_string(xor_mask);
  if (and_mask == 31 && or_mask == 0 && xor_mask != 0 && std::has_single_bit(xor_mask + 1)) {
    return "REVERSE," + std::to_string(xor_mask + 1);
  }
  if (group > 1 && std::has_single_bit(group) && or_mask < group && xor_mask == 0) {
    return "BROADCAST," + std::to_string(group) + "," + std::to_string(or_mask);
  }
  return "BITMASK_PERM,\"" + lane_bits(and_mask, or_mask, xor_mask) + "\"";
}

}  // namespace

std::string small_or_hexadecimal(std::uint32_t value) {
  return value <= 64 ? std::to_string(value) : hexadecimal(value);
}

std::string hardware_register(std::uint32_t simm16) {
  const std::uint32_t id = bits(simm16, 0, 6);
  const std::uint32_t offset = bits(simm16, 6, 5);
  const std::uint32_t size = bits(simm16, 11, 5) + 1;
  const bool known = id < kHardwareRegisters.size() && !kHardwareRegisters[id].empty();
  const std::string name = known ? std::string(kHardwareRegisters[id]) : std::to_string(id);
  if (offset == 0 && size == 32) return call("hwreg", {name});
  return call("hwreg", {name, std::to_string(offset), std::to_string(size)});
}

std::string wait_counts(std::uint32_t simm16) {
  const std::uint32_t vector = bits(simm16, 0, 4) | bits(simm16, 14, 2) << 4;
  const std::uint32_t exports = bits(simm16, 4, 3);
  const std::uint32_t scalar = bits(simm16, 8, 4);
  // Counters that the instruction does not wait for are left out, unless it waits for none.
  const bool all = vector == 63 && exports == 7 && scalar == 15;
  std::string text;
  const auto count = [&](bool waits, std::string_view name, std::uint32_t value) {
    if (!waits && !all) return;
    if (!text.empty()) text += ' ';
    text += call(name, {std::to_string(value)});
  };
  count(vector != 63, "vmcnt", vector);
  count(exports != 7, "expcnt", exports);
  count(scalar != 15, "lgkmcnt", scalar);
  return text;
}

std::string message(std::uint32_t simm16) {
  const std::uint32_t id = bits(simm16, 0, 4);
  const std::uint32_t operation = bits(simm16, 4, 3);
  const std::uint32_t stream = bits(simm16, 8, 2);
  const bool has_operation = id == kGs || id == kGsDone || id == kSysmsg;
  const bool has_stream = (id == kGs || id == kGsDone) && operation != 0;
  const std::string_view name = message_operation(id, operation);
  if (!kMessages[id].empty() && (has_operation ? !name.empty() : operation == 0) && (has_stream || stream == 0)) {
    if (!has_operation) return call("sendmsg", {std::string(kMessages[id])});
    if (!has_stream) return call("sendmsg", {std::string(kMessages[id]), std::string(name)});
    return call("sendmsg", {std::string(kMessages[id]), std::string(name), std::to_string(stream)});
  }
  if ((id | operation << 4 | stream << 8) != simm16) return std::to_string(simm16);
  return call("sendmsg", {std::to_string(id), std::to_string(operation), std::to_string(stream)});
}

std::string index_mode(std::uint32_t mask) {
  constexpr std::array<std::string_view, 4> kNames = {"SRC0", "SRC1", "SRC2", "DST"};
  if (mask > 15) return hexadecimal(mask);
  std::string text;
  for (unsigned i = 0; i < kNames.size(); ++i) {
    if (bits(mask, i, 1) == 0) continue;
    if (!text.empty()) text += ',';
    text += kNames[i];
  }
  return call("gpr_idx", {text});
}

std::string swizzle(std::uint32_t offset) {
  if (bits(offset, 8, 8) == 0x80) return "swizzle(QUAD_PERM," + quad_permutation(offset, ",") + ")";
  if (bits(offset, 15, 1) == 0) return "swizzle(" + bit_swizzle(offset) + ")";
  return std::to_string(offset);
}

std::string dpp_control(std::uint32_t control) {
  if (control < 0x100) return "quad_perm:[" + quad_permutation(control, ",") + "]";
  const std::string amount = std::to_string(bits(control, 0, 4));
  switch (control >> 4) {
    case 0x10:
      return "row_shl:" + amount;
    case 0x11:
      return "row_shr:" + amount;
    case 0x12:
      return "row_ror:" + amount;
    case 0x15:
      return "row_newbcast:" + amount;
    default:
      break;
  }
  switch (control) {
    case 0x130:
      return "wave_shl:1";
    case 0x134:
      return "wave_rol:1";
    case 0x138:
      return "wave_shr:1";
    case 0x13c:
      return "wave_ror:1";
    case 0x140:
      return "row_mirror";
    case 0x141:
      return "row_half_mirror";
    case 0x142:
      return "row_bcast:15";
    case 0x143:
      return "row_bcast:31";
    default:
      return hexadecimal(control);
  }
}

}  // namespace gcn
