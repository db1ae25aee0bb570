/* The application's objects that gaze may come through: what belongs to what, for as long as it is there. */
#ifndef EYESTREAM_OBJECTS_H
#define EYESTREAM_OBJECTS_H

#include <stdbool.h>

#include "xr.h"

enum { MOST_SETS = 64 };

/* Each begins with its own handle and its parent's. */
typedef struct { XrActionSet handle; uint64_t parent; bool attached; } Set;
typedef struct { XrAction handle; XrActionSet parent; bool pose, eyes; } Action; /* eyes: bound to them, it thinks */
typedef struct { XrSpace handle; XrSession parent; XrAction action; XrPath subaction; XrPosef offset; } Space;
typedef struct {
    XrSession handle;
    uint64_t parent;
    XrSpace gaze, view; /* the layer's own; null before action sets are attached */
    uint32_t count;
    XrActionSet active[MOST_SETS]; /* of the last sync, when it succeeded */
} Session;

typedef struct { void *items; size_t size, count, room; } Table;

extern Table sets, actions, spaces, sessions;

/* All under the lock of the caller. An item that finds no memory is not known, and shows no gaze. */
void table_add(Table *table, const void *item);
void *table_find(const Table *table, uint64_t handle);
void table_drop(Table *table, uint64_t handle);
void table_drop_of(Table *table, uint64_t parent);
void objects_clear(void);

#endif
