// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Loads contents of BOs in one restored process. Opens devices and pages files when they are needed first, and holds
// them as long as it lives.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "plugin/image/reader.h"
#include "plugin/restore_plan.h"
#include "plugin/saved_files.h"
#include "plugin/services.h"
#include "plugin/stored_contents.h"

namespace plugin {

class Loader {
 public:
  Loader(const Services& services, const RestorePlan& plan, const SavedFile& process)
      : services_(services),
        plan_(plan),
        process_(process),
        meter_(services.criu, "GPU memory of " + owner_of(process), bytes_of(process)) {}

  [[nodiscard]] const SavedFile& process() const { return process_; }
  [[nodiscard]] const RestorePlan& plan() const { return plan_; }

  // The pages file of this file is there.
  base::Status open_contents(const image::Loaded& file) {
    if (contents_.contains(file.id())) return {};
    ASSIGN_OR_RETURN(image::Contents contents, image::open_contents(services_.criu.image_dir(), file));
    contents_.emplace(file.id(), std::move(contents));
    return {};
  }

  static std::string name_of(std::size_t bo) { return "contents of BO " + std::to_string(bo); }

  // Fills a DMA-buf on a GPU of the image with the contents that are stored with BO `bo` of `file`, which errors call
  // `name`. They are there when finish() has succeeded; a failure may be that of an earlier BO.
  base::Status start(const image::Loaded& file, std::size_t bo, std::uint32_t source_gpu, int dmabuf,
                     const std::string& name) {
    TRY(open_contents(file));
    ASSIGN_OR_RETURN(const std::uint32_t gpu_id, plan_.destination_of(source_gpu));
    auto& copier = copiers_[gpu_id];
    if (copier == nullptr) {
      // A file of its own: the copier's VM must not be the program's.
      ASSIGN_OR_RETURN(const base::UniqueFd render, services_.system.open_node(plan_.render(gpu_id)));
      ASSIGN_OR_RETURN(copier, services_.make_copier(render.get(), services_.options));
    }
    StoredContents source(contents_.at(file.id()), bo, meter_);
    auto outcome = copier->start_write({dmabuf, image::bos_of(file.file())[bo].bo.size, name}, source);
    if (outcome.ok()) return {};
    copy::Failure failure = std::move(outcome).error();
    if (failure.kind == copy::FailureKind::kBroken) return std::move(failure.error);
    // The CPU cannot write through a DMA-buf that is read-only, but through an object of its memory.
    ASSIGN_OR_RETURN(const base::UniqueFd render, services_.system.open_node(plan_.render(gpu_id)));
    RenderDriver& driver = *services_.render.driver;
    const auto failed = [&](const std::string& why, int code) {
      return base::Error(code, failure.error.message() + "; " + why).wrap(name);
    };
    if (auto status = driver.import_gem(render.get(), kHandle, dmabuf); !status.ok())
      return failed("importing it, to write through an object: " + status.error().message(), status.error().code());
    ASSIGN_OR_RETURN(const std::optional<std::uint64_t> offset, driver.mmap_offset(render.get(), kHandle));
    if (!offset) return failed("the CPU cannot map an object of it", failure.error.code());
    return load_by_mapping(file, bo, render.get(), *offset, name);
  }

  base::Status finish() {
    for (const auto& [gpu_id, copier] : copiers_)
      if (copier != nullptr) TRY(copier->finish());
    return {};
  }
  // When nothing more will be loaded.
  void end() const { meter_.end(); }

  // As start(), but at once, through the mappings of a render node, which has the BO at `offset`.
  base::Status load_by_mapping(const image::Loaded& file, std::size_t bo, int render, std::uint64_t offset,
                               const std::string& name) {
    TRY(open_contents(file));
    StoredContents source(contents_.at(file.id()), bo, meter_);
    auto outcome = copy::make_mapping_copier(offset)->write(render, image::bos_of(file.file())[bo].bo.size, source);
    if (outcome.ok()) return {};
    return std::move(outcome).error().error.wrap(name);
  }

 private:
  static std::string owner_of(const SavedFile& process) {
    return process.owner != 0 ? "process " + std::to_string(process.owner) : "file " + std::to_string(process.id);
  }
  // Memory that it shares may come from another file, or be loaded by another process.
  static std::uint64_t bytes_of(const SavedFile& process) {
    std::uint64_t bytes = 0;
    for (const image::BoRecord& record : image::bos_of(process.loaded->file()))
      if (image::stores_contents(record)) bytes += record.bo.size;
    return bytes;
  }

  static constexpr std::uint32_t kHandle = 1;  // in a file that has no object

  const Services& services_;
  const RestorePlan& plan_;
  const SavedFile& process_;
  CopyMeter meter_;
  std::map<std::uint32_t, image::Contents> contents_;               // by file id
  std::map<std::uint32_t, std::unique_ptr<copy::Copier>> copiers_;  // by destination gpu_id
};

}  // namespace plugin
