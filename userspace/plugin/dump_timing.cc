// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// How much a dump copies, how long that takes, and what is told of it in CRIU's log and in the image.
#include <chrono>
#include <set>
#include <string>

#include "plugin/dump.h"
#include "plugin/stored_contents.h"

namespace plugin {
namespace {

std::uint64_t microseconds(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

}  // namespace

// Counts memory that several have once.
std::uint64_t Dump::bytes_to_save() const {
  std::uint64_t bytes = 0;
  std::set<std::uint64_t> counted;  // inodes
  const auto count = [&](const kfd::Bo& bo, std::uint64_t inode) {
    if (kfd::has_contents(bo) && (inode == 0 || counted.insert(inode).second)) bytes += bo.size;
  };
  for (const Process& process : processes_)
    for (const kfd::CheckpointedBo& each : process.state.bos) count(each.bo, each.inode);
  for (const auto& found : found_)
    if (found)
      for (const image::BoRecord& record : found->bos) count(record.bo, record.inode);
  for (const auto& [file, memory] : lost_) bytes += memory.record.bo.size;
  return bytes;
}

Dump::Copying::~Copying() {
  working_.reset();
  std::chrono::nanoseconds waited{};
  for (const auto& [gpu_id, copier] : dump_.copiers_)
    if (copier != nullptr) waited += copier->waited();
  dump_.copiers_.clear();
  dump_.timing_.gpu_us += microseconds(waited);
  dump_.timing_.copying_us += microseconds(Clock::now() - begin_);
}

copy::Sink Dump::sink_into(image::FileWriter& writer, const image::MemoryName& name) {
  const copy::Sink sink = sink_of(writer, writer.begin_bo(name));
  return {[this, sink](std::span<const std::byte> slice) {
            meter_->add(slice.size());
            return sink.take(slice);
          },
          [sink](std::uint64_t number) { return sink.settle(number); }};
}

const image::Timing& Dump::timing() {
  writer_->add_to(timing_);
  timing_.paused_us = microseconds(Clock::now() - paused_since_);
  return timing_;
}

// One line for those who want to know what their program stood still for.
void Dump::tell_timing() const {
  using Seconds = std::chrono::duration<double>;
  const auto ms = [](std::uint64_t us) { return std::to_string(us / 1000) + " ms"; };
  std::string line =
      "GPU queues were paused for " + ms(microseconds(Clock::now() - paused_since_)) + " until all was saved, " +
      ms(timing_.paused_us) + " of these for GPU memory and state: " + std::to_string(timing_.copied_bytes >> 20) +
      " MiB copied at " + rate_text(timing_.copied_bytes, Seconds(std::chrono::microseconds(timing_.copying_us))) +
      ", " + std::to_string(timing_.stored_bytes >> 20) + " MiB stored";
  if (timing_.equal_bytes >> 20 != 0)
    line += ", " + std::to_string(timing_.equal_bytes >> 20) + " MiB equal to what is stored";
  if (writer_->earlier() != nullptr)
    line += ", " + std::to_string(timing_.referred_bytes >> 20) + " MiB as in the dump before";
  switch (image::limit_of(timing_)) {
    case image::Limit::kNothing:
      break;
    case image::Limit::kGpu:
      line += "; it waited most for the GPUs";
      break;
    case image::Limit::kFiles:
      line += "; it waited most for the files of the image";
      break;
    case image::Limit::kProcessor:
      line += "; it waited most for checksums and compression";
      break;
  }
  services_.criu.inform(line);
}

}  // namespace plugin
