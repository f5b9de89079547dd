/*
 * fake_nccl.cc - see fake_nccl.h
 *
 * Memory of a communicator: a file without a name that rank 0 makes and the others open by its process.  Sum n uses
 * half n % 2 of it: a rank writes its data, says that it has arrived, and when all have arrived it adds up what all
 * wrote.  It may write for sum n + 2 when all have finished sum n.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fake_nccl.h"

#include "nccl.h"
#include "runtime.h"

#include <atomic>
#include <fcntl.h>
#include <set>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace emulated;

namespace
{
const int MOST_RANKS = 8;
const size_t MOST_BYTES = 16u << 20; /* of a sum */

struct shared {
    std::atomic<int> joined;
    std::atomic<uint32_t> arrived[MOST_RANKS], finished[MOST_RANKS]; /* sums */
    std::atomic<uint64_t> what[2][MOST_RANKS];                       /* count and type of a sum */
    std::atomic<uint64_t> recording[2][MOST_RANKS];                  /* of a sum, see recording_of() */
    std::atomic<uint32_t> recordings[MOST_RANKS];                    /* of a rank that has ended: their number + 1 */
    alignas(4096) unsigned char data[2][MOST_RANKS][MOST_BYTES];
};

struct sum {
    const void *from;
    void *to;
    size_t count;
    ncclDataType_t type;
    int device;
    uint64_t recording;
    size_t bytes() const
    {
        return count * (type == ncclFloat32 ? 4 : 2);
    }
};

struct body {
    int rank, ranks, file;
    shared *memory;
    uint32_t next;                   /* number of the current sum */
    enum { OUT, ARRIVED, READY } at; /* of that sum */
    const sum *current;
    bool stuck; /* it never ends, but by an abort */
    ncclResult_t failure;
    std::atomic<bool> aborted;
    bool finalized;
    std::shared_ptr<capture> recording;                    /* the latest one that has sums */
    uint32_t recordings, recorded;                         /* number of such recordings; sums of the latest one */
    std::set<std::pair<size_t, ncclDataType_t>> connected; /* counts and types of sums that ran outside of a graph */
    ~body()
    {
        munmap(memory, sizeof(*memory));
        if (file >= 0)
            close(file);
    }
};

struct failure {
    int rank;
    std::string name, what;
    unsigned count;
};

fake_nccl_counts counted;
uint64_t random_state;
} // namespace

struct ncclComm {
    std::shared_ptr<body> of;
    ncclResult_t state;
    std::function<cudaError_t()> begun; /* a call that is in progress */
    bool records;                       /* that call is made in a capture */
    bool joins;
};

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static std::vector<failure>
read_failures()
{
    std::vector<failure> all;
    const char *list = getenv("FAKE_NCCL_FAIL");

    for (int used = 0; list && *list; list += used) {
        char name[40], what[16];
        failure f;

        if (sscanf(list, " %d %39s %u %15[a-z0-9]%n", &f.rank, name, &f.count, what, &used) != 4)
            violation({}, "FAKE_NCCL_FAIL is to be a list of RANK NAME COUNT WHAT, and is '%s'", list);
        f.name = name;
        f.what = what;
        all.push_back(f);
        used += list[used] == ',';
    }
    return all;
}

/* "" where nothing does. */
static std::string
failing(int rank, const char *name)
{
    static std::vector<failure> &all = *new std::vector<failure>(read_failures());

    for (failure &f : all)
        if (f.rank == rank && f.name == name && f.count > 0 && --f.count == 0) {
            if (f.what == "kill")
                raise(SIGKILL);
            if (f.what == "stop")
                raise(SIGSTOP);
            return f.what;
        }
    return "";
}

/* Is something not there yet that could be? */
static bool
is_late()
{
    const char *seed = getenv("FAKE_NCCL_LATE");

    if (!seed || atoi(seed) == 0)
        return false;
    if (random_state == 0)
        random_state = (uint64_t)atoi(seed) * 0x9e3779b97f4a7c15u + (uint64_t)getpid();
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33 & 3;
}

/* ---- recordings -------------------------------------------------------------------------------------------------- */

/*
 * Returns number << 32 | position of a sum that a stream captures, both from 1, or 0 outside of a capture.  `number`
 * counts the recordings of this rank that have sums.  NCCL requires that all ranks make the same recordings in the same
 * order, and that the graphs that they replay together come from the same one.
 */
static uint64_t
recording_of(body &b, cudaStream_t stream)
{
    const std::shared_ptr<capture> &now = stream_of(stream)->recording;

    if (!now)
        return 0;
    if (now != b.recording) {
        b.recording = now;
        b.recordings++;
        b.recorded = 0;
    }
    return (uint64_t)b.recordings << 32 | ++b.recorded;
}

static std::string
describe_recording(uint64_t recording)
{
    return recording == 0
               ? "a sum outside of a graph"
               : "sum " + std::to_string((uint32_t)recording) + " of its recording " + std::to_string(recording >> 32);
}

/* All ranks have arrived at sum b.next. */
static void
check_recordings(const body &b)
{
    const std::atomic<uint64_t> *recording = b.memory->recording[b.next % 2];

    for (int r = 0; r < b.ranks; r++)
        if (recording[r] != recording[b.rank])
            violation({}, "rank %d runs %s, and rank %d %s: all ranks must record sums together", r,
                      describe_recording(recording[r]).c_str(), b.rank, describe_recording(recording[b.rank]).c_str());
}

/* The last rank to end finds a recording that was never replayed. */
static void
check_numbers(const body &b)
{
    b.memory->recordings[b.rank] = b.recordings + 1;
    for (int r = 0; r < b.ranks; r++)
        if (b.memory->recordings[r] > 0 && b.memory->recordings[r] != b.recordings + 1)
            violation({}, "rank %d recorded %u graphs with sums, and rank %d %u: all ranks must record sums together",
                      r, b.memory->recordings[r] - 1, b.rank, b.recordings);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static bool
all_have(const body &b, const std::atomic<uint32_t> *reached, uint32_t number)
{
    for (int r = 0; r < b.ranks; r++)
        if (reached[r].load() < number)
            return false;
    return true;
}

static void
arrive(body &b, const sum &s)
{
    std::string what = failing(b.rank, "sum");

    if (!what.empty()) {
        b.stuck = true;
        b.failure = (ncclResult_t)atoi(what.c_str()); /* "hang": 0 */
        return;
    }
    open_memory(s.device);
    memcpy(b.memory->data[b.next % 2][b.rank], s.from, s.bytes());
    b.memory->what[b.next % 2][b.rank] = (uint64_t)s.count << 4 | (uint64_t)s.type;
    b.memory->recording[b.next % 2][b.rank] = s.recording;
    b.memory->arrived[b.rank] = b.next + 1;
    b.at = body::ARRIVED;
}

/* May it not be made yet? */
static bool
is_held_up(body &b, const sum &s)
{
    if (b.aborted)
        return false;
    if (b.at == body::READY && b.current == &s)
        return false;
    if (b.stuck || host_waits > 0 || is_late())
        return true;
    if (b.at != body::OUT && b.current != &s)
        violation({}, "two sums of one communicator are in no order");
    b.current = &s;
    if (b.at == body::OUT && all_have(b, b.memory->finished, b.next > 0 ? b.next - 1 : 0))
        arrive(b, s);
    if (b.at == body::ARRIVED && all_have(b, b.memory->arrived, b.next + 1))
        b.at = body::READY;
    return b.at != body::READY;
}

static float
of_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;

    memcpy(&f, &bits, 4);
    return f;
}

static uint16_t
to_bf16(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, 4);
    if (f != f)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static cudaError_t
make(body &b, const sum &s)
{
    const unsigned char(*data)[MOST_BYTES] = b.memory->data[b.next % 2];

    if (b.aborted) /* the kernel returns, whatever there is */
        return cudaSuccess;
    for (int r = 0; r < b.ranks; r++)
        if (b.memory->what[b.next % 2][r] != b.memory->what[b.next % 2][b.rank])
            violation({}, "ranks %d and %d sum other things", r, b.rank);
    check_recordings(b);
    open_memory(s.device);
    for (size_t i = 0; i < s.count; i++) {
        size_t first = i * (size_t)b.ranks / s.count; /* of the ring */
        float x = 0;

        for (size_t k = 0; k < (size_t)b.ranks; k++) {
            const unsigned char *from = data[(first + k) % (size_t)b.ranks];
            float y = s.type == ncclFloat32 ? ((const float *)(const void *)from)[i]
                                            : of_bf16(((const uint16_t *)(const void *)from)[i]);

            x = k == 0 ? y : x + y;
            if (s.type == ncclBfloat16)
                x = of_bf16(to_bf16(x));
        }
        if (s.type == ncclFloat32)
            ((float *)s.to)[i] = x;
        else
            ((uint16_t *)s.to)[i] = to_bf16(x);
    }
    if (s.recording == 0)
        b.connected.insert({s.count, s.type});
    if (counted.sums++ == 0)
        counted.kernels_before_first = counts.kernels;
    counted.kernels_before_last = counts.kernels;
    counted.bytes += s.bytes();
    b.at = body::OUT;
    b.memory->finished[b.rank] = ++b.next;
    return cudaSuccess;
}

struct fake_nccl_counts
fake_nccl_count(void)
{
    fake_nccl_counts out = counted;

    counted = {};
    return out;
}

/* ---- communicators ----------------------------------------------------------------------------------------------- */

ncclResult_t
ncclGetVersion(int *version)
{
    const char *other = getenv("FAKE_NCCL_VERSION");

    *version = other ? atoi(other) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t
ncclGetUniqueId(ncclUniqueId *id)
{
    std::string what = failing(0, "ncclGetUniqueId");
    int file = what.empty() ? memfd_create("fake-nccl", 0) : -1;

    memset(id, 0, sizeof(*id));
    if (file < 0 || ftruncate(file, sizeof(shared)) != 0)
        return ncclSystemError;
    snprintf(id->internal, sizeof(id->internal), "/proc/%d/fd/%d", (int)getpid(), file);
    return ncclSuccess;
}

ncclResult_t
ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    call c("ncclCommInitRankConfig");
    std::string what = failing(rank, "ncclCommInitRankConfig");
    int file = open(id.internal, O_RDWR);
    void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    *comm = NULL;
    if (!what.empty() && what != "hang")
        return (ncclResult_t)atoi(what.c_str());
    if (c.failed() || memory == MAP_FAILED)
        return ncclSystemError;
    if (ranks > MOST_RANKS || config->magic != 0xcafebeef || config->blocking != 0)
        return ncclInvalidArgument;
    *comm = new ncclComm{};
    (*comm)->of = std::make_shared<body>();
    (*comm)->of->rank = rank;
    (*comm)->of->ranks = ranks;
    (*comm)->of->file = file;
    (*comm)->of->memory = (shared *)memory;
    (*comm)->of->stuck = what == "hang";
    (*comm)->joins = true;
    (*comm)->state = ncclInProgress;
    if (what.empty())
        (*comm)->of->memory->joined++;
    return ncclInProgress;
}

ncclResult_t
ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    call c("ncclCommGetAsyncError", call::ANY);
    std::string what = comm->begun && comm->records ? failing(comm->of->rank, "capture") : "";

    if (!what.empty())
        comm->of->failure = (ncclResult_t)atoi(what.c_str());
    if (comm->of->failure != ncclSuccess) {
        comm->state = comm->of->failure;
        comm->of->stuck = true;
    }
    if (comm->state == ncclInProgress && !is_late()) {
        if (comm->joins)
            comm->joins = comm->of->memory->joined < comm->of->ranks;
        else if (comm->begun && comm->begun() != cudaSuccess)
            comm->state = ncclUnhandledCudaError;
        if (comm->state == ncclInProgress && !comm->joins)
            comm->state = ncclSuccess;
        comm->begun = nullptr;
    }
    *error = comm->state;
    return ncclSuccess;
}

ncclResult_t
ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t operation, ncclComm_t comm,
              cudaStream_t stream)
{
    call c("ncclAllReduce");
    std::shared_ptr<body> b = comm->of;
    std::shared_ptr<sum> s = std::make_shared<sum>(
        sum{from, to, count, type, current_device(), recording_of(*b, stream)});
    std::string what = failing(b->rank, "ncclAllReduce");
    work w = {s->device, false, [=] { return make(*b, *s); }, [=] { return is_held_up(*b, *s); }};

    if (!what.empty())
        return (ncclResult_t)atoi(what.c_str());
    if (comm->state == ncclInProgress)
        violation({}, "a communicator that is in progress is called");
    if (comm->state != ncclSuccess) /* as ncclCommEnsureReady() */
        return comm->state;
    if (c.failed())
        return ncclUnhandledCudaError;
    if (operation != ncclSum || s->bytes() > MOST_BYTES || owner_of(from, s->bytes()) != s->device ||
        owner_of(to, s->bytes()) != s->device)
        return ncclInvalidArgument;
    if (s->recording > 0 && !b->connected.count({count, type}))
        violation({}, "a sum of %zu numbers of type %d is recorded before one has run", count, (int)type);
    comm->records = s->recording > 0;
    comm->begun = [=] { return enqueue(stream, w); };
    comm->state = ncclInProgress;
    return ncclInProgress;
}

ncclResult_t
ncclCommFinalize(ncclComm_t comm)
{
    comm->of->finalized = true;
    check_numbers(*comm->of);
    comm->state = ncclInProgress;
    return ncclInProgress;
}

ncclResult_t
ncclCommDestroy(ncclComm_t comm)
{
    call c("ncclCommDestroy", call::ANY);

    if (!comm->of->finalized || comm->state != ncclSuccess)
        return ncclInvalidUsage;
    if (comm->of.use_count() > 1)
        violation({}, "a communicator is destroyed while graphs have its sums: NCCL waits for them");
    if (FILE *told = getenv("FAKE_NCCL_COUNT") ? fopen(getenv("FAKE_NCCL_COUNT"), "a") : NULL) {
        fprintf(told, "%u\n", comm->of->next);
        fclose(told);
    }
    delete comm;
    return ncclSuccess;
}

/* The memory stays as long as a graph has a sum; the handle to the end of the process, since others may look at it. */
ncclResult_t
ncclCommAbort(ncclComm_t comm)
{
    static std::vector<ncclComm_t> &all = *new std::vector<ncclComm_t>;
    call c("ncclCommAbort", call::ANY);

    if (getenv("FAKE_NCCL_EXIT"))
        std::atexit([] { violation({}, "a process that aborted a communicator ends by exit()"); });
    all.push_back(comm);
    comm->of->aborted = true;
    return ncclSuccess;
}

const char *
ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "in progress"};

    return result >= 0 && result <= ncclInProgress ? texts[result] : "unknown";
}

const char *
ncclGetLastError(ncclComm_t)
{
    return "";
}
