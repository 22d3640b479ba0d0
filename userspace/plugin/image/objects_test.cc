// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Objects of render nodes in an image: what was written is read back, and each impossible value is refused by name.
#include <gtest/gtest.h>

#include "plugin/image/codec.h"
#include "plugin/image/test_support.h"

namespace plugin::image {
namespace {

constexpr std::uint32_t kGpu = 200;
constexpr std::uint64_t kSize = 3 * kPageSize;

BoRecord gem_bo(std::uint32_t handle, std::uint64_t size) {
  BoRecord record;
  record.bo = {0, size, 0x100000000ULL + handle * 0x100000ULL, kGpu, kVram};
  record.handle = handle;
  record.inode = 500 + handle;
  return record;
}

RenderFile test_render() {
  RenderFile render{kGpu, O_NONBLOCK, Binding::kOther, 0};
  render.objects.gem = {{5, kGemVram, 1, kPageSize, {{0x10000, kPageSize, kPageSize, 6}, {0x20000, kSize, 0, 2}}},
                        {9, kGemVram | 2, 0, 0, {}, 1, 2, std::vector<std::byte>(8, std::byte{7})}};
  render.objects.contexts = {{4095, 512, 77}, {2, -1023, 1ULL << 62}};
  render.objects.sparse = {{0xffff800000000000, kPageSize, 0, kSparseFlags}};
  render.objects.bo_lists = {{3, {{9, 1}, {5, 0}}}, {4, {}}};
  render.objects.syncobjs = {{1, SyncobjState::kEmpty, 0}, {2, SyncobjState::kTimeline, 1ULL << 60}};
  render.bos = {gem_bo(5, kSize), gem_bo(9, kPageSize)};
  return render;
}

class ObjectsTest : public SessionTest {
 protected:
  [[nodiscard]] base::Status write(const RenderFile& render, const std::vector<std::byte>& contents) {
    ASSIGN_OR_RETURN(auto writer, SessionWriter::create(dir(), kSession));
    TRY(writer->file(kRenderId).append(contents));
    TRY(writer->file(kRenderId).append(std::vector<std::byte>(kPageSize)));
    TRY(writer->add({kRenderId, render}));
    TRY(writer->prepare(test_session()));
    return writer->commit();
  }
};

TEST_F(ObjectsTest, what_was_written_is_read_back) {
  const RenderFile render = test_render();
  const auto contents = pattern(kSize);
  expect_ok(write(render, contents));
  const Catalogue images = catalogue();
  const auto loaded = images.find(kRenderId);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const RenderFile* read = (*loaded)->render();
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->objects, render.objects);
  ASSERT_EQ(read->bos.size(), 2U);
  EXPECT_EQ(read->bos[0].bo.mmap_offset, render.bos[0].bo.mmap_offset);
  EXPECT_EQ(read->bos[1].inode, render.bos[1].inode);
  const auto opened = open_contents(dir(), **loaded);
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  expect_ok(opened->verify());
  std::vector<std::byte> bytes(kSize);
  BoReader reader(*opened, 0);
  expect_ok(reader.read(bytes));
  EXPECT_EQ(bytes, contents);
}

TEST_F(ObjectsTest, a_file_without_gem_objects_has_an_index_too) {
  RenderFile render{kGpu, 0, Binding::kOther, 0};
  render.objects.contexts = {{1, 0, 1}};
  auto writer = SessionWriter::create(dir(), kSession);
  expect_ok((*writer)->add({kRenderId, render}));
  expect_ok((*writer)->prepare(test_session()));
  expect_ok((*writer)->commit());
  EXPECT_TRUE(std::filesystem::exists(path(index_name(kRenderId))));
  const Catalogue images = catalogue();
  ASSERT_TRUE(images.find(kRenderId).ok());
  EXPECT_EQ((*images.find(kRenderId))->render()->objects, render.objects);
}

TEST_F(ObjectsTest, a_missing_index_and_missing_contents_are_named) {
  expect_ok(write(test_render(), pattern(kSize)));
  std::filesystem::remove(path(pages_name(kRenderId)));
  {
    const Catalogue images = catalogue();
    EXPECT_FALSE(open_contents(dir(), **images.find(kRenderId)).ok());
  }
  std::filesystem::remove(path(index_name(kRenderId)));
  EXPECT_NE(load_error(kRenderId).find(index_name(kRenderId)), std::string::npos) << load_error(kRenderId);
}

struct BadObject {
  const char* expected;
  void (*change)(RenderFile&);
};

class ValidateObjects : public ::testing::TestWithParam<BadObject> {};

TEST_P(ValidateObjects, refuses_a_wrong_value) {
  RenderFile render = test_render();
  const auto good = validate({kRenderId, render}, test_session());
  ASSERT_TRUE(good.ok()) << good.error().message();
  GetParam().change(render);
  const auto status = validate({kRenderId, render}, test_session());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find(GetParam().expected), std::string::npos) << status.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Values, ValidateObjects,
    ::testing::Values(
        BadObject{"GEM object 0", [](RenderFile& r) { r.objects.gem[0].handle = 0; }},
        BadObject{"GEM object 2147483647", [](RenderFile& r) { r.objects.gem[0].handle = 0x7fffffff; }},
        BadObject{"GEM object 5 is impossible or there twice", [](RenderFile& r) { r.objects.gem[1].handle = 5; }},
        BadObject{"another number of GEM objects", [](RenderFile& r) { r.bos.pop_back(); }},
        BadObject{"another number of GEM objects", [](RenderFile& r) { r.objects.gem.clear(); }},
        BadObject{"domains or flags", [](RenderFile& r) { r.objects.gem[0].domains = 0; }},
        BadObject{"domains or flags", [](RenderFile& r) { r.objects.gem[0].domains = 1U << 6; }},
        BadObject{"domains or flags", [](RenderFile& r) { r.objects.gem[0].flags = 1ULL << 63; }},
        BadObject{"alignment", [](RenderFile& r) { r.objects.gem[0].alignment = 1; }},
        BadObject{"alignment", [](RenderFile& r) { r.objects.gem[0].alignment = 1ULL << 41; }},
        BadObject{"metadata", [](RenderFile& r) { r.objects.gem[1].metadata.resize(260); }},
        BadObject{"its BO in the index", [](RenderFile& r) { r.bos[0].handle = 6; }},
        BadObject{"its BO in the index", [](RenderFile& r) { r.bos[0].bo.size = 100; }},
        BadObject{"its BO in the index", [](RenderFile& r) { r.bos[0].bo.addr = 4096; }},
        BadObject{"its BO in the index", [](RenderFile& r) { r.bos[0].bo.user_gpu_id = 1; }},
        BadObject{"its BO in the index", [](RenderFile& r) { r.bos[0].bo.alloc_flags = 0; }},
        BadObject{"its BO in the index", [](RenderFile& r) { r.bos[0].imported = true; }},
        BadObject{"its BO in the index", [](RenderFile& r) { r.bos[0].stored_elsewhere = true; }},
        BadObject{"its BO in the index", [](RenderFile& r) { r.bos[0].shares_contents = true; }},
        BadObject{"GEM object 9: another object of this file", [](RenderFile& r) { r.bos[1].inode = r.bos[0].inode; }},
        BadObject{"larger than any", [](RenderFile& r) { r.bos[0].bo.size = r.bos[1].bo.size = 1ULL << 47; }},
        BadObject{"impossible mapping", [](RenderFile& r) { r.objects.gem[0].mappings[0].size = 0; }},
        BadObject{"impossible mapping", [](RenderFile& r) { r.objects.gem[0].mappings[0].addr = 1; }},
        BadObject{"impossible mapping", [](RenderFile& r) { r.objects.gem[0].mappings[1].addr = ~0ULL << 12; }},
        BadObject{"impossible mapping", [](RenderFile& r) { r.objects.gem[0].mappings[0].offset = kSize; }},
        BadObject{"impossible mapping", [](RenderFile& r) { r.objects.gem[0].mappings[0].offset = ~0ULL << 12; }},
        BadObject{"impossible mapping", [](RenderFile& r) { r.objects.gem[0].mappings[0].flags = 1ULL << 32; }},
        BadObject{"two mappings", [](RenderFile& r) { r.objects.gem[0].mappings[0].addr = 0x22000; }},
        BadObject{"two mappings", [](RenderFile& r) { r.objects.gem[0].mappings[0].addr = 0x20000; }},
        BadObject{"sparse mapping", [](RenderFile& r) { r.objects.sparse[0].flags = 2; }},
        BadObject{"sparse mapping", [](RenderFile& r) { r.objects.sparse[0].size = 0; }},
        BadObject{"two mappings", [](RenderFile& r) { r.objects.sparse[0].addr = 0x20000; }},
        BadObject{"next fence", [](RenderFile& r) { r.objects.contexts[0].sequence = 0; }},
        BadObject{"next fence", [](RenderFile& r) { r.objects.contexts[0].sequence = 1ULL << 63; }},
        BadObject{"context 4096", [](RenderFile& r) { r.objects.contexts[0].id = 4096; }},
        BadObject{"context 2", [](RenderFile& r) { r.objects.contexts[0].id = 2; }},
        BadObject{"priority 3", [](RenderFile& r) { r.objects.contexts[0].priority = 3; }},
        BadObject{"BO list 0", [](RenderFile& r) { r.objects.bo_lists[0].handle = 0; }},
        BadObject{"BO list 4", [](RenderFile& r) { r.objects.bo_lists[0].handle = 4; }},
        BadObject{"GEM object 6, which does not exist",
                  [](RenderFile& r) { r.objects.bo_lists[0].entries[0].handle = 6; }},
        BadObject{"synchronization object 2", [](RenderFile& r) { r.objects.syncobjs[0].handle = 2; }},
        BadObject{"impossible state", [](RenderFile& r) { r.objects.syncobjs[1].point = 0; }},
        BadObject{"impossible state", [](RenderFile& r) { r.objects.syncobjs[0].point = 1; }},
        BadObject{"impossible state",
                  [](RenderFile& r) { r.objects.syncobjs[0].state = static_cast<SyncobjState>(4); }},
        BadObject{"unknown whose VM", [](RenderFile& r) { r.binding = Binding::kUnknown; }},
        BadObject{"unknown whose VM", [](RenderFile& r) { r.binding = Binding::kKfd; }},
        BadObject{"unknown whose VM", [](RenderFile& r) { r.owner = 42; }},
        BadObject{"owner 999 is not a process", [](RenderFile& r) { r.binding = Binding::kKfd, r.owner = 999; }}));

}  // namespace
}  // namespace plugin::image
