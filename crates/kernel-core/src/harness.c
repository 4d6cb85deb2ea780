// SPDX-License-Identifier: GPL-2.0-only
/* A policy whose requests are called by the number of their slot: what lib.rs calls. */
#include "core.h"

struct harness {
	const struct planewise_policy *policy;
	struct planewise_config config;
	void *state;
	char *requests;
};

static struct planewise_request *request_in(struct harness *harness, u32 slot)
{
	return (struct planewise_request *)(harness->requests +
					    slot * harness->policy->request_bytes);
}

static const struct planewise_policy *const policies[] = { &planewise_piq, &planewise_pass,
							 &planewise_weave };

void *planewise_harness_create(u32 policy, const struct planewise_drive *drive, u64 capacity_sectors,
			       const u64 *values, u32 slots, bool writes_stay,
			       struct planewise_refusal *refusal)
{
	struct harness *harness = calloc(1, sizeof(*harness));
	u32 tunable;

	if (!harness)
		return NULL;
	harness->policy = policies[policy];
	if (planewise_geometry_init(&harness->config.geometry, drive, refusal)) {
		free(harness);
		return NULL;
	}
	harness->config.capacity_sectors = capacity_sectors;
	harness->config.queue_length = slots;
	harness->config.writes_stay = writes_stay;
	for (tunable = 0; tunable < harness->policy->tunables_count; tunable++)
		harness->config.values[tunable] = values[tunable];
	harness->state = harness->policy->create(&harness->config);
	harness->requests = calloc(slots, harness->policy->request_bytes);
	if (!harness->state || !harness->requests)
		abort();
	harness->policy->provide(harness->state, harness->requests, slots);
	return harness;
}

void planewise_harness_destroy(struct harness *harness)
{
	harness->policy->destroy(harness->state);
	free((void *)(uintptr_t)harness->config.geometry.stripe);
	free(harness->requests);
	free(harness);
}

void planewise_harness_insert(struct harness *harness, u64 now, u32 slot, u64 sector, u32 sectors,
			      u32 direction)
{
	struct planewise_request *request = request_in(harness, slot);

	request->sector = sector;
	request->sectors = sectors;
	request->direction = direction;
	harness->policy->insert(harness->state, now, request);
}

/* The slot, or -1. */
int64_t planewise_harness_dispatch(struct harness *harness, u64 now, u64 *wake)
{
	struct planewise_request *request = harness->policy->dispatch(harness->state, now, wake);

	return request ? (int64_t)(((char *)request - harness->requests) /
				   (ptrdiff_t)harness->policy->request_bytes) :
			 -1;
}

void planewise_harness_completed(struct harness *harness, u64 now, u32 slot)
{
	harness->policy->completed(harness->state, now, request_in(harness, slot));
}

bool planewise_harness_has_waiting(struct harness *harness)
{
	return harness->policy->has_waiting(harness->state);
}

bool planewise_harness_may_grow(struct harness *harness, u32 slot, u64 sector, u32 sectors)
{
	return harness->policy->may_grow(harness->state, request_in(harness, slot), sector, sectors);
}

void planewise_harness_grew(struct harness *harness, u32 slot, u64 sector, u32 sectors)
{
	harness->policy->grew(harness->state, request_in(harness, slot), sector, sectors);
}

u32 planewise_harness_count(struct harness *harness, u64 *counters, const char **names)
{
	u32 counter;

	harness->policy->count(harness->state, counters);
	for (counter = 0; counter < harness->policy->counters_count; counter++)
		names[counter] = harness->policy->counters[counter];
	return harness->policy->counters_count;
}

/* The next tunable of a policy: false behind the last. */
bool planewise_harness_tunable(u32 policy, u32 index, struct planewise_tunable *tunable)
{
	if (index >= policies[policy]->tunables_count)
		return false;
	*tunable = policies[policy]->tunables[index];
	return true;
}
