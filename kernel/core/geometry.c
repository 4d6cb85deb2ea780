// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where data are: units of a drive, and which of them a request touches
 * (Gao et al., IEEE TCAD 2017, section IV-A, formula 1).
 */
#include "core.h"

#define LETTERS "cwdp"
/* So that no product of chunks and bytes overflows. */
#define CHIP_REGION_MAX (1ULL << 60)

/* The place of each letter of the order, or a refusal. */
static bool order_of(const char *text, u32 order[4])
{
	bool seen[4] = { false };
	u32 place;

	if (strlen(text) != 4)
		return false;
	for (place = 0; place < 4; place++) {
		const char *letter = strchr(LETTERS, text[place]);

		if (!letter || seen[letter - LETTERS])
			return false;
		seen[letter - LETTERS] = true;
		order[place] = (u32)(letter - LETTERS);
	}
	return true;
}

static int refuse(struct planewise_refusal *refusal, const char *name, const char *allowed)
{
	refusal->name = name;
	refusal->allowed = allowed;
	return -EINVAL;
}

int planewise_geometry_init(struct planewise_geometry *geometry,
			    const struct planewise_drive *drive,
			    struct planewise_refusal *refusal)
{
	const u32 sizes[4] = { drive->channels, drive->chips_per_channel,
			       drive->dies_per_chip, drive->planes_per_die };
	static const char *const names[4] = { "channels", "chips_per_channel",
					      "dies_per_chip", "planes_per_die" };
	bool planes = strcmp(drive->level, "plane") == 0;
	u32 order[4], at[4] = { 0 }, period = 1, chips, chunk, i;
	u16 *stripe;

	if (!planes && strcmp(drive->level, "chip") != 0)
		return refuse(refusal, "level", "chip or plane");
	if (!order_of(drive->order, order))
		return refuse(refusal, "order", "the letters c, w, d and p, each once, such as cwdp");
	if (drive->chunk_bytes < 512 || drive->chunk_bytes > (1u << 30) || drive->chunk_bytes % 512)
		return refuse(refusal, "chunk_bytes", "a multiple of 512, 512 to 1073741824");
	for (i = 0; i < 4; i++) {
		if (sizes[i] < 1 || sizes[i] > PLANEWISE_STRIPE_MAX)
			return refuse(refusal, names[i], "1 to 65536");
		/* Neither factor is above 2^16, so the product fits before it is looked at. */
		if ((u64)period * sizes[i] > PLANEWISE_STRIPE_MAX)
			return refuse(refusal, names[i], "so many that the drive has at most 65536 planes");
		period *= sizes[i];
	}
	chips = sizes[0] * sizes[1];
	geometry->units = planes ? period : chips;
	if (geometry->units > PLANEWISE_UNITS_MAX)
		return refuse(refusal, planes ? "planes_per_die" : "chips_per_channel",
			      "so many that there are at most 1024 units");
	geometry->chunk_sectors = drive->chunk_bytes / 512;
	geometry->chips = chips;
	geometry->region_chunks = planewise_divide(drive->chip_region_bytes, drive->chunk_bytes);
	if (drive->chip_region_bytes > CHIP_REGION_MAX ||
	    geometry->region_chunks * drive->chunk_bytes != drive->chip_region_bytes)
		return refuse(refusal, "chip_region_bytes",
			      "0, or a multiple of chunk_bytes up to 1152921504606846976");
	/* A chip's planes, each its own unit or all one. */
	if (geometry->region_chunks)
		period /= chips;
	geometry->period = period;
	stripe = planewise_zalloc(period * sizeof(*stripe));
	if (!stripe)
		return -ENOMEM;
	geometry->stripe = stripe;
	if (geometry->region_chunks) {
		for (chunk = 0; planes && chunk < period; chunk++)
			stripe[chunk] = (u16)chunk;
		return 0;
	}
	for (chunk = 0; chunk < period; chunk++) {
		/* Numbered as the simulator's planes and chips. */
		u32 chip = at[0] * sizes[1] + at[1];

		stripe[chunk] = (u16)(planes ? (chip * sizes[2] + at[2]) * sizes[3] + at[3] : chip);
		for (i = 0; i < 4; i++) {
			if (++at[order[i]] < sizes[order[i]])
				break;
			at[order[i]] = 0;
		}
	}
	return 0;
}

static u64 remainder_of(u64 dividend, u64 divisor)
{
	return dividend - planewise_divide(dividend, divisor) * divisor;
}

/* Sets the units of so many chunks of the stripe from a place on, the first of which is unit `base`. */
static void add_stripe(const struct planewise_geometry *geometry, u32 place, u64 count, u32 base,
		       struct planewise_units *units)
{
	/* A whole stripe touches whatever it has. */
	for (count = count < geometry->period ? count : geometry->period; count; count--) {
		u32 unit = base + geometry->stripe[place];

		units->words[unit / 64] |= 1ULL << (unit % 64);
		if (++place == geometry->period)
			place = 0;
	}
}

/* Region by region: after a whole round only the first chip may have units that were not touched. */
static void add_regions(const struct planewise_geometry *geometry, u64 first, u64 count,
			struct planewise_units *units)
{
	u64 region = planewise_divide(first, geometry->region_chunks);
	u64 offset = first - region * geometry->region_chunks;
	u32 units_per_chip = geometry->units / geometry->chips, rounds;

	for (rounds = 0; count && rounds <= geometry->chips; rounds++) {
		u64 here = geometry->region_chunks - offset;

		if (here > count)
			here = count;
		add_stripe(geometry, (u32)remainder_of(offset, geometry->period), here,
			   (u32)remainder_of(region, geometry->chips) * units_per_chip, units);
		count -= here;
		offset = 0;
		region++;
	}
}

void planewise_units_of(const struct planewise_geometry *geometry, u64 sector,
			u32 sectors, struct planewise_units *units)
{
	u64 first = planewise_divide(sector, geometry->chunk_sectors);
	u64 last = planewise_divide(sector + (sectors ? sectors : 1) - 1, geometry->chunk_sectors);
	u64 count = last - first + 1;

	memset(units, 0, planewise_unit_words(geometry) * sizeof(u64));
	if (geometry->region_chunks)
		add_regions(geometry, first, count, units);
	else
		add_stripe(geometry, (u32)remainder_of(first, geometry->period), count, 0, units);
}
