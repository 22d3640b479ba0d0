// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Contents of BOs from a GPU to an image and back, with the plugin's copier, writer and reader. The GPU is a
// LinkEngine, and the disk is the directory KFD_CRIU_BENCH_DIR (the current one) at a rate of its own: what is measured
// is how much of the slower of the two is used. "serial" copies in turns, as CRIU's own plugin does: the GPU fills a
// buffer, then the buffer is written, without checksums and without a search for zeros.
//
// Arguments: MB/s of the link, MB/s of the disk, MiB in all, KiB of a BO. Each BO has its own part of the image, but
// they all have the same memory. dump_packed writes to a disk with a cache, and has two arguments more: which contents
// the BOs have, and the option "compress" of the plugin. dump_gpus has GPUs that each have a link of their own and so
// many BOs, of one process or of as many processes as GPUs.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "base/unique_fd.h"
#include "plugin/bench/link_engine.h"
#include "plugin/bench/sink_rate.h"
#include "plugin/copy/parallel_reads.h"
#include "plugin/copy/sdma_copier.h"
#include "plugin/copy/sdma_packet.h"
#include "plugin/image/catalogue.h"
#include "plugin/image/reader.h"
#include "plugin/image/writer.h"
#include "plugin/stored_contents.h"

namespace plugin::bench {
namespace {

constexpr std::uint32_t kFile = 1;
constexpr std::uint32_t kGpu = 1;
constexpr std::uint64_t kSession = 1;
constexpr double kMB = 1e6;
constexpr int kNoDmabuf = -1;  // a LinkEngine asks for none
const packets::sdma::Format& kFormat = packets::sdma::kFormat4;

enum class Data : std::int64_t { kNoise, kText };  // LZ4 makes nothing of the one, and a third of the other

// `bytes` has whole words.
void fill(std::span<std::byte> bytes, Data data) {
  std::mt19937_64 random;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  // Text: each second word is the one before it.
  const std::size_t repeated = data == Data::kNoise ? 1 : 4;
  std::uint64_t word = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kWord) {
    if (at / kWord % repeated == 0) word = random();
    std::memcpy(&bytes[at], &word, kWord);
  }
}

struct Setup {
  explicit Setup(const benchmark::State& state, Data data = Data::kNoise, std::size_t gpus = 1)
      : disk(static_cast<double>(state.range(1)) * kMB),
        bo_size(static_cast<std::size_t>(state.range(3)) << 10),
        num_bos((static_cast<std::size_t>(state.range(2)) << 20) / bo_size),
        bo(bo_size) {
    for (std::size_t i = 0; i < gpus; ++i) {
      links.push_back(std::make_unique<Rate>(static_cast<double>(state.range(0)) * kMB));
      staging.emplace_back(copy::kSlots * copy::kSliceSize);
    }
    const char* place = std::getenv("KFD_CRIU_BENCH_DIR");
    path = std::filesystem::path(place == nullptr ? "." : place) / "plugin_bench.images";
    // Without the directory, everything that follows says so.
    std::filesystem::remove_all(path, unused);
    std::filesystem::create_directories(path, unused);
    dir = base::UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    fill(bo, data);
  }
  ~Setup() { std::filesystem::remove_all(path, unused); }
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  [[nodiscard]] std::uint64_t bytes() const { return std::uint64_t{bo_size} * num_bos * links.size(); }
  // Engines number what they copy, so that no two chunks are equal.
  std::unique_ptr<LinkEngine> engine(std::size_t gpu = 0) {
    return std::make_unique<LinkEngine>(*links[gpu], bo, staging[gpu], gpu << 32);
  }
  std::unique_ptr<copy::Copier> copier(std::size_t gpu = 0) { return copy::make_sdma_copier(engine(gpu), kFormat); }

  std::vector<std::unique_ptr<Rate>> links;  // one of each GPU
  Rate disk;
  std::size_t bo_size;
  std::size_t num_bos;
  std::vector<std::byte> bo;
  std::vector<std::vector<std::byte>> staging;
  std::filesystem::path path;
  std::error_code unused;
  base::UniqueFd dir;
};

class Silent final : public Criu {
 public:
  [[nodiscard]] int image_dir() const override { return -1; }
  [[nodiscard]] int unused_fd() const override { return -1; }
  [[nodiscard]] bool takes_vma_fd() const override { return true; }
};

// The file of a process without BOs.
image::KfdFile file_of_process(std::uint32_t pid) {
  image::KfdFile kfd;
  kfd.pid = pid;
  kfd.priv_data.assign(1, std::byte{1});
  return kfd;
}

base::Status dump(Setup& setup, image::Packing packing = image::Packing::kNever, std::size_t num_processes = 1) {
  ASSIGN_OR_RETURN(auto writer, image::SessionWriter::create(setup.dir.get(), kSession));
  writer->pack_by(packing);
  image::Session session;
  session.abi = image::Abi::kExtensible;
  session.kernel_release = "6.12";
  session.nodes = {{0, 0, {}, {}}};
  std::vector<image::KfdFile> files;
  for (std::size_t i = 0; i < num_processes; ++i) {
    files.push_back(file_of_process(static_cast<std::uint32_t>(i + 1)));
    session.processes.push_back({files.back().pid, "bench"});
  }
  {
    std::vector<std::unique_ptr<copy::Copier>> copiers;
    const image::Working working(*writer);
    copy::ParallelReads reads;
    for (std::size_t gpu = 0; gpu < setup.links.size(); ++gpu) {
      const auto gpu_id = static_cast<std::uint32_t>(gpu + kGpu);
      session.nodes.push_back({gpu_id, gpu_id, {}, {}});
      image::KfdFile& kfd = files[gpu % num_processes];
      image::FileWriter& file = writer->file(static_cast<std::uint32_t>(kFile + gpu % num_processes));
      kfd.devices.push_back({gpu_id, gpu_id});
      std::vector<copy::Sink> sinks;
      for (std::size_t i = 0; i < setup.num_bos; ++i) {
        const std::uint64_t number = kfd.bos.size();
        image::BoRecord record;
        record.bo = {0x100000 + number * setup.bo_size, setup.bo_size, number * setup.bo_size, gpu_id,
                     KFD_IOC_ALLOC_MEM_FLAGS_VRAM};
        kfd.bos.push_back(record);
        sinks.push_back(sink_of(file, file.begin_bo(image::name_of(image::Kind::kKfd, kfd.pid, record))));
      }
      copiers.push_back(setup.copier(gpu));
      reads.add(*copiers.back(),
                [&setup, sinks = std::move(sinks),
                 next = std::size_t{0}]() mutable -> base::Result<std::optional<copy::Read>> {
                  if (next == sinks.size()) return std::optional<copy::Read>();
                  return std::optional(copy::Read{base::UniqueFd(), setup.bo_size, "BO", sinks[next++]});
                });
    }
    TRY(reads.run());
    for (const image::KfdFile& kfd : files) TRY(writer->file(kFile + kfd.pid - 1).settle_all());
  }
  for (image::KfdFile& kfd : files) {
    const std::uint32_t id = kFile + kfd.pid - 1;
    TRY(writer->add({id, std::move(kfd)}));
  }
  TRY(writer->prepare(std::move(session)));
  return writer->commit();
}

base::Status restore(Setup& setup, const image::Contents& contents) {
  const auto copier = setup.copier();
  const Silent criu;
  CopyMeter meter(criu, "benchmark", setup.bytes());
  for (std::size_t i = 0; i < setup.num_bos; ++i) {
    StoredContents source(contents, i, meter);
    auto outcome = copier->start_write({kNoDmabuf, setup.bo_size, "BO"}, source);
    if (!outcome.ok()) return std::move(outcome).error().error;
  }
  return copier->finish();
}

// One submission of the GPU, or one write to the disk, at a time.
template <bool kDump>
base::Status serial(Setup& setup, int file) {
  const auto engine = setup.engine();
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < setup.num_bos; ++i) {
    ASSIGN_OR_RETURN(const auto memory, engine->import(kNoDmabuf, setup.bo_size));
    for (std::size_t at = 0; at < setup.bo_size; at += copy::kSliceSize) {
      const std::size_t length = std::min(copy::kSliceSize, setup.bo_size - at);
      const std::uint64_t bo = memory->va() + at;
      const std::uint64_t staging = engine->staging_va(0);
      packets::Words words;
      copy::append_copy(words, kDump ? bo : staging, kDump ? staging : bo, length, kFormat);
      const auto copy = [&]() -> base::Status {
        TRY(engine->submit(0, words, {}));
        return engine->wait(0);
      };
      if (kDump) TRY(copy());
      const ssize_t done = kDump ? ::pwrite(file, engine->staging(0).data(), length, static_cast<off_t>(offset))
                                 : ::pread(file, engine->staging(0).data(), length, static_cast<off_t>(offset));
      if (done != static_cast<ssize_t>(length)) return base::Error(EIO, "the file of the serial copy");
      if (!kDump) TRY(copy());
      offset += length;
    }
  }
  return {};
}

void report(benchmark::State& state, const Setup& setup) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * setup.bytes()));
  // 1: as fast as the slower one of disk and links alone.
  const auto links = state.range(0) * static_cast<std::int64_t>(setup.links.size());
  const double least = static_cast<double>(std::min(links, state.range(1))) * kMB;
  state.counters["of_slower"] =
      benchmark::Counter(static_cast<double>(state.iterations() * setup.bytes()) / least, benchmark::Counter::kIsRate);
}

template <typename Body>
void measure(benchmark::State& state, Setup& setup, const Body& body, Sink sink = Sink::kDirect) {
  set_sink_rate(&setup.disk, sink);
  for (auto _ : state)
    if (const base::Status status = body(); !status.ok()) {
      state.SkipWithError(status.error().message().c_str());
      break;
    }
  set_sink_rate(nullptr);
  report(state, setup);
}

void dump_plugin(benchmark::State& state) {
  Setup setup(state);
  measure(state, setup, [&setup] { return dump(setup); });
}

void dump_packed(benchmark::State& state) {
  Setup setup(state, static_cast<Data>(state.range(4)));
  const auto packing = static_cast<image::Packing>(state.range(5));
  measure(
      state, setup, [&] { return dump(setup, packing); }, Sink::kCached);
}

void dump_gpus(benchmark::State& state) {
  Setup setup(state, Data::kNoise, static_cast<std::size_t>(state.range(4)));
  measure(state, setup, [&] { return dump(setup, image::Packing::kNever, static_cast<std::size_t>(state.range(5))); });
}

void restore_plugin(benchmark::State& state) {
  Setup setup(state);
  if (const auto status = dump(setup); !status.ok()) return state.SkipWithError(status.error().message().c_str());
  const auto images = image::Catalogue::read(setup.dir.get());
  const auto file = images.ok() ? images->find(kFile) : base::Result<const image::Loaded*>(images.error());
  if (!file.ok() || *file == nullptr) return state.SkipWithError("the image cannot be read");
  const auto contents = image::open_contents(setup.dir.get(), **file);
  if (!contents.ok()) return state.SkipWithError(contents.error().message().c_str());
  measure(state, setup, [&] { return restore(setup, *contents); });
}

template <bool kDump>
void serial_copy(benchmark::State& state) {
  Setup setup(state);
  const base::UniqueFd file(::open((setup.path / "contents").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!kDump)
    if (const auto status = serial<true>(setup, file.get()); !status.ok())
      return state.SkipWithError(status.error().message().c_str());
  measure(state, setup, [&] { return serial<kDump>(setup, file.get()); });
}

// Large BOs on every pair of a link and a disk, and as many bytes in small ones.
void cases(benchmark::internal::Benchmark* of) {
  of->ArgNames({"link", "disk", "mib", "bo_kib"})->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(1);
  for (const int link : {250, 500, 1000, 2000})
    for (const int disk : {250, 500, 1000, 2000}) of->Args({link, disk, 512, 128 << 10});
  of->Args({1000, 1000, 640, 64 << 10})->Args({1000, 1000, 640, 64});
}
// Contents of either kind, with every value of the option, to disks that are slower than the link, as fast, and faster.
void packed_cases(benchmark::internal::Benchmark* of) {
  of->ArgNames({"link", "disk", "mib", "bo_kib", "data", "packing"});
  of->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(1);
  for (const int disk : {100, 250, 500, 1000})
    for (const Data data : {Data::kNoise, Data::kText})
      for (const image::Packing packing : {image::Packing::kAuto, image::Packing::kNever, image::Packing::kAlways})
        of->Args({500, disk, 512, 128 << 10, static_cast<std::int64_t>(data), static_cast<std::int64_t>(packing)});
}
// A disk that is faster than all links, and one that is not.
void gpus_cases(benchmark::internal::Benchmark* of) {
  of->ArgNames({"link", "disk", "mib", "bo_kib", "gpus", "processes"});
  of->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(1);
  for (const int disk : {500, 2000})
    for (const int gpus : {1, 2, 4}) {
      of->Args({250, disk, 256, 128 << 10, gpus, 1});
      if (gpus > 1) of->Args({250, disk, 256, 128 << 10, gpus, gpus});
    }
}
BENCHMARK(dump_gpus)->Apply(gpus_cases);
BENCHMARK(dump_packed)->Apply(packed_cases);
BENCHMARK(dump_plugin)->Apply(cases);
BENCHMARK(serial_copy<true>)->Name("dump_serial")->Apply(cases);
BENCHMARK(restore_plugin)->Apply(cases);
BENCHMARK(serial_copy<false>)->Name("restore_serial")->Apply(cases);

}  // namespace
}  // namespace plugin::bench
