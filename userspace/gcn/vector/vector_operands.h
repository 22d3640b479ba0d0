// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Sources and destinations of a vector ALU instruction, for all 64 lanes at once, and the templates that make a handler
// of a function of one lane:
//
//   table.set(Op::kVAddU32, vector<U32(U32, U32), add_u32>);
//
// This file handles all modifications of operands (constants, DPP, SDWA, op_sel, neg, abs, relative registers, EXEC),
// which depend only on the elements' types. The function gets values. It is called for disabled lanes too, with the
// contents of their registers, so it must be defined for all values. Source: chapters "Vector ALU operations" and
// "Data parallel processing" of the ISA documents.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "gcn/isa/handler.h"
#include "gcn/scalar/scalar_operand.h"

namespace gcn {

// The properties of an element that reading and writing of operands depend on.
struct Kind {
  std::uint8_t bits = 32;     // 16, 32 or 64
  bool is_float = false;      // constants are floats of this size, neg and abs apply
  bool is_signed = false;     // a literal is extended to 64 bits with its sign
  bool keeps_other = false;   // 16-bit destination: keeps the half that is not written, else a low result clears it
  bool has_result = true;     // destination: writes a vector register
  bool has_mask = false;      // destination: writes a bit for each lane to sdst
  bool writes_exec = false;   // destination: the mask becomes EXEC as well (v_cmpx)
  bool from_scalar = false;   // source: a bit of a scalar register pair for each lane
  bool from_nothing = false;  // source: takes no operand of the instruction
};

// Elements. Value is the type of a value of one lane. They are structs and not aliases because aliases would make the
// mangled names of handlers much longer.
template <typename T, Kind kind>
struct Element {
  using Value = T;
  static constexpr Kind kKind = kind;
};
struct U32 : Element<std::uint32_t, Kind{}> {};
struct I32 : Element<std::int32_t, Kind{.is_signed = true}> {};
struct F32 : Element<float, Kind{.is_float = true}> {};
struct B32 : Element<std::uint32_t, Kind{.is_float = true}> {};  // bits that take the modifiers of a float
struct U16 : Element<std::uint16_t, Kind{.bits = 16}> {};
struct I16 : Element<std::int16_t, Kind{.bits = 16, .is_signed = true}> {};
struct F16 : Element<std::uint16_t, Kind{.bits = 16, .is_float = true}> {};  // its bits
struct U64 : Element<std::uint64_t, Kind{.bits = 64}> {};
struct I64 : Element<std::int64_t, Kind{.bits = 64, .is_signed = true}> {};
struct F64 : Element<double, Kind{.bits = 64, .is_float = true}> {};

// These elements are for sources only: bit n of a scalar pair for lane n, 0 or 1 (carry in, v_cndmask); bit n of VCC,
// whatever operands the instruction has; the number of the lane. In a signature the last two come after all others.
struct MaskBit : Element<std::uint32_t, Kind{.bits = 64, .is_signed = true, .from_scalar = true}> {};
struct VccBit : Element<std::uint32_t, Kind{.from_scalar = true, .from_nothing = true}> {};
struct LaneNumber : Element<std::uint32_t, Kind{.from_nothing = true}> {};

// This element is for destinations only. 16-bit operations that are new in gfx9 (v_mad_u16, v_min3_f16, ...) keep the
// other half.
template <typename E>
struct Keep {
  using Value = typename E::Value;
  static constexpr Kind kKind = {.bits = 16, .keeps_other = true};
};
// A destination of a value and of a bit for sdst, such as the carry out.
template <typename E>
struct WithBit {
  struct Value {
    typename E::Value value;
    bool bit;
  };
  static constexpr Kind kKind = {.bits = E::kKind.bits, .has_mask = true};
};
// The destination of a comparison, which is only a bit. v_cmpx sets EXEC as well.
struct Cmp : Element<bool, Kind{.has_result = false, .has_mask = true}> {};
struct Cmpx : Element<bool, Kind{.has_result = false, .has_mask = true, .writes_exec = true}> {};

// The values of a source: one dword for each lane, or two if it has 64 bits. `lo` and `hi` point to the register file
// or to `buffer`.
struct Source {
  const std::uint32_t* lo = nullptr;
  const std::uint32_t* hi = nullptr;
  std::array<Vgpr, 2> buffer;

  Source() = default;  // does not initialise `buffer`: that would cost more than the instruction
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
};

// The results of an instruction before they are written to registers.
struct Results {
  Vgpr lo;
  Vgpr hi;   // the upper halves of 64-bit results
  Vgpr bit;  // 0 or 1, for destinations with has_mask
};

// An optional last parameter of functions of one lane.
struct LaneContext {
  const Instruction& instruction;
  std::uint32_t mode;
  Isa isa;
};

// The part of a VOP3P source that is read: op_sel and neg_lo control kLow, op_sel_hi and neg_hi control kHigh. kWhole
// reads a register without these modifiers. The parts of a 32-bit element are the registers of a pair.
enum class Part : std::uint8_t { kWhole, kLow, kHigh };

// Reads a scalar register or constant operand as an element of `kind`. Returns false if there is no such operand.
[[nodiscard]] bool scalar_operand(const Instruction& instruction, const Machine& machine, std::uint16_t number,
                                  Kind kind, std::uint64_t& value);

// Returns the lanes whose dwords in `flags` are 1.
[[nodiscard]] std::uint64_t mask_of(const Vgpr& flags);
// Sets `flags` to 1 for the lanes that are in `mask`, to 0 for others.
void expand_mask(std::uint64_t mask, Vgpr& flags);
// Copies the lanes that are in `lanes`.
void copy_lanes(Vgpr& dst, const Vgpr& value, std::uint64_t lanes);

// The operands of an instruction during its execution. A handler first reads and checks everything and then writes, so
// that an instruction that proves to be illegal has changed nothing.
class VectorOperands {
 public:
  VectorOperands(const Instruction& instruction, Machine& machine);

  // Reads source `n`. Returns false if the instruction is illegal.
  [[nodiscard]] bool read(unsigned n, Kind kind, Source& source, Part part = Part::kWhole) const;
  // Reads the destination as a source, without modifiers (v_mac, v_dot2c).
  [[nodiscard]] bool read_dst(Kind kind, Source& source) const;
  // Returns whether the destinations can be written.
  [[nodiscard]] bool check_dst(Kind kind) const;
  // Writes the destinations, in enabled lanes.
  void write(Kind kind, const Results& results) const;

  // Returns the registers of a vector operand, after relative addressing (s_set_gpr_idx_on), or nullptr if they are out
  // of bounds. `bit` is 0 to 2 for a source, 3 for the destination.
  [[nodiscard]] Vgpr* vgpr(std::uint16_t number, unsigned bit, unsigned registers) const;

  // Returns the lanes that write: EXEC without the lanes that DPP disables.
  [[nodiscard]] std::uint64_t active() const { return active_; }
  [[nodiscard]] LaneContext context() const { return {instruction_, machine_.wave.mode, machine_.wave.isa}; }

 private:
  void modify(unsigned n, Kind kind, Part part, Source& source) const;
  void write_vgpr(Kind kind, Vgpr& dst, const Vgpr& value) const;

  const Instruction& instruction_;
  Machine& machine_;
  bool legal_ = true;
  bool plain_ = true;  // no DPP, SDWA, op_sel, neg, abs
  std::uint64_t active_ = 0;
};

namespace detail {

template <typename E>
[[gnu::always_inline]] inline typename E::Value load(const std::uint32_t* lo, const std::uint32_t* hi, unsigned lane) {
  using Value = typename E::Value;
  if constexpr (sizeof(Value) == 8) {
    return std::bit_cast<Value>(lo[lane] | std::uint64_t{hi[lane]} << 32);
  } else if constexpr (sizeof(Value) == 2) {
    return static_cast<Value>(lo[lane]);
  } else {
    // This is no bit_cast, because GCC does not vectorise that.
    Value value;
    std::memcpy(&value, &lo[lane], sizeof(value));
    return value;
  }
}

template <typename T>
[[gnu::always_inline]] inline void store(T value, std::uint32_t* lo, std::uint32_t* hi, unsigned lane) {
  if constexpr (sizeof(T) == 8) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    lo[lane] = static_cast<std::uint32_t>(bits);
    hi[lane] = static_cast<std::uint32_t>(bits >> 32);
  } else if constexpr (sizeof(T) == 2) {
    lo[lane] = static_cast<std::uint16_t>(value);
  } else {
    std::memcpy(&lo[lane], &value, sizeof(value));
  }
}

template <auto kLane, typename... Values>
[[gnu::always_inline]] inline auto call(const LaneContext& context, Values... values) {
  if constexpr (std::is_invocable_v<decltype(kLane), Values..., const LaneContext&>) {
    return kLane(values..., context);
  } else {
    return kLane(values...);
  }
}

// The pointers are restricted, so that the compiler knows that nothing overlaps and can vectorise the loop.
template <auto kLane, typename D, typename... S, std::size_t... I>
void run_lanes(const LaneContext& context, std::uint32_t* __restrict lo, std::uint32_t* __restrict hi,
               std::uint32_t* __restrict bit, const std::array<const std::uint32_t*, sizeof...(S)>& los,
               const std::array<const std::uint32_t*, sizeof...(S)>& his, std::index_sequence<I...> /*sources*/) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const auto result = call<kLane>(context, load<S>(los[I], his[I], lane)...);
    if constexpr (!D::kKind.has_result) {
      bit[lane] = result ? 1u : 0u;
    } else if constexpr (D::kKind.has_mask) {
      bit[lane] = result.bit ? 1u : 0u;
      store(result.value, lo, hi, lane);
    } else {
      store(static_cast<typename D::Value>(result), lo, hi, lane);
    }
  }
}

void read_implicit(const Wave& wave, Kind kind, Source& source);

template <typename S>
[[nodiscard]] bool read_source(const VectorOperands& operands, const Machine& machine, unsigned n, Source& source) {
  if constexpr (S::kKind.from_nothing) {
    read_implicit(machine.wave, S::kKind, source);
    return true;
  } else {
    return operands.read(n, S::kKind, source);
  }
}

// Executes instructions whose sources and destination are the elements of a signature. The operation itself is a Loop
// over the lanes. It is an argument and no template parameter, so that all operations of a signature share this code.
template <typename Signature>
struct Runner;

template <typename D, typename... S>
struct Runner<D(S...)> {
  static constexpr std::size_t kSources = sizeof...(S);
  using Indexes = std::index_sequence_for<S...>;
  using Sources = std::array<Source, kSources>;
  using Loop = void (*)(const LaneContext& context, const Sources& sources, Results& results);

  // The loop that calls the function `kLane` for each lane.
  template <auto kLane>
  static void loop(const LaneContext& context, const Sources& sources, Results& results) {
    compute<kLane>(context, sources, results, Indexes());
  }

  // `kind` is that of the destination: D's, or one that also says which half is kept.
  [[gnu::noinline]] static Outcome run(const Instruction& instruction, Machine& machine, Loop loop,
                                       Kind kind = D::kKind) {
    const VectorOperands operands(instruction, machine);
    Sources sources;
    if (!operands.check_dst(kind) || !read_all(operands, machine, sources, Indexes())) return Outcome::kIllegal;
    Results results;
    loop(operands.context(), sources, results);
    operands.write(kind, results);
    return Outcome::kNext;
  }

  // The last source is the old value of the destination.
  [[gnu::noinline]] static Outcome run_accumulate(const Instruction& instruction, Machine& machine, Loop loop,
                                                  Kind kind = D::kKind) {
    using Last = std::tuple_element_t<kSources - 1, std::tuple<S...>>;
    const VectorOperands operands(instruction, machine);
    Sources sources;
    if (!operands.check_dst(kind) || !operands.read_dst(Last::kKind, sources[kSources - 1]) ||
        !read_all(operands, machine, sources, std::make_index_sequence<kSources - 1>())) {
      return Outcome::kIllegal;
    }
    Results results;
    loop(operands.context(), sources, results);
    operands.write(kind, results);
    return Outcome::kNext;
  }

  // Computes both halves of 16-bit elements, or both registers of 32-bit ones.
  [[gnu::noinline]] static Outcome run_packed(const Instruction& instruction, Machine& machine, Loop loop) {
    static_assert(D::kKind.bits <= 32);
    constexpr Kind kDst = {.bits = D::kKind.bits == 16 ? std::uint8_t{32} : std::uint8_t{64}};
    const VectorOperands operands(instruction, machine);
    Sources low;
    Sources high;
    if (!operands.check_dst(kDst) || !read_parts(operands, Part::kLow, low, Indexes()) ||
        !read_parts(operands, Part::kHigh, high, Indexes())) {
      return Outcome::kIllegal;
    }
    Results results;
    Results other;
    loop(operands.context(), low, results);
    loop(operands.context(), high, other);
    if constexpr (kDst.bits == 32) {
      for (unsigned lane = 0; lane < kLanes; ++lane) results.lo[lane] |= other.lo[lane] << 16;
    } else {
      results.hi = other.lo;
    }
    operands.write(kDst, results);
    return Outcome::kNext;
  }

 private:
  template <auto kLane, std::size_t... I>
  static void compute(const LaneContext& context, const Sources& sources, Results& results,
                      std::index_sequence<I...> indexes) {
    run_lanes<kLane, D, S...>(context, results.lo.data(), results.hi.data(), results.bit.data(), {sources[I].lo...},
                              {sources[I].hi...}, indexes);
  }

  template <std::size_t... I>
  static bool read_all(const VectorOperands& operands, const Machine& machine, Sources& sources,
                       std::index_sequence<I...> /*sources*/) {
    using Elements = std::tuple<S...>;
    return (read_source<std::tuple_element_t<I, Elements>>(operands, machine, I, sources[I]) && ...);
  }

  template <std::size_t... I>
  static bool read_parts(const VectorOperands& operands, Part part, Sources& sources,
                         std::index_sequence<I...> /*sources*/) {
    return (operands.read(I, S::kKind, sources[I], part) && ...);
  }
};

}  // namespace detail

// Handlers. `kLane` is a function of the values of one lane, which may have a LaneContext as its last parameter.
// `kClamped` is the function that is called with the clamp bit; a function of floats applies omod and clamp itself.
template <typename Signature, auto kLane, auto kClamped = kLane>
Outcome vector(const Instruction& instruction, Machine& machine) {
  using Runner = detail::Runner<Signature>;
  return Runner::run(instruction, machine,
                     instruction.clamp ? Runner::template loop<kClamped> : Runner::template loop<kLane>);
}

// A handler whose signature has the destination as its last source.
template <typename Signature, auto kLane, auto kClamped = kLane>
Outcome accumulate(const Instruction& instruction, Machine& machine) {
  using Runner = detail::Runner<Signature>;
  return Runner::run_accumulate(instruction, machine,
                                instruction.clamp ? Runner::template loop<kClamped> : Runner::template loop<kLane>);
}

// A handler of a VOP3P operation with two results.
template <typename Signature, auto kLane, auto kClamped = kLane>
Outcome packed(const Instruction& instruction, Machine& machine) {
  using Runner = detail::Runner<Signature>;
  return Runner::run_packed(instruction, machine,
                            instruction.clamp ? Runner::template loop<kClamped> : Runner::template loop<kLane>);
}

}  // namespace gcn
