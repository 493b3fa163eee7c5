/* Distinct byte strings, numbered from 0 in the order seen: open addressing over one block of bytes. */
#ifndef PROFRUN_EVENTS_TABLE_H
#define PROFRUN_EVENTS_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_LIMIT (96 << 20) /* bytes; a file with more distinct text is read another way */

typedef struct {
    char *bytes;
    int64_t *start; /* count + 1 */
    uint64_t *hashes;
    int32_t *slots; /* number + 1, 0 is free */
    int64_t used, room, count, room_count, slot_count;
} table;

static bool grow_slots(table *t) {
    int64_t size = t->slot_count ? t->slot_count * 2 : 1024;
    int32_t *slots = calloc((size_t)size, sizeof *slots);
    if (!slots) return false;
    for (int64_t i = 0; i < t->count; i++) {
        uint64_t at = t->hashes[i] & (uint64_t)(size - 1);
        while (slots[at]) at = (at + 1) & (uint64_t)(size - 1);
        slots[at] = (int32_t)(i + 1);
    }
    free(t->slots);
    t->slots = slots;
    t->slot_count = size;
    return true;
}

static bool grow(table *t, int64_t length) {
    if (t->count + 1 >= t->room_count) {
        int64_t room = t->room_count ? t->room_count * 2 : 1024;
        int64_t *start = realloc(t->start, (size_t)(room + 1) * sizeof *start);
        if (start) t->start = start;
        uint64_t *hashes = realloc(t->hashes, (size_t)room * sizeof *hashes);
        if (hashes) t->hashes = hashes;
        if (!start || !hashes) return false;
        if (!t->count) t->start[0] = 0;
        t->room_count = room;
    }
    if (t->used + length > t->room) {
        int64_t room = (t->used + length) * 2 + 4096;
        char *bytes = realloc(t->bytes, (size_t)room);
        if (!bytes) return false;
        t->bytes = bytes;
        t->room = room;
    }
    return t->count * 2 < t->slot_count || grow_slots(t);
}

static uint64_t hash_of(const char *bytes, int64_t length) {
    uint64_t hash = (uint64_t)length * 0x9E3779B97F4A7C15u, word;
    for (; length >= 8; bytes += 8, length -= 8) {
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, bytes, (size_t)length);
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 32;
}

/* Number of a byte string, -1 when there is no memory for it. */
static int64_t number_of(table *t, const char *bytes, int64_t length) {
    uint64_t hash = hash_of(bytes, length);
    if (t->slot_count) {
        uint64_t mask = (uint64_t)(t->slot_count - 1), at = hash & mask;
        for (; t->slots[at]; at = (at + 1) & mask) {
            int64_t i = t->slots[at] - 1;
            if (t->hashes[i] == hash && t->start[i + 1] - t->start[i] == length &&
                !memcmp(t->bytes + t->start[i], bytes, (size_t)length))
                return i;
        }
    }
    if (t->used + length > TABLE_LIMIT || !grow(t, length)) return -1;
    uint64_t mask = (uint64_t)(t->slot_count - 1), at = hash & mask;
    while (t->slots[at]) at = (at + 1) & mask;
    memcpy(t->bytes + t->used, bytes, (size_t)length);
    t->used += length;
    t->hashes[t->count] = hash;
    t->slots[at] = (int32_t)++t->count;
    t->start[t->count] = t->used;
    return t->count - 1;
}

static void forget(table *t) {
    free(t->bytes);
    free(t->start);
    free(t->hashes);
    free(t->slots);
}

#endif
