// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The text file of an image. Most of an image is zero, and much of it repeats: a block of
 * memory is written as rows of bytes that are not all zero, each with the number of times
 * that it repeats.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "image_file.h"

#define ROW		32
#define LINE_MAX_LENGTH	256
/* A file with a larger block is not read. */
#define MOST_BYTES	(1024ULL * 1024 * 1024)

static const struct {
	const char *name;
	size_t offset;
} fields[] = {
#define FIELD(name) { #name, offsetof(struct image_file_numbers, name) }
	FIELD(gfx_version),    FIELD(words),	      FIELD(vram),
	FIELD(user),	       FIELD(event_page),     FIELD(sdma_ring),
	FIELD(sdma_memory),    FIELD(sdma_id),	      FIELD(sdma_doorbell),
	FIELD(sdma_written),   FIELD(compute_ring),   FIELD(compute_memory),
	FIELD(compute_id),     FIELD(compute_doorbell),
	FIELD(compute_written), FIELD(set_event),     FIELD(waiting_event),
#undef FIELD
};

#define NUM_FIELDS	(sizeof(fields) / sizeof(*fields))

void image_file_chip(__u32 gfx_version, char *name, size_t size)
{
	snprintf(name, size, "gfx%u%x%x", gfx_version / 10000,
		 gfx_version / 100 % 100, gfx_version % 100);
}

static __u64 row_bytes(__u64 at, __u64 size)
{
	return size - at < ROW ? size - at : ROW;
}

static bool same_row(const unsigned char *bytes, __u64 at, __u64 as, __u64 size)
{
	return at < size && row_bytes(at, size) == row_bytes(as, size) &&
	       !memcmp(bytes + at, bytes + as, row_bytes(at, size));
}

static bool is_zero(const unsigned char *bytes, __u64 n)
{
	while (n && !bytes[n - 1])
		n--;
	return !n;
}

static void write_block(FILE *out, const char *name, const void *data,
			__u64 size)
{
	const unsigned char *bytes = data;
	__u64 at, next, i;

	fprintf(out, "block %s %llu\n", name, (unsigned long long)size);
	for (at = 0; at < size; at = next) {
		next = at + ROW;
		while (same_row(bytes, next, at, size))
			next += ROW;
		if (is_zero(bytes + at, row_bytes(at, size)))
			continue;
		fprintf(out, "%llx %llu ", (unsigned long long)at,
			(unsigned long long)(next - at) / ROW);
		for (i = 0; i < row_bytes(at, size); i++)
			fprintf(out, "%02x", bytes[at + i]);
		fputc('\n', out);
	}
}

static void write_head(FILE *out, const struct image_file *file)
{
	const char *numbers = (const char *)&file->numbers;
	struct utsname kernel;
	unsigned int i;

	uname(&kernel);
	/* In two parts, so that tools do not read it as the licence of this C file. */
	fprintf(out, "# %s: %s\n", "SPDX-License-Identifier", "GPL-2.0 OR MIT");
	fprintf(out, "# by `dump_image` on Linux %s, %s\n", kernel.release,
		kernel.version);
	for (i = 0; i < NUM_FIELDS; i++)
		fprintf(out, "number %s %llu\n", fields[i].name,
			(unsigned long long)*(__u64 *)(numbers +
						       fields[i].offset));
	fprintf(out, "number objects %u\n",
		file->image.args.num_objects);
}

int image_file_write(const char *path, const struct image_file *file)
{
	const struct kfd_v1_image *image = &file->image;
	FILE *out = fopen(path, "w");
	unsigned int i;

	if (!out)
		return -errno;
	write_head(out, file);
	write_block(out, "devices", image->devices,
		    image->args.num_devices * sizeof(*image->devices));
	write_block(out, "bos", image->bos,
		    image->args.num_bos * sizeof(*image->bos));
	write_block(out, "private", image->priv, image->args.priv_data_size);
	for (i = 0; i < image->args.num_bos; i++)
		write_block(out, "contents", file->contents[i],
			    file->contents[i] ? image->bos[i].size : 0);
	write_block(out, "host", file->host, FIXTURE_HOST_BYTES);
	return fclose(out) ? -errno : 0;
}

/* The file that is read, and its current line, which is not a comment. */
struct reader {
	FILE *file;
	char line[LINE_MAX_LENGTH];
};

/* Moves to the next line. False at the end of the file. */
static bool next_line(struct reader *r)
{
	do {
		if (!fgets(r->line, sizeof(r->line), r->file)) {
			r->line[0] = '\0';
			return false;
		}
	} while (r->line[0] == '#');
	return true;
}

static int read_number(struct reader *r, const char *name, __u64 *value)
{
	unsigned long long number;
	char found[32];

	if (sscanf(r->line, "number %31s %llu", found, &number) != 2 ||
	    strcmp(found, name))
		return -EPROTO;
	*value = number;
	next_line(r);
	return 0;
}

static int read_row(const char *line, unsigned char *data, __u64 size)
{
	unsigned long long at, count;
	unsigned int byte, n = 0;
	unsigned char row[ROW];
	int length;

	if (sscanf(line, "%llx %llu %n", &at, &count, &length) != 2)
		return -EPROTO;
	line += length;
	while (n < ROW && sscanf(line + 2 * n, "%2x", &byte) == 1)
		row[n++] = byte;
	for (; count; count--, at += n) {
		if (!n || at > size || size - at < n)
			return -EPROTO;
		memcpy(data + at, row, n);
	}
	return 0;
}

/* Stores memory that the caller has to free, or NULL for a block without bytes. */
static int read_block(struct reader *r, const char *name, void *data,
		      __u64 *size)
{
	unsigned long long bytes;
	unsigned char *block;
	char found[32];
	int e = 0;

	if (sscanf(r->line, "block %31s %llu", found, &bytes) != 2 ||
	    strcmp(found, name) || bytes > MOST_BYTES)
		return -EPROTO;
	block = bytes ? calloc(1, bytes) : NULL;
	if (bytes && !block)
		return -ENOMEM;
	while (!e && next_line(r) && strncmp(r->line, "block ", 6))
		e = read_row(r->line, block, bytes);
	*(void **)data = block;
	*size = bytes;
	return e;
}

static int read_head(struct reader *r, struct image_file *file)
{
	char *numbers = (char *)&file->numbers;
	__u64 objects;
	unsigned int i;
	int e = 0;

	next_line(r);
	for (i = 0; !e && i < NUM_FIELDS; i++)
		e = read_number(r, fields[i].name,
				(__u64 *)(numbers + fields[i].offset));
	e = e ? e : read_number(r, "objects", &objects);
	if (!e)
		file->image.args.num_objects = objects;
	return e;
}

static int read_image(struct reader *r, struct kfd_v1_image *image)
{
	struct kfd_ioctl_criu_args *args = &image->args;
	__u64 devices, bos, priv;
	int e;

	e = read_block(r, "devices", &image->devices, &devices);
	e = e ? e : read_block(r, "bos", &image->bos, &bos);
	e = e ? e : read_block(r, "private", &image->priv, &priv);
	if (e)
		return e;
	args->num_devices = devices / sizeof(*image->devices);
	args->num_bos = bos / sizeof(*image->bos);
	args->priv_data_size = priv;
	args->devices = (unsigned long)image->devices;
	args->bos = (unsigned long)image->bos;
	args->priv_data = (unsigned long)image->priv;
	return args->num_bos <= IMAGE_FILE_BOS ? 0 : -EPROTO;
}

static int read_all(struct reader *r, struct image_file *file)
{
	const struct kfd_v1_image *image = &file->image;
	unsigned int i;
	__u64 size;
	int e;

	e = read_head(r, file);
	e = e ? e : read_image(r, &file->image);
	for (i = 0; !e && i < image->args.num_bos; i++) {
		e = read_block(r, "contents", &file->contents[i], &size);
		if (!e && size && size != image->bos[i].size)
			e = -EPROTO;
	}
	e = e ? e : read_block(r, "host", &file->host, &size);
	return !e && size != FIXTURE_HOST_BYTES ? -EPROTO : e;
}

int image_file_read(const char *path, struct image_file *file)
{
	struct reader r = { .file = fopen(path, "r") };
	int e;

	memset(file, 0, sizeof(*file));
	if (!r.file)
		return -errno;
	e = read_all(&r, file);
	fclose(r.file);
	if (e)
		image_file_free(file);
	return e;
}

void image_file_free(struct image_file *file)
{
	unsigned int i;

	for (i = 0; i < IMAGE_FILE_BOS; i++)
		free(file->contents[i]);
	free(file->host);
	kfd_v1_image_free(&file->image);
	memset(file, 0, sizeof(*file));
}
