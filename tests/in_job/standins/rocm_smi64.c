/* A stand-in for librocm_smi64.so: GPUs with values that are known; structures as rocm_smi.h has them.
   RSMI_OLD: as ROCm 5, whose list of frequencies begins without has_deep_sleep, on a GPU that tells less. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { uint32_t major, minor, patch; const char *build; } Version;
typedef struct { uint32_t count, current; uint64_t frequency[32]; } OldFrequencies;
typedef struct { bool deep_sleep; uint32_t count, current; uint64_t frequency[33]; } Frequencies;
typedef struct { /* rsmi_gpu_metrics_t up to version 1.3 */
    uint16_t size; uint8_t format, content;
    uint16_t temperatures[6], activities[3], average_socket_power;
    uint64_t energy, clock_counter;
    uint16_t clocks[14];
    uint32_t throttle_status;
    uint16_t fan, link_width, link_speed;
    uint32_t gfx_acc, mem_acc;
    uint16_t temperature_hbm[4];
    uint64_t firmware_timestamp;
    uint16_t voltages[3];
    uint64_t indep_throttle_status;
} Metrics;

static int old(void) { return getenv("RSMI_OLD") != NULL; }

int rsmi_init(uint64_t flags) { return flags == 0x400000000000000ull ? 0 : 1; }
int rsmi_version_get(Version *version) {
    *version = (Version){.major = 7, .minor = 8, .patch = 0, .build = "x"};
    return 0;
}
int rsmi_num_monitor_devices(uint32_t *count) { *count = 2; return 0; }
int rsmi_dev_unique_id_get(uint32_t gpu, uint64_t *id) { *id = 0xABC0 + gpu; return 0; }
int rsmi_dev_name_get(uint32_t gpu, char *name, size_t size) { return snprintf(name, size, "Stand-in") < 0; }
int rsmi_dev_power_cap_get(uint32_t gpu, uint32_t sensor, uint64_t *uw) { *uw = 750000000; return 0; }
int rsmi_dev_current_socket_power_get(uint32_t gpu, uint64_t *uw) { *uw = 700250000; return old() ? 2 : 0; }
int rsmi_dev_power_ave_get(uint32_t gpu, uint32_t sensor, uint64_t *uw) { *uw = 650500000; return old() ? 0 : 2; }
int rsmi_dev_energy_count_get(uint32_t gpu, uint64_t *count, float *unit, uint64_t *when) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *unit = 15.259f;
    *when = 0;
    *count = (now.tv_sec % 100000 + now.tv_nsec / 1e9) * 700e6 / 15.259; /* 700 W */
    return 0;
}
int rsmi_dev_gpu_clk_freq_get(uint32_t gpu, int kind, void *list) {
    uint64_t lowest = 132000000, highest = kind == 0 ? 2100000000 : 1300000000;
    if (old()) {
        *(OldFrequencies *)list = (OldFrequencies){.count = 2, .current = 1, .frequency = {lowest, highest}};
        return 0;
    }
    Frequencies *found = list;
    *found = (Frequencies){.count = 3, .current = 1, .frequency = {lowest, highest - 100000000, highest}};
    return 0;
}
int rsmi_dev_temp_metric_get(uint32_t gpu, uint32_t sensor, int metric, int64_t *mc) {
    *mc = sensor == 1 ? 71000 : 52000;
    return old() && sensor == 1 ? 2 : metric;
}
int rsmi_dev_gpu_metrics_info_get(uint32_t gpu, Metrics *metrics) {
    memset(metrics, 0xff, sizeof *metrics);
    if (!old()) metrics->indep_throttle_status = 1ull | 1ull << 36; /* PPT0, TEMP_HOTSPOT */
    return 0;
}
int rsmi_dev_memory_usage_get(uint32_t gpu, int type, uint64_t *used) { *used = 600; return type; }
int rsmi_dev_busy_percent_get(uint32_t gpu, uint32_t *percent) { *percent = 97; return 0; }
