// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A line of a reply is a noun, perhaps a name, then key=value pairs.
#include "kfdtest-criu/env/control_port.h"

#include <cerrno>
#include <optional>
#include <sstream>

#include "base/parse.h"

namespace kfdtest {
namespace {

bool begins_with_word(std::string_view line, std::string_view word) {
  return line.starts_with(word) && (line.size() == word.size() || line[word.size()] == ' ');
}

std::optional<std::string> value_of(const std::string& line, std::string_view key) {
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
      return word.substr(key.size() + 1);
  return std::nullopt;
}

base::Result<std::uint64_t> number_of(const std::string& line, std::string_view key) {
  const auto text = value_of(line, key);
  if (!text.has_value()) return base::Error(EPROTO, "no " + std::string(key) + " in: " + line);
  const auto number = text->starts_with("0x") ? base::parse_u64(*text, 16) : base::parse_u64(*text);
  if (!number.has_value()) return base::Error(EPROTO, std::string(key) + " is no number in: " + line);
  return *number;
}

std::string second_word(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  words >> word >> word;
  return word;
}

base::Result<QueueStatus> queue_of(const std::string& line) {
  QueueStatus queue;
  queue.name = second_word(line);
  queue.packets = value_of(line, "packets").value_or("");
  queue.state = value_of(line, "state").value_or("");
  ASSIGN_OR_RETURN(const std::uint64_t vmid, number_of(line, "vmid"));
  queue.vmid = static_cast<unsigned>(vmid);
  ASSIGN_OR_RETURN(queue.rptr, number_of(line, "rptr"));
  ASSIGN_OR_RETURN(queue.wptr, number_of(line, "wptr"));
  return queue;
}

}  // namespace

bool ControlPort::exists() {
  const auto client = control::Client::connect_from_guest();
  return client.ok() || client.error().code() != ENOENT;
}

base::Result<ControlPort> ControlPort::open(unsigned gpu) {
  ASSIGN_OR_RETURN(control::Client client, control::Client::connect_from_guest());
  return ControlPort(std::move(client), gpu);
}

base::Result<std::vector<std::string>> ControlPort::request(std::string_view command) {
  auto text = client_.request("gpu=" + std::to_string(gpu_) + " " + std::string(command));
  if (!text.ok()) return std::move(text).error().wrap(std::string(command));
  std::istringstream reply(*text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(reply, line);) lines.push_back(line);
  return lines;
}

base::Status ControlPort::tell(std::string_view command) {
  ASSIGN_OR_RETURN(const auto lines, request(command));
  return lines.empty() ? base::Status() : base::Error(EPROTO, "unexpected reply: " + lines.front());
}

base::Result<std::string> ControlPort::status(std::string_view noun, std::string_view key) {
  ASSIGN_OR_RETURN(const auto lines, request("status"));
  for (const std::string& line : lines) {
    if (!begins_with_word(line, noun)) continue;
    if (auto value = value_of(line, key)) return std::move(*value);
  }
  return base::Error(EPROTO, "status says no " + std::string(key) + " of " + std::string(noun));
}

base::Result<std::vector<QueueStatus>> ControlPort::queues() {
  ASSIGN_OR_RETURN(const auto lines, request("status"));
  std::vector<QueueStatus> queues;
  for (const std::string& line : lines) {
    if (!begins_with_word(line, "queue")) continue;
    ASSIGN_OR_RETURN(QueueStatus queue, queue_of(line));
    queues.push_back(std::move(queue));
  }
  return queues;
}

base::Result<std::vector<PageRange>> ControlPort::changed_pages() {
  ASSIGN_OR_RETURN(const auto lines, request("vram-truth diff"));
  std::vector<PageRange> ranges;
  for (const std::string& line : lines) {
    if (begins_with_word(line, "more")) return base::Error(E2BIG, "more changed pages than one answer has");
    if (!begins_with_word(line, "range")) continue;
    PageRange range;
    ASSIGN_OR_RETURN(range.first, number_of(line, "first"));
    ASSIGN_OR_RETURN(range.count, number_of(line, "count"));
    ranges.push_back(range);
  }
  return ranges;
}

base::Status ControlPort::cancel_requests() {
  for (const char* const command : {"resume", "link off", "drop-interrupt 0", "fail-unmap 0", "hold-interrupts off"})
    TRY(tell(command));
  ASSIGN_OR_RETURN(const auto lines, request("status"));
  for (const std::string& line : lines)
    if (begins_with_word(line, "hung")) TRY(tell("cure " + second_word(line)));
  return {};
}

}  // namespace kfdtest
