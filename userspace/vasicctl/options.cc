// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The table of options. The words of a command are not looked at: vasicd says what is wrong with them.
#include "vasicctl/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace vasicctl {
namespace {

constexpr unsigned kMaxGpu = 255;

ParsedOptions usage(std::string message) {
  std::ranges::replace(message, '\n', ' ');
  ParsedOptions parsed;
  parsed.error = "vasicctl: error: " + message + "\n";
  parsed.exit_status = kExitUsage;
  return parsed;
}

}  // namespace

ParsedOptions parse_options(const std::vector<std::string>& arguments) {
  Options options;
  std::vector<std::string> words;
  unsigned gpu = 0;
  CLI::App app{"vasicctl: ask or tell a virtual AMD GPU something (vasicctl help lists the commands)", "vasicctl"};
  app.footer(
      "The socket is that of --socket, of --vm, of $VASIC_CONTROL, or of the only virtual machine that runs.\n"
      "COMMAND is one of vasicd's, or: watch, which repeats status.\n"
      "Exit status: 0 done, 1 refused, 2 usage, 3 no connection.");
  auto* socket = app.add_option("--socket", options.socket, "control socket of vasicd")->type_name("PATH");
  app.add_option("--vm", options.vm, "that of the virtual machine out/vm/NAME")->type_name("NAME")->excludes(socket);
  auto* gpu_option = app.add_option("--gpu", gpu, "which GPU; needed if there are several")
                         ->type_name("N")
                         ->check(CLI::Range(0u, kMaxGpu));
  app.add_option("--interval", options.interval_s, "of watch, seconds")
      ->type_name("S")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  app.add_option("COMMAND", words, "the command and its arguments")->required();
  app.positionals_at_end();
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    ParsedOptions parsed;
    parsed.out = app.help();
    return parsed;
  } catch (const CLI::Error& error) {
    return usage(error.what());
  }
  if (words.front() == "watch") {
    if (words.size() > 1) return usage("watch takes no arguments");
    options.watch = true;
    words.front() = "status";
  }
  if (gpu_option->count() > 0) {
    options.gpu = gpu;
    options.line = "gpu=" + std::to_string(gpu) + " ";
  }
  for (const std::string& word : words) options.line += (&word == &words.front() ? "" : " ") + word;
  if (options.line.find('\n') != std::string::npos) return usage("a line break in the command");
  ParsedOptions parsed;
  parsed.options = std::move(options);
  return parsed;
}

}  // namespace vasicctl
