#define _GNU_SOURCE
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Built in, because the application chooses its own environment. The first that exists counts. */
#ifndef PLACES
#define PLACES "/run/eyestream-openxr", "/run/user/%u/eyestream-openxr"
#endif

enum { MOST_PATH = 96 };
static const int64_t SECOND = 1000000000;

int64_t link_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return link_clock_to_ns(now);
}

XrClock link_clock_of(int64_t ns) { return (XrClock){ns / SECOND, ns % SECOND}; }

int64_t link_clock_to_ns(XrClock at) { return at.tv_sec * SECOND + at.tv_nsec; }

/* The folder of the sidecar and the bridge, and who owns it; false: there is none that its owner alone may write to. */
static bool find_place(char *place, uid_t *owner) {
    static const char *const places[] = {PLACES};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct stat folder;
        int length = snprintf(place, MOST_PATH, places[i], (unsigned)geteuid());
        if (length < 0 || length >= MOST_PATH || lstat(place, &folder) != 0) continue;
        *owner = folder.st_uid;
        return S_ISDIR(folder.st_mode) && !(folder.st_mode & (S_IWGRP | S_IWOTH));
    }
    return false;
}

Link link_open(void) {
    char place[MOST_PATH];
    uid_t owner;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!find_place(place, &owner)) return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/gaze.sock", place);
    int link = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link < 0) return -1;
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (connect(link, (const struct sockaddr *)&address, sizeof address) == 0
        && getsockopt(link, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == owner || peer.uid == 0))
        return link;
    close(link);
    return -1;
}

bool link_send(Link link, const void *message, size_t size) {
    ssize_t sent = send((int)link, message, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent >= 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS;
}

Link page_open(void) {
    char place[MOST_PATH], name[MOST_PATH + 8];
    uid_t owner;
    struct stat file;
    if (!find_place(place, &owner)) return -1;
    snprintf(name, sizeof name, "%s/page", place);
    int page = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (page < 0) return -1;
    if (fstat(page, &file) == 0 && S_ISREG(file.st_mode) && !(file.st_mode & (S_IWGRP | S_IWOTH))
        && (file.st_uid == owner || file.st_uid == 0))
        return page;
    close(page);
    return -1;
}

/* Read, not mapped: a page that is cut short would end the application with SIGBUS. */
bool page_read(Link page, struct wire_page *out) {
    struct wire_page again;
    return pread((int)page, out, sizeof *out, 0) == sizeof *out && pread((int)page, &again, sizeof again, 0) == sizeof again
        && page_is_whole(out, &again);
}

void link_close(Link link) {
    if (link >= 0) close((int)link);
}
