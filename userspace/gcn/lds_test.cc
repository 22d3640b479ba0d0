// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of lds.cc.
#include <gtest/gtest.h>

#include "gcn/execute.h"
