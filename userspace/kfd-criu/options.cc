// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The table of commands and options.
#include "kfd-criu/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace kfd_criu {
namespace {

ParsedOptions usage(std::string message) {
  std::ranges::replace(message, '\n', ' ');
  ParsedOptions parsed;
  parsed.error = "kfd-criu: error: " + message + " (try: kfd-criu --help)\n";
  parsed.status = Exit::kUsage;
  return parsed;
}

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& text, Command command,
                      Options& options) {
  CLI::App* sub = app.add_subcommand(name, text);
  sub->callback([command, &options] { options.command = command; });
  if (command != Command::kFlatten)
    sub->add_flag("--json", options.json, "print JSON in the shape of crit: {\"magic\", \"entries\"}");
  return sub;
}

}  // namespace

ParsedOptions parse_options(const std::vector<std::string>& arguments) {
  Options options;
  CLI::App app{"kfd-criu: look at the images of CRIU's plugin for AMD GPUs", "kfd-criu"};
  app.footer(
      "DIR is an image directory of CRIU.\n"
      "Exit status: 0 good; 1 damaged, different, or no GPUs that fit; 2 cannot be read; 64 usage.");
  app.require_subcommand(1);
  CLI::App* show = add_command(app, "show", "what is in the images", Command::kShow, options);
  show->add_flag("--bos", options.every_bo, "list each BO (JSON always has them)");
  show->add_flag("--timing", options.timing, "how long the dump took, and what it waited for (JSON always has it)");
  CLI::App* verify = add_command(app, "verify", "check every byte of the images", Command::kVerify, options);
  CLI::App* diff = add_command(app, "diff", "compare the programs in two directories", Command::kDiff, options);
  CLI::App* topology =
      add_command(app, "topology", "the GPUs of this machine, and which of them replace those of an image",
                  Command::kTopology, options);
  CLI::App* flatten =
      add_command(app, "flatten", "store what the dump has in earlier dumps, so that it needs none of them",
                  Command::kFlatten, options);
  for (CLI::App* sub : {show, verify, diff, flatten})
    sub->add_option("DIR", options.directory, "image directory")->required();
  diff->add_option("OTHER", options.other, "image directory that is compared with DIR")->required();
  topology->add_option("DIR", options.directory, "image directory");
  topology->add_option("--root", options.root, "folder with the sys and dev of the machine; / unless said")
      ->type_name("DIR");
  ParsedOptions parsed;
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    parsed.out = chosen.empty() ? app.help() : chosen.front()->help();
    return parsed;
  } catch (const CLI::Error& error) {
    return usage(error.what());
  }
  parsed.options = std::move(options);
  return parsed;
}

}  // namespace kfd_criu
