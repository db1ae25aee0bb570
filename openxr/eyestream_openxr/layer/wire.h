/* What crosses between the layer, the sidecar and the bridge. One machine, little endian; times are CLOCK_MONOTONIC, ns.
 * eyestream_openxr/wire.py has the same in Python. */
#ifndef EYESTREAM_WIRE_H
#define EYESTREAM_WIRE_H

#include <stdint.h>

#define WIRE_VERSION 1u
#define WIRE_SAMPLES 0x47585945u /* "EYXG" */
#define WIRE_PAGE 0x50585945u    /* "EYXP" */
#define WIRE_MOST 32u

struct wire_sample {
    int64_t t_ns;       /* when the eye was seen, by the tracker's clock */
    float x_deg, y_deg; /* to the right and up of where the head points; NaN: not seen */
};

struct wire_samples { /* layer to sidecar, one message of a SOCK_SEQPACKET socket, as long as its count says */
    uint32_t magic;
    uint16_t version;
    uint16_t count; /* 1 to WIRE_MOST */
    struct wire_sample samples[WIRE_MOST];
};

struct wire_page { /* bridge to layer, the beginning of a file in shared memory */
    uint32_t magic;
    uint32_t version;
    uint32_t turn;       /* odd while it is written */
    uint32_t shown;      /* 1: there is released gaze in it */
    int64_t beat_ns;     /* when the bridge was last alive */
    int64_t until_ns;    /* until when the gaze may be shown */
    int64_t gaze_ns;     /* the middle of its slot */
    float x_deg, y_deg;  /* the released gaze */
    uint32_t turn_again; /* equals `turn` */
    uint32_t reserved;   /* 0 */
};

_Static_assert(sizeof(struct wire_sample) == 16 && sizeof(struct wire_page) == 56, "as wire.py has them");

#endif
