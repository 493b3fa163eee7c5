/* A stand-in for libnvidia-ml.so.1: GPUs that use 700 W at the power cap, with values that are known.
   NVML_GPUS: how many. NVML_OLD: as an old library and GPU: no field values, the reasons by their old name. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    int type, result;
    union { double d; unsigned ui; unsigned long ul; unsigned long long ull; long long sll; } value;
} Field;

static int old(void) { return getenv("NVML_OLD") != NULL; }

static unsigned long long energy(long gpu) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)gpu * 1000000000ull + now.tv_sec % 100000 * 700000ull + now.tv_nsec / 1000000 * 700ull;
}

int nvmlInit_v2(void) { return getenv("NVML_NO_DRIVER") ? 9 : 0; }
const char *nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "Unknown"; }
int nvmlSystemGetNVMLVersion(char *text, unsigned size) { return snprintf(text, size, "12.580.1") < 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { return snprintf(text, size, "580.1") < 0; }
int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = getenv("NVML_GPUS") ? atoi(getenv("NVML_GPUS")) : 1;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **gpu) {
    *gpu = (void *)(long)(index + 1);
    return 0;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **gpu) {
    *gpu = (void *)100l;
    return strcmp(uuid, "MIG-1") != 0;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *part, void **gpu) {
    *gpu = (void *)2l;
    return part != (void *)100l;
}
int nvmlDeviceGetUUID(void *gpu, char *text, unsigned size) {
    return snprintf(text, size, "GPU-%ldAAA-0", (long)gpu - 1) < 0;
}
int nvmlDeviceGetName(void *gpu, char *text, unsigned size) { return snprintf(text, size, "Stand-in") < 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *gpu, unsigned *mw) { *mw = 700000; return 0; }
int nvmlDeviceGetMaxClockInfo(void *gpu, unsigned type, unsigned *mhz) { *mhz = 1980; return type != 1; }
int nvmlDeviceGetFieldValues(void *gpu, int count, Field *fields) {
    if (old()) return 3;
    for (int i = 0; i < count; i++) {
        Field *field = fields + i;
        field->result = 0;
        switch (field->field) {
        case 83: field->type = 3; field->value.ull = energy((long)gpu); break;
        case 185: field->type = 1; field->value.ui = 650500; break;
        case 186: field->type = 1; field->value.ui = 700250; break;
        default: field->result = 3;
        }
    }
    return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *gpu, unsigned long long *mj) { *mj = energy((long)gpu); return 0; }
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *mw) { *mw = 600000; return 0; }
int nvmlDeviceGetClockInfo(void *gpu, unsigned type, unsigned *mhz) { *mhz = type == 1 ? 1440 : 3201; return 0; }
int nvmlDeviceGetTemperature(void *gpu, unsigned sensor, unsigned *c) { *c = 61; return sensor != 0; }
int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, unsigned long long *mask) {
    *mask = 0x4 | 0x20;
    return old() ? 3 : 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *gpu, unsigned long long *mask) { *mask = 0x1; return 0; }
int nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long *sizes) {
    sizes[0] = 1000; sizes[1] = 400; sizes[2] = 600;
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *gpu, unsigned *rates) { rates[0] = 97; rates[1] = 12; return old() ? 3 : 0; }
typedef struct { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; } Process;
/* Process 1 with 40 GiB, and one that nobody sees, whose memory the driver does not say. NVML_FREE: GPUs from
   this index on have none, and 4 MiB in use. */
static int unused(void *gpu) { return getenv("NVML_FREE") && (long)gpu - 1 >= atoi(getenv("NVML_FREE")); }
int nvmlDeviceGetComputeRunningProcesses_v3(void *gpu, unsigned *count, Process *infos) {
    int wanted = unused(gpu) ? 0 : 2, small = (int)*count < wanted;
    *count = wanted;
    if (small) return 7;
    if (infos && wanted) {
        infos[0].pid = 1; infos[0].memory = 40ull << 30;
        infos[1].pid = 4194999; infos[1].memory = ~0ull;
    }
    return 0;
}
