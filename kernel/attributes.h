/* SPDX-License-Identifier: GPL-2.0-only */
/* What attributes.c gives to elevator.c. */
#ifndef PLANEWISE_ATTRIBUTES_H
#define PLANEWISE_ATTRIBUTES_H

#include "blk.h"
#include "elevator.h"
#include "blk-mq.h"
#include "blk-mq-debugfs.h"

struct planewise_policy;

/* In /sys/block/DISK/queue/iosched, once the policy's tunables are in. */
extern struct elv_fs_entry planewise_attributes[];
void planewise_attributes_init(const struct planewise_policy *policy);

/* In /sys/kernel/debug/block/DISK/sched. */
extern const struct blk_mq_debugfs_attr planewise_debugfs_attributes[];

#endif
