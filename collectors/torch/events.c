/* Trace events as columns: an array of JSON objects, each with an object "args", into int64 columns.
 *
 * Strict on purpose. What is not exactly the JSON that was asked for is refused, never guessed at: the caller
 * then reads the file another way. Nothing is allocated per event; a text is stored once and is a number in
 * the columns. Several parsers may run in several threads; one parser belongs to one thread at a time.
 */
#include "events_json.h"
#include "events_table.h"

#define MISSING INT64_MIN /* NULL in a column */
#define MAX_FIELDS 64
#define MAX_COLUMNS 96
#define MAX_KEY 64  /* longer keys are never asked for */
#define MAX_ALIKE 8 /* fields of one key length */
#define MAX_OWNER 8

enum kind { TEXT, INTEGER, MICROSECONDS, REAL, TRIPLE };
enum level { TOP, ARGS, LEVELS };

typedef struct {
    char key[MAX_KEY];
    int length, kind, column;
} field;

typedef struct {
    field fields[MAX_FIELDS];
    int field_count, column_count;
    uint8_t alike[LEVELS][MAX_KEY][MAX_ALIKE], alike_count[LEVELS][MAX_KEY];
    bool is_text[MAX_COLUMNS];
    int owner[MAX_OWNER], owner_count, phase, category;
    table texts, owners;
    /* the event that is being read */
    cursor in;
    bool has_args;
    int64_t row[MAX_COLUMNS];
    span text[MAX_COLUMNS];
} parser;

/* ---- one event ---- */

static bool text(cursor *c, span *out) { /* any value as it stands, quotes included */
    span inner;
    const char *start = c->at;
    if (*c->at == '"' ? !string(c, &inner) : !skip(c, 0)) return false;
    *out = (span){start, c->at - start};
    return true;
}

static bool value_of(parser *p, const field *f) {
    cursor *c = &p->in;
    int64_t *out = &p->row[f->column];
    if (*c->at == 'n') return word(c, "null");
    if (*out != MISSING) return false; /* the same key twice */
    switch (f->kind) {
    case TEXT: *out = 0; return text(c, &p->text[f->column]);
    case INTEGER: return integer(c, out);
    case MICROSECONDS: return microseconds(c, out);
    case REAL: return real(c, out);
    default: return triple(c, out);
    }
}

static const field *find(const parser *p, int level, span key) {
    if (key.length >= MAX_KEY) return NULL;
    for (int i = 0; i < p->alike_count[level][key.length]; i++) {
        const field *f = &p->fields[p->alike[level][key.length][i]];
        if (!memcmp(f->key, key.at, (size_t)key.length)) return f;
    }
    return NULL;
}

static bool object(parser *p, int level);

static bool member(parser *p, int level, span key) { /* at the value */
    cursor *c = &p->in;
    if (level == TOP && key.length == 4 && !memcmp(key.at, "args", 4)) {
        if (*c->at != '{') return word(c, "null");
        if (p->has_args) return false; /* twice */
        p->has_args = true;
        return object(p, ARGS);
    }
    const field *f = find(p, level, key);
    return f ? value_of(p, f) : skip(c, 0);
}

static bool object(parser *p, int level) { /* at the brace */
    cursor *c = &p->in;
    c->at++;
    space(c);
    if (take(c, '}')) return true;
    do {
        span key;
        space(c);
        if (*c->at != '"' || !string(c, &key)) return false;
        if (memchr(key.at, '\\', (size_t)key.length)) return false; /* one of ours, spelt another way? */
        space(c);
        if (!take(c, ':')) return false;
        space(c);
        if (!member(p, level, key)) return false;
        space(c);
    } while (take(c, ','));
    return take(c, '}');
}

static bool is(const parser *p, int column, const char *wanted) {
    size_t length = strlen(wanted);
    return p->row[column] != MISSING && (size_t)p->text[column].length == length &&
           !memcmp(p->text[column].at, wanted, length);
}

static bool is_arrow(const parser *p) { /* a flow between launch and kernel: the correlation says it already */
    return (is(p, p->phase, "\"s\"") || is(p, p->phase, "\"t\"") || is(p, p->phase, "\"f\"")) &&
           !is(p, p->category, "\"fwdbwd\"");
}

static bool keep(parser *p, int64_t *columns, int64_t room, int64_t place) {
    int64_t owner[MAX_OWNER];
    for (int c = 0; c < p->column_count; c++)
        if (p->is_text[c] && p->row[c] != MISSING) {
            p->row[c] = number_of(&p->texts, p->text[c].at, p->text[c].length);
            if (p->row[c] < 0) return false;
        }
    for (int i = 0; i < p->owner_count; i++) owner[i] = p->row[p->owner[i]];
    int64_t number = number_of(&p->owners, (const char *)owner, p->owner_count * (int64_t)sizeof *owner);
    if (number < 0) return false;
    for (int c = 0; c < p->column_count; c++) columns[c * room + place] = p->row[c];
    columns[p->column_count * room + place] = number;
    return true;
}

/* ---- what Python calls ---- */

parser *events_new(void) {
    return calloc(1, sizeof(parser));
}

void events_free(parser *p) {
    forget(&p->texts);
    forget(&p->owners);
    free(p);
}

/* Ask for a key; ``column`` is its first column. Several keys may share one. Returns 0 when there is no room. */
int events_field(parser *p, int level, const char *key, int kind, int column) {
    size_t length = strlen(key);
    int width = kind == TRIPLE ? 3 : 1;
    if (level < TOP || level > ARGS || length >= MAX_KEY || p->field_count == MAX_FIELDS) return 0;
    uint8_t *alike = &p->alike_count[level][length];
    if (column < 0 || column + width > MAX_COLUMNS || *alike == MAX_ALIKE) return 0;
    field *f = &p->fields[p->field_count];
    memcpy(f->key, key, length);
    f->length = (int)length;
    f->kind = kind;
    f->column = column;
    p->alike[level][length][(*alike)++] = (uint8_t)p->field_count++;
    p->is_text[column] = kind == TEXT;
    if (column + width > p->column_count) p->column_count = column + width;
    return 1;
}

/* Which columns hold phase and category, and which ones together name an event's owner. */
void events_owner(parser *p, int phase, int category, const int *owner, int count) {
    p->phase = phase;
    p->category = category;
    p->owner_count = count < MAX_OWNER ? count : MAX_OWNER;
    memcpy(p->owner, owner, (size_t)p->owner_count * sizeof *owner);
}

/* Read events, with commas between them, into ``columns``: those of the fields, then the owner, ``room`` each.
 *
 * ``length`` becomes what was read: less than the text when there was no more room. Returns the events kept,
 * or -1 for a refusal at that place. */
int64_t events_read(parser *p, const char *bytes, int64_t *length, int64_t *columns, int64_t room) {
    cursor *c = &p->in;
    int64_t rows = 0;
    bool good = true;
    *c = (cursor){bytes, bytes + *length};
    space(c);
    while (good && c->at < c->end && rows < room) {
        for (int i = 0; i < p->column_count; i++) p->row[i] = MISSING;
        p->has_args = false;
        good = *c->at == '{' && object(p, TOP) && c->at <= c->end;
        if (good && !is_arrow(p)) good = keep(p, columns, room, rows++);
        space(c);
        good = good && (c->at >= c->end || take(c, ','));
        space(c);
    }
    *length = c->at - bytes;
    return good ? rows : -1;
}

/* Texts (JSON as it stood in the file) and owners (the columns that name one, as int64) in order of number. */
int64_t events_table(const parser *p, int owners, const char **bytes, const int64_t **start) {
    const table *t = owners ? &p->owners : &p->texts;
    *bytes = t->bytes;
    *start = t->start;
    return t->count;
}
