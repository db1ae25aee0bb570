/* Values of msgpack, one after the other. */

#ifndef READER_H
#define READER_H

#include "eyestream.h"

/* One value of msgpack. Of an array and a map only the head: its elements follow. */
struct value {
    char type; /* i nteger, n egative, f loat, s tring, b ytes, l ogical, a rray, m ap, 0: another one */
    uint64_t number;
    double real;
    struct eyestream_bytes bytes;
};
struct reader { const uint8_t *at, *end; };

/* The next value. Returns NULL, or the word for what is wrong. */
const char *read_value(struct reader *reader, struct value *out);

/* Steps over the elements of `head`, at depth 0 the first time, and notes the type that all of them have. */
const char *skip(struct reader *reader, struct value head, int depth, char *of);

/* A float of 4 or 8 bytes. */
double real(uint64_t bits, int width);

#endif
