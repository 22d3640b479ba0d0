// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One function per chip; a chip that resembles an earlier one starts from it.
#include "vasicd/chip_table.h"

#include <array>
#include <cstdint>

namespace vasicd {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// enum amd_asic_type
constexpr std::uint32_t kAsicHawaii = 8;
constexpr std::uint32_t kAsicFiji = 12;
constexpr std::uint32_t kAsicVega10 = 19;
constexpr std::uint32_t kAsicVega20 = 21;
constexpr std::uint32_t kAsicArcturus = 23;
constexpr std::uint32_t kAsicAldebaran = 25;
constexpr std::uint32_t kAsicNavi10 = 26;
constexpr std::uint32_t kAsicSiennaCichlid = 30;
constexpr std::uint32_t kAsicIpDiscovery = 36;
// AMDGPU_FAMILY_*
constexpr std::uint32_t kFamilyCi = 120;
constexpr std::uint32_t kFamilyVi = 130;
constexpr std::uint32_t kFamilyAi = 141;
constexpr std::uint32_t kFamilyNv = 143;
constexpr std::uint32_t kFamilyGc11 = 145;
constexpr std::uint32_t kFamilyGc12 = 152;
// AMDGPU_VRAM_TYPE_*
constexpr std::uint32_t kVramGddr5 = 5;
constexpr std::uint32_t kVramHbm = 6;
constexpr std::uint32_t kVramGddr6 = 9;

// amdgpu_mes.h: AMDGPU_MES_*_VERSION_MASK. From API 14 on, amdkfd trusts the scheduler with exceptions, from version 68
// on with GWS.
constexpr std::uint32_t kMesVersion = 1u << 24 | 14u << 12 | 0x54u;

// What the sizes of memory and the counter are in all of them. The counter counts nanoseconds, as packets write them.
constexpr vasic_info any_chip() {
  vasic_info info{};
  info.vram_size = kGiB;
  info.gart_size = 512 * kMiB;
  info.xcc_count = 1;
  info.max_scratch_slots_per_cu = 32;
  info.lds_size_kib = 64;
  info.mec_count = 2;
  info.pipes_per_mec = 4;
  info.queues_per_pipe = 8;
  info.compute_rings = 8;
  info.gws_size = 64;
  info.first_kfd_vmid = 8;
  info.clock_khz = 1000000;
  return info;
}

// GCN's compute unit: four SIMDs of 64-wide waves.
constexpr vasic_info gcn_chip() {
  vasic_info info = any_chip();
  info.se_count = 4;
  info.sh_per_se = 1;
  info.simd_per_cu = 4;
  info.max_waves_per_simd = 10;
  info.wave_front_size = 64;
  info.rb_per_se = 4;
  info.tile_pipes = 16;
  info.tcc_count = 16;
  info.sdma_count = 2;
  return info;
}

// Hawaii. IP versions begin with gfx9.
constexpr vasic_info gfx701() {
  vasic_info info = gcn_chip();
  info.asic_type = kAsicHawaii;
  info.family = kFamilyCi;
  info.pci_device_id = 0x67b0;
  info.external_rev_id = 0x28;
  info.cu_per_sh = 11;
  info.cu_count = 44;
  info.gb_addr_config = 0x12011003;
  info.gds_size = 0x10000;
  info.vram_type = kVramGddr5;
  info.vram_width = 512;
  info.mec_fw_version = 0x1a7;
  info.mec_feature_version = 21;
  info.sdma_fw_version = 0x12;
  info.gfx_level = 7;
  info.pte_format = VASIC_PTE_GFX7;
  info.vm_levels = 1;
  info.vm_address_bits = 40;
  info.ih_format = VASIC_IH_CIK;
  info.sdma_format = VASIC_SDMA_V2;
  info.doorbell_size = 4;
  return info;
}

// Fiji.
constexpr vasic_info gfx803() {
  vasic_info info = gfx701();
  info.asic_type = kAsicFiji;
  info.family = kFamilyVi;
  info.pci_device_id = 0x7300;
  info.external_rev_id = 0x3c;
  info.cu_per_sh = 16;
  info.cu_count = 64;
  info.gb_addr_config = 0x22011003;
  info.vram_type = kVramHbm;
  info.vram_width = 4096;
  info.mec_fw_version = 730;
  info.mec_feature_version = 49;
  info.sdma_fw_version = 54;
  info.gfx_level = 8;
  info.sdma_format = VASIC_SDMA_V3;
  return info;
}

// Vega 20.
constexpr vasic_info gfx906() {
  vasic_info info = gcn_chip();
  info.asic_type = kAsicVega20;
  info.family = kFamilyAi;
  info.pci_device_id = 0x66a1;
  info.pci_revision = 0x01;
  info.external_rev_id = 0x29;
  info.gc_ip = VASIC_IP_VERSION(9u, 4u, 0u);
  info.sdma_ip = VASIC_IP_VERSION(4u, 2u, 0u);
  info.mmhub_ip = VASIC_IP_VERSION(9u, 4u, 0u);
  info.osssys_ip = VASIC_IP_VERSION(4u, 2u, 0u);
  info.cu_per_sh = 16;
  info.cu_count = 60;
  info.gb_addr_config = 0x26013041;
  info.vram_type = kVramHbm;
  info.vram_width = 4096;
  info.mec_fw_version = 460;
  info.mec_feature_version = 46;
  info.sdma_fw_version = 145;
  info.gfx_level = 9;
  info.pte_format = VASIC_PTE_GFX9;
  info.vm_levels = 3;
  info.vm_address_bits = 48;
  info.ih_format = VASIC_IH_SOC15;
  info.sdma_format = VASIC_SDMA_V4;
  info.doorbell_size = 8;
  info.scheduler = VASIC_SCHEDULER_HWS;
  return info;
}

// Vega 10.
constexpr vasic_info gfx900() {
  vasic_info info = gfx906();
  info.asic_type = kAsicVega10;
  info.pci_device_id = 0x6861;
  info.external_rev_id = 0x02;
  info.gc_ip = VASIC_IP_VERSION(9u, 0u, 1u);
  info.sdma_ip = VASIC_IP_VERSION(4u, 0u, 0u);
  info.mmhub_ip = VASIC_IP_VERSION(9u, 0u, 0u);
  info.osssys_ip = VASIC_IP_VERSION(4u, 0u, 0u);
  info.cu_count = 64;
  info.gb_addr_config = 0x2a114042;
  info.vram_width = 2048;
  info.mec_fw_version = 0x81b6;
  info.sdma_fw_version = 434;
  return info;
}

// Arcturus. Without graphics: more VMIDs for KFD, two SDMA engines towards PCIe and the others towards XGMI.
constexpr vasic_info gfx908() {
  vasic_info info = gfx906();
  info.asic_type = kAsicArcturus;
  info.pci_device_id = 0x738c;
  info.external_rev_id = 0x33;
  info.gc_ip = VASIC_IP_VERSION(9u, 4u, 1u);
  info.sdma_ip = VASIC_IP_VERSION(4u, 2u, 2u);
  info.mmhub_ip = VASIC_IP_VERSION(9u, 4u, 1u);
  info.osssys_ip = VASIC_IP_VERSION(4u, 2u, 1u);
  info.se_count = 8;
  info.cu_count = 120;
  info.rb_per_se = 0;
  info.sdma_count = 8;
  info.first_kfd_vmid = 3;
  info.mec_fw_version = 65;
  info.sdma_fw_version = 18;
  return info;
}

// Aldebaran.
constexpr vasic_info gfx90a() {
  vasic_info info = gfx908();
  info.asic_type = kAsicAldebaran;
  info.pci_device_id = 0x740c;
  info.external_rev_id = 0x3d;
  info.gc_ip = VASIC_IP_VERSION(9u, 4u, 2u);
  info.sdma_ip = VASIC_IP_VERSION(4u, 4u, 0u);
  info.mmhub_ip = VASIC_IP_VERSION(9u, 4u, 2u);
  info.osssys_ip = VASIC_IP_VERSION(4u, 4u, 0u);
  info.cu_count = 104;
  info.max_waves_per_simd = 8;
  info.sdma_count = 5;
  info.retry_faults = 1;  // kfd_priv.h: KFD_SUPPORT_XNACK_PER_PROCESS
  info.mec_fw_version = 78;
  info.sdma_fw_version = 8;
  return info;
}

// GC 9.4.3 with three AIDs of two XCCs each, as one partition. Revision 1 is what makes it gfx942.
constexpr vasic_info gfx942() {
  vasic_info info = gfx90a();
  info.asic_type = kAsicIpDiscovery;
  info.pci_device_id = 0x74a0;
  info.external_rev_id = 0x47;
  info.gc_ip = VASIC_IP_VERSION(9u, 4u, 3u);
  info.sdma_ip = VASIC_IP_VERSION(4u, 4u, 2u);
  info.mmhub_ip = VASIC_IP_VERSION(1u, 8u, 0u);
  info.osssys_ip = VASIC_IP_VERSION(4u, 4u, 2u);
  info.xcc_count = 6;
  info.se_count = 4;
  info.cu_per_sh = 10;
  info.cu_count = 38;
  info.gb_addr_config = 0x2a114042;
  info.sdma_count = 12;
  info.sdma_per_aid = 4;
  info.vram_width = 8192;
  // "AMD GPU specifications" of the ROCm documentation: MI300A
  info.vector_l1_kib = 32;
  info.scalar_inst_kib = 64;
  info.scalar_data_kib = 16;
  info.cu_per_sqc = 2;
  info.l2_kib = 4096;
  info.mall_kib = 256 * 1024;
  info.mec_fw_version = 142;
  info.sdma_fw_version = 19;
  return info;
}

// RDNA: two SIMDs of 32-wide waves a compute unit; two shader arrays an engine.
constexpr vasic_info rdna_chip() {
  vasic_info info = any_chip();
  info.family = kFamilyNv;
  info.sh_per_se = 2;
  info.simd_per_cu = 2;
  info.max_waves_per_simd = 20;
  info.wave_front_size = 32;
  info.rb_per_se = 8;
  info.tile_pipes = 16;
  info.tcc_count = 16;
  info.sdma_count = 2;
  info.gds_size = 0x10000;
  info.vram_type = kVramGddr6;
  info.vram_width = 256;
  info.pte_format = VASIC_PTE_GFX10;
  info.vm_levels = 3;
  info.vm_address_bits = 48;
  info.ih_format = VASIC_IH_SOC15;
  info.doorbell_size = 8;
  info.scheduler = VASIC_SCHEDULER_HWS;
  return info;
}

// Navi 10.
constexpr vasic_info gfx1010() {
  vasic_info info = rdna_chip();
  info.asic_type = kAsicNavi10;
  info.pci_device_id = 0x731f;
  info.external_rev_id = 0x01;
  info.gc_ip = VASIC_IP_VERSION(10u, 1u, 10u);
  info.sdma_ip = VASIC_IP_VERSION(5u, 0u, 0u);
  info.mmhub_ip = VASIC_IP_VERSION(2u, 0u, 0u);
  info.osssys_ip = VASIC_IP_VERSION(5u, 0u, 0u);
  info.se_count = 2;
  info.cu_per_sh = 10;
  info.cu_count = 40;
  info.gb_addr_config = 0x00100044;
  info.mec_fw_version = 150;  // from 145 on without PCIe atomics
  info.mec_feature_version = 35;
  info.sdma_fw_version = 35;
  info.gfx_level = 10;
  info.sdma_format = VASIC_SDMA_V5;
  return info;
}

// Navi 21 (Sienna Cichlid).
constexpr vasic_info gfx1030() {
  vasic_info info = gfx1010();
  info.asic_type = kAsicSiennaCichlid;
  info.pci_device_id = 0x73bf;
  info.external_rev_id = 0x28;
  info.gc_ip = VASIC_IP_VERSION(10u, 3u, 0u);
  info.sdma_ip = VASIC_IP_VERSION(5u, 2u, 0u);
  info.mmhub_ip = VASIC_IP_VERSION(2u, 1u, 0u);
  info.osssys_ip = VASIC_IP_VERSION(5u, 0u, 3u);
  info.se_count = 4;
  info.cu_count = 80;
  info.max_waves_per_simd = 16;
  info.rb_per_se = 4;
  info.gb_addr_config = 0x00000444;
  info.queues_per_pipe = 4;
  info.sdma_count = 4;
  info.mec_fw_version = 118;  // from 92 on without PCIe atomics, from 107 on with GWS
  info.mec_feature_version = 38;
  info.sdma_fw_version = 83;
  return info;
}

// Navi 31.
constexpr vasic_info gfx1100() {
  vasic_info info = rdna_chip();
  info.asic_type = kAsicIpDiscovery;
  info.family = kFamilyGc11;
  info.pci_device_id = 0x744c;
  info.external_rev_id = 0x01;
  info.gc_ip = VASIC_IP_VERSION(11u, 0u, 0u);
  info.sdma_ip = VASIC_IP_VERSION(6u, 0u, 0u);
  info.mmhub_ip = VASIC_IP_VERSION(3u, 0u, 0u);
  info.osssys_ip = VASIC_IP_VERSION(6u, 0u, 0u);
  info.se_count = 6;
  info.cu_per_sh = 8;
  info.cu_count = 96;
  info.max_waves_per_simd = 16;
  info.rb_per_se = 4;
  info.tcc_count = 24;
  info.gb_addr_config = 0x00000545;
  info.mec_count = 1;
  info.queues_per_pipe = 4;
  info.gds_size = 0x1000;
  info.vram_width = 384;
  // what AMDGPU_INFO_DEV_INFO returns for this chip, recorded in Mesa's src/amd/drm-shim/amdgpu_devices.c (navi31)
  info.vector_l1_kib = 32;
  info.scalar_inst_kib = 32;
  info.scalar_data_kib = 16;
  info.cu_per_sqc = 2;
  info.gl1_kib = 256;
  info.l2_kib = 6144;
  info.mall_kib = 96 * 1024;
  info.mec_fw_version = 545;  // from 509 on without PCIe atomics
  info.mec_feature_version = 35;
  info.sdma_fw_version = 21;
  info.gfx_level = 11;
  info.ih_format = VASIC_IH_SOC21;
  info.sdma_format = VASIC_SDMA_V6;
  info.scheduler = VASIC_SCHEDULER_MES;
  info.mes_version = kMesVersion;
  return info;
}

// Navi 48.
constexpr vasic_info gfx1201() {
  vasic_info info = gfx1100();
  info.family = kFamilyGc12;
  info.pci_device_id = 0x7550;
  info.external_rev_id = 0x50;
  info.gc_ip = VASIC_IP_VERSION(12u, 0u, 1u);
  info.sdma_ip = VASIC_IP_VERSION(7u, 0u, 1u);
  info.mmhub_ip = VASIC_IP_VERSION(4u, 1u, 0u);
  info.osssys_ip = VASIC_IP_VERSION(7u, 0u, 0u);
  info.se_count = 4;
  info.cu_count = 64;
  info.tcc_count = 16;
  info.pipes_per_mec = 2;
  info.compute_rings = 4;  // half of the MEC's queues (gfx_v12_0.c)
  info.gds_size = 0;
  info.vram_width = 256;
  // "AMD GPU specifications" of the ROCm documentation: Radeon RX 9070 XT. Its discovery table has sizes of lines:
  // that of L2 is what rocminfo prints of it, those of level 1 are what kfd_crat.c assumes for gfx11.
  info.gl1_kib = 0;
  info.l2_kib = 8192;
  info.mall_kib = 64 * 1024;
  info.vector_line = 128;
  info.scalar_inst_line = 128;
  info.scalar_data_line = 64;
  info.l2_line = 256;
  info.mec_fw_version = 2600;  // from 2090 on without PCIe atomics
  info.sdma_fw_version = 10;
  info.gfx_level = 12;
  info.pte_format = VASIC_PTE_GFX12;
  info.sdma_format = VASIC_SDMA_V7;
  return info;
}

constexpr std::array kChips = {
    Chip{.name = "gfx701", .info = gfx701(), .in_rocm = true},
    Chip{.name = "gfx803", .info = gfx803(), .in_rocm = true},
    Chip{.name = "gfx900", .info = gfx900(), .in_rocm = true, .sibling_of = "gfx906"},
    Chip{.name = "gfx906", .info = gfx906(), .can_join_hive = true, .in_rocm = true},
    Chip{.name = "gfx908", .info = gfx908(), .can_join_hive = true, .in_rocm = true, .sibling_of = "gfx906"},
    Chip{.name = "gfx90a", .info = gfx90a(), .can_join_hive = true, .in_rocm = true},
    Chip{.name = "gfx942", .info = gfx942(), .can_join_hive = true},
    Chip{.name = "gfx1010", .info = gfx1010(), .in_rocm = true, .sibling_of = "gfx1030"},
    Chip{.name = "gfx1030", .info = gfx1030(), .in_rocm = true},
    Chip{.name = "gfx1100", .info = gfx1100()},
    Chip{.name = "gfx1201", .info = gfx1201()},
};

}  // namespace

std::span<const Chip> chips() { return kChips; }

}  // namespace vasicd
