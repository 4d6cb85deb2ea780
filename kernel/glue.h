/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of a module share. */
#ifndef PLANEWISE_GLUE_H
#define PLANEWISE_GLUE_H

#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>

#include "core.h"

/* These two are defined once in each module. */
extern const struct planewise_policy *const planewise_module_policy;

/* Sets what the module's own parameters say of tunables: 0, or -EINVAL with a refusal. */
int planewise_module_values(u64 *values, struct planewise_refusal *refusal);

/* Files are compiled once for all modules, so the policy says whose line of the log it is. */
#define complain(text, ...) printk(KERN_ERR "%s: " text "\n", planewise_module_policy->name, ##__VA_ARGS__)

/* A drive as users describe it (drive.c). Its words belong to it. */
struct planewise_description {
	struct planewise_drive drive;
	char level[8];
	char order[8];
	/* Whether a write goes to the units that its addresses say. */
	bool writes_stay;
};

#define PLANEWISE_DESCRIPTION_TEXT 256

/* 0, or an error after which nothing is left to be undone. */
int planewise_drives_init(void);
void planewise_drives_exit(void);
/* What is known of a drive, by the name of its disk. */
void planewise_describe(const char *disk, struct planewise_description *description);
/* As parameters: PLANEWISE_DESCRIPTION_TEXT bytes. */
void planewise_write_description(const struct planewise_description *description, char *text);

/* As many as there can be: no limit. */
#define PLANEWISE_ASYNC_DEPTH_MOST 65536

struct planewise_slots;

/* A drive's queue under this scheduler. */
struct planewise_queue {
	spinlock_t lock;
	struct request_queue *queue;
	const struct planewise_policy *policy;
	void *state;
	struct planewise_config config;
	struct planewise_description description;
	/* What goes before all others: requeued requests, and those that move no data of the drive. */
	struct list_head front;
	/* Requests for which there is no slot: they enter as others leave, as they wait outside the queue in the simulator. */
	struct list_head outside;
	/* Requests that the policy has and has not dispatched. */
	u32 waiting;
	/* The policy had requests and dispatched none: a completion has to ask again. */
	bool is_held;
	struct hrtimer timer;
	/* Waiting requests by their first sector, for front merges. */
	struct rb_root by_sector[PLANEWISE_DIRECTIONS];
	struct planewise_link idle;
	struct planewise_slots *slots;
	u32 slots_count;
	/* Requests that writes, and reads that nobody waits for, may have of nr_requests. */
	u32 async_depth;
	u64 dispatched;
	u64 merged;
	u64 requeued;
	/* Requests that had to wait outside. */
	u64 waited_outside;
};

#endif
