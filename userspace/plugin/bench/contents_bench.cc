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
// the BOs have, and the option "compress" of the plugin.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "base/unique_fd.h"
#include "plugin/bench/link_engine.h"
#include "plugin/bench/sink_rate.h"
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
  explicit Setup(const benchmark::State& state, Data data = Data::kNoise)
      : link(static_cast<double>(state.range(0)) * kMB),
        disk(static_cast<double>(state.range(1)) * kMB),
        bo_size(static_cast<std::size_t>(state.range(3)) << 10),
        num_bos((static_cast<std::size_t>(state.range(2)) << 20) / bo_size),
        bo(bo_size),
        staging(copy::kSlots * copy::kSliceSize) {
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

  [[nodiscard]] std::uint64_t bytes() const { return std::uint64_t{bo_size} * num_bos; }
  std::unique_ptr<copy::Copier> copier() {
    return copy::make_sdma_copier(std::make_unique<LinkEngine>(link, bo, staging), kFormat);
  }

  Rate link;
  Rate disk;
  std::size_t bo_size;
  std::size_t num_bos;
  std::vector<std::byte> bo;
  std::vector<std::byte> staging;
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

base::Status dump(Setup& setup, image::Packing packing = image::Packing::kNever) {
  ASSIGN_OR_RETURN(auto writer, image::SessionWriter::create(setup.dir.get(), kSession));
  writer->pack_by(packing);
  image::KfdFile kfd;
  kfd.pid = 1;
  kfd.devices = {{kGpu, kGpu}};
  kfd.priv_data.assign(1, std::byte{1});
  {
    const auto copier = setup.copier();
    const image::Working working(*writer);
    image::FileWriter& file = writer->file(kFile);
    copy::OrderedReads reads;
    for (std::size_t i = 0; i < setup.num_bos; ++i) {
      image::BoRecord record;
      record.bo = {0x100000 + i * setup.bo_size, setup.bo_size, i * setup.bo_size, kGpu, KFD_IOC_ALLOC_MEM_FLAGS_VRAM};
      kfd.bos.push_back(record);
      TRY(reads.start(*copier, {kNoDmabuf, setup.bo_size, "BO"}, sink_of(file)));
    }
    TRY(reads.finish());
  }
  TRY(writer->add({kFile, std::move(kfd)}));
  image::Session session;
  session.abi = image::Abi::kExtensible;
  session.kernel_release = "6.12";
  session.processes = {{1, "bench"}};
  session.nodes = {{0, 0, {}, {}}, {1, kGpu, {}, {}}};
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
  LinkEngine engine(setup.link, setup.bo, setup.staging);
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < setup.num_bos; ++i) {
    ASSIGN_OR_RETURN(const auto memory, engine.import(kNoDmabuf, setup.bo_size));
    for (std::size_t at = 0; at < setup.bo_size; at += copy::kSliceSize) {
      const std::size_t length = std::min(copy::kSliceSize, setup.bo_size - at);
      const std::uint64_t bo = memory->va() + at;
      const std::uint64_t staging = engine.staging_va(0);
      packets::Words words;
      copy::append_copy(words, kDump ? bo : staging, kDump ? staging : bo, length, kFormat);
      const auto copy = [&]() -> base::Status {
        TRY(engine.submit(0, words, {}));
        return engine.wait(0);
      };
      if (kDump) TRY(copy());
      const ssize_t done = kDump ? ::pwrite(file, engine.staging(0).data(), length, static_cast<off_t>(offset))
                                 : ::pread(file, engine.staging(0).data(), length, static_cast<off_t>(offset));
      if (done != static_cast<ssize_t>(length)) return base::Error(EIO, "the file of the serial copy");
      if (!kDump) TRY(copy());
      offset += length;
    }
  }
  return {};
}

void report(benchmark::State& state, const Setup& setup) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * setup.bytes()));
  // 1: as fast as the slower one of link and disk alone.
  const double least = static_cast<double>(std::min(state.range(0), state.range(1))) * kMB;
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
BENCHMARK(dump_packed)->Apply(packed_cases);
BENCHMARK(dump_plugin)->Apply(cases);
BENCHMARK(serial_copy<true>)->Name("dump_serial")->Apply(cases);
BENCHMARK(restore_plugin)->Apply(cases);
BENCHMARK(serial_copy<false>)->Name("restore_serial")->Apply(cases);

}  // namespace
}  // namespace plugin::bench
