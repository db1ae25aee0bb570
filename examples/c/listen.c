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

struct application {
    const char *device;
    long most, count;
    uint64_t session, chunk;
    bool any;                  /* of session and chunk */
    char name[256], unit[256]; /* of the first feature; empty before meta */
};

static void copy(char *to, size_t size, struct eyestream_bytes text) {
    snprintf(to, size, "%.*s", (int)text.size, (const char *)text.data);
}

static void on_connect(struct mosquitto *client, void *own, int refused) {
    const struct application *application = own;
    const char *leaves[] = {"meta", "status", "private"};
    if (refused) {
        fprintf(stderr, "the broker refuses the connection: %s\n", mosquitto_connack_string(refused));
        exit(1);
    }
    for (int i = 0; i < 3; i++) {
        char topic[256];
        snprintf(topic, sizeof topic, "eyestream/v1/%s/features/%s", application->device, leaves[i]);
        mosquitto_subscribe(client, NULL, topic, 1);
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

static void on_message(struct mosquitto *client, void *given, const struct mosquitto_message *received) {
    struct application *own = given;
    struct eyestream_message message;
    const char *leaf = strrchr(received->topic, '/') + 1;
    enum eyestream_kind kind = strcmp(leaf, "meta") == 0     ? EYESTREAM_META
                               : strcmp(leaf, "status") == 0 ? EYESTREAM_STATUS
                                                             : EYESTREAM_PRIVATE;
    const char *wrong = eyestream_decode(kind, received->payload, (size_t)received->payloadlen, &message);
    if (wrong != NULL) {
        fprintf(stderr, "%s: %s\n", received->topic, wrong);
    } else if (kind == EYESTREAM_PRIVATE) {
        on_chunk(client, own, &message);
    } else if (kind == EYESTREAM_META && message.names.count > 0) {
        copy(own->name, sizeof own->name, eyestream_next_text(&message.names));
        copy(own->unit, sizeof own->unit, eyestream_next_text(&message.units));
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
