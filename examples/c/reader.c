#include "reader.h"

#include <string.h>

enum { MOST_NESTED = 100 };

static bool take(struct reader *reader, size_t size, struct eyestream_bytes *out) {
    if ((size_t)(reader->end - reader->at) < size) return false;
    *out = (struct eyestream_bytes){reader->at, size};
    reader->at += size;
    return true;
}

/* `width` bytes, big-endian. */
static bool number(struct reader *reader, int width, uint64_t *out) {
    struct eyestream_bytes bytes;
    if (!take(reader, (size_t)width, &bytes)) return false;
    *out = 0;
    for (int i = 0; i < width; i++) *out = *out << 8 | bytes.data[i];
    return true;
}

/* Text of `size` bytes in UTF-8 (RFC 3629, section 4). */
static bool text(struct reader *reader, size_t size, struct eyestream_bytes *out) {
    if (!take(reader, size, out)) return false;
    for (size_t i = 0; i < size;) {
        uint8_t first = out->data[i++];
        int more = first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : 3;
        if (more == 3 && (first < 0xf0 || first > 0xf4)) return false;
        uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        for (; more > 0; more--, i++, low = 0x80, high = 0xbf)
            if (i == size || out->data[i] < low || out->data[i] > high) return false;
    }
    return true;
}

double real(uint64_t bits, int width) {
    uint32_t low = (uint32_t)bits;
    float single;
    double wide;
    memcpy(&single, &low, 4);
    memcpy(&wide, &bits, 8);
    return width == 4 ? (double)single : wide;
}

const char *read_value(struct reader *reader, struct value *out) {
    const char *wrong = "not_msgpack";
    uint64_t size = 0;
    *out = (struct value){0};
    if (reader->at == reader->end) return wrong;
    uint8_t code = *reader->at++;
    if (code < 0x80) return out->type = 'i', out->number = code, NULL;
    if (code >= 0xe0) return out->type = 'n', NULL;
    if (code < 0xa0) return out->type = code < 0x90 ? 'm' : 'a', out->number = code & 15, NULL;
    if (code < 0xc0) return out->type = 's', text(reader, code & 31, &out->bytes) ? NULL : wrong;
    if (code == 0xc0) return NULL;
    if (code == 0xc1) return wrong;
    if (code < 0xc4) return out->type = 'l', out->number = code & 1, NULL;
    if (code < 0xca) { /* bytes, extensions */
        out->type = code < 0xc7 ? 'b' : 0;
        if (!number(reader, 1 << (code - 0xc4) % 3, &size)) return wrong;
        return take(reader, (size_t)size + (code >= 0xc7), &out->bytes) ? NULL : wrong;
    }
    if (code < 0xd4) { /* floats, integers */
        int width = code < 0xcc ? 4 << (code - 0xca) : 1 << (code & 3);
        if (!number(reader, width, &out->number)) return wrong;
        bool negative = code >= 0xd0 && out->number >> (8 * width - 1);
        out->type = code < 0xcc ? 'f' : negative ? 'n' : 'i';
        if (code < 0xcc) out->real = real(out->number, width);
        return NULL;
    }
    if (code < 0xd9) return take(reader, ((size_t)1 << (code - 0xd4)) + 1, &out->bytes) ? NULL : wrong;
    if (code < 0xdc) {
        out->type = 's';
        return number(reader, 1 << (code - 0xd9), &size) && text(reader, (size_t)size, &out->bytes) ? NULL : wrong;
    }
    out->type = code < 0xde ? 'a' : 'm';
    return number(reader, 2 << (code & 1), &out->number) ? NULL : wrong;
}

const char *skip(struct reader *reader, struct value head, int depth, char *of) {
    if (head.type != 'a' && head.type != 'm') return NULL;
    if (depth > MOST_NESTED) return "nesting";
    uint64_t count = head.type == 'm' ? 2 * head.number : head.number;
    for (uint64_t i = 0; i < count; i++) {
        struct value one;
        char inner;
        const char *wrong = read_value(reader, &one);
        if (wrong == NULL) wrong = skip(reader, one, depth + 1, &inner);
        if (wrong != NULL) return wrong;
        if (i == 0) *of = one.type;
        if (*of != one.type) *of = (one.type == 'n' || one.type == 'i') && (*of == 'n' || *of == 'i') ? 'n' : 0;
    }
    return NULL;
}
