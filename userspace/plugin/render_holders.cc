// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/render_holders.h"

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string_view>
#include <vector>

#include "plugin/devices.h"
#include "plugin/proc_text.h"

namespace plugin::render_holders {
namespace {

using base::Error;
using base::Result;

// fdinfo of other files can be long, and tells nothing here.
bool may_be_render_node(std::string_view link) {
  return link.starts_with("/dev/dri/") || link.find(kShortLivedNode) != std::string_view::npos;
}

bool is_forbidden(const Error& error) { return error.code() == EACCES || error.code() == EPERM; }

// `process` is the process's directory in procfs.
Result<std::optional<Holder>> find_in(const std::string& process, std::span<const Client> clients) {
  ASSIGN_OR_RETURN(std::vector<int> numbers, numbers_in<int>(process + "/fd"));
  std::sort(numbers.begin(), numbers.end());
  for (const int number : numbers) {
    ASSIGN_OR_RETURN(const std::string link, read_link_if_there(process + "/fd/" + std::to_string(number)));
    if (!may_be_render_node(link)) continue;
    ASSIGN_OR_RETURN(const std::string fdinfo, base::read_text_if_there(process + "/fdinfo/" + std::to_string(number)));
    const auto client = parse_client(fdinfo);
    if (client && std::find(clients.begin(), clients.end(), *client) != clients.end())
      return std::optional<Holder>(Holder{0, {}, number, *client});
  }
  return std::optional<Holder>();
}

std::string comm_of(const std::string& process) {
  std::string comm = base::read_text_or_empty(process + "/comm");
  if (comm.ends_with('\n')) comm.pop_back();
  return comm;
}

}  // namespace

std::optional<Client> parse_client(const std::string& fdinfo) {
  std::optional<std::uint64_t> id;
  Client client;
  std::istringstream lines(fdinfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    std::string value;
    if (!(words >> key >> value)) continue;
    if (key == "drm-client-id:") id = parse_integer<std::uint64_t>(value);
    if (key == "drm-pdev:") client.device = value;
  }
  if (!id) return std::nullopt;
  client.id = *id;
  return client;
}

Result<std::optional<Client>> client_of(const std::string& proc, int fd) {
  ASSIGN_OR_RETURN(const std::string fdinfo, base::read_text(proc + "/self/fdinfo/" + std::to_string(fd)));
  return parse_client(fdinfo);
}

Result<Search> find(const std::string& proc, std::span<const Client> clients,
                    const std::function<bool(pid_t pid)>& is_inside) {
  Search search;
  ASSIGN_OR_RETURN(std::vector<pid_t> pids, numbers_in<pid_t>(proc));
  std::sort(pids.begin(), pids.end());
  for (const pid_t pid : pids) {
    if (is_inside(pid)) continue;
    const std::string process = proc + "/" + std::to_string(pid);
    auto holder = find_in(process, clients);
    if (holder.ok() && !*holder) continue;
    if (holder.ok()) {
      search.holder = std::move(holder).value();
      search.holder->pid = pid;
      search.holder->comm = comm_of(process);
      return search;
    }
    // The process has ended while its directory was read.
    if (base::is_absence(holder.error())) continue;
    if (!is_forbidden(holder.error())) return std::move(holder).error();
    ++search.hidden;
  }
  return search;
}

}  // namespace plugin::render_holders
