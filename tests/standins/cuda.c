/* A stand-in for libcuda.so.1 with two GPUs: a line per call in $PROFRUN_STANDIN_CUDA_LOG. */
#include <stdio.h>
#include <stdlib.h>

static int context = 0; /* the first GPU's primary context is active */
static long current = -1;

static int say(const char *what)
{
    FILE *file = fopen(getenv("PROFRUN_STANDIN_CUDA_LOG"), "a");
    if (file == NULL)
        return 999;
    fprintf(file, "%s\n", what);
    fclose(file);
    return 0;
}

void standin_use_gpu(void) { context = 1; }

int standin_work(void) { return say("work"); }

int cuDeviceGetCount(int *count)
{
    *count = 2;
    return context ? 0 : 3; /* CUDA_ERROR_NOT_INITIALIZED */
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = context && device == 0;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **made, int device)
{
    *made = (void *)(long)(device + 1);
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    return 0;
}

int cuCtxPushCurrent_v2(void *pushed)
{
    current = (long)pushed;
    return 0;
}

int cuCtxPopCurrent_v2(void **popped)
{
    *popped = (void *)current;
    current = -1;
    return 0;
}

int cuCtxSynchronize(void) { return current == 1 ? say("synchronize") : 201; }

int cuProfilerStart(void) { return context ? say("start") : 3; }

int cuProfilerStop(void) { return say("stop"); }
