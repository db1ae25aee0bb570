/* Reads every golden payload: ./check ../../tests/golden. What is good must be read, what is bad refused by its word.
 * Prints what it reads, a line for each payload, fields and elements of arrays between tabs. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eyestream.h"

static const char *NAMES[] = {"raw", "gaze", "private", "meta", "status", "budget", "odometer", "owner"};

static uint8_t *contents(const char *folder, const char *name, size_t *size) {
    static uint8_t buffer[1 << 20];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    *size = fread(buffer, 1, sizeof buffer - 1, file);
    buffer[*size] = 0;
    fclose(file);
    return buffer;
}

static void floats(const char *key, struct eyestream_bytes array) {
    printf("\t%s", key);
    for (size_t i = 0; i < array.size / 4; i++) printf("\t%.9g", (double)eyestream_float(array, i));
}

static void doubles(const char *key, struct eyestream_bytes array) {
    printf("\t%s", key);
    for (size_t i = 0; i < array.size / 8; i++) printf("\t%.17g", eyestream_double(array, i));
}

static void ints(const char *key, struct eyestream_list list) {
    printf("\t%s", key);
    while (list.count > 0) printf("\t%" PRIu64, eyestream_next_int(&list));
}

static void text(struct eyestream_bytes word) { printf("\t%.*s", (int)word.size, (const char *)word.data); }

static void texts(const char *key, struct eyestream_list list) {
    printf("\t%s", key);
    while (list.count > 0) text(eyestream_next_text(&list));
}

static void show(enum eyestream_kind kind, const struct eyestream_message *m) {
    if (kind == EYESTREAM_RAW) {
        printf("\tschema\t%" PRIu64 "\tsession\t%" PRIu64 "\tseq\t%" PRIu64, m->schema, m->session, m->seq);
        if (m->wearer > 0) printf("\twearer\t%" PRIu64, m->wearer);
        if (m->end) printf("\tend\ttrue");
    } else if (kind == EYESTREAM_GAZE) {
        printf("\tschema\t%" PRIu64, m->schema);
    } else if (kind == EYESTREAM_PRIVATE) {
        printf("\tsession\t%" PRIu64 "\tchunk\t%" PRIu64 "\tt0\t%.17g\tdt\t%.17g", m->session, m->chunk, m->t0, m->dt);
        printf("\tepsilon\t%.17g\tdelta\t%.17g", m->epsilon, m->delta);
        if (!isnan(m->at)) printf("\tat\t%.17g", m->at);
    } else if (kind == EYESTREAM_META) {
        texts("names", m->names), texts("units", m->units), ints("k", m->k), floats("noise_sd", m->noise_sd);
        printf("\trate_hz\t%.17g\tn\t%" PRIu64 "\tepsilon\t%.17g\tdelta\t%.17g", m->rate_hz, m->n, m->epsilon, m->delta);
        printf("\tmechanism"), text(m->mechanism);
        printf("\tguarantee"), text(m->guarantee);
        printf("\tcalibration"), text(m->calibration);
    } else if (kind == EYESTREAM_STATUS) {
        printf("\tstate"), text(m->state);
        printf("\treason"), text(m->reason);
    } else if (kind == EYESTREAM_BUDGET) {
        printf("\tchunks\t%" PRIu64 "\tceiling", m->chunks), text(m->ceiling);
        if (m->resumes_at > 0) printf("\tresumes_at\t%" PRIu64, m->resumes_at);
    } else if (kind == EYESTREAM_ODOMETER) {
        printf("\tledger"), text(m->ledger);
        printf("\tlife\t%" PRIu64 "\tbegan\t%" PRIu64 "\treads\t%" PRIu64, m->life, m->began, m->reads);
        if (m->former.data != NULL) printf("\tformer"), text(m->former);
    } else {
        printf("\tledger"), text(m->ledger);
        texts("devices", m->devices);
    }
    if (m->rows > 0 || m->columns > 0) ints("shape", m->shape), floats("values", m->values);
    if (m->t.data != NULL) doubles("t", m->t);
}

/* What a sidecar compares with its configuration: of the golden payloads schema 7, three features, gaze of 2 or 3. */
static const char *configured(enum eyestream_kind kind, const struct eyestream_message *m) {
    if ((kind == EYESTREAM_RAW || kind == EYESTREAM_GAZE) && m->schema != 7) return "schema";
    if (kind == EYESTREAM_RAW && m->columns != 3) return "shape";
    return kind == EYESTREAM_GAZE && m->columns != 2 && m->columns != 3 ? "shape" : NULL;
}

/* The text that follows `key` in an entry of the index, up to the next quotation mark; the index is written by us. */
static bool follows(const char *entry, const char *end, const char *key, char *out) {
    const char *at = strstr(entry, key);
    if (at == NULL || (end != NULL && at > end)) return false;
    return sscanf(at + strlen(key), "%63[^\"]", out) == 1;
}

int main(int count, char **words) {
    size_t size;
    int payloads = 0, faults = 0;
    if (count != 2) return fprintf(stderr, "usage: check FOLDER\n"), 2;
    char *index = strdup((char *)contents(words[1], "index.json", &size));
    for (char *at = strstr(index, ".msgpack\": {"), *next; at != NULL; at = next, payloads++) {
        char name[64] = "", kind_name[64] = "", expected[64] = "";
        char *begin = at;
        while (begin[-1] != '"') begin--;
        next = strstr(at + 1, ".msgpack\": {");
        snprintf(name, sizeof name, "%.*s.msgpack", (int)(at - begin), begin);
        follows(at, next, "\"kind\": \"", kind_name);
        follows(at, next, "\"refused\": \"", expected);
        int kind = 0;
        while (kind < 7 && strcmp(NAMES[kind], kind_name) != 0) kind++;
        struct eyestream_message message;
        const uint8_t *payload = contents(words[1], name, &size);
        const char *wrong = eyestream_decode(1 << kind, payload, size, &message);
        if (wrong == NULL) wrong = configured(1 << kind, &message);
        printf("%s", name);
        if (wrong == NULL) show(1 << kind, &message);
        else printf("\trefused\t%s", wrong);
        bool fault = strcmp(expected, wrong ? wrong : "") != 0;
        printf(fault ? "\tFAULT\n" : "\n");
        faults += fault;
    }
    free(index);
    fprintf(stderr, "%d payloads, %d faults\n", payloads, faults);
    return faults > 0 || payloads == 0;
}
