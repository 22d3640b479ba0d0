// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfdtest-criu/tests/shared_shapes.h"

#include <algorithm>

namespace kfdtest {

std::size_t Shape::members() const { return std::ranges::max(holdings, {}, &Holding::member).member + 1; }

std::size_t Shape::memories() const { return std::ranges::max(holdings, {}, &Holding::memory).memory + 1; }

std::size_t Shape::gpus() const { return std::ranges::max(holdings, {}, &Holding::used_by).used_by + 1; }

std::size_t Shape::maker(std::size_t memory) const {
  const auto found =
      std::ranges::find_if(holdings, [memory](const Holding& each) { return each.memory == memory && !each.freed; });
  return found->member;
}

bool Shape::has(std::size_t member, std::size_t memory) const {
  return std::ranges::any_of(
      holdings, [&](const Holding& each) { return each.member == member && each.memory == memory && !each.freed; });
}

bool Shape::is_exchanged(std::size_t memory) const {
  const auto of_memory = [memory](const Holding& each) { return each.memory == memory && !each.freed; };
  const std::size_t only = maker(memory);
  const auto allocation = std::ranges::find(holdings, memory, &Holding::memory);
  return allocation->freed ||
         std::ranges::any_of(holdings, [&](const Holding& each) { return of_memory(each) && each.member != only; });
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"pair", {{.memory = 0, .member = 0}, {.memory = 0, .member = 1, .from = 0}}},
      {"one_file", {{.memory = 0, .member = 0}, {.memory = 0, .member = 0, .from = 0}}},
      {"three",
       {{.memory = 0, .member = 0}, {.memory = 0, .member = 1, .from = 0}, {.memory = 0, .member = 2, .from = 0}}},
      {"chain",
       {{.memory = 0, .member = 0}, {.memory = 0, .member = 1, .from = 0}, {.memory = 0, .member = 2, .from = 1}}},
      {"cycle",
       {{.memory = 0, .member = 0},
        {.memory = 1, .member = 1},
        {.memory = 2, .member = 2},
        {.memory = 0, .member = 1, .from = 0},
        {.memory = 1, .member = 2, .from = 1},
        {.memory = 2, .member = 0, .from = 2}}},
      // Each of two processes has a GPU, and imports the memory of the other one's.
      {"two_gpus",
       {{.memory = 0, .member = 0},
        {.memory = 1, .member = 1, .gpu = 1, .used_by = 1},
        {.memory = 0, .member = 1, .from = 0, .gpu = 1, .used_by = 1},
        {.memory = 1, .member = 0, .from = 1}}},
      // The GPU of the second process reaches the memory of the other GPU through a mapping of that GPU's BO.
      {"peers", {{.memory = 0, .member = 0}, {.memory = 0, .member = 1, .from = 0, .used_by = 1}}},
      {"two_gpus_in_one_process",
       {{.memory = 0, .member = 0}, {.memory = 0, .member = 0, .from = 0, .gpu = 1, .used_by = 1}}},
      {"render_nodes",
       {{.memory = 0, .member = 0, .as = As::kGem},
        {.memory = 0, .member = 1, .from = 0, .as = As::kGem},
        {.memory = 0, .member = 2, .from = 1, .as = As::kGem}}},
      {"render_node_to_kfd", {{.memory = 0, .member = 0, .as = As::kGem}, {.memory = 0, .member = 1, .from = 0}}},
      {"kfd_to_render_node",
       {{.memory = 0, .member = 0},
        {.memory = 0, .member = 0, .from = 0, .as = As::kGem},
        {.memory = 0, .member = 1, .from = 1, .as = As::kGem}}},
      {"kfd_and_render_node_in_one_process",
       {{.memory = 0, .member = 0}, {.memory = 0, .member = 0, .from = 0, .as = As::kGem}}},
      {"freed_by_who_allocated_it",
       {{.memory = 0, .member = 0, .freed = true},
        {.memory = 0, .member = 1, .from = 0},
        {.memory = 0, .member = 2, .from = 0}}},
      {"allocated_by_a_process_that_has_ended",
       {{.memory = 0, .member = 0},
        {.memory = 1, .member = 1, .freed = true},
        {.memory = 1, .member = 0, .from = 1},
        {.memory = 1, .member = 2, .from = 1}},
       1},
      {"freed_by_all_but_one", {{.memory = 0, .member = 0, .freed = true}, {.memory = 0, .member = 1, .from = 0}}},
      {"render_node_that_has_freed",
       {{.memory = 0, .member = 0, .as = As::kGem, .freed = true},
        {.memory = 0, .member = 1, .from = 0, .as = As::kGem},
        {.memory = 0, .member = 2, .from = 0}}},
      {"dmabufs",
       {{.memory = 0, .member = 0},
        {.memory = 0, .member = 0, .from = 0, .as = As::kDmabuf},
        {.memory = 0, .member = 1, .from = 0, .as = As::kDmabuf},
        {.memory = 0, .member = 1, .from = 0}}},
      {"a_dmabuf_in_another_process",
       {{.memory = 0, .member = 0}, {.memory = 0, .member = 1, .from = 0, .as = As::kDmabuf}}},
      {"a_dmabuf_of_a_render_node",
       {{.memory = 0, .member = 0, .as = As::kGem},
        {.memory = 0, .member = 0, .from = 0, .as = As::kDmabuf},
        {.memory = 1, .member = 1, .as = As::kGem},
        {.memory = 1, .member = 0, .from = 2, .as = As::kDmabuf}}},
      {"dmabufs_of_memory_that_is_freed",
       {{.memory = 0, .member = 0, .freed = true},
        {.memory = 0, .member = 0, .from = 0, .as = As::kDmabuf},
        {.memory = 0, .member = 1, .from = 0, .as = As::kDmabuf}}},
      {"a_dmabuf_of_memory_that_is_freed",
       {{.memory = 0, .member = 0, .freed = true}, {.memory = 0, .member = 0, .from = 0, .as = As::kDmabuf}}},
      {"virtual_memory", {{.memory = 0, .member = 0, .as = As::kViews}}},
      {"virtual_memory_of_two_processes",
       {{.memory = 0, .member = 0, .as = As::kViews},
        {.memory = 0, .member = 1, .from = 0, .as = As::kViews},
        {.memory = 0, .member = 2, .from = 1, .as = As::kViews}}},
      {"virtual_memory_that_its_process_has_freed",
       {{.memory = 0, .member = 0, .as = As::kViews, .freed = true},
        {.memory = 0, .member = 1, .from = 0, .as = As::kViews},
        {.memory = 0, .member = 1, .from = 0, .as = As::kDmabuf}}},
      {"virtual_memory_of_two_gpus",
       {{.memory = 0, .member = 0, .as = As::kViews},
        {.memory = 0, .member = 0, .from = 0, .as = As::kViews, .gpu = 1, .used_by = 1},
        {.memory = 0, .member = 1, .from = 0, .as = As::kViews, .gpu = 1, .used_by = 1}}},
  };
  return all;
}

}  // namespace kfdtest
