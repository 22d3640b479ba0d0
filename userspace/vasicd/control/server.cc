// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The loop over clients. A client has at most one request in flight; lines that it sends meanwhile wait in the buffer
// of its connection, then in its socket. Its next line is taken only when it has read the last reply, so replies cannot
// pile up.
#include "vasicd/control/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <optional>
#include <variant>

#include "vasic/vasic_abi.h"

namespace vasicd::control {
namespace {

constexpr int kBacklog = 8;
constexpr mode_t kMode = 0600;
constexpr int kProtocolVersion = 1;
constexpr std::size_t kMaxTraceReply = std::size_t{1} << 20;
// How many bytes of the trace one client gets in one round, and how often.
constexpr std::size_t kFollowBytes = std::size_t{64} << 10;
constexpr unsigned kFollowRounds = 4;

std::string version_text() {
  return "version control=" + std::to_string(kProtocolVersion) + " abi=" + std::to_string(VASIC_ABI_VERSION) + "\n";
}

// Replies to commands that need no GPU.
std::optional<std::string> answer(const Command& command) {
  if (std::holds_alternative<Help>(command)) return reply_ok(help_text());
  if (std::holds_alternative<Version>(command)) return reply_ok(version_text());
  if (const auto* echo = std::get_if<Echo>(&command)) return reply_ok("echo " + echo->text + "\n");
  return std::nullopt;
}

}  // namespace

base::Result<std::shared_ptr<Server::Outbox>> Server::Outbox::create() {
  auto outbox = std::make_shared<Outbox>();
  outbox->wake_ = base::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!outbox->wake_.valid()) return base::Error::from_errno(errno, "eventfd");
  return outbox;
}

void Server::Outbox::post(ClientId client, std::string reply) {
  {
    const std::lock_guard lock(mutex_);
    replies_.emplace_back(client, std::move(reply));
  }
  wake();
}

std::vector<std::pair<Server::ClientId, std::string>> Server::Outbox::take() {
  eventfd_t count = 0;
  (void)::eventfd_read(fd(), &count);
  const std::lock_guard lock(mutex_);
  return std::exchange(replies_, {});
}

void Server::Outbox::wake() const { ::eventfd_write(fd(), 1); }

base::Result<std::unique_ptr<Server>> Server::start(std::string path, const std::vector<Target>& targets) {
  std::unique_ptr<Server> server(new Server(std::move(path), targets));
  ASSIGN_OR_RETURN(server->outbox_, Outbox::create());
  TRY(server->listen());
  server->thread_ = std::jthread([self = server.get()](const std::stop_token& stop) { self->serve(stop); });
  return server;
}

Server::~Server() {
  if (thread_.joinable()) {
    thread_.request_stop();
    outbox_->wake();
    thread_.join();
  }
  if (bound_) ::unlink(path_.c_str());
}

base::Status Server::listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof(address.sun_path)) return base::Error::from_errno(ENAMETOOLONG, path_);
  path_.copy(address.sun_path, path_.size());
  listener_ = base::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.valid()) return base::Error::from_errno(errno, path_);
  struct stat existing {};
  if (::lstat(path_.c_str(), &existing) == 0) {
    // Only a socket can be left over from an earlier vasicd; other files are not removed.
    if (!S_ISSOCK(existing.st_mode)) return base::Error(EEXIST, path_ + ": exists and is not a socket");
    if (::unlink(path_.c_str()) != 0) return base::Error::from_errno(errno, path_);
  }
  // Linux gives the file the mode of the socket, less the umask: it is never open to others, not even for a moment.
  if (::fchmod(listener_.get(), kMode) != 0) return base::Error::from_errno(errno, path_);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return base::Error::from_errno(errno, path_);
  }
  bound_ = true;
  if (::listen(listener_.get(), kBacklog) != 0) return base::Error::from_errno(errno, path_);
  return {};
}

void Server::serve(const std::stop_token& stop) {
  std::vector<pollfd> watched;
  while (!stop.stop_requested()) {
    watched.clear();
    watched.push_back({.fd = outbox_->fd(), .events = POLLIN, .revents = 0});
    watched.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
    for (const auto& [id, client] : clients_) {
      watched.push_back({.fd = client.connection.fd(), .events = client.connection.events(), .revents = 0});
    }
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    deliver_replies();
    accept_client();
    for (auto it = clients_.begin(); it != clients_.end();) {
      serve_client(it->first, it->second);
      const Connection& connection = it->second.connection;
      const bool gone = connection.broken() || (connection.finished() && !it->second.in_flight);
      it = gone ? clients_.erase(it) : std::next(it);
    }
  }
}

void Server::deliver_replies() {
  for (auto& [id, reply] : outbox_->take()) {
    const auto it = clients_.find(id);
    if (it == clients_.end()) continue;
    it->second.in_flight = false;
    it->second.connection.send(reply);
  }
}

void Server::accept_client() {
  base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  Client client(std::move(fd));
  if (clients_.size() >= kMaxClients) {
    client.connection.send(reply_error("more than " + std::to_string(kMaxClients) + " clients"));
    client.connection.flush();
    return;
  }
  clients_.emplace(next_client_++, std::move(client));
}

void Server::serve_client(ClientId id, Client& client) {
  Connection& connection = client.connection;
  connection.receive();
  connection.flush();
  if (client.follower != nullptr && (connection.line_waits() || connection.ended())) {
    client.follower.reset();
    connection.send(reply_ok());
    connection.flush();
  }
  while (!client.in_flight && client.follower == nullptr && connection.unsent() == 0) {
    const auto line = connection.take_line();
    if (!line) break;
    request(id, client, *line);
    connection.flush();
  }
  if (client.follower != nullptr) follow(client);
  connection.flush();
}

void Server::request(ClientId id, Client& client, std::string_view line) {
  auto parsed = parse(line);
  if (!parsed.ok()) return client.connection.send(reply_error(parsed.error().message()));
  if (const auto text = answer(parsed->command)) return client.connection.send(*text);
  Gpu* const gpu = gpu_of(client, *parsed);
  if (gpu == nullptr || trace_command(client, *gpu, parsed->command)) return;
  forward(id, client, *gpu, std::move(parsed->command));
}

Server::Gpu* Server::gpu_of(Client& client, const Request& request) {
  const std::string gpus = std::to_string(gpus_.size());
  if (!request.gpu && gpus_.size() != 1) {
    client.connection.send(reply_error("gpu=N is needed: there are " + gpus + " GPUs"));
    return nullptr;
  }
  const unsigned gpu = request.gpu.value_or(0);
  if (gpu >= gpus_.size()) {
    client.connection.send(reply_error("no gpu=" + std::to_string(gpu) + ": there are " + gpus + " GPUs"));
    return nullptr;
  }
  return &gpus_[gpu];
}

bool Server::trace_command(Client& client, Gpu& gpu, const Command& command) {
  if (const auto* record = std::get_if<TraceRecord>(&command)) {
    const bool on = record->state == TraceRecord::State::kOn;
    if (on && !gpu.recording) {
      gpu.unread = gpu.trace.next_number();
      gpu.trace.add_reader();
    }
    if (!on && gpu.recording) gpu.trace.remove_reader();
    gpu.recording = on;
    client.connection.send(reply_ok());
    return true;
  }
  if (const auto* read = std::get_if<TraceRead>(&command)) {
    std::string lines;
    if (gpu.unread != 0) gpu.trace.read(gpu.unread, read->stamp, kMaxTraceReply, lines);
    client.connection.send(gpu.unread == 0 ? reply_error("trace on comes first") : reply_ok(std::move(lines)));
    return true;
  }
  if (const auto* wanted = std::get_if<TraceFollow>(&command)) {
    client.follower = std::make_unique<Follower>(gpu.trace, wanted->stamp);
    return true;
  }
  return false;
}

void Server::forward(ClientId id, Client& client, Gpu& gpu, Command command) {
  const bool posted = gpu.thread.post([outbox = outbox_, id, state = gpu.state, request = std::move(command)](
                                          Device& device) { outbox->post(id, execute(device, *state, request)); });
  if (!posted) return client.connection.send(reply_error("the GPU has too many requests to execute"));
  client.in_flight = true;
}

void Server::follow(Client& client) {
  Connection& connection = client.connection;
  Follower& follower = *client.follower;
  follower.trace.notify_once(outbox_->fd());
  for (unsigned i = 0; i < kFollowRounds && connection.unsent() == 0; ++i) {
    std::string lines;
    follower.trace.read(follower.next, follower.stamp, kFollowBytes, lines);
    if (lines.empty()) return;
    connection.send(lines);
    connection.flush();
  }
  if (connection.unsent() == 0)
    outbox_->wake();  // there may be more lines of the trace; other clients have their turn first
}

}  // namespace vasicd::control
