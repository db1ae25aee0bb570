/* Sends gaze to a sidecar whose configuration has a [source] with kind = "mqtt":
 *
 *     make send && ./send localhost 1883 hmd-1 < samples
 *
 * A line of standard input is a sample: seconds of the tracker's clock, degrees right, degrees up, pupil in mm. Write nan
 * for what is not known, and go on sending when the eye is lost. The login comes from MQTT_USERNAME and MQTT_PASSWORD;
 * with MQTT_CA_FILE the connection is encrypted. */

#include <mosquitto.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 5, COLUMNS = 3, MOST = 64 + SAMPLES * (4 * COLUMNS + 8) };

static unsigned char *text(unsigned char *to, const char *word) {
    size_t size = strlen(word);
    *to++ = (unsigned char)(0xa0 | size); /* a text of at most 31 bytes */
    memcpy(to, word, size);
    return to + size;
}

static unsigned char *little(unsigned char *to, uint64_t bits, int bytes) {
    for (int i = 0; i < bytes; i++) *to++ = (unsigned char)(bits >> 8 * i);
    return to;
}

static unsigned char *binary(unsigned char *to, const char *word, int size) {
    to = text(to, word);
    *to++ = 0xc4; /* at most 255 bytes */
    *to++ = (unsigned char)size;
    return to;
}

/* The payload of `count` samples: {v: 1, schema: 1, shape: [count, 3], values: float32, t: float64}. */
static size_t payload(unsigned char *to, int count, double t[], float values[][COLUMNS]) {
    unsigned char *at = to;
    *at++ = 0x85; /* a map of five */
    at = text(at, "v"), *at++ = 1;
    at = text(at, "schema"), *at++ = 1;
    at = text(at, "shape"), *at++ = 0x92, *at++ = (unsigned char)count, *at++ = COLUMNS;
    at = binary(at, "values", 4 * COLUMNS * count);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < COLUMNS; j++) {
            uint32_t bits;
            memcpy(&bits, &values[i][j], sizeof bits);
            at = little(at, bits, 4);
        }
    at = binary(at, "t", 8 * count);
    for (int i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &t[i], sizeof bits);
        at = little(at, bits, 8);
    }
    return (size_t)(at - to);
}

static void check(int error) {
    if (error == MOSQ_ERR_SUCCESS) return;
    fprintf(stderr, "%s\n", mosquitto_strerror(error));
    exit(1);
}

int main(int count, char *words[]) {
    if (count != 4) return fprintf(stderr, "usage: %s HOST PORT DEVICE < samples\n", words[0]), 2;
    char topic[256];
    snprintf(topic, sizeof topic, "eyestream/v1/%s/gaze/raw", words[3]);
    mosquitto_lib_init();
    struct mosquitto *client = mosquitto_new(NULL, true, NULL);
    if (client == NULL) return 1;
    if (getenv("MQTT_USERNAME")) mosquitto_username_pw_set(client, getenv("MQTT_USERNAME"), getenv("MQTT_PASSWORD"));
    if (getenv("MQTT_CA_FILE")) check(mosquitto_tls_set(client, getenv("MQTT_CA_FILE"), NULL, NULL, NULL, NULL));
    check(mosquitto_connect(client, words[1], atoi(words[2]), 60));
    check(mosquitto_loop_start(client)); /* a thread that connects again when the link is lost */

    double t[SAMPLES];
    float values[SAMPLES][COLUMNS];
    unsigned char message[MOST];
    int held = 0;
    for (int read; (read = scanf("%lf %f %f %f", &t[held], &values[held][0], &values[held][1], &values[held][2])) != EOF;) {
        if (read != 4) return fprintf(stderr, "expected four numbers a line\n"), 1;
        if (++held < SAMPLES) continue;
        /* While the link is lost, samples are lost too: late ones would not be taken. */
        mosquitto_publish(client, NULL, topic, (int)payload(message, held, t, values), message, 0, false);
        held = 0;
    }
    mosquitto_disconnect(client);
    mosquitto_loop_stop(client, false);
    mosquitto_destroy(client);
    return mosquitto_lib_cleanup();
}
