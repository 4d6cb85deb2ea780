// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a module is told of drives: parameters for all of them, and for those
 * that are named their own. It is looked up when the scheduler is set, so that
 * nothing changes under requests.
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "glue.h"

/* What is no number, or too large for one, counts as 0, which is refused by the parameter's name and with its range. */
static int set_number(const char *text, const struct kernel_param *parameter)
{
	if (kstrtouint(text, 0, parameter->arg))
		*(uint *)parameter->arg = 0;
	return 0;
}

static const struct kernel_param_ops number = { .set = set_number, .get = param_get_uint };

static uint channels = 1;
module_param_cb(channels, &number, &channels, 0444);
MODULE_PARM_DESC(channels, "channels of the drive, 1 to 65536 (1)");
static uint chips_per_channel = 1;
module_param_cb(chips_per_channel, &number, &chips_per_channel, 0444);
MODULE_PARM_DESC(chips_per_channel, "chips of a channel, 1 to 65536 (1)");
static uint dies_per_chip = 1;
module_param_cb(dies_per_chip, &number, &dies_per_chip, 0444);
MODULE_PARM_DESC(dies_per_chip, "dies of a chip, 1 to 65536 (1)");
static uint planes_per_die = 1;
module_param_cb(planes_per_die, &number, &planes_per_die, 0444);
MODULE_PARM_DESC(planes_per_die, "planes of a die, 1 to 65536 (1)");
static uint chunk_bytes = 4096;
module_param_cb(chunk_bytes, &number, &chunk_bytes, 0444);
MODULE_PARM_DESC(chunk_bytes, "bytes of consecutive data on one unit, a multiple of 512 (4096)");
static char *level = "chip";
module_param(level, charp, 0444);
MODULE_PARM_DESC(level, "what a parallel unit is: chip or plane (chip)");
static char *order = "cwdp";
module_param(order, charp, 0444);
MODULE_PARM_DESC(order, "order in which consecutive chunks go to channels (c), chips (w), dies (d) and planes (p), the first letter changing first (cwdp)");
static unsigned long long chip_region_bytes;
module_param(chip_region_bytes, ullong, 0444);
MODULE_PARM_DESC(chip_region_bytes, "bytes of the contiguous regions that chips take in turn, where the drive does not stripe over chips; 0: it does (0)");
static bool writes_stay = true;
module_param(writes_stay, bool, 0444);
MODULE_PARM_DESC(writes_stay, "whether a write goes to the units that its addresses say: no where the drive allocates dynamically (Y)");

/* A drive that was named. */
struct named {
	struct list_head link;
	char disk[DISK_NAME_LEN];
	struct planewise_description description;
};

static LIST_HEAD(named_drives);
static DEFINE_MUTEX(named_lock);
/* Those of the other parameters, checked when the module is loaded. */
static struct planewise_description standard;
/* Parameters of the command line come before that. */
static bool is_loaded;

static int describe(struct planewise_description *description, struct planewise_refusal *refusal)
{
	struct planewise_geometry geometry;
	int error;

	description->drive.level = description->level;
	description->drive.order = description->order;
	error = planewise_geometry_init(&geometry, &description->drive, refusal);
	if (!error)
		planewise_free((void *)geometry.stripe);
	return error;
}

static bool set_word(struct planewise_description *description, const char *key, const char *value)
{
	const struct {
		const char *name;
		uint *number;
	} numbers[] = {
		{ "channels", &description->drive.channels },
		{ "chips_per_channel", &description->drive.chips_per_channel },
		{ "dies_per_chip", &description->drive.dies_per_chip },
		{ "planes_per_die", &description->drive.planes_per_die },
		{ "chunk_bytes", &description->drive.chunk_bytes },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(key, numbers[i].name))
			return !kstrtouint(value, 0, numbers[i].number);
	if (!strcmp(key, "chip_region_bytes"))
		return !kstrtou64(value, 0, &description->drive.chip_region_bytes);
	if (!strcmp(key, "level"))
		return strscpy(description->level, value, sizeof(description->level)) >= 0;
	if (!strcmp(key, "order"))
		return strscpy(description->order, value, sizeof(description->order)) >= 0;
	if (!strcmp(key, "writes_stay"))
		return !kstrtobool(value, &description->writes_stay);
	return false;
}

static struct named *find_named(const char *disk)
{
	struct named *named;

	list_for_each_entry(named, &named_drives, link)
		if (!strcmp(named->disk, disk))
			return named;
	return NULL;
}

static const char words[] =
	"channels, chips_per_channel, dies_per_chip, planes_per_die, chunk_bytes, chip_region_bytes (whole numbers), level, order, writes_stay (y or n)";

/* One drive: DISK KEY=VALUE... Keys that are not there are the module's own. */
static int set_named(char *text)
{
	struct planewise_refusal refusal;
	struct named *made, *old;
	char *disk, *word;
	int error = -EINVAL;

	do {
		disk = strsep(&text, " ");
	} while (disk && !*disk);
	if (!disk || strchr(disk, '=') || strlen(disk) >= DISK_NAME_LEN) {
		complain("drive: found '%.64s'; allowed: DISK KEY=VALUE..., such as nvme0n1 channels=8 chunk_bytes=16384, several with a semicolon between them",
			 disk ?: "");
		return -EINVAL;
	}
	made = kzalloc(sizeof(*made), GFP_KERNEL);
	if (!made)
		return -ENOMEM;
	strscpy(made->disk, disk, sizeof(made->disk));
	made->description = standard;
	while ((word = strsep(&text, " "))) {
		char *value = strchr(word, '=');

		if (!*word)
			continue;
		if (value)
			*value++ = '\0';
		if (!value || !set_word(&made->description, word, value)) {
			complain("drive: found '%.64s%s%.64s' for %s; allowed: %s", word, value ? "=" : "", value ?: "",
				 made->disk, words);
			goto refused;
		}
	}
	error = describe(&made->description, &refusal);
	if (error == -EINVAL)
		complain("drive: %s of %s: allowed: %s", refusal.name, made->disk, refusal.allowed);
	if (error)
		goto refused;
	mutex_lock(&named_lock);
	old = find_named(made->disk);
	if (old)
		list_replace(&old->link, &made->link);
	else
		list_add_tail(&made->link, &named_drives);
	mutex_unlock(&named_lock);
	kfree(old);
	return 0;

refused:
	kfree(made);
	return error;
}

/* What the command line said, until the other parameters are known to be right. */
static char *first_drives;

static int set_all_named(const char *text)
{
	char *copy = kstrdup(text, GFP_KERNEL), *rest, *one;
	int error = 0;

	if (!copy)
		return -ENOMEM;
	rest = strim(copy);
	while (!error && (one = strsep(&rest, ";")))
		if (*strim(one))
			error = set_named(strim(one));
	kfree(copy);
	return error;
}

static int set_drive(const char *text, const struct kernel_param *parameter)
{
	if (is_loaded)
		return set_all_named(text);
	kfree(first_drives);
	first_drives = kstrdup(text, GFP_KERNEL);
	return first_drives ? 0 : -ENOMEM;
}

static int get_drive(char *page, const struct kernel_param *parameter)
{
	struct named *named;
	int at = 0;

	mutex_lock(&named_lock);
	list_for_each_entry(named, &named_drives, link) {
		char text[PLANEWISE_DESCRIPTION_TEXT];

		planewise_write_description(&named->description, text);
		at += scnprintf(page + at, PAGE_SIZE - at, "%s %s\n", named->disk, text);
	}
	mutex_unlock(&named_lock);
	return at;
}

/* Also where the module is refused before anything of it runs. */
static void free_drive(void *first)
{
	kfree(*(char **)first);
	*(char **)first = NULL;
}

static const struct kernel_param_ops drive_operations = { .set = set_drive, .get = get_drive, .free = free_drive };
module_param_cb(drive, &drive_operations, &first_drives, 0644);
MODULE_PARM_DESC(drive, "a drive of its own: DISK KEY=VALUE... of the parameters above, several with a semicolon between them; for the next time that its scheduler is set");

void planewise_write_description(const struct planewise_description *description, char *text)
{
	const struct planewise_drive *drive = &description->drive;

	scnprintf(text, PLANEWISE_DESCRIPTION_TEXT,
		  "channels=%u chips_per_channel=%u dies_per_chip=%u planes_per_die=%u chunk_bytes=%u level=%s order=%s chip_region_bytes=%llu writes_stay=%c",
		  drive->channels, drive->chips_per_channel, drive->dies_per_chip, drive->planes_per_die,
		  drive->chunk_bytes, description->level, description->order, drive->chip_region_bytes,
		  description->writes_stay ? 'y' : 'n');
}

void planewise_describe(const char *disk, struct planewise_description *description)
{
	struct named *named;

	mutex_lock(&named_lock);
	named = find_named(disk);
	*description = named ? named->description : standard;
	mutex_unlock(&named_lock);
	description->drive.level = description->level;
	description->drive.order = description->order;
}

int planewise_drives_init(void)
{
	struct planewise_refusal refusal = { 0 };
	int error;

	kernel_param_lock(THIS_MODULE);
	standard.drive.channels = channels;
	standard.drive.chips_per_channel = chips_per_channel;
	standard.drive.dies_per_chip = dies_per_chip;
	standard.drive.planes_per_die = planes_per_die;
	standard.drive.chunk_bytes = chunk_bytes;
	standard.drive.chip_region_bytes = chip_region_bytes;
	standard.writes_stay = writes_stay;
	/* What is too long is no valid word, and not one after it is cut off. */
	strscpy(standard.level, strlen(level) < sizeof(standard.level) ? level : "?", sizeof(standard.level));
	strscpy(standard.order, strlen(order) < sizeof(standard.order) ? order : "?", sizeof(standard.order));
	error = describe(&standard, &refusal);
	if (error == -EINVAL)
		complain("%s: allowed: %s", refusal.name, refusal.allowed);
	if (!error && first_drives)
		error = set_all_named(first_drives);
	kfree(first_drives);
	first_drives = NULL;
	if (error)
		planewise_drives_exit();
	else
		is_loaded = true;
	kernel_param_unlock(THIS_MODULE);
	return error;
}

void planewise_drives_exit(void)
{
	struct named *named, *next;

	list_for_each_entry_safe(named, next, &named_drives, link) {
		list_del(&named->link);
		kfree(named);
	}
}
