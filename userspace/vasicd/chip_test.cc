// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The chip table and --gpu SPEC.
#include "vasicd/chip.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "packets/ih.h"
#include "vasicd/chip_table.h"

namespace vasicd {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::string error_of(std::string_view spec) {
  const auto info = parse_gpu_spec(spec, 0);
  return info.ok() ? "" : info.error().message();
}

// " gfx906 gfx90a": the chips of the table that have the ability, or all of them.
std::string names_in_table(bool Chip::*ability = nullptr) {
  std::string names;
  for (const Chip& chip : chips())
    if (ability == nullptr || chip.*ability) names += " " + std::string(chip.name);
  return names;
}

TEST(Chip, a_bare_name_is_the_whole_chip) {
  const auto info = parse_gpu_spec("gfx906", 0);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->magic, VASIC_ABI_MAGIC);
  EXPECT_EQ(info->abi_version, static_cast<unsigned>(VASIC_ABI_VERSION));
  EXPECT_EQ(info->info_size, sizeof(vasic_info));
  EXPECT_STREQ(info->name, "gfx906");
  EXPECT_EQ(info->vram_size, 1024 * kMiB);
  EXPECT_EQ(info->vram_visible_size, info->vram_size);
  EXPECT_EQ(info->bar_size, 2048 * kMiB);
  EXPECT_EQ(info->cu_bitmap[0][0], 0x7fffu);
  EXPECT_EQ(info->cu_bitmap[3][0], 0x7fffu);
  EXPECT_EQ(info->cu_bitmap[4][0], 0u);
}

TEST(Chip, keys_change_the_chip) {
  const auto info = parse_gpu_spec("gfx906,vram=128M,vis=64M,cu=5,se=2,sdma=1,unique-id=deadbeef", 3);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->vram_size, 128 * kMiB);
  EXPECT_EQ(info->vram_visible_size, 64 * kMiB);
  EXPECT_EQ(info->bar_size, 256 * kMiB);
  EXPECT_EQ(info->cu_count, 5u);
  EXPECT_EQ(info->cu_bitmap[0][0], 7u);
  EXPECT_EQ(info->cu_bitmap[1][0], 3u);
  EXPECT_EQ(info->sdma_count, 1u);
  EXPECT_EQ(info->unique_id, 0xdeadbeefu);
  EXPECT_EQ(info->gpu_index, 3u);
}

TEST(Chip, gpus_of_one_host_differ_in_their_unique_id) {
  EXPECT_NE(parse_gpu_spec("gfx906", 0)->unique_id, parse_gpu_spec("gfx906", 1)->unique_id);
}

TEST(Chip, the_bitmap_has_as_many_bits_as_there_are_cus) {
  for (unsigned cu = 1; cu <= 64; ++cu) {
    const auto info = parse_gpu_spec("gfx906,cu=" + std::to_string(cu), 0);
    ASSERT_TRUE(info.ok());
    unsigned bits = 0;
    for (const auto& engine : info->cu_bitmap) bits += static_cast<unsigned>(std::popcount(engine[0]));
    EXPECT_EQ(bits, cu);
  }
}

TEST(Chip, every_chip_is_one_that_the_driver_accepts) {
  for (const std::string_view name : chip_names()) {
    const auto info = parse_gpu_spec(name, 0);
    ASSERT_TRUE(info.ok()) << name;
    EXPECT_LE(info->se_count, VASIC_MAX_SE) << name;
    EXPECT_LE(info->sh_per_se, VASIC_MAX_SH_PER_SE) << name;
    EXPECT_LE(info->xcc_count, VASIC_MAX_XCC) << name;
    EXPECT_LE(info->sdma_count, VASIC_MAX_SDMA) << name;
    EXPECT_EQ(info->sdma_count % info->sdma_per_aid, 0u) << name;
    EXPECT_LE(info->sdma_per_aid, packets::ih::kSdmaClients.size()) << name;
    EXPECT_LE(info->cu_count, info->se_count * info->sh_per_se * info->cu_per_sh) << name;
    EXPECT_LE(info->compute_rings, info->pipes_per_mec * info->queues_per_pipe) << name;
    EXPECT_NE(info->pci_device_id, 0u) << name;
    EXPECT_NE(info->mec_fw_version, 0u) << name;
  }
}

TEST(Chip, formats_follow_the_generation) {
  for (const std::string_view name : chip_names()) {
    const auto info = *parse_gpu_spec(name, 0);
    const bool is_legacy = info.gfx_level < 9;
    const bool is_new = info.gfx_level > 10;
    EXPECT_EQ(info.gc_ip >> 24, is_legacy ? 0 : info.gfx_level) << name;
    EXPECT_EQ(info.doorbell_size, is_legacy ? 4u : 8u) << name;
    EXPECT_EQ(info.vm_levels, is_legacy ? 1u : 3u) << name;
    EXPECT_EQ(info.vm_address_bits, is_legacy ? 40u : 48u) << name;
    const std::uint32_t ih_format = is_legacy ? VASIC_IH_CIK : is_new ? VASIC_IH_SOC21 : VASIC_IH_SOC15;
    EXPECT_EQ(info.ih_format, ih_format) << name;
    EXPECT_EQ(info.sdma_format, info.gfx_level - 7) << name;
    EXPECT_EQ(info.scheduler == VASIC_SCHEDULER_MES, is_new) << name;
    EXPECT_EQ(info.mes_version != 0, is_new) << name;
    EXPECT_TRUE(name.starts_with("gfx" + std::to_string(info.gfx_level))) << name;
  }
}

// kfd_device.c: no_atomic_fw_version, kfd_gws_init; kfd_topology.c: kfd_topology_set_dbg_firmware_support.
TEST(Chip, firmware_is_as_new_as_amdkfd_wants_it) {
  // 0: amdkfd accepts each version.
  const std::map<std::string_view, unsigned> minima = {
      {"gfx701", 0}, {"gfx803", 0},    {"gfx900", 0x81b3}, {"gfx906", 0x1b3}, {"gfx908", 60},   {"gfx90a", 51},
      {"gfx942", 0}, {"gfx1010", 145}, {"gfx1030", 107},   {"gfx1100", 509},  {"gfx1201", 2090}};
  for (const std::string_view name : chip_names()) {
    ASSERT_TRUE(minima.contains(name)) << name << ": add the least version that amdkfd accepts";
    EXPECT_GE(parse_gpu_spec(name, 0)->mec_fw_version, minima.at(name)) << name;
  }
  EXPECT_GE(parse_gpu_spec("gfx1100", 0)->mes_version & 0xfff, 70u);
  EXPECT_GE(parse_gpu_spec("gfx1100", 0)->mes_version >> 12 & 0xfff, 14u);
}

// kfd_crat.c, kfd_get_gpu_cache_info: which chips have no table there. ROCr aborts if a GPU has no cache.
TEST(Chip, the_caches_are_described_where_amdkfd_has_no_table_of_them) {
  for (const std::string_view name : chip_names()) {
    const auto info = *parse_gpu_spec(name, 0);
    const bool has_table = info.gc_ip < VASIC_IP_VERSION(11u, 0u, 0u) && info.gc_ip != VASIC_IP_VERSION(9u, 4u, 3u);
    EXPECT_EQ(info.vector_l1_kib == 0, has_table) << name;
    EXPECT_EQ(info.scalar_inst_kib == 0, has_table) << name;
    EXPECT_EQ(info.scalar_data_kib == 0, has_table) << name;
    EXPECT_EQ(info.l2_kib == 0, has_table) << name;
    EXPECT_EQ(info.cu_per_sqc, has_table ? 0u : 2u) << name;
    // kfd_fill_gpu_cache_info_from_gfx_config has sizes of lines for the other chips
    EXPECT_EQ(info.l2_line != 0 && info.vector_line != 0 && info.scalar_inst_line != 0 && info.scalar_data_line != 0,
              info.gfx_level == 12)
        << name;
  }
}

TEST(Chip, gfx942_has_six_xccs_on_three_aids) {
  const auto info = *parse_gpu_spec("gfx942", 0);
  EXPECT_EQ(info.xcc_count, 6u);
  EXPECT_EQ(info.cu_count, 38u) << "of each XCC";
  EXPECT_EQ(info.sdma_count / info.sdma_per_aid, 3u);
  EXPECT_EQ(info.pci_revision, 1u);
  EXPECT_EQ(parse_gpu_spec("gfx942,xcc=2", 0)->xcc_count, 2u);
}

TEST(Chip, a_hive_numbers_its_nodes_and_gives_all_the_same_segment) {
  std::vector<vasic_info> gpus;
  for (const char* spec : {"gfx90a,hive=7,vram=96M", "gfx906", "gfx90a,hive=7,vram=200M", "gfx908,hive=a"})
    gpus.push_back(*parse_gpu_spec(spec, static_cast<unsigned>(gpus.size())));
  ASSERT_TRUE(join_hives(gpus).ok());
  EXPECT_EQ(gpus[0].xgmi_node_id, 0u);
  EXPECT_EQ(gpus[2].xgmi_node_id, 1u);
  EXPECT_EQ(gpus[0].xgmi_num_nodes, 2u);
  EXPECT_EQ(gpus[2].xgmi_segment_size, 256 * kMiB);
  EXPECT_EQ(gpus[0].xgmi_segment_size, 256 * kMiB);
  EXPECT_EQ(gpus[1].xgmi_num_nodes, 0u);
  EXPECT_EQ(gpus[1].xgmi_segment_size, 0u);
  EXPECT_EQ(gpus[3].xgmi_num_nodes, 1u);
}

TEST(Chip, a_hive_is_of_one_chip_and_of_bounded_size) {
  std::vector<vasic_info> gpus(9, *parse_gpu_spec("gfx90a,hive=7", 0));
  EXPECT_EQ(join_hives(gpus).error().message(), "hive: at most 8 GPUs");
  gpus = {*parse_gpu_spec("gfx90a,hive=7", 0), *parse_gpu_spec("gfx908,hive=7", 1)};
  EXPECT_EQ(join_hives(gpus).error().message(), "hive: all its GPUs must be of one chip");
}

TEST(Chip, firmware_and_retry_faults_are_data) {
  EXPECT_EQ(parse_gpu_spec("gfx90a,fw=99", 0)->mec_fw_version, 99u);
  EXPECT_EQ(parse_gpu_spec("gfx90a", 0)->retry_faults, 1u);
  EXPECT_EQ(parse_gpu_spec("gfx942", 0)->retry_faults, 1u);
  EXPECT_EQ(parse_gpu_spec("gfx908", 0)->retry_faults, 0u);
}

TEST(Chip, errors_name_what_is_allowed) {
  EXPECT_EQ(error_of("gfx999"), "unknown chip 'gfx999', one of:" + names_in_table());
  EXPECT_EQ(error_of("gfx906,cus=4"), "unknown key 'cus', one of: vram vis cu se sdma xcc unique-id hive fw");
  EXPECT_EQ(error_of("gfx906,cu=65"), "cu must be 1..64");
  EXPECT_EQ(error_of("gfx906,sdma=3"), "sdma must be 1..2");
  EXPECT_EQ(error_of("gfx906,xcc=2"), "xcc must be 1..1");
  EXPECT_EQ(error_of("gfx906,fw=65536"), "fw must be 1..65535");
  EXPECT_EQ(error_of("gfx90a,xnack=1"), "unknown key 'xnack', one of: vram vis cu se sdma xcc unique-id hive fw");
  EXPECT_EQ(error_of("gfx1100,hive=1"), "hive needs a chip with XGMI:" + names_in_table(&Chip::can_join_hive));
  EXPECT_EQ(error_of("gfx90a,hive=0"), "hive must be a hexadecimal number, not 0");
  EXPECT_EQ(error_of("gfx906,vram=1K"), "vram must be 64..65536M, whole megabytes");
}

TEST(Chip, refuses_what_does_not_fit_together) {
  EXPECT_NE(error_of("gfx906,vram=64M,vis=65M"), "");
  EXPECT_NE(error_of("gfx906,se=1"), "") << "60 CUs in one shader engine";
}

TEST(Chip, refuses_malformed_specs) {
  for (const char* spec : {"", ",", "gfx906,,", "gfx906,cu", "gfx906,cu=", "gfx906,=4", "gfx906,cu=-1", "gfx906,cu=0",
                           "gfx906,vram=99999999999G", "gfx906,unique-id=0", "gfx906,unique-id=xyz"})
    EXPECT_NE(error_of(spec), "") << spec;
}

}  // namespace
}  // namespace vasicd
