/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * Sizes and offsets of every shared structure, checked by whoever includes this
 * file: the kernel (C11) and the host (C++20). An edit of vasic_abi.h that moves
 * a word does not compile. Include vasic_abi.h first: its place differs.
 */
#ifndef UAPI_LAYOUT_H
#define UAPI_LAYOUT_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <assert.h>
#include <stddef.h>
#endif

#define VASIC_ASSERT_SIZE(type, size) \
	static_assert(sizeof(struct type) == (size), #type " changed size")
#define VASIC_ASSERT_AT(type, member, offset) \
	static_assert(offsetof(struct type, member) == (offset), \
		      #type "." #member " moved")

VASIC_ASSERT_SIZE(vasic_info, 640);
VASIC_ASSERT_AT(vasic_info, magic, 0);
VASIC_ASSERT_AT(vasic_info, abi_version, 8);
VASIC_ASSERT_AT(vasic_info, bar_size, 16);
VASIC_ASSERT_AT(vasic_info, vram_size, 24);
VASIC_ASSERT_AT(vasic_info, gart_size, 40);
VASIC_ASSERT_AT(vasic_info, name, 72);
VASIC_ASSERT_AT(vasic_info, gpu_index, 104);
VASIC_ASSERT_AT(vasic_info, gc_ip, 128);
VASIC_ASSERT_AT(vasic_info, xcc_count, 144);
VASIC_ASSERT_AT(vasic_info, cu_bitmap, 164);
VASIC_ASSERT_AT(vasic_info, simd_per_cu, 292);
VASIC_ASSERT_AT(vasic_info, gfx_level, 380);
VASIC_ASSERT_AT(vasic_info, doorbell_size, 404);
VASIC_ASSERT_AT(vasic_info, xgmi_segment_size, 432);
VASIC_ASSERT_AT(vasic_info, reserved, 440);

VASIC_ASSERT_SIZE(vasic_guest_words, 64);
VASIC_ASSERT_AT(vasic_guest_words, tlb_gen, 0);
VASIC_ASSERT_AT(vasic_guest_words, ih_rptr, 4);

VASIC_ASSERT_SIZE(vasic_host_words, 64);
VASIC_ASSERT_AT(vasic_host_words, walk_epoch, 0);
VASIC_ASSERT_AT(vasic_host_words, tlb_ack, 4);
VASIC_ASSERT_AT(vasic_host_words, state, 8);

VASIC_ASSERT_SIZE(vasic_command, 120);
VASIC_ASSERT_AT(vasic_command, opcode, 4);
VASIC_ASSERT_AT(vasic_command, arg, 8);

VASIC_ASSERT_SIZE(vasic_reply, 64);
VASIC_ASSERT_AT(vasic_reply, status, 4);
VASIC_ASSERT_AT(vasic_reply, value, 8);

#endif /* UAPI_LAYOUT_H */
