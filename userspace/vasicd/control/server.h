// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The control socket: takes lines of several clients, has them executed on the threads of the GPUs, sends the replies.
// One thread of its own, which never waits for a device or for a client. Clients are as little trusted as the guest,
// which may be one of these clients.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "vasicd/control/command.h"
#include "vasicd/control/connection.h"
#include "vasicd/control/execute.h"
#include "vasicd/device_thread.h"

namespace vasicd::control {

inline constexpr std::size_t kMaxClients = 16;

// One GPU as the server sees it.
struct Target {
  DeviceThread& thread;
  TraceBuffer& trace;
};

class Server {
 public:
  // Listens on `path`, mode 0600, which exists as long as this object. The targets outlive this object.
  static base::Result<std::unique_ptr<Server>> start(std::string path, const std::vector<Target>& targets);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  using ClientId = std::uint64_t;

  // Replies on their way from the devices' threads.
  class Outbox {
   public:
    static base::Result<std::shared_ptr<Outbox>> create();
    void post(ClientId client, std::string reply);
    std::vector<std::pair<ClientId, std::string>> take();
    void wake() const;
    [[nodiscard]] int fd() const { return wake_.get(); }

   private:
    std::mutex mutex_;
    std::vector<std::pair<ClientId, std::string>> replies_;  // guarded by mutex_
    base::UniqueFd wake_;
  };

  struct Gpu {
    explicit Gpu(Target target) : thread(target.thread), trace(target.trace) {}
    DeviceThread& thread;
    TraceBuffer& trace;
    bool recording = false;    // "trace on"
    std::uint64_t unread = 0;  // number of the next line for `trace read`; 0: not recorded yet
    std::shared_ptr<DeviceState> state = std::make_shared<DeviceState>(trace);
  };
  // A client that follows the trace; it is a reader of the trace buffer as long as this object exists.
  struct Follower {
    Follower(TraceBuffer& buffer, TraceBuffer::Stamp with) : trace(buffer), stamp(with), next(buffer.next_number()) {
      trace.add_reader();
    }
    ~Follower() { trace.remove_reader(); }
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;
    TraceBuffer& trace;
    TraceBuffer::Stamp stamp;
    std::uint64_t next;
  };
  struct Client {
    explicit Client(base::UniqueFd fd) : connection(std::move(fd)) {}
    Connection connection;
    bool in_flight = false;  // a device works on its request
    std::unique_ptr<Follower> follower;
  };

  Server(std::string path, const std::vector<Target>& targets)
      : path_(std::move(path)), gpus_(targets.begin(), targets.end()) {}
  base::Status listen();
  void serve(const std::stop_token& stop);
  void deliver_replies();
  void accept_client();
  void serve_client(ClientId id, Client& client);
  void request(ClientId id, Client& client, std::string_view line);
  // The GPU that a request names; if there is none: null, and an error was sent to the client.
  Gpu* gpu_of(Client& client, const Request& request);
  // Executes a command about the trace, which needs no device; false: it is another command.
  static bool trace_command(Client& client, Gpu& gpu, const Command& command);
  // Has a command executed on its GPU's thread; the reply comes through the outbox.
  void forward(ClientId id, Client& client, Gpu& gpu, Command command);
  // Sends new lines of the trace.
  void follow(Client& client);

  std::string path_;
  std::vector<Gpu> gpus_;
  bool bound_ = false;
  base::UniqueFd listener_;
  std::shared_ptr<Outbox> outbox_;
  std::map<ClientId, Client> clients_;
  ClientId next_client_ = 1;
  std::jthread thread_;  // last: everything above exists while it runs
};

}  // namespace vasicd::control
