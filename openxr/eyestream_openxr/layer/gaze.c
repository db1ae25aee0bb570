#define _GNU_SOURCE
#include "gaze.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#ifndef _WIN32
#include <unistd.h>
#endif

#include "link.h"

#define SECOND INT64_C(1000000000)
#define DEGREES 57.29577951308232

enum { PAUSE_NS = 10000000, RING = 64, WORDS = 4 };
static const int64_t STALE_NS = 3 * SECOND / 2; /* a bridge that was not alive for so long has gone */
static const int64_t RETRY_NS = SECOND;
static const int64_t OLDEST_NS = 60 * SECOND; /* no slot is so old */

static pthread_t thread;
static bool running;
static atomic_bool stopping, linked;
#ifndef _WIN32
static pid_t process; /* whose thread it is: a fork has none */
#endif

/* One producer at a time, one consumer. */
static struct gaze_raw ring[RING];
static atomic_uint put_count, taken_count;
static atomic_flag putting = ATOMIC_FLAG_INIT;

/* What the page said last: bridge alive until, gaze shown until, middle of its slot, both angles. A sequence lock. */
static _Atomic uint64_t words[WORDS];
static atomic_uint turn;

/* Of the thread alone. */
static Link link_at = -1, page_at = -1;
static int64_t next_link_ns, next_page_ns, last_sent_ns;

bool gaze_linked(void) { return atomic_load_explicit(&linked, memory_order_relaxed); }

void gaze_put(const struct gaze_raw *raw) {
    if (atomic_flag_test_and_set_explicit(&putting, memory_order_acquire)) return;
    unsigned at = atomic_load_explicit(&put_count, memory_order_relaxed);
    if (at - atomic_load_explicit(&taken_count, memory_order_acquire) < RING) {
        ring[at % RING] = *raw;
        atomic_store_explicit(&put_count, at + 1, memory_order_release);
    }
    atomic_flag_clear_explicit(&putting, memory_order_release);
}

static bool take(struct gaze_raw *out) {
    unsigned at = atomic_load_explicit(&taken_count, memory_order_relaxed);
    if (at == atomic_load_explicit(&put_count, memory_order_acquire)) return false;
    *out = ring[at % RING];
    ring[at % RING] = (struct gaze_raw){0}; /* not longer in memory than it must */
    atomic_store_explicit(&taken_count, at + 1, memory_order_release);
    return true;
}

/* Where (0, 0, -1) comes to lie: to the right and up, in degrees. */
static struct wire_sample sample_of(const struct gaze_raw *raw) {
    struct wire_sample out = {raw->t_ns, NAN, NAN};
    XrQuaternionf q = raw->turn;
    float norm = q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w;
    if (!raw->seen || !(norm > 0.9f && norm < 1.1f)) return out;
    double x = -2.0 * (q.x * q.z + q.w * q.y), y = -2.0 * (q.y * q.z - q.w * q.x);
    double z = -(1.0 - 2.0 * (q.x * q.x + q.y * q.y));
    out.x_deg = (float)(DEGREES * atan2(x, -z));
    out.y_deg = (float)(DEGREES * atan2(y, hypot(x, z)));
    return out;
}

XrQuaternionf gaze_turn(float x_deg, float y_deg) {
    double a = -x_deg / DEGREES / 2, e = y_deg / DEGREES / 2;
    return (XrQuaternionf){(float)(cos(a) * sin(e)), (float)(sin(a) * cos(e)), (float)(-sin(a) * sin(e)),
                           (float)(cos(a) * cos(e))};
}

static void keep(const uint64_t said[WORDS]) {
    unsigned at = atomic_load_explicit(&turn, memory_order_relaxed);
    atomic_store_explicit(&turn, at + 1, memory_order_relaxed);
    for (int i = 0; i < WORDS; i++) atomic_store_explicit(&words[i], said[i], memory_order_release);
    atomic_store_explicit(&turn, at + 2, memory_order_release);
}

static bool kept(uint64_t said[WORDS]) {
    for (int tries = 0; tries < 4; tries++) {
        unsigned before = atomic_load_explicit(&turn, memory_order_acquire);
        for (int i = 0; i < WORDS; i++) said[i] = atomic_load_explicit(&words[i], memory_order_acquire);
        if (before % 2 == 0 && atomic_load_explicit(&turn, memory_order_relaxed) == before) return true;
    }
    return false;
}

bool gaze_bridged(void) {
    uint64_t said[WORDS];
    return kept(said) && link_clock_ns() < (int64_t)said[0];
}

bool gaze_read(struct gaze_released *out) {
    uint64_t said[WORDS];
    int64_t now = link_clock_ns();
    if (!kept(said) || now >= (int64_t)said[0] || now >= (int64_t)said[1]) return false;
    out->gaze_ns = (int64_t)said[2];
    memcpy(&out->x_deg, &said[3], sizeof(float));
    memcpy(&out->y_deg, (const char *)&said[3] + sizeof(float), sizeof(float));
    return true;
}

/* What a page says may be kept; times outside what a live bridge writes say nothing. */
static void poll_page(int64_t now) {
    struct wire_page page;
    uint64_t said[WORDS] = {0};
    if (page_at < 0 && now >= next_page_ns) {
        page_at = page_open();
        next_page_ns = now + RETRY_NS;
    }
    if (page_at < 0) return;
    bool read = page_read(page_at, &page);
    if (!read || page.beat_ns > now || now - page.beat_ns >= STALE_NS) {
        if (read) keep(said); /* a bridge that ends well says so, and is gone at once */
        if (now >= next_page_ns) { /* another bridge may have made another page */
            link_close(page_at);
            page_at = -1;
        }
        return;
    }
    said[0] = (uint64_t)(page.beat_ns + STALE_NS);
    if (page.shown == 1 && isfinite(page.x_deg) && isfinite(page.y_deg) && fabsf(page.x_deg) <= 90 && fabsf(page.y_deg) <= 90
        && page.gaze_ns <= now && page.gaze_ns > now - OLDEST_NS) {
        said[1] = (uint64_t)page.until_ns;
        said[2] = (uint64_t)page.gaze_ns;
        memcpy(&said[3], &page.x_deg, sizeof(float));
        memcpy((char *)&said[3] + sizeof(float), &page.y_deg, sizeof(float));
    }
    keep(said);
}

static void poll_link(int64_t now) {
    struct gaze_raw raw;
    struct wire_samples message = {WIRE_SAMPLES, WIRE_VERSION, 0, {{0, 0, 0}}};
    if (link_at < 0 && now >= next_link_ns) {
        link_at = link_open();
        next_link_ns = now + RETRY_NS;
        while (link_at >= 0 && take(&raw)) {} /* nothing of before */
        atomic_store(&linked, link_at >= 0);
    }
    while (link_at >= 0 && message.count < WIRE_MOST && take(&raw)) {
        if (raw.t_ns <= last_sent_ns) continue; /* the tracker has no newer one */
        last_sent_ns = raw.t_ns;
        message.samples[message.count++] = sample_of(&raw);
    }
    size_t size = offsetof(struct wire_samples, samples) + message.count * sizeof *message.samples;
    if (message.count && !link_send(link_at, &message, size)) {
        atomic_store(&linked, false);
        link_close(link_at);
        link_at = -1;
    }
}

static void *work(void *nothing) {
    const struct timespec pause = {0, PAUSE_NS};
    (void)nothing;
    while (!atomic_load(&stopping)) {
        int64_t now = link_clock_ns();
        poll_link(now);
        poll_page(now);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

bool gaze_start(void) {
    uint64_t nothing[WORDS] = {0};
    keep(nothing);
    next_link_ns = next_page_ns = 0;
    poll_page(link_clock_ns());
    atomic_store(&stopping, false);
#ifndef _WIN32
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the application's */
    process = getpid();
#endif
    running = pthread_create(&thread, NULL, work, NULL) == 0;
#ifndef _WIN32
    pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
    return running;
}

void gaze_stop(void) {
    uint64_t nothing[WORDS] = {0};
    if (!running) return;
    atomic_store(&stopping, true);
    pthread_join(thread, NULL);
    running = false;
    keep(nothing);
    atomic_store(&linked, false);
    link_close(link_at);
    link_close(page_at);
    link_at = page_at = -1;
}

#ifndef _WIN32
/* A loader unmaps the layer where a program ends, or lets it go, without destroying its instance. The thread must have ended
 * before. On Windows a thread cannot be waited for here, and has gone already where the process ends. */
__attribute__((destructor)) static void unloaded(void) {
    if (process == getpid()) gaze_stop();
}
#endif
