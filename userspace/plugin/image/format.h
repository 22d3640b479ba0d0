// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the image of a dump holds, as plain values; file names, file header, limits, checks.
// The grammar is docs/image-format.md. Not here: bytes of messages (codec) and of the index (index), files (reader,
// writer).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "kfd/kfd.h"
#include "plugin/image/render_objects.h"
#include "plugin/topology/node.h"

namespace plugin::image {

// Version 1 is read, version 2 is read and written. kUpstream: of CRIU's own plugin; read, and in no header of ours.
enum class Version : std::uint32_t { k1 = 1, k2 = 2, kUpstream = 0x5550 };
inline constexpr std::size_t kPageSize = 4096;
inline constexpr std::uint32_t kChunkSize = 1U << 20;
inline constexpr std::uint32_t kPieceSize = 64U << 10;  // the unit in which zeros are left out

// Limits that a reader enforces before it allocates.
inline constexpr std::uint64_t kMaxMetadata = 64ULL << 20;
inline constexpr std::uint64_t kMaxManifest = 16ULL << 20;
inline constexpr std::uint64_t kMaxIndex = 1ULL << 30;
inline constexpr std::size_t kMaxDevices = 1024;
inline constexpr std::size_t kMaxNodes = 4096;
inline constexpr std::size_t kMaxSharedFile = 1U << 16;
inline constexpr std::size_t kMaxForeignMemories = 1U << 16;  // of one process
inline constexpr std::size_t kMaxDmabufName = 31;             // DMA_BUF_NAME_LEN of the kernel, less its NUL
inline constexpr std::size_t kMaxSyncFileName = 31;           // of struct sync_merge_data, less its NUL
inline constexpr std::size_t kMaxSources = 1U << 14;          // of all files of a dump
inline constexpr std::uint32_t kMaxDepth = 32;  // earlier dumps that one dump refers to, one behind the other
inline constexpr std::size_t kMaxText = 64;     // the kernel's release, the name of a process

// The files of libhsakmt in /dev/shm that a restored program must find.
inline constexpr std::array<std::string_view, 2> kSharedFileNames = {"hsakmt_shared_mem", "sem.hsakmt_semaphore"};
inline constexpr std::size_t kMaxLinks = 64;  // hard links of one shared file
inline constexpr std::string_view kLinkRemapPrefix = "link_remap.";

// Whether `name` is one that CRIU makes for a file without a name: the prefix and a number.
inline bool is_link_remap(std::string_view name) {
  if (!name.starts_with(kLinkRemapPrefix)) return false;
  name.remove_prefix(kLinkRemapPrefix.size());
  return !name.empty() && name.size() <= 10 && name.find_first_not_of("0123456789") == std::string_view::npos;
}

// The pages file of another file, to which chunks refer in place of being stored again.
struct Source {
  // Which dump it is of: this one (0), that whose directory is `parent` in this one (1), `parent` in that (2), and so
  // on.
  std::uint32_t depth = 0;
  std::uint32_t id = 0;  // the file there
  std::uint64_t session_id = 0;
  std::uint64_t pages_length = 0;
  bool operator==(const Source&) const = default;
};
// CRIU's link to the directory of the dump before (--prev-images-dir).
inline constexpr std::string_view kParentName = "parent";

// The part of a BO's contents that has one checksum. Of its pieces only those that are not all zero are stored, one
// behind the other.
struct Chunk {
  // The place of the first stored piece; 0: nothing is stored. It counts through the pages file and then through those
  // of FileEntry::sources, as if they were one.
  std::uint64_t offset = 0;
  std::uint64_t hash = 0;    // XXH3 of all its bytes, zeros included; 0: nothing is stored
  std::uint64_t stored = 0;  // bit i: piece i is stored
  // How many bytes of the pages file the stored pieces take if they are packed (pack.h); 0: they are as they were.
  std::uint64_t packed = 0;
  bool operator==(const Chunk&) const = default;
};

// A BO without its contents; those are in the order of KfdFile::bos behind FileWriter::append() and Contents.
struct BoRecord {
  kfd::Bo bo;
  std::uint32_t handle = 0;  // by which the program knows it, lower 32 bits; 0 with the released ABI
  std::uint64_t inode = 0;   // equal for BOs of the same memory within a session; 0: unknown, or cannot be shared
  // The contents are stored with another BO of this file that has the same inode and size.
  bool shares_contents = false;
  bool imported = false;  // the memory was allocated for another BO
  // The contents are stored with a BO of another file of the session that has the same inode and size.
  bool stored_elsewhere = false;
};

// Whether contents of the BO are stored with it.
[[nodiscard]] inline bool stores_contents(const BoRecord& record) {
  return kfd::has_contents(record.bo) && !record.shares_contents && !record.stored_elsewhere;
}

// How memory was allocated that no BO of the session was allocated for.
struct ForeignMemory {
  std::uint64_t inode = 0;  // of BOs of this file
  std::uint32_t alloc_flags = 0;
};

struct SharedFile {
  std::string name;
  std::string contents;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  // Further names that CRIU's --link-remap gave it; CRIU looks for them at restore.
  std::vector<std::string> links;
};

// What the interface of the kernel was that wrote KfdFile::priv_data.
enum class Abi : std::uint32_t { kReleased = 1, kExtensible = 2 };

// Kinds of open files.
enum class Kind : std::uint32_t {
  kKfd = 1,      // /dev/kfd, with the state of the process that opened it
  kSecond = 2,   // a further open /dev/kfd of a process that has one of kind kKfd
  kInert = 3,    // /dev/kfd, opened by another process than the one that uses it: all its ioctls fail
  kRender = 4,   // a render node
  kDmabuf = 40,  // a DMA-buf of memory that BOs of the session have, or nobody else
  kSyncFile = 41,
};

// Pids are those of the innermost pid namespace, at dump and again at restore. open_flags has O_NONBLOCK or nothing.
struct KfdFile {
  std::uint32_t pid = 0;
  std::uint32_t open_flags = 0;
  std::uint32_t num_objects = 0;  // released ABI only
  std::vector<kfd::Device> devices;
  std::vector<BoRecord> bos;
  std::vector<std::byte> priv_data;  // what the kernel wrote; with the extensible ABI the whole image of the process
  std::vector<SharedFile> shared_files;
  bool own_mount_namespace = false;  // the program's /dev/shm was not CRIU's
  std::vector<ForeignMemory> foreign_memories;
};

struct SecondFile {
  std::uint32_t owner = 0;  // pid; has a KfdFile in this session
  std::uint32_t open_flags = 0;
};

struct InertFile {
  std::uint32_t owner = 0;  // pid of the process that opened it; 0: one that is not in the session
  std::uint32_t open_flags = 0;
};

enum class Binding { kUnknown, kKfd, kOther };

struct RenderFile {
  std::uint32_t gpu_id = 0;  // actual id at dump
  std::uint32_t open_flags = 0;
  Binding binding = Binding::kUnknown;
  std::uint32_t owner = 0;  // pid of the process whose KFD uses the file's VM; 0: none, or unknown
  RenderObjects objects = {};
  // The BOs of objects.gem, in the same order; their addresses are 0, and none shares its contents.
  std::vector<BoRecord> bos = {};
};

// Its contents are stored with a BO that has the inode.
struct DmabufFile {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::string name;  // what a program has called it (DMA_BUF_SET_NAME): any bytes but NUL
  std::uint32_t open_flags = 0;
  bool read_only = false;  // whoever exported it did not ask for descriptors that may be written through
  // Memory that has no BO any more: its GPU, the GEM object that it was, and one BO with its contents. Else none.
  std::uint32_t gpu_id = 0;
  GemObject object = {};
  std::uint32_t alloc_flags = 0;  // if KFD has allocated it: flags of AMDKFD_IOC_ALLOC_MEMORY_OF_GPU
  std::vector<BoRecord> bos = {};
};

// Its work had finished, on whatever device.
struct SyncFile {
  std::uint32_t gpu_id = 0;  // actual id at dump of a GPU through whose render node it can be made
  std::string name;          // of its timeline, or what a program has called it: any bytes but NUL
  std::uint32_t open_flags = 0;
};

// The open file with CRIU's number `id`.
struct File {
  std::uint32_t id = 0;
  std::variant<KfdFile, SecondFile, InertFile, RenderFile, DmabufFile, SyncFile> contents;
};
[[nodiscard]] Kind kind_of(const File& file);
// The pid of KfdFile, the owner of the others; 0: the file has none.
[[nodiscard]] std::uint32_t owner_of(const File& file);
// The id in sysfs of the GPU that the program calls user_id; 0: validate() excludes it.
[[nodiscard]] std::uint32_t actual_id_of(const KfdFile& kfd, std::uint32_t user_id);
[[nodiscard]] std::uint32_t open_flags_of(const File& file);
// The BOs whose contents are stored with the file, as far as it has an index; else none.
[[nodiscard]] std::span<const BoRecord> bos_of(const File& file);
// Whether the dump has an index of this file.
[[nodiscard]] bool has_index(const File& file);

struct Process {
  std::uint32_t pid = 0;  // two processes of nested pid namespaces may have the same
  std::string comm;       // any bytes: the program chose them
  bool operator==(const Process&) const = default;
};

// How long the GPU part of a dump took, until all files but the manifest were on the disk. CRIU saves host memory after
// that. Times are in microseconds. Nothing depends on them.
struct Timing {
  std::uint64_t paused_us = 0;   // since the first process was paused
  std::uint64_t copying_us = 0;  // while contents were copied
  std::uint64_t gpu_us = 0;      // of these: waiting for GPUs
  std::uint64_t hashing_us = 0;  // searching for zeros, hashing and packing, all threads together
  std::uint64_t writing_us = 0;  // all threads together
  std::uint64_t copied_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t referred_bytes = 0;  // of chunks that earlier dumps have
  std::uint64_t equal_bytes = 0;     // of chunks that this dump has stored for other memory
  std::uint64_t syncing_us = 0;      // after contents were copied: until files were on the disk
  bool operator==(const Timing&) const = default;
};
// What a copy waited for most of its time.
enum class Limit { kNothing, kGpu, kFiles, kProcessor };
[[nodiscard]] Limit limit_of(const Timing& timing);

// What is known of a whole dump; nodes are those of the GPUs that its files need, and all CPUs.
struct Session {
  std::uint64_t id = 0;  // random
  Version version = Version::k2;
  Abi abi = Abi::kReleased;
  std::string kernel_release;  // empty unless version 2
  std::vector<topology::Node> nodes;
  std::vector<Process> processes;  // those that use KFD; without names unless version 2
  std::optional<Timing> timing;    // not of older dumps
};

// What the manifest says of one file.
struct FileEntry {
  std::uint32_t id = 0;
  Kind kind = Kind::kKfd;
  std::uint64_t metadata_length = 0;
  std::uint64_t metadata_hash = 0;
  std::uint64_t index_length = 0;  // 0: no index file
  std::uint64_t index_hash = 0;
  std::uint64_t pages_length = 0;  // 0: no pages file
  std::vector<Source> sources;     // of its chunks
  bool packed = false;             // the index has Chunk::packed
  bool operator==(const FileEntry&) const = default;
};

// Whether another file has the chunk.
[[nodiscard]] inline bool refers(const FileEntry& entry, const Chunk& chunk) {
  return chunk.stored != 0 && !entry.sources.empty() && chunk.offset >= entry.pages_length;
}
// Whether an earlier dump has it. The entry and the chunk are valid.
[[nodiscard]] bool refers_to_earlier(const FileEntry& entry, const Chunk& chunk);
// Whether contents are in earlier dumps.
[[nodiscard]] bool needs_earlier(const FileEntry& entry);

struct Manifest {
  Session session;
  std::vector<FileEntry> files;
};

enum class FileKind : std::uint32_t {
  kMetadata = 1,
  kManifest = 2,
  kPages = 3,
  kIndex = 4,
  kPackedIndex = 5,  // some of its chunks are packed
};

// First bytes of every file. `payload` is the length of what follows it (in a pages file: what follows the first page).
struct Header {
  FileKind kind = FileKind::kMetadata;
  std::uint64_t payload = 0;
  // XXH3 of the payload. In a pages file, whose chunks have their own: 0 in version 1, pages_tag() in version 2.
  std::uint64_t hash = 0;
  Version version = Version::k2;
};
inline constexpr std::size_t kHeaderSize = 40;
std::array<std::byte, kHeaderSize> encode_header(const Header& header);
// Refuses what is not ours, a version that is not `version`, another kind.
base::Result<Header> decode_header(std::span<const std::byte> bytes, FileKind expected, Version version);

[[nodiscard]] std::uint64_t hash_bytes(std::span<const std::byte> bytes);
// What ties a pages file to its dump and its file.
[[nodiscard]] std::uint64_t pages_tag(std::uint64_t session_id, std::uint32_t id);

inline constexpr std::string_view kManifestName = "amdgpu-manifest.img";
inline constexpr std::string_view kUnfinishedManifestName = "amdgpu-manifest.img.tmp";
// The folder of an image directory in which `kfd-criu flatten` writes a dump anew.
inline constexpr std::string_view kFlattenFolder = "amdgpu-flatten";
[[nodiscard]] std::string metadata_name(std::uint32_t id);
[[nodiscard]] std::string index_name(std::uint32_t id);
[[nodiscard]] std::string pages_name(std::uint32_t id);
// The `number`-th pages file whose file of the dump has no id yet.
[[nodiscard]] std::string unfinished_pages_name(std::uint32_t number);
// The path of its pages file, seen from the directory of the dump that refers to it: "parent/amdgpu-pages-4.img".
[[nodiscard]] std::string source_name(const Source& source);
[[nodiscard]] std::string manifest_name_1(std::uint32_t id);  // version 1

// What a name in the image directory stands for; nothing when it is none of ours.
// Manifests come first: a writer removes them before the rest.
enum class NameKind {
  kManifest,
  kManifest1,
  kUnfinishedManifest,
  kUnfinishedManifest1,
  kMetadata,
  kIndex,
  kPages,
  kUnfinishedPages
};
struct Name {
  NameKind kind = NameKind::kManifest;
  std::uint32_t id = 0;  // 0 for the two names of version 2's manifest; for unfinished pages their number
};
[[nodiscard]] std::optional<Name> parse_name(std::string_view name);

// Chunks that a BO of `size` bytes has, and the length of the `index`-th.
[[nodiscard]] std::uint64_t chunk_count(std::uint64_t size, std::uint32_t chunk_size);
[[nodiscard]] std::uint64_t chunk_length(std::uint64_t size, std::uint32_t chunk_size, std::uint64_t index);

// Everything that must hold before the kernel sees a value of them.
base::Status validate(const Manifest& manifest);
base::Status validate(const File& file, const Session& session);
// What validate() of a file does for the objects of a render node.
base::Status validate_objects(const RenderFile& render);
// Checks the GEM object that the memory of a DMA-buf was.
base::Status validate_object(const DmabufFile& dmabuf);

}  // namespace plugin::image
