/* Prints private chunks of a device:
 *
 *     make listen && ./listen localhost 1883 hmd-1 [CHUNKS]
 *
 * The login comes from MQTT_USERNAME and MQTT_PASSWORD; with MQTT_CA_FILE the connection is encrypted. */

#include <inttypes.h>
#include <mosquitto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eyestream.h"

struct life {
    char ledger[33];
    uint64_t life, began, reads;
};

struct application {
    const char *device;
    long most, count;
    uint64_t session, chunk;
    bool any;                  /* of session and chunk */
    char name[256], unit[256]; /* of the first feature; empty before meta */
    struct life lives[16];     /* what the odometer said, the oldest first */
    struct life unsure;        /* what it may have said, or else the broker sent an old message */
    int known;
};

static void copy(char *to, size_t size, struct eyestream_bytes text) {
    snprintf(to, size, "%.*s", (int)text.size, (const char *)text.data);
}

static void on_connect(struct mosquitto *client, void *own, int refused) {
    const struct application *application = own;
    const char *leaves[] = {"meta", "status", "odometer", "private"};
    if (refused) {
        fprintf(stderr, "the broker refuses the connection: %s\n", mosquitto_connack_string(refused));
        exit(1);
    }
    for (int i = 0; i < 4; i++) {
        char topic[256];
        snprintf(topic, sizeof topic, "eyestream/v1/%s/features/%s", application->device, leaves[i]);
        mosquitto_subscribe(client, NULL, topic, i != 2);
    }
}

static void on_chunk(struct mosquitto *client, struct application *own, const struct eyestream_message *chunk) {
    bool again = own->any && own->session == chunk->session && own->chunk == chunk->chunk;
    if (again || own->name[0] == 0) return; /* the same chunk may come twice, and before meta */
    own->any = true, own->session = chunk->session, own->chunk = chunk->chunk;
    double sum = 0;
    for (uint64_t i = 0; i < chunk->columns; i++) sum += (double)eyestream_float(chunk->values, (size_t)i);
    printf("chunk %" PRIu64 " epsilon %g: %s %.3f %s\n", chunk->chunk, chunk->epsilon, own->name,
           sum / (double)chunk->columns, own->unit);
    if (++own->count == own->most) mosquitto_disconnect(client);
}

/* Whether the sidecar goes on with an older copy of its ledger. */
static bool went_back(struct application *own, const struct eyestream_message *said, bool retained) {
    struct life now = {"", said->life, said->began, said->reads}, *known = NULL;
    bool overlaps = false, below = false, grows = false;
    copy(now.ledger, sizeof now.ledger, said->ledger);
    for (struct life *one = own->lives; one < own->lives + own->known; one++) {
        if (strcmp(one->ledger, now.ledger) != 0) continue;
        if (one->life == now.life) known = one;
        else overlaps |= one->began < now.reads && now.began < one->reads, below |= now.began < one->reads;
    }
    if (known != NULL && now.reads <= known->reads) return false; /* it came late, or again */
    below &= known == NULL;
    grows = !retained && strcmp(own->unsure.ledger, now.ledger) == 0 && own->unsure.life == now.life && now.reads > own->unsure.reads;
    if (below && !overlaps && !grows) { /* perhaps: the broker may have sent an old message; what is old does not grow */
        own->unsure = now;
        return false;
    }
    if (known == NULL && own->known == 16) memmove(own->lives, own->lives + 1, 15 * sizeof now), own->known--;
    if (known == NULL) known = own->lives + own->known++;
    *known = now;
    return overlaps || below;
}

static void on_message(struct mosquitto *client, void *given, const struct mosquitto_message *received) {
    struct application *own = given;
    struct eyestream_message message;
    const char *leaf = strrchr(received->topic, '/') + 1;
    enum eyestream_kind kind = strcmp(leaf, "meta") == 0       ? EYESTREAM_META
                               : strcmp(leaf, "status") == 0   ? EYESTREAM_STATUS
                               : strcmp(leaf, "odometer") == 0 ? EYESTREAM_ODOMETER
                                                               : EYESTREAM_PRIVATE;
    const char *wrong = eyestream_decode(kind, received->payload, (size_t)received->payloadlen, &message);
    if (wrong != NULL) {
        fprintf(stderr, "%s: %s\n", received->topic, wrong);
    } else if (kind == EYESTREAM_PRIVATE) {
        on_chunk(client, own, &message);
    } else if (kind == EYESTREAM_META && message.names.count > 0) {
        copy(own->name, sizeof own->name, eyestream_next_text(&message.names));
        copy(own->unit, sizeof own->unit, eyestream_next_text(&message.units));
    } else if (kind == EYESTREAM_ODOMETER) {
        if (went_back(own, &message, received->retain)) puts("the ledger went back: what was spent since is spent again");
    } else if (kind == EYESTREAM_STATUS) {
        printf("status %.*s %.*s\n", (int)message.state.size, (const char *)message.state.data,
               (int)message.reason.size, (const char *)message.reason.data);
    }
    fflush(stdout);
}

int main(int count, char **words) {
    if (count < 4) return fprintf(stderr, "usage: listen HOST PORT DEVICE [CHUNKS]\n"), 2;
    struct application own = {.device = words[3], .most = count > 4 ? atol(words[4]) : 0};
    mosquitto_lib_init();
    struct mosquitto *client = mosquitto_new(NULL, true, &own);
    mosquitto_username_pw_set(client, getenv("MQTT_USERNAME"), getenv("MQTT_PASSWORD"));
    if (getenv("MQTT_CA_FILE")) mosquitto_tls_set(client, getenv("MQTT_CA_FILE"), NULL, NULL, NULL, NULL);
    mosquitto_connect_callback_set(client, on_connect);
    mosquitto_message_callback_set(client, on_message);
    int fault = mosquitto_connect(client, words[1], atoi(words[2]), 30);
    if (fault == MOSQ_ERR_SUCCESS) fault = mosquitto_loop_forever(client, -1, 1);
    if (fault != MOSQ_ERR_SUCCESS) fprintf(stderr, "%s\n", mosquitto_strerror(fault));
    mosquitto_destroy(client);
    mosquitto_lib_cleanup();
    return fault != MOSQ_ERR_SUCCESS;
}
