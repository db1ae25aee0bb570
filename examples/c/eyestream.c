#include "eyestream.h"

#include <math.h>
#include <string.h>

#include "reader.h"

enum { RAW_BYTES = 65536, PRIVATE_BYTES = 4194304, MAX_ROWS = 4096 };
enum { CLOSED = EYESTREAM_RAW | EYESTREAM_GAZE | EYESTREAM_OWNER }; /* in the others, ignore keys that you do not know */

#define AT(member) offsetof(struct eyestream_message, member)
#define RG (EYESTREAM_RAW | EYESTREAM_GAZE)
#define PM (EYESTREAM_PRIVATE | EYESTREAM_META)

/* Key, type (of arrays a capital letter), place, kinds that must have it, kinds that may. */
static const struct key { const char *name; char type; size_t place; int must, may; } KEYS[] = {
    {"schema", 'i', AT(schema), RG, 0}, {"session", 'i', AT(session), EYESTREAM_RAW | EYESTREAM_PRIVATE, 0},
    {"seq", 'i', AT(seq), EYESTREAM_RAW, 0}, {"shape", 'I', AT(shape), RG | EYESTREAM_PRIVATE, 0},
    {"values", 'b', AT(values), RG | EYESTREAM_PRIVATE, 0}, {"end", 'l', AT(end), 0, EYESTREAM_RAW},
    {"t", 'b', AT(t), EYESTREAM_GAZE, EYESTREAM_RAW}, {"wearer", 'i', AT(wearer), 0, EYESTREAM_RAW},
    {"chunk", 'i', AT(chunk), EYESTREAM_PRIVATE, 0}, {"t0", 'f', AT(t0), EYESTREAM_PRIVATE, 0},
    {"dt", 'f', AT(dt), EYESTREAM_PRIVATE, 0}, {"epsilon", 'f', AT(epsilon), PM, 0},
    {"delta", 'f', AT(delta), PM, 0}, {"at", 'f', AT(at), 0, EYESTREAM_PRIVATE},
    {"names", 'S', AT(names), EYESTREAM_META, 0}, {"units", 'S', AT(units), EYESTREAM_META, 0},
    {"rate_hz", 'f', AT(rate_hz), EYESTREAM_META, 0}, {"n", 'i', AT(n), EYESTREAM_META, 0},
    {"mechanism", 's', AT(mechanism), EYESTREAM_META, 0}, {"k", 'I', AT(k), EYESTREAM_META, 0},
    {"noise_sd", 'b', AT(noise_sd), EYESTREAM_META, 0}, {"guarantee", 's', AT(guarantee), EYESTREAM_META, 0},
    {"calibration", 's', AT(calibration), EYESTREAM_META, 0}, {"state", 's', AT(state), EYESTREAM_STATUS, 0},
    {"reason", 's', AT(reason), EYESTREAM_STATUS, 0}, {"chunks", 'i', AT(chunks), EYESTREAM_BUDGET, 0},
    {"ceiling", 's', AT(ceiling), EYESTREAM_BUDGET, 0}, {"resumes_at", 'i', AT(resumes_at), 0, EYESTREAM_BUDGET},
    {"life", 'i', AT(life), EYESTREAM_ODOMETER, 0}, {"began", 'i', AT(began), EYESTREAM_ODOMETER, 0},
    {"reads", 'i', AT(reads), EYESTREAM_ODOMETER, 0}, {"former", 's', AT(former), 0, EYESTREAM_ODOMETER},
    {"ledger", 's', AT(ledger), EYESTREAM_ODOMETER | EYESTREAM_OWNER, 0}, {"devices", 'S', AT(devices), EYESTREAM_OWNER, 0},
};
enum { KEY_COUNT = sizeof KEYS / sizeof KEYS[0] };

/* Puts a value to its place in the message; "range" for a negative integer or a float that is none. */
static const char *store(const struct key *key, struct value value, struct eyestream_list list, char of, void *place) {
    char type = value.type == 'n' ? 'i' : value.type;
    if (key->type == 'f' && type == 'i') {
        value.real = (double)value.number;
        type = 'f';
    }
    if (key->type == 'I' || key->type == 'S') {
        char wanted = key->type == 'I' ? 'i' : 's';
        if (type != 'a' || (list.count > 0 && of != wanted && !(of == 'n' && wanted == 'i'))) return "type";
        memcpy(place, &list, sizeof list);
        return of == 'n' && list.count > 0 ? "range" : NULL;
    }
    if (type != key->type) return "type";
    if (type == 'f' && !isfinite(value.real)) return "range";
    if (type == 'f') memcpy(place, &value.real, sizeof value.real);
    if (type == 'i') memcpy(place, &value.number, sizeof value.number);
    if (type == 'l') *(bool *)place = value.number != 0;
    if (type == 's' || type == 'b') memcpy(place, &value.bytes, sizeof value.bytes);
    return value.type == 'n' ? "range" : NULL;
}

/* Numbers lie where the tables say, and arrays have as many bytes as the shape asks for. */
static const char *limits(enum eyestream_kind kind, struct eyestream_message *m) {
    if (kind & (RG | EYESTREAM_PRIVATE)) {
        if (m->shape.count != 2) return "shape";
        struct eyestream_list shape = m->shape;
        m->rows = eyestream_next_int(&shape);
        m->columns = eyestream_next_int(&shape);
        bool large = m->rows > PRIVATE_BYTES || m->columns > PRIVATE_BYTES || (kind & RG && m->rows > MAX_ROWS);
        if (m->columns == 0 || large) return "shape";
        if (m->values.size != m->rows * m->columns * 4 || (m->t.data != NULL && m->t.size != m->rows * 8)) return "length";
    }
    if (kind == EYESTREAM_META && (m->names.count != m->units.count || m->noise_sd.size != 4 * (size_t)m->names.count))
        return "length";
    if (m->seq > UINT64_MAX - m->rows || m->wearer > UINT32_MAX) return "range";
    for (size_t i = 0; kind == EYESTREAM_RAW && i < m->t.size / 8; i++)
        if (!isfinite(eyestream_double(m->t, i))) return "range";
    if (m->t0 < 0 || m->epsilon < 0 || m->delta < 0 || m->delta > 1) return "range";
    if ((kind == EYESTREAM_PRIVATE && m->dt <= 0) || (kind == EYESTREAM_META && (m->rate_hz <= 0 || m->n == 0)))
        return "range";
    return NULL;
}

/* The entries of the map, behind its head. */
static const char *entries(struct reader *reader, uint64_t count, enum eyestream_kind kind, void *message) {
    bool seen[KEY_COUNT] = {false};
    const char *unknown = NULL, *type = NULL, *range = NULL;
    for (uint64_t i = 0; i < count; i++) {
        struct value name, value;
        char of = 0;
        const char *wrong = read_value(reader, &name);
        if (wrong == NULL) wrong = read_value(reader, &value);
        if (wrong != NULL) return wrong;
        bool is_v = name.type == 's' && name.bytes.size == 1 && name.bytes.data[0] == 'v';
        if (i == 0 && !(is_v && value.type == 'i' && value.number == 1)) return "version";
        struct eyestream_list list = {reader->at, 0, (uint32_t)value.number};
        if ((wrong = skip(reader, value, 0, &of)) != NULL) return wrong;
        list.size = (size_t)(reader->at - list.data);
        if (i == 0) continue;
        if (name.type != 's') {
            type = "type";
            continue;
        }
        size_t k = 0;
        while (k < KEY_COUNT && (strlen(KEYS[k].name) != name.bytes.size ||
                                 memcmp(KEYS[k].name, name.bytes.data, name.bytes.size) != 0)) k++;
        if (is_v || (k < KEY_COUNT && seen[k])) return "duplicate_key";
        if (k == KEY_COUNT || !((KEYS[k].must | KEYS[k].may) & kind)) {
            if (kind & CLOSED) unknown = "unknown_key";
            continue;
        }
        seen[k] = true;
        wrong = store(&KEYS[k], value, list, of, (char *)message + KEYS[k].place);
        if (wrong != NULL) *(wrong[0] == 't' ? &type : &range) = wrong;
    }
    if (reader->at != reader->end) return "not_msgpack";
    for (size_t k = 0; k < KEY_COUNT; k++)
        if (KEYS[k].must & kind && !seen[k]) return "missing_key";
    return unknown ? unknown : type ? type : range;
}

const char *eyestream_decode(enum eyestream_kind kind, const uint8_t *payload, size_t size,
                             struct eyestream_message *message) {
    struct reader reader = {payload, payload + size};
    struct value head;
    *message = (struct eyestream_message){.at = NAN};
    if (size > (kind & (PM | EYESTREAM_OWNER) ? PRIVATE_BYTES : RAW_BYTES)) return "oversize";
    const char *wrong = read_value(&reader, &head);
    if (wrong != NULL) return wrong;
    if (head.type != 'm') return "not_a_map";
    if (head.number == 0) return "missing_key";
    wrong = entries(&reader, head.number, kind, message);
    return wrong != NULL ? wrong : limits(kind, message);
}

static uint64_t little(struct eyestream_bytes array, size_t i, int width) {
    uint64_t bits = 0;
    for (int b = width - 1; b >= 0; b--) bits = bits << 8 | array.data[i * (size_t)width + (size_t)b];
    return bits;
}

float eyestream_float(struct eyestream_bytes array, size_t i) { return (float)real(little(array, i, 4), 4); }
double eyestream_double(struct eyestream_bytes array, size_t i) { return real(little(array, i, 8), 8); }

static struct value next(struct eyestream_list *list) {
    struct reader reader = {list->data, list->data + list->size};
    struct value value;
    read_value(&reader, &value); /* was read before, when the message was */
    *list = (struct eyestream_list){reader.at, (size_t)(reader.end - reader.at), list->count - 1};
    return value;
}

uint64_t eyestream_next_int(struct eyestream_list *list) { return next(list).number; }
struct eyestream_bytes eyestream_next_text(struct eyestream_list *list) { return next(list).bytes; }
