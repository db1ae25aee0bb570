/* Gaze on its way to the sidecar, and released gaze on its way back: a thread of its own does both, so that the
 * application's thread never enters the kernel for it, takes no lock that the thread holds, and allocates nothing. */
#ifndef EYESTREAM_GAZE_H
#define EYESTREAM_GAZE_H

#include <stdbool.h>
#include <stdint.h>

#include "xr.h"

struct gaze_raw {
    int64_t t_ns;       /* CLOCK_MONOTONIC, by the tracker */
    XrQuaternionf turn; /* of the eyes against the head */
    bool seen;
};

struct gaze_released {
    float x_deg, y_deg;
    int64_t gaze_ns; /* CLOCK_MONOTONIC, the middle of the slot */
};

/* Begin, once for an instance; the page has been read once when this returns. False: there is no thread. */
bool gaze_start(void);
void gaze_stop(void);

/* Whether a sidecar takes samples. While none does, nobody should read the eyes. */
bool gaze_linked(void);

/* Hand on one sample. Never waits; one that comes while the sidecar is slow is lost. */
void gaze_put(const struct gaze_raw *raw);

/* Whether a bridge is alive: the owner has switched released gaze on. */
bool gaze_bridged(void);

/* The released gaze that may be shown now; false: there is none. */
bool gaze_read(struct gaze_released *out);

XrQuaternionf gaze_turn(float x_deg, float y_deg);

#endif
