/* A stand-in for librocprofiler-sdk-roctx.so: writes every call as a line to $PROFRUN_STANDIN_ROCTX_LOG. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void say(const char *what, const char *text)
{
    const char *path = getenv("PROFRUN_STANDIN_ROCTX_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file == NULL)
        return;
    fprintf(file, "%s%s%s\n", what, text[0] ? " " : "", text);
    fclose(file);
}

int roctxRangePushA(const char *text)
{
    say("push", text);
    return 0;
}

int roctxRangePop(void)
{
    say("pop", "");
    return 0;
}

void roctxMarkA(const char *text) { say("mark", text); }

int roctxProfilerResume(uint64_t thread)
{
    say(thread == 0 ? "resume" : "resume of one thread", "");
    return 0;
}

int roctxProfilerPause(uint64_t thread)
{
    say(thread == 0 ? "pause" : "pause of one thread", "");
    return 0;
}
