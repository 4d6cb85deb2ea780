/* Loaded into the process of the kernel, and of no program in it: what the kernel asks the host for at random is the same in every run, so that all
 * else is. PLANEWISE_SEED varies it on purpose. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

static uint64_t state;

static uint64_t next(void)
{
    /* splitmix64 */
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

__attribute__((constructor)) static void seed(void)
{
    const char *text = getenv("PLANEWISE_SEED");
    state = text ? strtoull(text, NULL, 10) : 0;
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
    unsigned char *bytes = buffer;
    (void)flags;
    for (size_t at = 0; at < length; at++)
        bytes[at] = next() >> 56;
    return (ssize_t)length;
}
