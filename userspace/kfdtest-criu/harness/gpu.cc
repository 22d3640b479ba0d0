// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Topology through sysfs.
#include "kfdtest-criu/harness/gpu.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace kfdtest {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNodesDir = "/sys/class/kfd/kfd/topology/nodes";
constexpr std::uint64_t kHeapPublic = 1;       // HSA_MEM_HEAP_TYPE_FB_PUBLIC
constexpr std::uint64_t kHeapPrivate = 2;      // HSA_MEM_HEAP_TYPE_FB_PRIVATE
constexpr std::uint64_t kCapSvm = 0x08000000;  // HSA_CAP_SVMAPI_SUPPORTED

std::uint64_t read_number(const fs::path& path) {
  std::uint64_t value = 0;
  std::ifstream(path) >> value;
  return value;
}

std::map<std::string, std::uint64_t> read_properties(const fs::path& path) {
  std::map<std::string, std::uint64_t> properties;
  std::ifstream file(path);
  std::string name;
  std::uint64_t value = 0;
  while (file >> name >> value) properties[name] = value;
  return properties;
}

void read_vram(const fs::path& node, Gpu* gpu) {
  std::error_code code;
  bool all_visible = true;
  for (const auto& bank : fs::directory_iterator(node / "mem_banks", code)) {
    auto properties = read_properties(bank.path() / "properties");
    const std::uint64_t heap = properties["heap_type"];
    if (heap != kHeapPublic && heap != kHeapPrivate) continue;
    gpu->vram_size += properties["size_in_bytes"];
    all_visible = all_visible && heap == kHeapPublic;
  }
  gpu->vram_cpu_visible = gpu->vram_size > 0 && all_visible;
}

Gpu read_gpu(const fs::path& node) {
  auto properties = read_properties(node / "properties");
  Gpu gpu;
  gpu.gfx_target_version = properties["gfx_target_version"];
  gpu.simd_count = properties["simd_count"];
  gpu.simd_per_cu = properties["simd_per_cu"];
  gpu.array_count = properties["array_count"];
  gpu.simd_arrays_per_engine = properties["simd_arrays_per_engine"];
  gpu.num_xcc = std::max<std::uint64_t>(properties["num_xcc"], 1);
  gpu.sdma_engines = properties["num_sdma_engines"];
  gpu.sdma_xgmi_engines = properties["num_sdma_xgmi_engines"];
  gpu.sdma_queues_per_engine = properties["num_sdma_queues_per_engine"];
  gpu.cp_queues = properties["num_cp_queues"];
  gpu.num_gws = properties["num_gws"];
  gpu.render_minor = properties["drm_render_minor"];
  gpu.location_id = properties["location_id"];
  gpu.cwsr_size = properties["cwsr_size"];
  gpu.ctl_stack_size = properties["ctl_stack_size"];
  gpu.capability = properties["capability"];
  gpu.generation =
      Generation::of(static_cast<std::uint32_t>(gpu.gfx_target_version), static_cast<std::uint32_t>(gpu.capability));
  read_vram(node, &gpu);
  return gpu;
}

}  // namespace

bool Gpu::has_svm() const { return (capability & kCapSvm) != 0; }

bool lists_for_any_machine() { return std::getenv("KFDTEST_LIST_ALL") != nullptr; }

base::Result<std::vector<Gpu>> gpus_in_sysfs() {
  std::error_code code;
  std::map<std::uint32_t, Gpu> gpus;  // sorted by node
  for (const auto& entry : fs::directory_iterator(kNodesDir, code)) {
    const std::uint64_t gpu_id = read_number(entry.path() / "gpu_id");
    if (gpu_id == 0) continue;  // a CPU node
    Gpu gpu = read_gpu(entry.path());
    gpu.node = static_cast<std::uint32_t>(std::stoul(entry.path().filename().string()));
    gpu.gpu_id = static_cast<std::uint32_t>(gpu_id);
    gpus.emplace(gpu.node, gpu);
  }
  if (code) return base::Error(code.value(), std::string(kNodesDir).append(": ").append(code.message()));
  std::vector<Gpu> sorted;
  for (const auto& [node, gpu] : gpus) sorted.push_back(gpu);
  return sorted;
}

void number_as_the_thunk_does(std::vector<Gpu>& gpus) {
  for (Gpu& gpu : gpus) {
    std::uint32_t readable = 0;
    for (std::uint32_t node = 0; node < gpu.node; ++node) {
      std::uint64_t gpu_id = 0;
      if (std::ifstream(fs::path(kNodesDir) / std::to_string(node) / "gpu_id") >> gpu_id) ++readable;
    }
    gpu.node = readable;
  }
}

}  // namespace kfdtest
