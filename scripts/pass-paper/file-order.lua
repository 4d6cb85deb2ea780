-- sysbench's file test with one thing changed: who decides whether the next request reads or writes.
--   completed  a read while too few reads are complete, by counters that all threads share: what sysbench's own test does, and the model
--              `sysbench-file` of planewise with ratio_counts = completed, its default
--   own        the same, by each thread's own counters
--   issued     by shared counters of what was begun, complete or not: the model with ratio_counts = issued
--   random     each request is drawn by itself
-- Only one thread runs at a time in the guest, and none is interrupted between two system calls, as these are where time passes: the shared
-- counters need no lock.

local ffi = require("ffi")
ffi.cdef[[
int open(const char *path, int flags, ...);
long pread(int fd, void *buffer, size_t count, long offset);
long pwrite(int fd, const void *buffer, size_t count, long offset);
int fsync(int fd);
void *mmap(void *address, size_t length, int protection, int flags, int fd, long offset);
int posix_memalign(void **memory, size_t alignment, size_t size);
]]

sysbench.cmdline.options = {
    order = {"completed, own, issued or random", "completed"},
    files = {"files", 128},
    mib = {"MiB of a file", 160},
    block = {"bytes of a request", 16384},
    ratio = {"reads for a write", 1.5},
    fsync = {"requests between two fsyncs of all files", 100},
    requests = {"requests", 10000},
    flags = {"direct, sync or buffered", "direct"},
    counters = {"file of 4096 zeros that becomes the counters", "/tmp/counters"},
}

local O_RDWR, O_DIRECT, O_SYNC = 2, 0x4000, 0x101000
local shared, buffer, descriptors
local own_reads, own_writes = 0, 0
local READ, WRITE, READS_BEGUN, WRITES_BEGUN, PERFORMED, DIRTY, NEXT_SYNC, SYNCS = 0, 1, 2, 3, 4, 5, 6, 7

function thread_init()
    local opt = sysbench.opt
    local file = ffi.C.open(opt.counters, O_RDWR)
    assert(file >= 0, "no file of counters")
    shared = ffi.cast("int64_t *", ffi.C.mmap(nil, 4096, 3, 1, file, 0))
    local place = ffi.new("void *[1]")
    assert(ffi.C.posix_memalign(place, 4096, opt.block) == 0)
    buffer = place[0]
    local flags = O_RDWR
    if opt.flags == "direct" then flags = flags + O_DIRECT end
    if opt.flags == "sync" then flags = flags + O_SYNC end
    descriptors = {}
    for i = 0, opt.files - 1 do
        descriptors[i] = ffi.C.open("test_file." .. i, flags)
        assert(descriptors[i] >= 0, "no test_file." .. i)
    end
end

local function reads_next(opt)
    if opt.order == "random" then
        return sysbench.rand.uniform_double() < opt.ratio / (1 + opt.ratio)
    end
    local reads, writes = own_reads, own_writes
    if opt.order == "completed" then
        reads, writes = tonumber(shared[READ]), tonumber(shared[WRITE])
    elseif opt.order == "issued" then
        reads, writes = tonumber(shared[READS_BEGUN]), tonumber(shared[WRITES_BEGUN])
    end
    return (reads + 1) / (writes + 1) < opt.ratio
end

function event()
    local opt = sysbench.opt
    if shared[PERFORMED] >= opt.requests then return end
    if opt.fsync > 0 and shared[DIRTY] == 1 and tonumber(shared[PERFORMED]) % opt.fsync == 0 then
        local file = tonumber(shared[NEXT_SYNC])
        shared[NEXT_SYNC] = file + 1
        if file + 1 == opt.files then shared[NEXT_SYNC], shared[DIRTY] = 0, 0 end
        assert(ffi.C.fsync(descriptors[file]) == 0)
        shared[SYNCS] = shared[SYNCS] + 1
        return
    end
    local is_read = reads_next(opt)
    local size = opt.mib * 1048576
    local position = math.floor(sysbench.rand.uniform_double() * size * opt.files / opt.block) * opt.block
    local file, offset = math.floor(position / size), position % size
    shared[PERFORMED] = shared[PERFORMED] + 1
    if is_read then
        shared[READS_BEGUN] = shared[READS_BEGUN] + 1
        assert(ffi.C.pread(descriptors[file], buffer, opt.block, offset) == opt.block)
        shared[READ] = shared[READ] + 1
        own_reads = own_reads + 1
    else
        shared[WRITES_BEGUN] = shared[WRITES_BEGUN] + 1
        shared[DIRTY] = 1
        assert(ffi.C.pwrite(descriptors[file], buffer, opt.block, offset) == opt.block)
        shared[WRITE] = shared[WRITE] + 1
        own_writes = own_writes + 1
    end
end
