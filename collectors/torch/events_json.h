/* JSON, strictly: each function stands at a value, walks over it and says whether it was sound.
 *
 * The text must be followed by a NUL byte (not counted in its length), so that looking at the next character
 * is always allowed.
 */
#ifndef PROFRUN_EVENTS_JSON_H
#define PROFRUN_EVENTS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MAX_DEPTH 64 /* of values that are skipped */

typedef struct {
    const char *at;
    int64_t length;
} span;

typedef struct {
    const char *at, *end;
} cursor;

static inline void space(cursor *c) {
    while (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t') c->at++;
}

static inline bool take(cursor *c, char wanted) {
    if (*c->at != wanted) return false;
    c->at++;
    return true;
}

static bool is_utf8(const char *bytes, const char *end) {
    const uint8_t *at = (const uint8_t *)bytes, *stop = (const uint8_t *)end;
    while (at < stop) {
        int more = *at < 0x80 ? 0 : *at >= 0xC2 && *at < 0xE0 ? 1 : (*at & 0xF0) == 0xE0 ? 2 : 3;
        if (more == 3 && (*at < 0xF0 || *at > 0xF4)) return false;
        if (stop - at <= more) return false;
        for (int i = 1; i <= more; i++)
            if ((at[i] & 0xC0) != 0x80) return false;
        if (*at == 0xE0 && at[1] < 0xA0) return false; /* longer than needed */
        if (*at == 0xED && at[1] > 0x9F) return false; /* surrogates */
        if (*at == 0xF0 && at[1] < 0x90) return false;
        if (*at == 0xF4 && at[1] > 0x8F) return false; /* beyond U+10FFFF */
        at += more + 1;
    }
    return true;
}

static bool escape(cursor *c) { /* at the backslash */
    char kind = c->at[1];
    if (kind == 'u') {
        for (int i = 2; i < 6; i++) {
            char h = c->at[i];
            if (!((h >= '0' && h <= '9') || (h >= 'a' && h <= 'f') || (h >= 'A' && h <= 'F'))) return false;
        }
        if ((c->at[2] | 32) == 'd' && c->at[3] > '7') return false; /* half of a pair */
        c->at += 6;
        return true;
    }
    if (!kind || !strchr("\"\\/bfnrt", kind)) return false;
    c->at += 2;
    return true;
}

/* Whether a byte of the word ends a run of plain characters: '"', '\', a control or a byte of UTF-8. */
static inline uint64_t odd_bytes(uint64_t word) {
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';
    return (((quote - ones) & ~quote) | ((slash - ones) & ~slash) | (word - ones * 0x20) | word) & high;
}

static bool string(cursor *c, span *out) { /* at the opening quote; ``out`` is what stands between quotes */
    const char *start = ++c->at;
    bool wide = false;
    for (;;) {
        uint64_t word;
        while (c->end - c->at >= 8 && (memcpy(&word, c->at, 8), !odd_bytes(word))) c->at += 8;
        while ((uint8_t)*c->at >= 0x20 && *c->at != '"' && *c->at != '\\') wide |= (uint8_t)*c->at++ >> 7;
        if (*c->at != '\\') break;
        if (!escape(c)) return false;
    }
    if (*c->at != '"' || c->at >= c->end) return false;
    *out = (span){start, c->at++ - start};
    return !wide || is_utf8(start, start + out->length);
}

static bool digits(cursor *c) {
    const char *start = c->at;
    while (*c->at >= '0' && *c->at <= '9') c->at++;
    return c->at > start;
}

static bool skip_number(cursor *c) {
    take(c, '-');
    if (!take(c, '0') && !digits(c)) return false;
    if (take(c, '.') && !digits(c)) return false;
    if (*c->at == 'e' || *c->at == 'E') {
        c->at++;
        if (*c->at == '+' || *c->at == '-') c->at++;
        return digits(c);
    }
    return true;
}

static bool word(cursor *c, const char *wanted) {
    size_t length = strlen(wanted);
    if (strncmp(c->at, wanted, length)) return false;
    c->at += length;
    return true;
}

static bool skip(cursor *c, int depth) {
    span ignored;
    char open = *c->at, close = open == '{' ? '}' : ']';
    if (open == '"') return string(c, &ignored);
    if (open == 't') return word(c, "true");
    if (open == 'f') return word(c, "false");
    if (open == 'n') return word(c, "null");
    if (open != '{' && open != '[') return skip_number(c);
    if (depth == MAX_DEPTH) return false;
    c->at++;
    space(c);
    if (take(c, close)) return true;
    do {
        space(c);
        if (open == '{') {
            if (*c->at != '"' || !string(c, &ignored)) return false;
            space(c);
            if (!take(c, ':')) return false;
            space(c);
        }
        if (!skip(c, depth + 1)) return false;
        space(c);
    } while (take(c, ','));
    return take(c, close);
}

/* Digits of a number without its sign times 10, added to ``value``; stops at the first other character. */
static bool add_digits(cursor *c, int64_t *value) {
    for (; *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, *c->at - '0', value))
            return false;
    return true;
}

static bool starts_number(const cursor *c) { /* no leading zeros: they are no JSON */
    return *c->at >= '0' && *c->at <= '9' && !(*c->at == '0' && c->at[1] >= '0' && c->at[1] <= '9');
}

static bool integer(cursor *c, int64_t *value) {
    bool quoted = take(c, '"'), minus = take(c, '-');
    *value = 0;
    if (!starts_number(c) || !add_digits(c, value)) return false;
    if (minus) *value = -*value;
    if (quoted) return take(c, '"');
    return *c->at != '.' && *c->at != 'e' && *c->at != 'E';
}

static bool microseconds(cursor *c, int64_t *ns) { /* exact: at most three decimals that are not 0 */
    bool quoted = take(c, '"'), minus = take(c, '-');
    int64_t value = 0;
    int places = 0;
    if (!starts_number(c) || !add_digits(c, &value)) return false;
    if (take(c, '.')) {
        const char *start = c->at;
        for (; places < 3 && *c->at >= '0' && *c->at <= '9'; places++, c->at++)
            if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *c->at - '0', &value))
                return false;
        while (*c->at == '0') c->at++;
        if (c->at == start || (*c->at >= '1' && *c->at <= '9')) return false;
    }
    for (; places < 3; places++)
        if (__builtin_mul_overflow(value, 10, &value)) return false;
    *ns = minus ? -value : value;
    return quoted ? take(c, '"') : *c->at != 'e' && *c->at != 'E';
}

static bool real(cursor *c, int64_t *bits) { /* exact: both numbers below are doubles without rounding */
    static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    bool minus = take(c, '-');
    int64_t value = 0;
    int places = 0;
    if (!starts_number(c) || !add_digits(c, &value)) return false;
    if (take(c, '.')) {
        const char *start = c->at;
        if (!add_digits(c, &value) || c->at == start || c->at - start > 15) return false;
        places = (int)(c->at - start);
    }
    if (value >= (int64_t)1 << 53 || *c->at == 'e' || *c->at == 'E') return false;
    double found = (double)value / power[places];
    if (minus && value) found = -found; /* the bits of -0.0 mean that there is no value */
    memcpy(bits, &found, sizeof found);
    return true;
}

/* An array of integers: its three, or none when there are more or fewer. A text is none (Triton's "grid(100,)"). */
static bool triple(cursor *c, int64_t *three) {
    span ignored;
    int64_t value, found[3];
    int count = 0;
    if (*c->at == '"') return string(c, &ignored);
    if (!take(c, '[')) return false;
    space(c);
    if (take(c, ']')) return true;
    do {
        space(c);
        if (*c->at == '"' || !integer(c, &value)) return false;
        if (count++ < 3) found[count - 1] = value;
        space(c);
    } while (take(c, ','));
    if (count == 3) memcpy(three, found, sizeof found);
    return take(c, ']');
}

#endif
