/*
 * device.cc - devices, errors, failures on demand, counts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

namespace emulated
{
struct failure {
    std::string name;
    unsigned count;
    cudaError_t error;
};

static std::recursive_mutex mutex;
static std::vector<failure> failures;
static thread_local cudaError_t last_error;
static thread_local int chosen_device;
emulator_counts counts;

static const char *
setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value ? value : otherwise;
}

/* Properties of a device of this capability; source: table "Technical Specifications per Compute Capability". */
static device
make_device(int number, int capability, size_t memory)
{
    device d = {};
    struct cudaDeviceProp *p = &d.properties;

    p->major = capability / 10;
    p->minor = capability % 10;
    snprintf(p->name, sizeof(p->name), "Emulated sm_%d", capability);
    snprintf(p->uuid.bytes, sizeof(p->uuid.bytes), "emulated-%d", number);
    p->totalGlobalMem = memory;
    p->sharedMemPerBlock = 48u << 10;
    p->sharedMemPerBlockOptin = (capability >= 90   ? 227u
                                 : capability == 80 ? 163u
                                 : capability == 70 ? 96u
                                                    : 99u)
                                << 10;
    p->multiProcessorCount = capability >= 90 ? 132 : capability >= 80 ? 108 : 80;
    p->maxThreadsPerBlock = THREADS_MAX;
    p->l2CacheSize = 50 << 20;
    p->pciBusID = *setting("EMULATOR_BUS", "") ? atoi(setting("EMULATOR_BUS", "")) : number;
    return d;
}

static std::vector<device>
make_devices()
{
    std::vector<device> all;
    const char *list = setting("EMULATOR_DEVICES", "90");
    size_t memory = strtoull(setting("EMULATOR_MEMORY", "1073741824"), NULL, 10);
    char *end;

    for (long capability = strtol(list, &end, 10); end != list; capability = strtol(list, &end, 10)) {
        all.push_back(make_device((int)all.size(), (int)capability, memory));
        list = end;
    }
    block_seed(strtoull(setting("EMULATOR_THREADS", "0"), NULL, 10));
    stream_seed(strtoull(setting("EMULATOR_STREAMS", "0"), NULL, 10));
    list = setting("EMULATOR_FAIL", "");
    for (int used = 0; *list; list += used) {
        char name[100];
        unsigned count;
        int error;

        if (sscanf(list, " %99s %u %d%n", name, &count, &error, &used) != 3)
            violation({}, "EMULATOR_FAIL is to be a list of NAME COUNT ERROR, and is '%s'", list);
        emulator_fail(name, count, (cudaError_t)error);
        used += list[used] == ',';
    }
    return all;
}

std::vector<device> &
devices()
{
    static std::vector<device> all = make_devices();
    return all;
}

/* Kernels compiled by a driver from older PTX have only the features of that older architecture. */
int
ptx_version(int device)
{
    const struct cudaDeviceProp *p = &devices()[(size_t)device].properties;
    const char *set = setting("EMULATOR_PTX", "");

    return *set ? atoi(set) : 10 * p->major + p->minor;
}

bool
kernels_wait(int device)
{
    return ptx_version(device) >= 90 && devices()[(size_t)device].properties.major >= 9;
}

int &
current_device()
{
    return chosen_device;
}

cudaError_t
injected(const char *name)
{
    for (size_t i = 0; i < failures.size(); i++)
        if (failures[i].name == name && --failures[i].count == 0) {
            cudaError_t error = failures[i].error;

            failures.erase(failures.begin() + (long)i);
            return error;
        }
    return cudaSuccess;
}

static double set_clock = -1;

double
seconds_now()
{
    struct timespec t;

    if (set_clock >= 0)
        return set_clock += 1e-6;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

call::call(const char *name, kind k) : lock(mutex), error(cudaSuccess)
{
    if (running)
        violation({}, "%s() is called by a kernel", name);
    devices();
    error = in_host_function ? cudaErrorNotPermitted : injected(name);
    if (error == cudaSuccess && devices().empty() && k == DEVICE)
        error = cudaErrorNoDevice;
    if (error == cudaSuccess && k == DEVICE)
        error = devices()[(size_t)chosen_device].sticky;
}

call::~call()
{
    open_no_memory();
}

cudaError_t
call::end(cudaError_t e)
{
    if (e != cudaSuccess && e != cudaErrorNotReady)
        last_error = e;
    return e;
}
} // namespace emulated

using namespace emulated;

void
emulator_set_clock(double seconds)
{
    std::unique_lock<std::recursive_mutex> lock(mutex);

    set_clock = seconds;
}

void
emulator_fail(const char *name, unsigned count, cudaError_t error)
{
    std::unique_lock<std::recursive_mutex> lock(mutex);

    failures.push_back({name, count, error});
}

unsigned
emulator_unfail(void)
{
    std::unique_lock<std::recursive_mutex> lock(mutex);
    unsigned left = (unsigned)failures.size();

    failures.clear();
    return left;
}

void
emulator_count(struct emulator_counts *out)
{
    std::unique_lock<std::recursive_mutex> lock(mutex);

    *out = counts;
}

void
emulator_seed(uint64_t threads, uint64_t streams)
{
    std::unique_lock<std::recursive_mutex> lock(mutex);

    devices();
    block_seed(threads);
    stream_seed(streams);
}

cudaError_t
cudaGetLastError(void)
{
    cudaError_t e = last_error;

    last_error = cudaSuccess;
    return e;
}

cudaError_t
cudaPeekAtLastError(void)
{
    return last_error;
}

static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable", "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorNvlinkUncorrectable, "cudaErrorNvlinkUncorrectable",
     "uncorrectable NVLink error detected during the execution"},
    {cudaErrorContained, "cudaErrorContained", "Invalid access of peer GPU memory over nvlink or a hardware error"},
    {cudaErrorMpsConnectionFailed, "cudaErrorMpsConnectionFailed",
     "MPS client failed to connect to the MPS control daemon"},
    {cudaErrorMpsClientTerminated, "cudaErrorMpsClientTerminated", "MPS client has been terminated"},
    {cudaErrorExternalDevice, "cudaErrorExternalDevice", "an async error occurred in external entity outside of CUDA"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorHardwareStackError, "cudaErrorHardwareStackError", "hardware stack error"},
    {cudaErrorIllegalInstruction, "cudaErrorIllegalInstruction", "an illegal instruction was encountered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorSystemNotReady, "cudaErrorSystemNotReady", "system not yet initialized"},
    {cudaErrorSystemDriverMismatch, "cudaErrorSystemDriverMismatch",
     "system has unsupported display driver / cuda driver combination"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "capture was not ended in the same stream"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capture"},
};

const char *
cudaGetErrorName(cudaError_t error)
{
    for (const auto &e : errors)
        if (e.error == error)
            return e.name;
    return "cudaErrorUnknown";
}

const char *
cudaGetErrorString(cudaError_t error)
{
    for (const auto &e : errors)
        if (e.error == error)
            return e.text;
    return "unknown error";
}

cudaError_t
cudaDriverGetVersion(int *version)
{
    call c("cudaDriverGetVersion", call::ANY);

    *version = c.failed() ? 0 : CUDART_VERSION;
    return c.end();
}

cudaError_t
cudaRuntimeGetVersion(int *version)
{
    call c("cudaRuntimeGetVersion", call::ANY);

    *version = CUDART_VERSION;
    return c.end();
}

cudaError_t
cudaGetDeviceCount(int *count)
{
    call c("cudaGetDeviceCount", call::ANY);

    *count = c.failed() ? 0 : (int)devices().size();
    return c.end(c.failed() || *count > 0 ? c.end() : cudaErrorNoDevice);
}

static bool
is_device(int number)
{
    return number >= 0 && (size_t)number < devices().size();
}

cudaError_t
cudaSetDevice(int number)
{
    call c("cudaSetDevice", call::ANY);

    if (c.failed())
        return c.end();
    if (!is_device(number))
        return c.end(cudaErrorInvalidDevice);
    chosen_device = number;
    return c.end(devices()[(size_t)number].sticky);
}

cudaError_t
cudaGetDevice(int *number)
{
    call c("cudaGetDevice", call::ANY);

    *number = chosen_device;
    return c.end();
}

cudaError_t
cudaGetDeviceProperties(struct cudaDeviceProp *properties, int number)
{
    call c("cudaGetDeviceProperties", call::ANY);

    if (c.failed() || !is_device(number))
        return c.end(c.failed() ? c.end() : cudaErrorInvalidDevice);
    *properties = devices()[(size_t)number].properties;
    return c.end();
}

cudaError_t
cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int number)
{
    call c("cudaDeviceGetAttribute", call::ANY);

    if (c.failed() || !is_device(number))
        return c.end(c.failed() ? c.end() : cudaErrorInvalidDevice);
    const struct cudaDeviceProp *p = &devices()[(size_t)number].properties;
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *value = p->multiProcessorCount;
        return c.end();
    case cudaDevAttrComputeCapabilityMajor:
        *value = p->major;
        return c.end();
    case cudaDevAttrComputeCapabilityMinor:
        *value = p->minor;
        return c.end();
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = (int)p->sharedMemPerBlockOptin;
        return c.end();
    }
    return c.end(cudaErrorInvalidValue);
}
