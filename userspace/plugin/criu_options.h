// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Options that CRIU was started with: of its command line, and of the configuration files that it puts before it. Not
// here: options that a caller sends to CRIU's service (RPC), which leave no trace.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plugin::criu_options {

using Environment = std::function<const char*(const char* name)>;
using ReadFile = std::function<base::Result<std::string>(const std::string& path)>;

// The configuration files that CRIU looks for, present or not.
[[nodiscard]] std::vector<std::string> files(const std::vector<std::string>& arguments, const Environment& environment);

// The options of a configuration file as on a command line, without their values.
[[nodiscard]] std::vector<std::string> options_in(const std::string& file);

// `arguments`, and the options of all configuration files. As CRIU does, passes over a file that `text_of` cannot read.
[[nodiscard]] std::vector<std::string> all(std::vector<std::string> arguments, const Environment& environment,
                                           const ReadFile& text_of);

// Whether one of the arguments is the option `name`, or an abbreviation of it, as getopt_long() accepts them, of at
// least `shortest` characters, with or without "=VALUE". Both with "--".
[[nodiscard]] bool contains(const std::vector<std::string>& arguments, std::string_view name,
                            std::string_view shortest);

// Whether CRIU may have been given the directory of an earlier dump: by --prev-images-dir, or by a caller of its
// service, whose options leave no trace. If it was not, the link `parent` in the image directory is of another dump,
// which CRIU leaves there.
[[nodiscard]] bool may_have_parent(const std::vector<std::string>& arguments);

}  // namespace plugin::criu_options
