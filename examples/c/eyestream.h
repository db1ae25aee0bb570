/* Payloads of eyestream's wire, version 1: docs/protocol.md has the tables. C99, no library, no memory of its own. */

#ifndef EYESTREAM_H
#define EYESTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum eyestream_kind {
    EYESTREAM_RAW = 1, EYESTREAM_GAZE = 2, EYESTREAM_PRIVATE = 4, EYESTREAM_META = 8,
    EYESTREAM_STATUS = 16, EYESTREAM_BUDGET = 32, EYESTREAM_ODOMETER = 64, EYESTREAM_OWNER = 128
};

/* Bytes or text in the payload, which must stay where it is; text has no 0 at its end. */
struct eyestream_bytes { const uint8_t *data; size_t size; };

/* An array in the payload: walk it with eyestream_next_int or eyestream_next_text. */
struct eyestream_list { const uint8_t *data; size_t size; uint32_t count; };

/* A message. What it does not have is 0, and of `at` NaN. */
struct eyestream_message {
    uint64_t schema, session, seq, chunk, wearer, n, chunks, resumes_at, life, began, reads;
    uint64_t rows, columns; /* of shape: of raw rows and features, of a private chunk features and rows */
    double t0, dt, at, rate_hz, epsilon, delta;
    bool end;
    struct eyestream_bytes values, t, noise_sd; /* float32, float64, float32: eyestream_float, eyestream_double */
    struct eyestream_bytes mechanism, guarantee, calibration, state, reason, ceiling, ledger, former;
    struct eyestream_list shape, k, names, units, devices;
};

/* Reads a payload. Returns NULL, or the word of docs/protocol.md for what is wrong with it. */
const char *eyestream_decode(enum eyestream_kind kind, const uint8_t *payload, size_t size,
                             struct eyestream_message *message);

/* The number with index i. */
float eyestream_float(struct eyestream_bytes array, size_t i);
double eyestream_double(struct eyestream_bytes array, size_t i);

/* The first element, which is taken off the list; the list must not be empty. */
uint64_t eyestream_next_int(struct eyestream_list *list);
struct eyestream_bytes eyestream_next_text(struct eyestream_list *list);

#endif
