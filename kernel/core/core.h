/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all policies share: a request as a policy sees it, the units that it
 * touches, and lists. It compiles in the kernel and in the test that sets it
 * beside the simulator (crates/kernel-core). Nothing here or in a policy
 * allocates memory once the scheduler is set up, and nothing computes with
 * fractions.
 */
#ifndef PLANEWISE_CORE_H
#define PLANEWISE_CORE_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#define planewise_zalloc(bytes) kvzalloc(bytes, GFP_KERNEL)
#define planewise_free(memory) kvfree(memory)
#define planewise_divide(dividend, divisor) div64_u64(dividend, divisor)
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define planewise_zalloc(bytes) calloc(1, bytes)
#define planewise_free(memory) free(memory)
#define planewise_divide(dividend, divisor) ((dividend) / (divisor))
#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))
#endif

#define PLANEWISE_UNITS_MAX 1024
/* Planes of a stripe at most: what the table of units takes is twice that. */
#define PLANEWISE_STRIPE_MAX 65536
#define PLANEWISE_UNIT_WORDS (PLANEWISE_UNITS_MAX / 64)
#define PLANEWISE_NEVER (~0ULL)
#define PLANEWISE_TUNABLES_MAX 8

enum planewise_direction { PLANEWISE_READ, PLANEWISE_WRITE, PLANEWISE_DIRECTIONS };

/* One bit for each parallel unit. */
struct planewise_units {
	u64 words[PLANEWISE_UNIT_WORDS];
};

/*
 * How data are believed to be spread over units: chunk c is on unit
 * stripe[c % period], or, where chips take contiguous regions in turn, on a
 * unit of the chip whose region it is in. A wrong belief costs performance and
 * nothing else.
 */
struct planewise_geometry {
	u32 units;
	/* 512 bytes each. */
	u32 chunk_sectors;
	u32 period;
	/* Belongs to whoever made the geometry. Of regions: of one chip. */
	const u16 *stripe;
	/* 0 where data are striped over all chips. */
	u64 region_chunks;
	u32 chips;
};

/* What geometry is made from: the simulator's names (docs/device-model.md). */
struct planewise_drive {
	u32 channels;
	u32 chips_per_channel;
	u32 dies_per_chip;
	u32 planes_per_die;
	/* Bytes of consecutive data on one unit. */
	u32 chunk_bytes;
	/* "chip" or "plane": what counts as a unit. */
	const char *level;
	/* The letters c, w, d and p, the one that changes first first. */
	const char *order;
	/*
	 * Bytes of the contiguous regions that chips take in turn, in each of
	 * which chunks go round the chip's planes (Agrawal et al., USENIX ATC
	 * 2008: gangs; PASS, section 3.5); 0 where data are striped in order.
	 */
	u64 chip_region_bytes;
};

/* Where a drive's description is refused: what is named, and what it may be. */
struct planewise_refusal {
	const char *name;
	const char *allowed;
};

/*
 * Fills in the geometry, whose table is to be freed with planewise_free().
 * 0, -EINVAL with a refusal, or -ENOMEM.
 */
int planewise_geometry_init(struct planewise_geometry *geometry,
			    const struct planewise_drive *drive,
			    struct planewise_refusal *refusal);

/* The units that so many sectors from one on touch. */
void planewise_units_of(const struct planewise_geometry *geometry, u64 sector,
			u32 sectors, struct planewise_units *units);

static inline u32 planewise_unit_words(const struct planewise_geometry *geometry)
{
	return (geometry->units + 63) / 64;
}

static inline bool planewise_units_meet(const struct planewise_units *one,
					const struct planewise_units *other,
					u32 words)
{
	u32 word;

	for (word = 0; word < words; word++)
		if (one->words[word] & other->words[word])
			return true;
	return false;
}

/* Intrusive lists, circular through their head. */
struct planewise_link {
	struct planewise_link *before, *behind;
};

static inline void planewise_list_init(struct planewise_link *list)
{
	list->before = list;
	list->behind = list;
}

static inline bool planewise_list_is_empty(const struct planewise_link *list)
{
	return list->behind == list;
}

static inline void planewise_list_push(struct planewise_link *list,
				       struct planewise_link *link)
{
	link->before = list->before;
	link->behind = list;
	list->before->behind = link;
	list->before = link;
}

static inline void planewise_list_remove(struct planewise_link *link)
{
	link->before->behind = link->behind;
	link->behind->before = link->before;
}

#define planewise_for_each(link, list) \
	for (link = (list)->behind; link != (list); link = link->behind)

/* A request as policies see it; each has a structure of its own around it. */
struct planewise_request {
	/* 512 bytes each, from the start of the drive. */
	u64 sector;
	u32 sectors;
	u32 direction;
	/* The policy's, from insert() on. */
	struct planewise_units units;
	/* These belong to the caller: a number of its own for each that there is memory for. */
	struct planewise_link idle;
	void *owner;
	u32 number;
};

/* Allowed values of a tunable: a number, or one of several words by its index. */
struct planewise_tunable {
	const char *name;
	u64 standard;
	u64 least;
	u64 most;
	/* NULL for numbers. */
	const char *const *words;
	/* Set when the scheduler is, and kept. */
	bool is_fixed;
};

/* Set up once: what a policy is told of the drive. */
struct planewise_config {
	struct planewise_geometry geometry;
	u64 capacity_sectors;
	/* Requests that it may have at a time, waiting and outstanding. */
	u32 queue_length;
	/* Whether a write goes to the units that its addresses say. */
	bool writes_stay;
	u64 values[PLANEWISE_TUNABLES_MAX];
};

#define PLANEWISE_COUNTERS_MAX 8

/*
 * A policy. Whoever calls it holds one lock throughout. A request is told of
 * by insert(), then taken by dispatch(), then given back by completed(); a
 * requeued one is completed and, where it comes back, inserted again.
 */
struct planewise_policy {
	const char *name;
	const struct planewise_tunable *tunables;
	u32 tunables_count;
	const char *const *counters;
	u32 counters_count;
	/* Bytes of its requests, each of which begins with a struct planewise_request. */
	size_t request_bytes;

	/* 0, or -EINVAL with a refusal: whether values go with the drive, where a policy minds. NULL: all do. */
	int (*check)(const struct planewise_config *config, struct planewise_refusal *refusal);
	/* The configuration stays where it is and lives as long as the state. NULL: no memory. */
	void *(*create)(const struct planewise_config *config);
	void (*destroy)(void *state);
	/* Memory for so many more requests, zeroed, that the policy may keep things in between. */
	void (*provide)(void *state, void *requests, u32 count);
	/* config->values changed. */
	void (*changed)(void *state);

	/* Times are nanoseconds of one clock that never goes back. */
	void (*insert)(void *state, u64 now, struct planewise_request *request);
	/*
	 * The request that goes next; NULL where none does until one arrives or
	 * completes, or until *wake, which is PLANEWISE_NEVER if that may last.
	 */
	struct planewise_request *(*dispatch)(void *state, u64 now, u64 *wake);
	void (*completed)(void *state, u64 now, struct planewise_request *request);
	bool (*has_waiting)(void *state);
	/* Whether a waiting request may grow by these adjacent sectors. */
	bool (*may_grow)(void *state, struct planewise_request *request, u64 sector,
			 u32 sectors);
	/* It grew to these. */
	void (*grew)(void *state, struct planewise_request *request, u64 sector,
		     u32 sectors);
	void (*count)(void *state, u64 *counters);
};

extern const struct planewise_policy planewise_piq;
extern const struct planewise_policy planewise_pass;
extern const struct planewise_policy planewise_weave;

#endif
