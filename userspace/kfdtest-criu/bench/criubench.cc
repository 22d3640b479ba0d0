// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Measures what checkpoint and restore of a process with many objects take in the kernel, on the first GPU; JSON on
// standard output.
//   criubench --abi released|extensible [--seconds S]
// For each kind of objects it measures no object, 1/8, 1/4 and 1/2 of the most, and the most (bench/objects.h), in
// rounds for S seconds, at least one round. Each measurement has two processes of its own: one makes the objects and
// checkpoints itself; its child restores them when the first has ended. The least time of each count is the result,
// because disturbances only add.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/parse.h"
#include "kfdtest-criu/bench/bench_main.h"
#include "kfdtest-criu/bench/linear_fit.h"
#include "kfdtest-criu/bench/objects.h"
#include "kfdtest-criu/bench/timed_criu.h"
#include "kfdtest-criu/env/deadline.h"

namespace kfdtest {
namespace {

// The released ABI makes a file of each BO.
constexpr rlim_t kFiles = 65'536;
constexpr std::array<unsigned, 4> kParts = {8, 4, 2, 1};
constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr double kNanosecondsPerMicrosecond = 1000;

struct Options {
  bool extensible = false;
  std::uint64_t seconds = 5;
};

base::Status wait_for_end_of(pid_t process) {
  const std::string entry = "/sys/class/kfd/kfd/proc/" + std::to_string(process);
  if (wait_until([&] { return !std::filesystem::exists(entry); })) return {};
  return base::Error(ETIME, "the first process keeps its GPU");
}

// Runs in the second process.
base::Result<CriuTimes> restore(TimedImage& image, const Gpu& gpu, pid_t first, CriuTimes times) {
  TRY(wait_for_end_of(first));
  ASSIGN_OR_RETURN(const OpenGpu open, OpenGpu::open(gpu));
  TRY(image.restore(open.client.fd(), gpu.gpu_id, open.render.get(), times));
  return times;
}

[[noreturn]] void tell(const base::Result<CriuTimes>& times, int pipe) {
  if (!times.ok()) std::fprintf(stderr, "criubench: %s\n", times.error().message().c_str());
  const bool told = times.ok() && ::write(pipe, &*times, sizeof(*times)) == sizeof(*times);
  ::_exit(told ? EXIT_SUCCESS : EXIT_FAILURE);
}

// Runs in the first process, which does not return from here unless it fails.
base::Error checkpoint(const Gpu& gpu, ObjectKind kind, unsigned count, bool extensible, int pipe) {
  CriuTimes times;
  const auto image = extensible ? extensible_image() : released_image();
  auto open = OpenGpu::open(gpu);
  if (!open.ok()) return open.error();
  if (const auto made = make_objects(*open, gpu, kind, count); !made.ok()) return made.error();
  if (const auto taken = image->take(open->client.fd(), times); !taken.ok()) return taken.error();
  const pid_t self = ::getpid();
  const pid_t second = ::fork();
  if (second < 0) return base::Error::from_errno(errno, "fork");
  if (second > 0) ::_exit(EXIT_SUCCESS);
  { const OpenGpu inherited = std::move(*open); }
  tell(restore(*image, gpu, self, times), pipe);
}

base::Result<CriuTimes> measure(const Gpu& gpu, ObjectKind kind, unsigned count, bool extensible) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::Error::from_errno(errno, "pipe");
  const base::UniqueFd from(ends[0]);
  base::UniqueFd to(ends[1]);
  const pid_t first = ::fork();
  if (first < 0) return base::Error::from_errno(errno, "fork");
  if (first == 0) tell(checkpoint(gpu, kind, count, extensible, to.get()), to.get());
  to.reset();
  CriuTimes times;
  // read() returns 0 when every process that has the other end is gone.
  const bool told = ::read(from.get(), &times, sizeof(times)) == sizeof(times);
  // Waits for both processes; the second one is adopted when the first ends.
  while (::waitpid(-1, nullptr, 0) >= 0 || errno == EINTR) {
  }
  return told ? base::Result<CriuTimes>(times) : base::Error(EIO, "a process failed; see its message above");
}

// Times of one kind of objects, a sample for each count.
struct Measured {
  std::vector<Sample> checkpoint;
  std::vector<Sample> restore;  // RESTORE and RESUME
};

void take_least(Sample& sample, std::uint64_t nanoseconds) {
  sample.time = std::min(sample.time, static_cast<double>(nanoseconds) / kNanosecondsPerMicrosecond);
}

base::Result<Measured> measure_kind(const Gpu& gpu, ObjectKind kind, const Options& options) {
  Measured measured;
  std::vector<unsigned> counts = {0};
  for (const unsigned part : kParts) counts.push_back(most_of(gpu, kind) / part);
  for (const unsigned count : counts) {
    const Sample unknown{static_cast<double>(count), std::numeric_limits<double>::infinity()};
    measured.checkpoint.push_back(unknown);
    measured.restore.push_back(unknown);
  }
  const std::uint64_t end = monotonic_ns() + options.seconds * kNanosecondsPerSecond;
  do {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      ASSIGN_OR_RETURN(const CriuTimes times, measure(gpu, kind, counts[i], options.extensible));
      take_least(measured.checkpoint[i], times.checkpoint);
      take_least(measured.restore[i], times.restore + times.resume);
    }
  } while (monotonic_ns() < end);
  return measured;
}

void print(std::string_view operation, const std::vector<Sample>& samples) {
  const Line line = fit_line(samples).value_or(Line{});
  std::printf(",\n    \"%.*s\": {\"us_each\": %.3f, \"us_fixed\": %.1f, \"growth\": %.3f, \"us\": [",
              static_cast<int>(operation.size()), operation.data(), line.each, line.fixed, growth(samples).value_or(0));
  for (std::size_t i = 0; i < samples.size(); ++i) std::printf("%s%.1f", i == 0 ? "" : ", ", samples[i].time);
  std::printf("]}");
}

// Prints a member of JSON's "objects". A kernel that cannot restore this kind is a result as well: "failed".
void run_kind(const Gpu& gpu, ObjectKind kind, const Options& options) {
  const std::string_view name = name_of(kind);
  std::printf("  \"%.*s\": {", static_cast<int>(name.size()), name.data());
  // A child would print what is still buffered a second time.
  std::fflush(stdout);
  const auto measured = measure_kind(gpu, kind, options);
  if (!measured.ok()) {
    std::printf("\"failed\": true}");
    return;
  }
  std::printf("\"most\": %u", most_of(gpu, kind));
  print("checkpoint", measured->checkpoint);
  print("restore", measured->restore);
  std::printf("}");
}

base::Status run(const Options& options) {
  const rlimit files{kFiles, kFiles};
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return base::Error::from_errno(errno, "files");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return base::Error::from_errno(errno, "becoming a subreaper");
  ASSIGN_OR_RETURN(const std::vector<Gpu> gpus, gpus_in_sysfs());
  if (gpus.empty()) return base::Error(ENODEV, "no GPU");
  const char* separator = "";
  std::printf("{\"abi\": \"%s\", \"objects\": {\n", options.extensible ? "extensible" : "released");
  for (const ObjectKind kind : kAllObjectKinds) {
    if (most_of(gpus.front(), kind) == 0) continue;
    std::printf("%s", separator);
    run_kind(gpus.front(), kind, options);
    separator = ",\n";
  }
  std::printf("}}\n");
  return {};
}

base::Result<Options> parse(int argc, char** argv) {
  Options options;
  bool has_abi = false;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--abi" && (value == "released" || value == "extensible")) {
      options.extensible = value == "extensible";
      has_abi = true;
    } else if (const auto seconds = base::parse_u64(value); name == "--seconds" && seconds.value_or(0) > 0) {
      options.seconds = *seconds;
    } else {
      return base::Error(EINVAL, "no option " + name + " " + value);
    }
  }
  if (!has_abi) return base::Error(EINVAL, "--abi released|extensible");
  return options;
}

}  // namespace
}  // namespace kfdtest

int main(int argc, char** argv) { return kfdtest::bench_main("criubench", kfdtest::parse(argc, argv), kfdtest::run); }
