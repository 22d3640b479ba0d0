// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The table of errors against what the kernel's header and documentation say: no errno of theirs is missing, and no row
// has one that they do not have.
#include "kfd/errors.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "kfd/extensible_kfd.h"

namespace kfd {
namespace {

constexpr std::array kAbis = {Abi::kReleased, Abi::kExtensible};
constexpr std::array kOperations = {Operation::kVersion,    Operation::kProbe,    Operation::kPause,
                                    Operation::kCheckpoint, Operation::kExportBo, Operation::kBoOffset,
                                    Operation::kUnpause,    Operation::kRestore,  Operation::kResume};

std::string read(const std::string& name) {
  std::ifstream in(std::string(KERNEL_DIR) + "/" + name);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string header() { return read("uapi/linux/kfd_criu_ioctl.h"); }
std::string documentation() { return read("amdkfd-criu/overlay/Documentation/gpu/amdgpu/kfd-criu.rst"); }

// The number of "EINVAL"; 0 if there is no such errno.
int number_of(const std::string& name) {
  for (int code = 1; code < 256; ++code)
    if (const char* known = ::strerrorname_np(code); known != nullptr && name == known) return code;
  return name == "EOPNOTSUPP" ? EOPNOTSUPP : 0;
}

std::set<int> errnos_in(const std::string& text, const std::string& pattern) {
  std::set<int> codes;
  const std::regex expression(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match)
    if (const int code = number_of((*match)[1]); code != 0) codes.insert(code);
  return codes;
}

// The part of `text` from one line to another.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin);
  EXPECT_NE(from, std::string::npos) << begin;
  const auto to = text.find(end, from + begin.size());
  EXPECT_NE(to, std::string::npos) << end;
  return text.substr(from, to - from);
}

// "DOC: Errors" of the header: what all operations have.
std::set<int> common_errnos() { return errnos_in(between(header(), "DOC: Errors", "*/"), R"(- (E[A-Z0-9]+):)"); }

// The comment in front of "#define KFD_CRIU_CMD_NAME": what one operation has besides.
std::set<int> own_errnos(const std::string& name) {
  const std::string text = header();
  const auto define = text.find("#define KFD_CRIU_CMD_" + name + "\t");
  EXPECT_NE(define, std::string::npos) << name;
  const auto comment = text.rfind("/*", define);
  return errnos_in(text.substr(comment, define - comment), R"(\b(E[A-Z0-9]+)(?:,|:|\s+is))");
}

// A row of the table "Refusals": its errnos, and whether it is about both interfaces.
struct Refusal {
  std::set<int> codes;
  bool both = false;
};
std::vector<Refusal> refusals() {
  std::vector<Refusal> rows;
  std::istringstream table(between(documentation(), "\nRefusals\n", "\nGPU ids\n"));
  std::string text;
  const auto finish = [&] {
    if (text.starts_with("E"))
      rows.push_back({errnos_in(text.substr(0, text.find("  ")), R"((E[A-Z0-9]+))"),
                      text.find("(extensible interface)") == std::string::npos});
  };
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with(" ")) {
      text += line;
      continue;
    }
    finish();
    text = line + "  ";
  }
  finish();
  return rows;
}

// The errnos of an operation in "States".
std::set<int> state_errnos(const std::string& name) {
  const std::string table = between(documentation(), "\nOperation               RUNNING", "Ioctls that change nothing");
  return errnos_in(between(table, "\n" + name, "\n"), R"((E[A-Z0-9]+))");
}

const std::map<Operation, std::string> kStateRows = {{Operation::kPause, "PAUSE, PROCESS_INFO"},
                                                     {Operation::kCheckpoint, "CHECKPOINT"},
                                                     {Operation::kUnpause, "UNPAUSE"},
                                                     {Operation::kRestore, "RESTORE"},
                                                     {Operation::kResume, "RESUME"},
                                                     {Operation::kExportBo, "EXPORT_BO"},
                                                     {Operation::kBoOffset, "EXPORT_BO"}};
const std::map<Operation, std::string> kCommands = {
    {Operation::kProbe, "PROBE"},        {Operation::kPause, "PAUSE"},       {Operation::kCheckpoint, "CHECKPOINT"},
    {Operation::kUnpause, "UNPAUSE"},    {Operation::kRestore, "RESTORE"},   {Operation::kResume, "RESUME"},
    {Operation::kExportBo, "EXPORT_BO"}, {Operation::kBoOffset, "BO_OFFSET"}};

std::string name_of(Abi abi, Operation operation, int code) {
  return std::string(operation_name(abi, operation)) + " " + std::to_string(code) + " " + std::strerror(code);
}

bool fits(const ErrorRow& row, Abi abi, Operation operation) {
  return (row.abis & static_cast<std::uint32_t>(abi)) != 0 &&
         (row.operations & static_cast<std::uint32_t>(operation)) != 0;
}

TEST(Errors, every_row_has_cause_remedy_and_source_and_explains_something) {
  for (const ErrorRow& row : error_table()) {
    EXPECT_GT(std::strlen(row.cause), 10U);
    EXPECT_GT(std::strlen(row.remedy), 5U) << row.cause;
    EXPECT_GT(std::strlen(row.source), 5U) << row.cause;
    EXPECT_NE(std::strchr(".", row.cause[std::strlen(row.cause) - 1]) != nullptr, true) << row.cause;
    bool used = false;
    for (const Abi abi : kAbis)
      for (const Operation operation : kOperations)
        used = used || (fits(row, abi, operation) && find_error(abi, operation, row.code) == &row);
    EXPECT_TRUE(used) << "rows before it hide: " << row.cause;
  }
}

TEST(Errors, an_error_says_operation_cause_errno_and_remedy) {
  for (const Abi abi : kAbis) {
    for (const Operation operation : kOperations) {
      for (const ErrorRow& row : error_table()) {
        if (find_error(abi, operation, row.code) != &row) continue;
        const base::Error error = operation_error(abi, operation, row.code);
        EXPECT_EQ(error.code(), row.code);
        EXPECT_EQ(error.message(), std::string(operation_name(abi, operation)) + ": " + row.cause + " (" +
                                       ::strerrorname_np(row.code) + "): " + row.remedy);
      }
    }
  }
}

TEST(Errors, an_errno_without_a_row_is_not_explained) {
  EXPECT_EQ(find_error(Abi::kReleased, Operation::kVersion, EXDEV), nullptr);
  EXPECT_EQ(operation_error(Abi::kReleased, Operation::kPause, EXDEV).message(),
            "KFD PROCESS_INFO: Invalid cross-device link (EXDEV)");
  EXPECT_EQ(operation_error(Abi::kExtensible, Operation::kPause, 4000).message(),
            "KFD PAUSE: Unknown error 4000 (errno 4000)");
}

TEST(Errors, every_errno_that_the_header_gives_an_operation_has_a_row) {
  for (const auto& [operation, command] : kCommands) {
    for (const int code : own_errnos(command))
      EXPECT_NE(find_error(Abi::kExtensible, operation, code), nullptr) << name_of(Abi::kExtensible, operation, code);
  }
  ASSERT_TRUE(own_errnos("CHECKPOINT").contains(EXDEV));  // or the header is read wrongly
}

TEST(Errors, every_common_errno_of_the_header_has_a_row) {
  const auto codes = common_errnos();
  ASSERT_GE(codes.size(), 12U);
  for (const Operation operation : {Operation::kPause, Operation::kCheckpoint, Operation::kRestore}) {
    for (const int code : codes) {
      if (operation == Operation::kPause && code == EBADF) continue;  // it takes no pause
      EXPECT_NE(find_error(Abi::kExtensible, operation, code), nullptr) << name_of(Abi::kExtensible, operation, code);
    }
  }
}

TEST(Errors, every_refusal_of_the_documentation_has_a_row) {
  const auto rows = refusals();
  ASSERT_GE(rows.size(), 15U);
  for (const Refusal& refusal : rows) {
    ASSERT_FALSE(refusal.codes.empty());
    for (const int code : refusal.codes) {
      EXPECT_TRUE(find_error(Abi::kExtensible, Operation::kRestore, code) != nullptr ||
                  find_error(Abi::kExtensible, Operation::kResume, code) != nullptr)
          << name_of(Abi::kExtensible, Operation::kRestore, code);
      EXPECT_TRUE(!refusal.both || find_error(Abi::kReleased, Operation::kRestore, code) != nullptr ||
                  find_error(Abi::kReleased, Operation::kResume, code) != nullptr)
          << name_of(Abi::kReleased, Operation::kRestore, code);
    }
  }
}

TEST(Errors, every_state_that_forbids_an_operation_has_a_row) {
  for (const auto& [operation, name] : kStateRows) {
    for (const int code : state_errnos(name)) {
      EXPECT_NE(find_error(Abi::kExtensible, operation, code), nullptr) << name_of(Abi::kExtensible, operation, code);
      if (operation != Operation::kExportBo && operation != Operation::kBoOffset) {
        EXPECT_NE(find_error(Abi::kReleased, operation, code), nullptr) << name_of(Abi::kReleased, operation, code);
      }
    }
  }
  ASSERT_TRUE(state_errnos("RESTORE").contains(EBUSY));
}

// Errnos that come from deeper in the kernel, or from a kernel without the ABI; the row's source names the function.
const std::set<std::pair<Operation, int>> kFromCodeOnly = {{Operation::kPause, ETIME},
                                                           {Operation::kPause, EMFILE},
                                                           {Operation::kUnpause, ETIME},
                                                           {Operation::kExportBo, EMFILE},
                                                           {Operation::kCheckpoint, ENODEV}};

TEST(Errors, no_row_of_the_extensible_abi_has_an_errno_that_the_kernel_does_not_document) {
  std::set<int> refused;
  for (const Refusal& refusal : refusals()) refused.insert(refusal.codes.begin(), refusal.codes.end());
  const auto common = common_errnos();
  for (const auto& [operation, command] : kCommands) {
    std::set<int> documented = own_errnos(command);
    documented.insert(common.begin(), common.end());
    if (operation == Operation::kRestore || operation == Operation::kResume)
      documented.insert(refused.begin(), refused.end());
    if (const auto row = kStateRows.find(operation); row != kStateRows.end())
      documented.merge(state_errnos(row->second));
    // The operations that take a pause have the errnos of a wrong one.
    if (operation == Operation::kExportBo || operation == Operation::kBoOffset)
      documented.merge(own_errnos("CHECKPOINT"));
    for (const ErrorRow& row : error_table())
      if (find_error(Abi::kExtensible, operation, row.code) == &row && !kFromCodeOnly.contains({operation, row.code})) {
        EXPECT_TRUE(documented.contains(row.code))
            << name_of(Abi::kExtensible, operation, row.code) << ": " << row.cause;
      }
  }
}

TEST(Errors, every_reason_of_the_header_is_a_text_that_replaces_the_tables) {
  const std::string text = header();
  const std::regex define(R"(#define KFD_CRIU_REASON_(\w+)\s+(\d+))");
  std::size_t count = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), define), end; match != end; ++match, ++count) {
    const auto reason = static_cast<std::uint32_t>(std::stoul((*match)[2]));
    if (reason == 0) continue;
    ASSERT_NE(reason_text(reason), nullptr) << (*match)[1];
    const auto message =
        operation_error(Abi::kExtensible, Operation::kPause, EOPNOTSUPP, {.reason = reason, .record = 0}).message();
    EXPECT_EQ(message, std::string("KFD PAUSE: ") + reason_text(reason) + " (EOPNOTSUPP)");
  }
  EXPECT_GE(count, 9U);
  EXPECT_EQ(reason_text(0), nullptr);
  EXPECT_EQ(reason_text(4000), nullptr);
}

TEST(Errors, a_reason_counts_only_with_the_errnos_that_have_one) {
  const auto message =
      operation_error(Abi::kExtensible, Operation::kPause, EBUSY, {.reason = 1, .record = 0}).message();
  EXPECT_EQ(message.find("debugger"), std::string::npos) << message;
}

TEST(Errors, a_refused_record_is_named) {
  const auto message =
      operation_error(Abi::kExtensible, Operation::kRestore, ENXIO, {.reason = 0, .record = 7}).message();
  EXPECT_TRUE(message.starts_with("KFD RESTORE: record 7 of the image: the GPU differs from that of the image (ENXIO)"))
      << message;
}

TEST(Errors, both_interfaces_use_the_table) {
  const base::UniqueFd not_kfd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  RealKfd released;
  ExtensibleKfd extensible;
  const auto old_error = released.pause(not_kfd.get());
  ASSERT_FALSE(old_error.ok());
  EXPECT_EQ(old_error.error().message(), operation_error(Abi::kReleased, Operation::kPause, ENOTTY).message());
  const auto new_error = extensible.pause(not_kfd.get());
  ASSERT_FALSE(new_error.ok());
  EXPECT_EQ(new_error.error().message(), operation_error(Abi::kExtensible, Operation::kPause, ENOTTY).message());
}

}  // namespace
}  // namespace kfd
