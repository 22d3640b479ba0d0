// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The commands on dumps of both versions: what they print, which damage they find, which exit status they have.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "kfd-criu/test_support.h"
#include "plugin/image/upstream_made.h"
#include "plugin/image/version_1.h"
#include "plugin/test_support.h"

namespace kfd_criu {
namespace {

namespace fs = std::filesystem;
namespace image = plugin::image;
using plugin::testing::FakeMachine;
using plugin::testing::read_file;
using plugin::testing::TempDir;
using plugin::testing::write_file;
using plugin::testing::write_version_1;
using testing::Dump;
using testing::is_json;
using testing::Outcome;
using testing::run_tool;
using testing::write_dump;

constexpr std::uint32_t kVersion1File = 7;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Commands : public ::testing::Test {
 protected:
  [[nodiscard]] Outcome tool(const std::string& command, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{command, dir_.path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_tool(arguments);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(dir_.path())) found.push_back(entry.path().filename());
    return found;
  }

  TempDir dir_;
  TempDir other_;
};

// Tests that hold for dumps of both versions.
class Versions : public Commands, public ::testing::WithParamInterface<int> {
 protected:
  Versions() {
    if (GetParam() == 1)
      write_version_1(dir_.path());
    else
      write_dump(dir_.path());
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, Versions, ::testing::Values(1, 2));

// ---- show -----------------------------------------------------------------------------------------------------------

TEST_F(Commands, show_says_what_is_in_a_dump) {
  write_dump(dir_.path(), [](Dump& dump) {
    dump.session.nodes[1].properties = {
        {"gfx_target_version", 90010}, {"drm_render_minor", 129}, {"vram_size", 1U << 30}};
  });
  const Outcome shown = tool("show");
  EXPECT_EQ(shown.status, Exit::kGood) << shown.error;
  EXPECT_EQ(shown.out,
            "session 1122334455667788: format 2, extensible ABI, Linux 6.12.0-test\n"
            "  process 42 (train)\n"
            "  process 43 (worker?)\n"
            "  file 7: /dev/kfd of process 42\n"
            "    GPU 200, 100 for the program: gfx90a, renderD129, VRAM 1.0 GiB\n"
            "    GTT: 1 BO, 4.0 KiB: 0 bytes stored, 4.0 KiB zero\n"
            "    VRAM: 1 BO, 128.3 KiB: 64.3 KiB stored, 64.0 KiB zero\n"
            "    userptr: 1 BO, 4.0 KiB\n"
            "    kernel state: 3 bytes, 3 objects\n"
            "    /dev/shm/hsakmt_shared_mem: 6 bytes, 1 link of CRIU\n"
            "  file 8: render node of GPU 200 (renderD129), whose memory map is that of KFD, process 42\n"
            "  contents of 3 BOs: 132.3 KiB: 64.3 KiB stored, 68.0 KiB zero\n");
}

TEST_F(Commands, show_lists_each_bo_if_asked) {
  write_dump(dir_.path());
  const Outcome shown = tool("show", {"--bos"});
  EXPECT_TRUE(has(shown.out, "      0x1000 VRAM of GPU 100, 128.3 KiB: 64.3 KiB stored\n")) << shown.out;
  EXPECT_TRUE(has(shown.out, "      0x200000 userptr of GPU 100, 4.0 KiB\n")) << shown.out;
}

TEST_F(Commands, show_says_how_long_the_dump_took_if_asked) {
  write_dump(dir_.path(), [](Dump& dump) {
    dump.session.timing =
        image::Timing{2'500'000, 2'000'000, 1'500'000, 300'000, 400'000, 4U << 20, 2U << 20, 0, 0, 50'000};
  });
  EXPECT_FALSE(has(tool("show").out, "timing"));
  const Outcome shown = tool("show", {"--timing"});
  EXPECT_EQ(shown.status, Exit::kGood) << shown.error;
  EXPECT_TRUE(has(shown.out,
                  "  timing: GPU queues paused for 2500 ms until GPU memory and state were on the disk\n"
                  "    copying: 2000 ms for 4.0 MiB, 2 MiB/s; 2.0 MiB stored\n"
                  "    waiting for GPUs: 1500 ms; in all threads, checksums and compression: 300 ms, writing: 400 ms; "
                  "files synced in 50 ms\n"
                  "    limited by: gpus\n"))
      << shown.out;
  const Outcome json = tool("show", {"--json"});
  EXPECT_TRUE(is_json(json.out)) << json.out;
  EXPECT_TRUE(has(json.out,
                  "\"timing\": {\"paused_us\": 2500000, \"copying_us\": 2000000, \"gpu_us\": 1500000, "
                  "\"hashing_us\": 300000, \"writing_us\": 400000, \"syncing_us\": 50000, \"copied_bytes\": 4194304, "
                  "\"stored_bytes\": 2097152, \"referred_bytes\": 0, \"equal_bytes\": 0, \"limit\": \"gpus\"}"))
      << json.out;
}

TEST_F(Commands, show_says_that_an_older_image_has_no_timing) {
  write_version_1(dir_.path());
  const Outcome shown = tool("show", {"--timing"});
  EXPECT_EQ(shown.status, Exit::kGood) << shown.error;
  EXPECT_TRUE(has(shown.out, "  timing: not in this image\n")) << shown.out;
  EXPECT_FALSE(has(tool("show", {"--json"}).out, "timing"));
}

TEST(LimitTest, is_what_was_waited_for_most) {
  EXPECT_EQ(image::limit_of({}), image::Limit::kNothing);
  EXPECT_EQ(image::limit_of({9, 10, 6, 9, 9, 1, 1}), image::Limit::kGpu);
  EXPECT_EQ(image::limit_of({9, 10, 5, 2, 3, 1, 1}), image::Limit::kFiles);
  EXPECT_EQ(image::limit_of({9, 10, 0, 4, 3, 1, 1}), image::Limit::kProcessor);
  EXPECT_EQ(image::limit_of({9, 10, 6, 4, 3, 1, 1, 0, 0, 3}), image::Limit::kFiles);
  EXPECT_EQ(image::limit_of({9, 10, 0, 4, 3, 1, 1, 0, 0, 1}), image::Limit::kFiles);
}

TEST_F(Commands, show_reads_version_1) {
  write_version_1(dir_.path());
  const Outcome shown = tool("show");
  EXPECT_EQ(shown.status, Exit::kGood) << shown.error;
  EXPECT_TRUE(has(shown.out, "session 000000000000000b: format 1, released ABI\n")) << shown.out;
  EXPECT_TRUE(has(shown.out, "VRAM: 1 BO, 1.0 MiB: 300 bytes stored, 1.0 MiB zero\n")) << shown.out;
  EXPECT_TRUE(has(shown.out, "file 9: render node of GPU 200")) << shown.out;
}

TEST_F(Commands, show_names_every_kind_of_file) {
  const base::UniqueFd dir(::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto writer = image::SessionWriter::create(dir.get(), 1);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->add({1, image::test_kfd()}).ok());
  ASSERT_TRUE((*writer)->add({2, image::SecondFile{42, 0}}).ok());
  ASSERT_TRUE((*writer)->add({3, image::InertFile{0, 0}}).ok());
  ASSERT_TRUE((*writer)->add({4, image::RenderFile{200, 0, image::Binding::kOther, 0}}).ok());
  ASSERT_TRUE((*writer)->prepare(image::test_session()).ok());
  ASSERT_TRUE((*writer)->commit().ok());
  const Outcome shown = tool("show");
  EXPECT_TRUE(has(shown.out, "file 2: another open /dev/kfd of process 42\n")) << shown.out;
  EXPECT_TRUE(has(shown.out, "file 3: /dev/kfd inherited from a process outside of the dump\n")) << shown.out;
  EXPECT_TRUE(has(shown.out, "file 4: render node of GPU 200 (renderD0), independent of KFD\n")) << shown.out;
  const Outcome json = tool("show", {"--json"});
  EXPECT_TRUE(is_json(json.out)) << json.out;
  for (const char* kind : {"kfd", "second", "inert", "render"})
    EXPECT_TRUE(has(json.out, std::string("\"kind\": \"") + kind + "\"")) << json.out;
  EXPECT_EQ(tool("verify").status, Exit::kGood);
}

TEST_P(Versions, show_json_has_the_shape_of_crit) {
  const Outcome shown = tool("show", {"--json"});
  EXPECT_EQ(shown.status, Exit::kGood);
  EXPECT_TRUE(is_json(shown.out)) << shown.out;
  EXPECT_TRUE(shown.out.starts_with("{\"magic\": \"AMDGPU_SESSION\", \"entries\": [\n{")) << shown.out;
  EXPECT_TRUE(has(shown.out, "\"pid\": 42"));
  EXPECT_TRUE(has(shown.out, "\"format\": " + std::to_string(GetParam())));
  EXPECT_TRUE(has(shown.out, "\"user_gpu_id\": 100, \"actual_gpu_id\": 200"));
  EXPECT_TRUE(has(shown.out, GetParam() == 1 ? "\"size\": 1048876, \"stored\": 300, \"zero\": 1048576"
                                             : "\"size\": 131372, \"stored\": 65836, \"zero\": 65536"))
      << shown.out;
}

TEST_P(Versions, show_says_which_file_cannot_be_used_and_shows_the_others) {
  const std::string render = image::metadata_name(GetParam() == 1 ? 9 : 8);
  fs::resize_file(path(render), 50);
  const Outcome shown = tool("show");
  EXPECT_EQ(shown.status, Exit::kDiffers);
  EXPECT_TRUE(has(shown.out, "cannot be used: " + render + ": ")) << shown.out;
  EXPECT_TRUE(has(shown.out, "file 7: /dev/kfd of process 42")) << shown.out;
  const Outcome json = tool("show", {"--json"});
  EXPECT_EQ(json.status, Exit::kDiffers);
  EXPECT_TRUE(is_json(json.out)) << json.out;
  EXPECT_TRUE(has(json.out, "\"error\": \"" + render)) << json.out;
}

TEST_P(Versions, show_works_without_the_contents) {
  fs::remove(path(image::pages_name(kVersion1File)));
  const Outcome shown = tool("show");
  EXPECT_EQ(shown.status, Exit::kDiffers);
  EXPECT_TRUE(has(shown.out, "file 7: /dev/kfd of process 42")) << shown.out;
  EXPECT_TRUE(has(shown.out, "contents: amdgpu-pages-7.img: is missing")) << shown.out;
  EXPECT_TRUE(is_json(tool("show", {"--json"}).out));
}

TEST_F(Commands, a_programs_name_cannot_control_the_terminal) {
  write_dump(dir_.path(), [](Dump& dump) { dump.session.processes = {{42, "\x1b[2J\"\\"}}; });
  EXPECT_TRUE(has(tool("show").out, "process 42 (?[2J\"\\)"));
  const Outcome json = tool("show", {"--json"});
  EXPECT_TRUE(is_json(json.out));
  EXPECT_TRUE(has(json.out, R"("comm": "\u001b[2J\"\\")")) << json.out;
}

// ---- what cannot be read --------------------------------------------------------------------------------------------

TEST_F(Commands, a_directory_that_is_not_there_or_has_no_image_is_status_2) {
  write_file(path("inventory.img"), "CRIU's own");
  for (const char* command : {"show", "verify"}) {
    const Outcome none = tool(command);
    EXPECT_EQ(none.status, Exit::kUnreadable);
    EXPECT_EQ(none.error,
              "kfd-criu: error: " + dir_.path() + ": has no image of the plugin (is it CRIU's image directory?)\n");
    const Outcome missing = run_tool({command, "/nowhere"});
    EXPECT_EQ(missing.status, Exit::kUnreadable);
    EXPECT_EQ(missing.error, "kfd-criu: error: /nowhere: No such file or directory\n");
    EXPECT_EQ(run_tool({command, path("inventory.img")}).status, Exit::kUnreadable);
  }
}

TEST_P(Versions, a_file_that_cannot_be_opened_is_status_2_unless_another_is_damaged) {
  const std::string pages = image::pages_name(kVersion1File);
  fs::rename(path(pages), path("elsewhere"));
  fs::create_symlink("elsewhere", path(pages));
  const Outcome linked = tool("verify");
  EXPECT_EQ(linked.status, Exit::kUnreadable);
  EXPECT_TRUE(has(linked.out, "file 7: unreadable: " + pages)) << linked.out;
  fs::resize_file(path(image::metadata_name(GetParam() == 1 ? 9 : 8)), 50);
  EXPECT_EQ(tool("verify").status, Exit::kDiffers);
}

// ---- verify
// -----------------------------------------------------------------------------------------------------------

TEST_P(Versions, verify_passes_what_was_written) {
  const Outcome verified = tool("verify");
  EXPECT_EQ(verified.status, Exit::kGood) << verified.out;
  EXPECT_TRUE(has(verified.out, "file 7 (kfd): good, ")) << verified.out;
  EXPECT_TRUE(has(verified.out, "(render): good\n")) << verified.out;
  const Outcome json = tool("verify", {"--json"});
  EXPECT_TRUE(is_json(json.out)) << json.out;
  EXPECT_TRUE(json.out.starts_with("{\"magic\": \"AMDGPU_VERIFY\", \"entries\": [\n{\"id\": 7, \"kind\": \"kfd\""))
      << json.out;
}

TEST_P(Versions, verify_finds_every_changed_byte) {
  int bytes = 0;
  for (const std::string& name : names()) {
    const std::string good = read_file(path(name));
    const base::UniqueFd file(::open(path(name).c_str(), O_RDWR | O_CLOEXEC));
    for (std::size_t i = 0; i < good.size(); ++i, ++bytes) {
      // The test tries each byte of the header and of the end of a pages file, and samples the rest, which is of one
      // checksum or of zeros. DamageTest flips all of its bytes.
      if (name.starts_with("amdgpu-pages") && i > image::kHeaderSize && i + 64 < good.size() && i % 61 != 0) continue;
      const char bad = static_cast<char>(good[i] ^ (1 << (i % 8)));
      ASSERT_EQ(::pwrite(file.get(), &bad, 1, static_cast<off_t>(i)), 1);
      const Outcome verified = tool("verify");
      ASSERT_EQ(verified.status, Exit::kDiffers) << name << " byte " << i << ": " << verified.out << verified.error;
      ASSERT_TRUE(has(verified.out, ": damaged: ")) << name << " byte " << i << ": " << verified.out;
      ASSERT_EQ(::pwrite(file.get(), &good[i], 1, static_cast<off_t>(i)), 1);
    }
  }
  EXPECT_GT(bytes, GetParam() == 1 ? 500 : 1000);
  EXPECT_EQ(tool("verify").status, Exit::kGood);
}

TEST_P(Versions, verify_finds_every_missing_truncated_and_extended_file) {
  for (const std::string& name : names()) {
    const std::string good = read_file(path(name));
    fs::remove(path(name));
    // The last file of a dump is missing together with the dump.
    EXPECT_NE(tool("verify").status, Exit::kGood) << name << " missing";
    write_file(path(name), good + '\0');
    EXPECT_EQ(tool("verify").status, Exit::kDiffers) << name << " extended";
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, good.size() / 2, good.size() - 1}) {
      write_file(path(name), good.substr(0, length));
      EXPECT_EQ(tool("verify").status, Exit::kDiffers) << name << " length " << length;
    }
    write_file(path(name), good);
  }
  EXPECT_EQ(tool("verify").status, Exit::kGood);
}

TEST_P(Versions, verify_finds_files_of_no_dump) {
  for (const std::string& name : {image::pages_name(77), image::metadata_name(77), image::index_name(77),
                                  std::string(image::kUnfinishedManifestName)}) {
    write_file(path(name), "left");
    const Outcome verified = tool("verify");
    EXPECT_EQ(verified.status, Exit::kDiffers) << name;
    EXPECT_TRUE(has(verified.out, "damaged: " + name)) << verified.out;
    fs::remove(path(name));
  }
}

TEST_F(Commands, verify_says_of_a_lone_manifest_what_is_wrong) {
  write_file(path(std::string(image::kManifestName)), "no manifest");
  const Outcome verified = tool("verify");
  EXPECT_EQ(verified.status, Exit::kDiffers);
  EXPECT_TRUE(has(verified.out, std::string(image::kManifestName))) << verified.out;
}

TEST_F(Commands, verify_names_the_contents_of_a_file_that_a_killed_dump_gave_no_id) {
  write_dump(dir_.path());
  write_file(path("amdgpu-pages-1.img.tmp"), "half");
  const Outcome verified = tool("verify");
  EXPECT_EQ(verified.status, Exit::kDiffers);
  EXPECT_TRUE(has(verified.out, "amdgpu-pages-1.img.tmp")) << verified.out;
}

// Memory that the program had at its largest, in KiB.
long peak_of(const std::string& command, const std::string& directory) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    ::execl(KFD_CRIU_PATH, KFD_CRIU_PATH, command.c_str(), directory.c_str(), nullptr);
    ::_exit(127);
  }
  int status = -1;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
  return usage.ru_maxrss;
}

// ---- images of CRIU's own plugin ------------------------------------------------------------------------------------

// A made one with two BOs in VRAM, in `directory`; `change` is added to a byte in the second BO.
void write_upstream(const std::string& directory, char change = 0) {
  image::testing::MadeDump dump;
  std::string contents(image::kChunkSize + image::kPageSize, 'x');
  dump.bos = {{{0x10000, image::kPageSize, 0, 100, KFD_IOC_ALLOC_MEM_FLAGS_VRAM}, std::string(image::kPageSize, 'a')},
              {{0x7f0000000000, contents.size(), 0, 100, KFD_IOC_ALLOC_MEM_FLAGS_VRAM}, contents}};
  dump.bos[1].contents[image::kChunkSize + 5] = static_cast<char>('x' + change);
  for (const auto& [name, bytes] : dump.files(28)) write_file(directory + "/" + name, bytes);
  write_file(directory + "/amdgpu-renderD-30.img", image::testing::MadeDump::render(image::testing::Age::k3_17, 100));
}

TEST_F(Commands, show_says_what_compression_has_saved) {
  write_dump(dir_.path(), [](Dump& dump) {
    dump.packing = image::Packing::kAlways;
    dump.contents[0].assign(dump.contents[0].size(), std::byte{5});
  });
  const Outcome shown = tool("show");
  EXPECT_EQ(shown.status, Exit::kGood) << shown.error;
  EXPECT_TRUE(has(shown.out, "KiB saved by compression, 0 bytes zero\n")) << shown.out;
  EXPECT_TRUE(has(shown.out, "    GTT: 1 BO, 4.0 KiB: 0 bytes stored, 4.0 KiB zero\n")) << shown.out;
  const Outcome json = tool("show", {"--json"});
  EXPECT_TRUE(is_json(json.out)) << json.out;
  EXPECT_TRUE(has(json.out, "\"zero\": 0, \"referred\": 0, \"saved\": 13")) << json.out;
  EXPECT_EQ(tool("verify").status, Exit::kGood);
}

TEST_F(Commands, show_says_that_an_image_is_of_crius_own_plugin) {
  write_upstream(dir_.path());
  const Outcome shown = tool("show");
  EXPECT_EQ(shown.status, Exit::kGood) << shown.error;
  EXPECT_TRUE(has(shown.out, ": format of CRIU's own plugin, released ABI\n")) << shown.out;
  EXPECT_TRUE(has(shown.out, "file 28: /dev/kfd of process 42\n")) << shown.out;
  EXPECT_TRUE(has(shown.out, "VRAM: 2 BOs, 1.0 MiB: 1.0 MiB stored, 0 bytes zero\n")) << shown.out;
  EXPECT_TRUE(has(shown.out, "file 30: render node of GPU 100 (renderD128), process 42\n")) << shown.out;
  const Outcome json = tool("show", {"--json"});
  EXPECT_TRUE(is_json(json.out)) << json.out;
  EXPECT_TRUE(has(json.out, "\"format\": \"upstream\"")) << json.out;
}

TEST_F(Commands, verify_says_that_an_image_of_crius_own_plugin_has_no_checksums) {
  write_upstream(dir_.path());
  const Outcome verified = tool("verify");
  EXPECT_EQ(verified.status, Exit::kGood) << verified.out << verified.error;
  EXPECT_TRUE(has(verified.out, "file 28 (kfd): good as far as an image without checksums shows, 1.0 MiB of contents"))
      << verified.out;
  EXPECT_TRUE(has(tool("verify", {"--json"}).out, "\"checksums\": false"));
  for (const std::string& name : names()) {
    const std::string good = read_file(path(name));
    for (std::size_t length = 0; length < good.size(); length = length * 2 + 1) {
      write_file(path(name), good.substr(0, length));
      EXPECT_EQ(tool("verify").status, Exit::kDiffers) << name << " length " << length;
      (void)tool("show");
    }
    write_file(path(name), good);
  }
  EXPECT_EQ(tool("verify").status, Exit::kGood);
}

TEST_F(Commands, diff_reads_the_contents_of_images_without_checksums) {
  write_upstream(dir_.path());
  write_upstream(other_.path());
  const Outcome same = tool("diff", {other_.path()});
  EXPECT_EQ(same.status, Exit::kGood) << same.out << same.error;
  write_upstream(other_.path(), 1);
  const Outcome changed = tool("diff", {other_.path()});
  EXPECT_EQ(changed.status, Exit::kDiffers);
  EXPECT_EQ(changed.out,
            "process 42, kfd file, BO 0x7f0000000000 of GPU 100: contents: 1 byte of 1052672 | first at 0x100005\n");
}

TEST_F(Commands, topology_matches_the_gpus_of_an_image_of_crius_own_plugin) {
  write_upstream(dir_.path());
  FakeMachine machine;
  machine.add_gpu(1, 200, 128);
  const Outcome matched = run_tool({"topology", "--root", machine.root(), dir_.path()});
  EXPECT_NE(matched.status, Exit::kUnreadable) << matched.error;
  EXPECT_TRUE(has(matched.out, ": fits\n")) << matched.out;
}

TEST_F(Commands, memory_does_not_grow_with_the_contents) {
  constexpr std::size_t kLarge = 64U << 20;
  const auto of_size = [](std::size_t size) {
    return [size](Dump& dump) {
      dump.contents[0] = image::pattern(size);
      dump.kfd.bos[0].bo.size = size;
      dump.kfd.bos[1].bo.addr = 1ULL << 32;
      dump.kfd.bos[2].bo.addr = 2ULL << 32;
    };
  };
  write_dump(dir_.path(), of_size(4U << 20));
  write_dump(other_.path(), of_size(kLarge));
  for (const char* command : {"show", "verify"})
    EXPECT_LT(peak_of(command, other_.path()), peak_of(command, dir_.path()) + (8 << 10)) << command;
}

TEST_F(Commands, output_that_cannot_be_written_is_status_2) {
  write_dump(dir_.path());
  const std::string command = std::string(KFD_CRIU_PATH) + " show " + dir_.path() + " >/dev/full 2>/dev/null";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

TEST_F(Commands, the_process_has_the_documented_statuses) {
  write_dump(dir_.path());
  write_dump(other_.path(), [](Dump& dump) { dump.kfd.priv_data[0] = std::byte{9}; });
  const auto status = [](const std::string& arguments) {
    const int result = std::system((std::string(KFD_CRIU_PATH) + " " + arguments + " >/dev/null 2>&1").c_str());
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
  };
  EXPECT_EQ(status("verify " + dir_.path()), 0);
  EXPECT_EQ(status("diff " + dir_.path() + " " + other_.path()), 1);
  EXPECT_EQ(status("show /nowhere"), 2);
  EXPECT_EQ(status("nothing"), 64);
}

// ---- memory that processes share
// -------------------------------------------------------------------------------------------------------------

// Process 42 has allocated memory and process 43 has it too; `change` may change both before they are written.
void write_sharing(const std::string& path, const std::vector<std::byte>& contents,
                   const std::function<void(image::KfdFile& first, image::KfdFile& second)>& change = {}) {
  const base::UniqueFd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto writer = image::SessionWriter::create(dir.get(), image::kSession);
  ASSERT_TRUE(writer.ok());
  image::KfdFile first = image::test_kfd();
  first.bos = {image::test_bo(contents.size())};
  image::KfdFile second = image::test_kfd();
  second.pid = 43;
  second.bos = {image::test_bo(contents.size())};
  second.bos[0].imported = true;
  second.bos[0].stored_elsewhere = true;
  if (change) change(first, second);
  if (image::stores_contents(first.bos[0])) {
    ASSERT_TRUE((*writer)->file(7).append(contents).ok());
  }
  if (image::stores_contents(second.bos[0])) {
    ASSERT_TRUE((*writer)->file(8).append(contents).ok());
  }
  ASSERT_TRUE((*writer)->add({7, first}).ok());
  ASSERT_TRUE((*writer)->add({8, second}).ok());
  const auto prepared = (*writer)->prepare(image::test_session());
  ASSERT_TRUE(prepared.ok()) << prepared.error().message();
  ASSERT_TRUE((*writer)->commit().ok());
}

TEST_F(Commands, shared_memory_is_shown_and_verified_and_compared_wherever_it_is_stored) {
  write_sharing(dir_.path(), testing::sparse_contents());
  const Outcome shown = tool("show", {"--bos"});
  EXPECT_NE(shown.out.find("memory of another process"), std::string::npos) << shown.out;
  EXPECT_EQ(tool("verify").status, Exit::kGood);
  const Outcome json = tool("show", {"--json"});
  EXPECT_NE(json.out.find("\"imported\": true, \"stored_elsewhere\": true"), std::string::npos) << json.out;
  const auto exchange = [](image::KfdFile& first, image::KfdFile& second) {
    first.bos[0].stored_elsewhere = true;
    second.bos[0].stored_elsewhere = false;
  };
  write_sharing(other_.path(), testing::sparse_contents(), exchange);
  const Outcome same = tool("diff", {other_.path()});
  EXPECT_EQ(same.status, Exit::kGood) << same.out << same.error;
  auto changed = testing::sparse_contents();
  changed[5] ^= std::byte{1};
  write_sharing(other_.path(), changed, exchange);
  const Outcome different = tool("diff", {other_.path()});
  EXPECT_EQ(different.status, Exit::kDiffers);
  EXPECT_NE(different.out.find("process 43"), std::string::npos) << different.out;
}

TEST_F(Commands, verify_finds_shared_memory_that_two_allocated_or_nobody_stored) {
  write_sharing(dir_.path(), testing::sparse_contents(),
                [](image::KfdFile&, image::KfdFile& second) { second.bos[0].imported = false; });
  const Outcome twice = tool("verify");
  EXPECT_EQ(twice.status, Exit::kDiffers);
  EXPECT_NE(twice.out.find("it was allocated for this BO and for one of process 42"), std::string::npos) << twice.out;
  write_sharing(dir_.path(), testing::sparse_contents(),
                [](image::KfdFile& first, image::KfdFile&) { first.bos[0].stored_elsewhere = true; });
  const Outcome never = tool("verify");
  EXPECT_EQ(never.status, Exit::kDiffers);
  EXPECT_NE(never.out.find("the contents of shared memory"), std::string::npos) << never.out;
}

// ---- diff
// -------------------------------------------------------------------------------------------------------------

TEST_F(Commands, diff_of_a_dump_and_of_one_on_another_machine_is_empty) {
  write_dump(dir_.path());
  write_dump(other_.path(), [](Dump& dump) {
    dump.session_id = 5;
    dump.first_id = 70;
    dump.session.kernel_release = "6.18.0";
    dump.session.nodes = {image::test_node(0, 0), image::test_node(3, 999)};
    dump.kfd.devices = {{100, 999}};
    dump.kfd.bos[0].bo.mmap_offset = 0x777000;
    dump.kfd.bos[0].inode = 1;
    dump.kfd.bos[0].handle = 0;
  });
  const Outcome same = tool("diff", {other_.path()});
  EXPECT_EQ(same.status, Exit::kGood) << same.out;
  EXPECT_EQ(same.out + same.error, "");
  const Outcome json = tool("diff", {other_.path(), "--json"});
  EXPECT_EQ(json.out, "{\"magic\": \"AMDGPU_DIFF\", \"entries\": []}\n");
}

TEST_F(Commands, diff_compares_contents_of_different_versions) {
  write_version_1(dir_.path());
  const auto same_program = [](Dump& dump) {
    dump.session.abi = image::Abi::kReleased;
    dump.session.processes = {{42, "train"}};
    std::vector<std::byte> bytes(image::kChunkSize);
    for (const char c : plugin::testing::version_1_chunk()) bytes.push_back(static_cast<std::byte>(c));
    dump.kfd.bos = {dump.kfd.bos[0], dump.kfd.bos[2]};
    dump.kfd.bos[0].bo.size = bytes.size();
    dump.contents = {bytes};
  };
  // The userptr of the recorded dump is where it is.
  const auto catalogue_of = [](const std::string& path) {
    const base::UniqueFd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return image::Catalogue::read(dir.get());
  };
  const auto recorded = catalogue_of(dir_.path());
  ASSERT_TRUE(recorded.ok());
  const image::KfdFile& old = *(**recorded->find(kVersion1File)).kfd();
  ASSERT_EQ(old.bos.size(), 2U);
  write_dump(other_.path(), [&](Dump& dump) {
    same_program(dump);
    dump.kfd.bos[0].bo = old.bos[0].bo;
    dump.kfd.bos[1].bo = old.bos[1].bo;
  });
  const Outcome same = tool("diff", {other_.path()});
  // Only the owner of the render node is in version 2 alone.
  EXPECT_FALSE(has(same.out, "contents")) << same.out;
  EXPECT_FALSE(has(same.out, "BO")) << same.out;
  write_dump(other_.path(), [&](Dump& dump) {
    same_program(dump);
    dump.kfd.bos[0].bo = old.bos[0].bo;
    dump.kfd.bos[1].bo = old.bos[1].bo;
    dump.contents[0][image::kChunkSize + 5] = std::byte{0};
  });
  const Outcome changed = tool("diff", {other_.path()});
  EXPECT_EQ(changed.status, Exit::kDiffers);
  EXPECT_TRUE(has(changed.out, "contents: 1 byte of 1048876 | first at 0x100005\n")) << changed.out;
}

struct Change {
  const char* says;
  void (*change)(Dump&);
};

class Differences : public Commands, public ::testing::WithParamInterface<Change> {};

TEST_P(Differences, are_found_and_named) {
  write_dump(dir_.path());
  write_dump(other_.path(), GetParam().change);
  const Outcome found = tool("diff", {other_.path()});
  EXPECT_EQ(found.status, Exit::kDiffers);
  EXPECT_TRUE(has(found.out, GetParam().says)) << found.out;
  const Outcome back = run_tool({"diff", other_.path(), dir_.path()});
  EXPECT_EQ(back.status, Exit::kDiffers);
  const Outcome json = tool("diff", {other_.path(), "--json"});
  EXPECT_EQ(json.status, Exit::kDiffers);
  EXPECT_TRUE(is_json(json.out)) << json.out;
  EXPECT_TRUE(has(json.out, "\"where\": \"process 4")) << json.out;
}

INSTANTIATE_TEST_SUITE_P(
    Values, Differences,
    ::testing::Values(
        Change{"process 42, kfd file, BO 0x1000 of GPU 100: contents: 1 byte of 131372 | first at 0x1",
               [](Dump& d) { d.contents[0][1] = std::byte{0x42}; }},
        Change{"contents: 1 byte of 131372 | first at 0x10000", [](Dump& d) { d.contents[0][65536] = std::byte{1}; }},
        Change{"BO 0x100000 of GPU 100: contents: 4096 bytes of 4096 | first at 0x0",
               [](Dump& d) { d.contents[1].assign(4096, std::byte{7}); }},
        Change{"BO 0x200000 of GPU 100: BO: userptr, 4096 bytes, flags 0x4 | (none)",
               [](Dump& d) { d.kfd.bos.pop_back(); }},
        Change{"BO 0x300000 of GPU 100: BO: (none) | userptr", [](Dump& d) { d.kfd.bos[2].bo.addr = 0x300000; }},
        Change{"flags 0x4 | userptr, 4096 bytes, flags 0x80000004",
               [](Dump& d) { d.kfd.bos[2].bo.alloc_flags |= 1U << 31; }},
        Change{"userptr, 4096 bytes, flags 0x4 | userptr, 8192 bytes", [](Dump& d) { d.kfd.bos[2].bo.size = 8192; }},
        Change{"kernel state: 3 bytes | 3 bytes, not the same", [](Dump& d) { d.kfd.priv_data[2] = std::byte{0}; }},
        Change{"ABI of the kernel state: extensible | released",
               [](Dump& d) { d.session.abi = image::Abi::kReleased; }},
        Change{"objects: 3 | 4", [](Dump& d) { d.kfd.num_objects = 4; }},
        Change{"/dev/shm/hsakmt_shared_mem: 6 bytes | 6 bytes, not the same",
               [](Dump& d) { d.kfd.shared_files[0].contents = "Shared"; }},
        Change{"/dev/shm/hsakmt_shared_mem: 6 bytes | (none)", [](Dump& d) { d.kfd.shared_files.clear(); }},
        Change{"process 43: process: worker? | (none)", [](Dump& d) { d.session.processes.pop_back(); }},
        Change{"process 42: name: train | serve", [](Dump& d) { d.session.processes[0].comm = "serve"; }},
        Change{"kfd file: open flags: 0 | 2048", [](Dump& d) { d.kfd.open_flags = O_NONBLOCK; }}));

TEST_F(Commands, diff_of_a_damaged_dump_is_status_1_and_of_two_dumps_in_one_directory_2) {
  write_dump(dir_.path());
  write_dump(other_.path());
  fs::resize_file(other_.path() + "/" + image::pages_name(image::kKfdId), 5000);
  const Outcome truncated = tool("diff", {other_.path()});
  EXPECT_EQ(truncated.status, Exit::kDiffers);
  EXPECT_TRUE(has(truncated.error, "truncated")) << truncated.error;
  EXPECT_EQ(tool("diff", {"/nowhere"}).status, Exit::kUnreadable);
  const TempDir version_1;
  write_version_1(version_1.path());
  for (const auto& entry : fs::directory_iterator(version_1.path())) {
    const std::string name = entry.path().filename();
    if (has(name, "-9.img")) fs::copy(entry.path(), path(name));
  }
  const Outcome two = tool("diff", {dir_.path()});
  EXPECT_EQ(two.status, Exit::kUnreadable) << two.out;
  EXPECT_TRUE(has(two.error, "has files of 2 dumps")) << two.error;
}

// ---- topology
// ---------------------------------------------------------------------------------------------------------

class Topology : public Commands {
 protected:
  [[nodiscard]] Outcome topology(std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.begin(), {"topology", "--root", machine_.root()});
    return run_tool(arguments);
  }
  void TearDown() override { ::unsetenv("AMDGPU_PLUGIN_GPU_MAP"); }

  FakeMachine machine_;
};

TEST_F(Topology, lists_the_gpus_of_the_machine) {
  machine_.add_gpu(1, 4711, 128);
  machine_.add_gpu(2, 815, 129);
  fs::remove(machine_.root() + "/dev/dri/renderD129");
  const Outcome listed = topology();
  EXPECT_EQ(listed.status, Exit::kGood) << listed.error;
  EXPECT_EQ(
      listed.out,
      "GPU 4711: gfx906, renderD128, VRAM 1.0 GiB, firmware 440, PCIe to node 0\n"
      "GPU 815: gfx906, renderD129, VRAM 1.0 GiB, firmware 440, PCIe to node 0, its render node cannot be opened\n");
  const Outcome json = topology({"--json"});
  EXPECT_TRUE(is_json(json.out)) << json.out;
  EXPECT_TRUE(has(json.out, "\"gpu_id\": 815, \"gfx\": \"gfx906\", \"render_minor\": 129, \"usable\": false"))
      << json.out;
}

TEST_F(Topology, says_which_gpu_replaces_which) {
  machine_.add_gpu(1, 4711, 128);
  write_dump(dir_.path());
  const Outcome fits = topology({dir_.path()});
  EXPECT_EQ(fits.status, Exit::kGood) << fits.out;
  EXPECT_TRUE(has(fits.out, "session 1122334455667788: fits\n  GPU 4711 (renderD128) replaces GPU 200 of the image\n"))
      << fits.out;
  const Outcome json = topology({dir_.path(), "--json"});
  EXPECT_TRUE(is_json(json.out)) << json.out;
  EXPECT_TRUE(has(json.out, "\"image_gpu_id\": 200, \"replaced_by\": 4711")) << json.out;
}

TEST_F(Topology, says_why_no_gpu_fits) {
  machine_.add_gpu(1, 4711, 128);
  write_dump(dir_.path(), [](Dump& dump) { dump.session.nodes[1].properties["simd_count"] = 304; });
  const Outcome refused = topology({dir_.path()});
  EXPECT_EQ(refused.status, Exit::kDiffers);
  EXPECT_TRUE(has(refused.out, "does not fit: this machine has no 1 GPUs")) << refused.out;
  EXPECT_TRUE(has(refused.out, "GPU 4711 (renderD128): simd_count is 240, needs 304")) << refused.out;
  const Outcome json = topology({dir_.path(), "--json"});
  EXPECT_EQ(json.status, Exit::kDiffers);
  EXPECT_TRUE(is_json(json.out)) << json.out;
  EXPECT_TRUE(has(json.out, "\"fits\": false, \"reason\": \"simd_count is 240, needs 304\"")) << json.out;
}

TEST_F(Topology, follows_the_options_of_the_plugin) {
  machine_.add_gpu(1, 4711, 128);
  machine_.add_gpu(2, 815, 129);
  write_dump(dir_.path());
  ::setenv("AMDGPU_PLUGIN_GPU_MAP", "200:815", 1);
  EXPECT_TRUE(has(topology({dir_.path()}).out, "GPU 815 (renderD129) replaces GPU 200 of the image"));
  write_file(machine_.root() + "/etc/criu/amdgpu-plugin.conf", "# a comment\ngpu-map=200:4711\n");
  EXPECT_TRUE(has(topology({dir_.path()}).out, "GPU 4711 (renderD128) replaces GPU 200 of the image"));
  fs::remove_all(machine_.root() + "/etc");
  ::setenv("AMDGPU_PLUGIN_GPU_MAP", "nonsense", 1);
  const Outcome wrong = topology({dir_.path()});
  EXPECT_EQ(wrong.status, Exit::kUnreadable);
  EXPECT_TRUE(has(wrong.error, "AMDGPU_PLUGIN_GPU_MAP=nonsense")) << wrong.error;
}

TEST_F(Topology, leaves_a_gpu_alone_whose_sdma_queues_another_program_has) {
  write_dump(dir_.path());
  machine_.add_gpu(1, 200, 128);
  machine_.add_gpu(2, 815, 129);
  EXPECT_TRUE(has(topology({dir_.path()}).out, "GPU 200 (renderD128) replaces GPU 200 of the image"));
  machine_.add_queue(812, "tenant", 200);
  EXPECT_TRUE(has(topology({dir_.path()}).out, "GPU 815 (renderD129) replaces GPU 200 of the image"));
}

TEST_F(Topology, with_an_options_file_that_cannot_be_read_is_an_error) {
  machine_.add_gpu(1, 4711, 128);
  fs::create_directories(machine_.root() + "/etc/criu/amdgpu-plugin.conf");
  EXPECT_EQ(topology().status, Exit::kUnreadable);
}

TEST_F(Topology, of_a_machine_without_kfd_cannot_be_read) {
  const Outcome none = run_tool({"topology", "--root", dir_.path()});
  EXPECT_EQ(none.status, Exit::kUnreadable);
  EXPECT_TRUE(has(none.error, "no readable KFD topology node")) << none.error;
}

}  // namespace
}  // namespace kfd_criu
