/* What differs between systems: the clock, the socket to the sidecar, and the page from the bridge. */
#ifndef EYESTREAM_LINK_H
#define EYESTREAM_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

int64_t link_clock_ns(void);

/* A socket to the sidecar whose peer owns the folder that it stands in, or is root; -1: there is none. Never waits. */
int link_open(void);

/* False: the sidecar is gone. A full queue loses the message and keeps the link. Never waits. */
bool link_send(int link, const void *message, size_t size);

/* The bridge's page; -1: there is none, or somebody else could have written it. */
int page_open(void);

/* Read the page whole and unbroken; false: it is no page of this version, or is being written. */
bool page_read(int page, struct wire_page *out);

void link_close(int descriptor);

#endif
