#include "objects.h"

#include <stdlib.h>
#include <string.h>

Table sets = {NULL, sizeof(Set), 0, 0}, actions = {NULL, sizeof(Action), 0, 0};
Table spaces = {NULL, sizeof(Space), 0, 0}, sessions = {NULL, sizeof(Session), 0, 0};

static char *item_at(const Table *table, size_t i) { return (char *)table->items + i * table->size; }

static uint64_t number_at(const Table *table, size_t i, size_t which) {
    uint64_t number;
    memcpy(&number, item_at(table, i) + which * sizeof number, sizeof number);
    return number;
}

static void drop_where(Table *table, size_t which, uint64_t number) {
    for (size_t i = table->count; i-- > 0;)
        if (number_at(table, i, which) == number) memmove(item_at(table, i), item_at(table, --table->count), table->size);
}

void table_drop(Table *table, uint64_t handle) { drop_where(table, 0, handle); }

void table_drop_of(Table *table, uint64_t parent) { drop_where(table, 1, parent); }

void *table_find(const Table *table, uint64_t handle) {
    for (size_t i = 0; i < table->count; i++)
        if (number_at(table, i, 0) == handle) return item_at(table, i);
    return NULL;
}

void table_add(Table *table, const void *item) {
    uint64_t handle;
    memcpy(&handle, item, sizeof handle);
    table_drop(table, handle); /* a runtime may give a handle again */
    if (table->count == table->room) {
        size_t room = table->room ? 2 * table->room : 16;
        void *items = realloc(table->items, room * table->size);
        if (!items) return;
        table->items = items;
        table->room = room;
    }
    memcpy(item_at(table, table->count++), item, table->size);
}

void objects_clear(void) {
    Table *all[] = {&sets, &actions, &spaces, &sessions};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->items);
        all[i]->items = NULL;
        all[i]->count = all[i]->room = 0;
    }
}
