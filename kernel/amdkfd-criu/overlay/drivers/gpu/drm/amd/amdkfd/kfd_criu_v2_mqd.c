// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The extensible ABI: the MQDs and control stacks of a queue, as they follow
 * struct kfd_criu_record_queue. For each XCC an image has the words that the
 * hardware wrote, as a sequence of runs (struct kfd_criu_mqd_words). The number
 * of words depends on the layout only.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/overflow.h>
#include <linux/slab.h>
#include "kfd_criu.h"
#include "kfd_criu_v2.h"
#include "kfd_priv.h"

/* Words that the header of a run takes. */
#define RUN_HEADER	(sizeof(struct kfd_criu_mqd_words) / sizeof(__le32))

static_assert(sizeof(struct kfd_criu_mqd_words) == sizeof(__le32));

#define ASSERT_LAYOUT(name) \
	static_assert((int)KFD_CRIU_LAYOUT_##name == KFD_CRIU_MQD_##name)
ASSERT_LAYOUT(CIK);
ASSERT_LAYOUT(VI);
ASSERT_LAYOUT(V9);
ASSERT_LAYOUT(V10);
ASSERT_LAYOUT(V11);
ASSERT_LAYOUT(V12);
ASSERT_LAYOUT(CIK_SDMA);
ASSERT_LAYOUT(VI_SDMA);
ASSERT_LAYOUT(V9_SDMA);
ASSERT_LAYOUT(V10_SDMA);
ASSERT_LAYOUT(V11_SDMA);
ASSERT_LAYOUT(V12_SDMA);

/**
 * kfd_criu_v2_num_words - get the number of words that this kernel writes for
 * the MQD of each XCC
 * @node: the device
 * @type: type of the queue
 *
 * Return: the number, which is even; 0 if the generation is unknown.
 */
u32 kfd_criu_v2_num_words(const struct kfd_node *node, enum kfd_queue_type type)
{
	u32 first, count, words = 0;
	unsigned int i;

	for (i = 0; kfd_criu_mqd_get_run(node, type, i, &first, &count); i++)
		words += RUN_HEADER + count;
	return ALIGN(words, 2);
}

/**
 * kfd_criu_v2_mqd_bytes - get the bytes of the payload of a queue's record
 * @mqd: number and sizes from kfd_criu_mqd_describe() or from a record
 * @num_words: words for each XCC
 *
 * Return: the bytes; SIZE_MAX if there cannot be so many.
 */
size_t kfd_criu_v2_mqd_bytes(const struct kfd_criu_mqd *mqd, u32 num_words)
{
	return size_mul(mqd->n_xcc, size_add(size_mul(num_words, sizeof(__le32)),
					     mqd->ctl_stack_size));
}

static void kfd_criu_v2_pack_words(const struct kfd_node *node,
				   const struct kfd_criu_queue *cq, __le32 *to,
				   const u32 *from)
{
	u32 first, count, word, mask;
	unsigned int i;

	for (i = 0; kfd_criu_mqd_get_run(node, cq->qp.type, i, &first, &count);
	     i++) {
		struct kfd_criu_mqd_words *run = (void *)to;

		run->first = cpu_to_le16(first);
		run->count = cpu_to_le16(count);
		to += RUN_HEADER;
		for (word = first; word < first + count; word++) {
			kfd_criu_mqd_get_mask(node, cq, word, &mask);
			*to++ = cpu_to_le32(from[word] & mask);
		}
	}
}

/**
 * kfd_criu_v2_pack_mqds - make the payload of a queue's record
 * @node: the device
 * @cq: the queue with its MQDs
 *
 * Return: kfd_criu_v2_mqd_bytes() bytes, to be freed with kvfree(); NULL if
 * there is no memory.
 */
void *kfd_criu_v2_pack_mqds(const struct kfd_node *node,
			    const struct kfd_criu_queue *cq)
{
	const u32 num_words = kfd_criu_v2_num_words(node, cq->qp.type);
	const struct kfd_criu_mqd *mqd = &cq->mqd;
	__le32 *payload;
	unsigned int xcc;

	payload = kvzalloc(kfd_criu_v2_mqd_bytes(mqd, num_words),
			   GFP_KERNEL_ACCOUNT);
	if (!payload)
		return NULL;
	for (xcc = 0; xcc < mqd->n_xcc; xcc++)
		kfd_criu_v2_pack_words(node, cq, payload + xcc * num_words,
				       kfd_criu_mqd_words(mqd, xcc));
	memcpy(payload + mqd->n_xcc * num_words, kfd_criu_mqd_ctl_stack(mqd, 0),
	       (size_t)mqd->n_xcc * mqd->ctl_stack_size);
	return payload;
}

static int kfd_criu_v2_unpack_run(const struct kfd_node *node,
				  const struct kfd_criu_queue *cq, u32 *to,
				  u32 first, u32 count, const __le32 *from)
{
	u32 i, mask;

	for (i = 0; i < count; i++) {
		const u32 value = le32_to_cpu(from[i]);

		if (!kfd_criu_mqd_get_mask(node, cq, first + i, &mask) ||
		    value & ~mask)
			return -EINVAL;
		to[first + i] = value;
	}
	return 0;
}

static int kfd_criu_v2_unpack_words(const struct kfd_node *node,
				    const struct kfd_criu_queue *cq, u32 *to,
				    const __le32 *from, u32 num_words)
{
	u32 at = 0, next = 0;
	int r;

	while (at < num_words) {
		const struct kfd_criu_mqd_words *run = (const void *)&from[at];
		const u32 first = le16_to_cpu(run->first);
		const u32 count = le16_to_cpu(run->count);

		at += RUN_HEADER;
		/* Only the last word can be padding. */
		if (!first && !count && at == num_words)
			return 0;
		if (!count || count > num_words - at || first < next)
			return -EINVAL;
		r = kfd_criu_v2_unpack_run(node, cq, to, first, count,
					   from + at);
		if (r)
			return r;
		at += count;
		next = first + count;
	}
	return 0;
}

/**
 * kfd_criu_v2_unpack_mqds - make MQDs from the payload of a queue's record
 * @node: device on which the queue is to be restored
 * @cq: the queue; its MQDs are returned, with 0 in words that the payload does
 *	not give, to be freed with kfd_criu_queue_free()
 * @num_words: words for each XCC in the payload
 * @payload: copy of the payload of kfd_criu_v2_mqd_bytes() bytes
 *
 * The words are not checked, except that images have them, see
 * kfd_criu_mqd_check().
 *
 * Return: 0; -EINVAL if the payload has words that no image has, or bits that
 * the driver sets; -ENOMEM.
 */
int kfd_criu_v2_unpack_mqds(const struct kfd_node *node,
			    struct kfd_criu_queue *cq, u32 num_words,
			    const void *payload)
{
	struct kfd_criu_mqd *mqd = &cq->mqd;
	const __le32 *words = payload;
	unsigned int xcc;
	int r;

	mqd->data = kvzalloc(kfd_criu_mqd_bytes(mqd), GFP_KERNEL_ACCOUNT);
	if (!mqd->data)
		return -ENOMEM;
	for (xcc = 0; xcc < mqd->n_xcc; xcc++) {
		r = kfd_criu_v2_unpack_words(node, cq,
					     kfd_criu_mqd_words(mqd, xcc),
					     words + xcc * num_words, num_words);
		if (r)
			goto err_free;
	}
	memcpy(kfd_criu_mqd_ctl_stack(mqd, 0), words + mqd->n_xcc * num_words,
	       (size_t)mqd->n_xcc * mqd->ctl_stack_size);
	return 0;
err_free:
	kfd_criu_queue_free(cq);
	return r;
}
