/* What differs between systems: the clock, the socket to the sidecar, and the page from the bridge. */
#ifndef EYESTREAM_LINK_H
#define EYESTREAM_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire.h"
#include "xr.h"

typedef intptr_t Link; /* a descriptor, or a handle of Windows; -1: none */

/* The monotonic clock, and its times as the runtime takes and gives them. */
int64_t link_clock_ns(void);
XrClock link_clock_of(int64_t ns);
int64_t link_clock_to_ns(XrClock at);

/* To the sidecar: its user owns the folder of the socket, or is root; on Windows, its pipe is of this user or of the
 * system; -1: there is none. Never waits. */
Link link_open(void);

/* False: the sidecar is gone. A full queue loses the message and keeps the link. Never waits. */
bool link_send(Link link, const void *message, size_t size);

/* The bridge's page; -1: there is none, or somebody else could have written it. */
Link page_open(void);

/* Whether what was read twice is one page of this version, and nobody was writing it. */
static inline bool page_is_whole(const struct wire_page *page, const struct wire_page *again) {
    return memcmp(page, again, sizeof *page) == 0 && page->magic == WIRE_PAGE && page->version == WIRE_VERSION
        && page->turn % 2 == 0 && page->turn == page->turn_again && page->reserved == 0;
}

/* Read the page whole and unbroken; false: it is no page of this version, or is being written. */
bool page_read(Link page, struct wire_page *out);

void link_close(Link link);

#endif
