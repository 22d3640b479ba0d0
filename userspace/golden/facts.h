// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the kernel's headers say, as scripts/kernel_facts.py prints it. A fact that is not there fails the test that
// asks for it: our constants name facts of the kernel, or they are wrong. Compares nothing by itself.
#pragma once

#include <cstdint>
#include <string>

#include "packets/words.h"

namespace golden {

// Where a member or a packet's field is.
struct Place {
  std::size_t dword = 0;
  packets::Field field{0, 32};  // inside its dword
};

// Reads the table; one line for the user if that fails. Called once, by main.
std::string load_facts(const std::string& path);

// An enumerator or macro: "vm/AMDGPU_PTE_VALID".
std::uint64_t value(const std::string& name);
// A struct's bytes: "v9/v9_mqd".
std::uint64_t size_of(const std::string& name);
// A member of a struct: "pm4_ai/pm4_mes_runlist.bitfields4.ib_size".
Place member(const std::string& name);
// Its dword index, when it is a whole dword or begins one: "v9/v9_mqd.cp_hqd_vmid".
std::size_t dword(const std::string& name);
// A register's field, by its __SHIFT and _MASK: "gc9/CP_HQD_PQ_CONTROL__QUEUE_SIZE".
packets::Field register_field(const std::string& name);
// A field of an SDMA packet, by its _offset, _mask and _shift: "sdma4/SDMA_PKT_FENCE_DATA_data".
Place sdma_field(const std::string& name);

// For EXPECT_EQ.
std::string text(packets::Field field);

// The value of `place` in an encoded packet; fails the test if the packet is too short.
std::uint32_t get(packets::WordView packet, const Place& place);

}  // namespace golden
