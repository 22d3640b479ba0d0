/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Private to the fixture: which word of its memory means what.
 */
#ifndef KFD_CRIU_SELFTEST_FIXTURE_WORDS_H
#define KFD_CRIU_SELFTEST_FIXTURE_WORDS_H

#include "fixture.h"

/* Priority of the compute queues. */
#define FIXTURE_PRIORITY	11

/* Fills a page's words behind those that packets write with numbers to recognize. */
void fixture_fill(__u32 *page);
/* The i-th BO that the process maps and whose contents matter; NULL behind the last. */
struct kfd_bo *fixture_content(struct fixture *fixture, unsigned int i);

#endif /* KFD_CRIU_SELFTEST_FIXTURE_WORDS_H */
