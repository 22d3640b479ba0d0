// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The table of options.
#include "vasicd/host/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/parse.h"
#include "vasicd/chip.h"
#include "vasicd/chip_properties.h"
#include "vasicd/mem/bus.h"
#include "vasicd/mem/guest_ram.h"

namespace vasicd {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kMinRam = 16 * kMiB;
constexpr std::uint64_t kMaxRam = std::uint64_t{1} << 40;

struct RawOptions {
  std::string dir;
  std::string ram_size = "2G";
  std::string ram_low = "2G";
  std::vector<std::string> gpus;
  std::string trace;
  std::string control;
  bool once = false;
  bool die_with_parent = false;
  bool list_chips = false;
  bool json = false;
};

ParsedOptions usage(const std::string& message) {
  ParsedOptions parsed;
  parsed.error = "vasicd: error: " + message + "\n";
  parsed.exit_status = kExitUsage;
  return parsed;
}

void declare(CLI::App& app, RawOptions& raw) {
  app.add_option("--dir", raw.dir, "directory of the sockets gpu<i>.sock and of vasicd.lock")->type_name("DIR");
  app.add_option("--ram-size", raw.ram_size, "guest RAM")->type_name("SIZE")->capture_default_str();
  app.add_option("--ram-low", raw.ram_low, "guest RAM below 4 GiB (QEMU: max-ram-below-4g)")
      ->type_name("SIZE")
      ->capture_default_str();
  // One SPEC per --gpu: its commas are not list separators.
  app.add_option("--gpu", raw.gpus,
                 "CHIP[,vram=SIZE][,vis=SIZE][,cu=N][,se=N][,sdma=N][,xcc=N][,unique-id=HEX][,hive=HEX][,fw=N]; "
                 "repeatable")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  app.add_option("--trace", raw.trace, "write one line per event")->type_name("FILE");
  app.add_option("--control", raw.control, "control socket (see vasicctl)")->type_name("PATH");
  app.add_flag("--once", raw.once, "exit when every guest that connected has gone");
  app.add_flag("--die-with-parent", raw.die_with_parent, "exit when the parent process dies");
  auto* list_chips = app.add_flag("--list-chips", raw.list_chips, "print the names of the chips and exit");
  app.add_flag("--json", raw.json, "with --list-chips: an array with an object of each chip's properties")
      ->needs(list_chips);
}

ParsedOptions check(const RawOptions& raw) {
  if (raw.dir.empty()) return usage("--dir is required");
  const auto ram_size = base::parse_size(raw.ram_size);
  if (!ram_size || *ram_size < kMinRam || *ram_size > kMaxRam || *ram_size % kMiB != 0)
    return usage("--ram-size: '" + raw.ram_size + "' must be 16M..1024G, whole megabytes");
  const auto ram_low = base::parse_size(raw.ram_low);
  if (!ram_low || *ram_low < kMiB || *ram_low > GuestRam::kHighBase || *ram_low % kMiB != 0)
    return usage("--ram-low: '" + raw.ram_low + "' must be 1M..4G, whole megabytes");
  if (raw.gpus.size() > kMaxGpus) return usage("--gpu: at most " + std::to_string(kMaxGpus));

  Options options{.dir = raw.dir,
                  .ram_size = *ram_size,
                  .ram_low = std::min(*ram_low, *ram_size),
                  .gpus = {},
                  .trace = raw.trace,
                  .control = raw.control,
                  .once = raw.once,
                  .die_with_parent = raw.die_with_parent};
  for (const std::string& spec : raw.gpus) {
    const auto info = parse_gpu_spec(spec, static_cast<unsigned>(options.gpus.size()));
    if (!info.ok()) return usage("--gpu " + spec + ": " + info.error().message());
    options.gpus.push_back(*info);
  }
  if (const auto joined = join_hives(options.gpus); !joined.ok()) return usage("--gpu: " + joined.error().message());
  ParsedOptions parsed;
  parsed.options = std::move(options);
  return parsed;
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

ParsedOptions parse_options(const std::vector<std::string>& arguments) {
  RawOptions raw;
  CLI::App app{"vasicd: host process of the virtual AMD GPU", "vasicd"};
  declare(app, raw);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    ParsedOptions parsed;
    parsed.out = app.help();
    return parsed;
  } catch (const CLI::Error& error) {
    return usage(one_line(error.what()));
  }
  if (raw.list_chips) {
    ParsedOptions parsed;
    if (raw.json)
      parsed.out = chips_as_json();
    else
      for (const auto name : chip_names()) parsed.out += std::string(name) + "\n";
    return parsed;
  }
  if (raw.gpus.empty()) raw.gpus.emplace_back("gfx906");
  return check(raw);
}

}  // namespace vasicd
