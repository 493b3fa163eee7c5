/* Reads the events of each file named: built with the sanitizers, it ends badly where events.c does anything
 * that C forbids. Buffers have exactly the size of the text and its NUL, so that one byte too far is seen. */
#include "events.c"

#include <stdio.h>

enum { ROOM = 64, PH = 0, CAT, NAME, TS, XID, LOAD, GRID, DIMS = GRID + 3, COLUMNS };

static parser *asked(void) {
    static const int owner[] = {CAT, XID};
    parser *p = events_new();
    int good = events_field(p, TOP, "ph", TEXT, PH) && events_field(p, TOP, "cat", TEXT, CAT) &&
               events_field(p, TOP, "name", TEXT, NAME) && events_field(p, TOP, "ts", MICROSECONDS, TS) &&
               events_field(p, ARGS, "External id", INTEGER, XID) && events_field(p, ARGS, "grid", TRIPLE, GRID) &&
               events_field(p, ARGS, "est. achieved occupancy %", REAL, LOAD) &&
               events_field(p, ARGS, "Input Dims", TEXT, DIMS);
    events_owner(p, PH, CAT, owner, 2);
    return good ? p : NULL;
}

static int64_t count(parser *p, const char *text, int64_t length) {
    static int64_t columns[(COLUMNS + 1) * ROOM];
    int64_t rows = 0, at = 0;
    while (at < length) {
        int64_t step = length - at, found = events_read(p, text + at, &step, columns, ROOM);
        if (found < 0) return -1;
        rows += found;
        at += step;
    }
    return rows;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file || fseek(file, 0, SEEK_END)) return 2;
        int64_t length = ftell(file);
        char *text = malloc((size_t)length + 1);
        parser *p = asked();
        rewind(file);
        if (!text || !p || fread(text, 1, (size_t)length, file) != (size_t)length) return 2;
        text[length] = 0;
        printf("%lld\n", (long long)count(p, text, length));
        events_free(p);
        free(text);
        fclose(file);
    }
    return 0;
}
