// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// vasicctl: one request to vasicd. Errors are printed here and only here.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "control/client.h"
#include "vasicctl/find_socket.h"
#include "vasicctl/options.h"

namespace {

using vasicctl::Options;

int report(const base::Error& error, int status) {
  std::fprintf(stderr, "vasicctl: error: %s\n", error.message().c_str());
  return status;
}

// EPERM is vasicd's refusal of the request; every other error concerns the connection.
int status_of(const base::Error& error) {
  return error.code() == EPERM ? vasicctl::kExitRefused : vasicctl::kExitNoConnection;
}

bool print_line(std::string_view line) {
  std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
  return std::fflush(stdout) == 0;
}

int run(const Options& options) {
  std::error_code ignored;
  const auto vm_dir = vasicctl::find_vm_dir(std::filesystem::current_path(ignored), std::getenv("OUT_DIR"));
  const auto path = vasicctl::find_socket(options, std::getenv("VASIC_CONTROL"), vm_dir);
  if (!path.ok()) return report(path.error(), vasicctl::kExitNoConnection);
  auto client = control::Client::connect(*path);
  if (!client.ok()) return report(client.error(), vasicctl::kExitNoConnection);
  while (true) {
    const auto done = client->stream(options.line, print_line);
    if (!done.ok()) return report(done.error(), status_of(done.error()));
    if (!options.watch || !print_line("")) return 0;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = vasicctl::parse_options(std::vector<std::string>(argv + 1, argv + argc));
  std::fputs(parsed.out.c_str(), stdout);
  std::fputs(parsed.error.c_str(), stderr);
  if (!parsed.options) return parsed.exit_status;
  return run(*parsed.options);
}
