# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# Files of the engines, for the device's CMakeLists.txt.
set(VASICD_ENGINE_SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/aql_queue.cc
  ${CMAKE_CURRENT_LIST_DIR}/cp_queue.cc
  ${CMAKE_CURRENT_LIST_DIR}/cp_ring.cc
  ${CMAKE_CURRENT_LIST_DIR}/engines.cc
  ${CMAKE_CURRENT_LIST_DIR}/engines_copy.cc
  ${CMAKE_CURRENT_LIST_DIR}/engines_queue.cc
  ${CMAKE_CURRENT_LIST_DIR}/hqd.cc
  ${CMAKE_CURRENT_LIST_DIR}/hws.cc
  ${CMAKE_CURRENT_LIST_DIR}/hws_run_list.cc
  ${CMAKE_CURRENT_LIST_DIR}/mes.cc
  ${CMAKE_CURRENT_LIST_DIR}/mqd.cc
  ${CMAKE_CURRENT_LIST_DIR}/pm4_exec.cc
  ${CMAKE_CURRENT_LIST_DIR}/queue_loader.cc
  ${CMAKE_CURRENT_LIST_DIR}/queue_waves.cc
  ${CMAKE_CURRENT_LIST_DIR}/scheduler.cc
  ${CMAKE_CURRENT_LIST_DIR}/scheduler_share.cc
  ${CMAKE_CURRENT_LIST_DIR}/sdma_exec.cc
  ${CMAKE_CURRENT_LIST_DIR}/sdma_queue.cc)
set(VASICD_ENGINE_TESTS
  ${CMAKE_CURRENT_LIST_DIR}/aql_queue_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/cp_generations_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/cp_queue_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/cp_ring_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/engines_control_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/engines_copy_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/engines_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/hqd_resume_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/hws_hang_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/hws_share_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/hws_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/mes_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/multi_xcc_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/queue_waves_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/sdma_generations_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/sdma_queue_test.cc)
# Needs Google Benchmark; empty where that is absent.
set(VASICD_ENGINE_BENCH "")
find_package(benchmark QUIET)
if(benchmark_FOUND)
  set(VASICD_ENGINE_BENCH ${CMAKE_CURRENT_LIST_DIR}/sdma_queue_bench.cc)
endif()
