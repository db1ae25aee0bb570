/* An OpenXR runtime without a headset, for tests: a head that turns, eyes that look where a test says, and every action
 * bound to the eyes gets them raw. It answers as the specification has it. Handles are given again, as pointers are. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#endif

#include "xr.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define RADIANS (3.14159265358979323846 / 180)
#define LATENCY_NS 3000000
#define GAZE_PROFILE "/interaction_profiles/ext/eye_gaze_interaction"
#define GAZE_POSE "/user/eyes_ext/input/gaze_ext/pose"
#define HAND_POSE "/user/hand/left/input/grip/pose"

enum { MOST = 4096, KIND_SET = 1, KIND_ACTION, KIND_SPACE, KIND_SESSION, KINDS };
enum { IN_VIEW = 1, IN_LOCAL, IN_ACTION };

typedef struct {
    bool there, gaze, hand, pose, attached, synced[65];
    uint64_t parent, action; /* of an action: its set; of a space: its session, and its action */
    uint32_t count;          /* of a session: attached sets */
    uint64_t held[65];
    int in;
    XrPosef offset;
} Object;

static Object *objects[KINDS];
static char *paths[MOST];
static uint64_t path_count = 1;
static bool with_gaze;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What a test sets. */
static struct {
    double x_deg, y_deg, yaw_deg, yaw_deg_s;
    int64_t epoch_ns, lie_ns; /* of its clock against CLOCK_MONOTONIC; of the sample's time */
    int seen, unfocused, no_profile, no_clock, one_session, jumping;
} fake = {.x_deg = 10, .y_deg = -5, .seen = 1};

XR_EXPORT void fake_eyes(double x_deg, double y_deg, int seen) { fake.x_deg = x_deg; fake.y_deg = y_deg; fake.seen = seen; }
XR_EXPORT void fake_head(double yaw_deg, double yaw_deg_s) { fake.yaw_deg = yaw_deg; fake.yaw_deg_s = yaw_deg_s; }
XR_EXPORT void fake_times(int64_t epoch_ns, int64_t lie_ns) { fake.epoch_ns = epoch_ns; fake.lie_ns = lie_ns; }
XR_EXPORT void fake_lacks(int profile, int clock, int second_session) { fake.no_profile = profile; fake.no_clock = clock; fake.one_session = second_session; }
XR_EXPORT void fake_focus(int focused) { fake.unfocused = !focused; }

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static uint64_t make(int kind, Object object) {
    if (!objects[kind]) objects[kind] = calloc(MOST, sizeof(Object));
    for (uint64_t i = 0; i < MOST; i++)
        if (!objects[kind][i].there) {
            objects[kind][i] = object;
            objects[kind][i].there = true;
            return (uint64_t)kind << 32 | (i + 1);
        }
    return 0;
}

static Object *find(int kind, uint64_t handle) {
    uint64_t i = (handle & 0xffffffff) - 1;
    return handle >> 32 == (uint64_t)kind && i < MOST && objects[kind] && objects[kind][i].there ? &objects[kind][i] : NULL;
}

static XrResult destroy(int kind, uint64_t handle, int children) {
    Object *object = find(kind, handle);
    if (!object) return XR_ERROR_HANDLE_INVALID;
    object->there = false;
    for (int i = 0; children && objects[children] && i < MOST; i++)
        if (objects[children][i].there && objects[children][i].parent == handle) objects[children][i].there = false;
    return XR_SUCCESS;
}

/* ---- turns ---- */

static XrQuaternionf yaw_pitch(double right, double up) {
    double a = -right / 2, e = up / 2;
    return (XrQuaternionf){(float)(cos(a) * sin(e)), (float)(sin(a) * cos(e)), (float)(-sin(a) * sin(e)), (float)(cos(a) * cos(e))};
}
static XrQuaternionf times(XrQuaternionf a, XrQuaternionf b) {
    return (XrQuaternionf){a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
                           a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w, a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z};
}
static XrQuaternionf back(XrQuaternionf q) { return (XrQuaternionf){-q.x, -q.y, -q.z, q.w}; }
static XrQuaternionf head_at(int64_t ns) { return yaw_pitch((fake.yaw_deg + fake.yaw_deg_s * (double)(ns % INT64_C(1000000000000)) * 1e-9) * RADIANS, 0); }
static XrQuaternionf eyes_at(int64_t ns) {
    if (!fake.jumping) return yaw_pitch(fake.x_deg * RADIANS, fake.y_deg * RADIANS);
    double saccade = (double)(ns / 250000000 % 1000); /* four a second */
    return yaw_pitch(0.35 * sin(saccade * 12.9898), 0.2 * sin(saccade * 78.233) + 0.001 * sin((double)(ns % 1000000000) * 4e-8));
}

static bool synced(const Object *session, uint64_t set) {
    for (uint32_t i = 0; session && i < session->count; i++)
        if (session->held[i] == set) return session->synced[i];
    return false;
}

/* Of a space in the room; the last sample of the eyes stays where it was seen. */
static bool lies(uint64_t handle, int64_t ns, XrQuaternionf *turn, int64_t *seen_ns) {
    const Object *space = find(KIND_SPACE, handle), *action;
    *seen_ns = 0;
    *turn = (XrQuaternionf){0, 0, 0, 1};
    if (space->in == IN_VIEW) *turn = head_at(ns);
    if (space->in != IN_ACTION) return true;
    action = find(KIND_ACTION, space->action);
    if (!action || !find(KIND_SET, action->parent) || !synced(find(KIND_SESSION, space->parent), action->parent)) return false;
    if (action->hand) *turn = yaw_pitch(0.5, 0.25); /* of an action with both, the hand comes first */
    else if (action->gaze && fake.seen) {
        int64_t latest = now_ns() - LATENCY_NS;
        *seen_ns = ns < latest ? ns : latest;
        *turn = times(head_at(*seen_ns), eyes_at(*seen_ns));
    } else return false;
    *turn = times(*turn, space->offset.orientation);
    return true;
}

static XrResult locate(uint64_t space, uint64_t base, XrTime time, XrFlags64 *flags, XrPosef *pose, int64_t *seen_ns) {
    XrQuaternionf a, b;
    int64_t unused;
    if (time <= 0) return XR_ERROR_TIME_INVALID;
    if (!find(KIND_SPACE, space) || !find(KIND_SPACE, base)) return XR_ERROR_HANDLE_INVALID;
    *flags = 0;
    *pose = (XrPosef){{0, 0, 0, 1}, {0, 0, 0}};
    bool there = lies(space, time - fake.epoch_ns, &a, seen_ns);
    if (!lies(base, time - fake.epoch_ns, &b, &unused) || !there) {
        *seen_ns = 0;
        return XR_SUCCESS;
    }
    *flags = 15;
    pose->orientation = times(back(b), a);
    return XR_SUCCESS;
}

/* ---- functions ---- */

static const char *const EXTENSIONS[] = {"XR_MND_headless", "XR_EXT_eye_gaze_interaction", "XR_FB_eye_tracking_social", "XR_EXT_future",
                                         "XR_META_foveation_eye_tracked", "XR_KHR_locate_spaces", "XR_TEST_unheard_of", XR_CLOCK_EXTENSION};
typedef struct { int32_t type; void *next; char name[128]; uint32_t version; } Extension;

static XrResult EnumerateInstanceExtensionProperties(const char *layer, uint32_t capacity, uint32_t *count, Extension *out) {
    (void)layer;
    *count = COUNT(EXTENSIONS) - (fake.no_clock ? 1 : 0);
    if (capacity && capacity < *count) return XR_ERROR_SIZE_INSUFFICIENT;
    for (uint32_t i = 0; capacity && i < *count; i++) {
        snprintf(out[i].name, sizeof out[i].name, "%s", EXTENSIONS[i]);
        out[i].version = 1;
    }
    return XR_SUCCESS;
}
static char enabled[4096];
XR_EXPORT const char *fake_enabled(void) { return enabled; } /* the extensions of the instance, each before a space */
static XrResult CreateInstance(const XrInstanceCreateInfo *info, XrInstance *made) {
    enabled[0] = 0;
    with_gaze = false;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
        bool there = false;
        const char *name = info->enabledExtensionNames[i];
        for (size_t k = 0; k < COUNT(EXTENSIONS) - (fake.no_clock ? 1 : 0); k++) there |= strcmp(EXTENSIONS[k], name) == 0;
        if (!there) return XR_ERROR_EXTENSION_NOT_PRESENT;
        with_gaze |= strcmp(name, "XR_EXT_eye_gaze_interaction") == 0;
        strcat(strcat(enabled, name), " ");
    }
    fake.jumping = getenv("FAKE_JUMPING") != NULL;
    *made = 1;
    return XR_SUCCESS;
}
static XrResult DestroyInstance(XrInstance of) {
    for (int kind = 0; kind < KINDS; kind++) { free(objects[kind]); objects[kind] = NULL; }
    return of == 1 ? XR_SUCCESS : XR_ERROR_HANDLE_INVALID;
}
typedef struct { int32_t type; void *next; uint64_t version; char name[128]; } InstanceProperties;
static XrResult GetInstanceProperties(XrInstance of, InstanceProperties *out) { (void)of; out->version = 1; snprintf(out->name, sizeof out->name, "fake"); return XR_SUCCESS; }
static int coming; /* state events still to come */
typedef struct { int32_t type; const void *next; XrSession session; int32_t state; XrTime time; } StateEvent;
static XrResult PollEvent(XrInstance of, StateEvent *out) {
    static const int32_t states[] = {0, 5, 4, 3, 2, 1}; /* focused, visible, synchronised, ready, idle: from the last */
    (void)of;
    if (!coming) return 4;
    *out = (StateEvent){18, NULL, (uint64_t)KIND_SESSION << 32 | 1, states[coming--], now_ns() + fake.epoch_ns};
    return XR_SUCCESS;
}
static XrResult GetSystem(XrInstance of, const void *info, XrSystemId *out) { (void)of; (void)info; *out = 1; return XR_SUCCESS; }
static XrResult GetSystemProperties(XrInstance of, XrSystemId system, XrSystemProperties *out) {
    (void)of;
    out->systemId = system;
    snprintf(out->systemName, sizeof out->systemName, "fake headset");
    for (XrBaseOutStructure *part = out->next; part; part = part->next)
        if (part->type == XR_TYPE_SYSTEM_EYE_GAZE_INTERACTION_PROPERTIES_EXT)
            ((XrSystemEyeGazeInteractionPropertiesEXT *)part)->supportsEyeGazeInteraction = !fake.no_profile;
    return XR_SUCCESS;
}
static XrResult StringToPath(XrInstance of, const char *text, XrPath *out) {
    (void)of;
    for (*out = 1; *out < path_count; ++*out) if (strcmp(paths[*out], text) == 0) return XR_SUCCESS;
    paths[path_count++] = strdup(text);
    return XR_SUCCESS;
}
static XrResult PathToString(XrInstance of, XrPath path, uint32_t capacity, uint32_t *count, char *out) {
    (void)of;
    if (!path || path >= path_count) return XR_ERROR_PATH_INVALID;
    *count = (uint32_t)strlen(paths[path]) + 1;
    if (capacity && capacity < *count) return XR_ERROR_SIZE_INSUFFICIENT;
    if (capacity) memcpy(out, paths[path], *count);
    return XR_SUCCESS;
}
static XrResult CreateSession(XrInstance of, const XrSessionCreateInfo *info, XrSession *made) { (void)info; coming = 5; *made = make(KIND_SESSION, (Object){.parent = of}); return XR_SUCCESS; }
static XrResult DestroySession(XrSession of) { return destroy(KIND_SESSION, of, KIND_SPACE); }
static XrResult BeginSession(XrSession of, const XrSessionBeginInfo *info) { (void)info; return find(KIND_SESSION, of) ? XR_SUCCESS : XR_ERROR_HANDLE_INVALID; }
static XrResult SessionOnly(XrSession of) { return find(KIND_SESSION, of) ? XR_SUCCESS : XR_ERROR_HANDLE_INVALID; }
static XrResult CreateReferenceSpace(XrSession of, const XrReferenceSpaceCreateInfo *info, XrSpace *made) {
    if (!find(KIND_SESSION, of)) return XR_ERROR_HANDLE_INVALID;
    *made = make(KIND_SPACE, (Object){.parent = of, .in = info->referenceSpaceType == XR_REFERENCE_SPACE_TYPE_VIEW ? IN_VIEW : IN_LOCAL});
    return *made ? XR_SUCCESS : XR_ERROR_LIMIT_REACHED;
}
static XrResult CreateActionSpace(XrSession of, const XrActionSpaceCreateInfo *info, XrSpace *made) {
    if (!find(KIND_SESSION, of) || !find(KIND_ACTION, info->action)) return XR_ERROR_HANDLE_INVALID;
    *made = make(KIND_SPACE, (Object){.parent = of, .in = IN_ACTION, .action = info->action, .offset = info->poseInActionSpace});
    return *made ? XR_SUCCESS : XR_ERROR_LIMIT_REACHED;
}
static XrResult DestroySpace(XrSpace space) { return destroy(KIND_SPACE, space, 0); }
static XrResult LocateSpace(XrSpace space, XrSpace base, XrTime time, XrSpaceLocation *out) {
    int64_t seen_ns = 0;
    XrResult result = locate(space, base, time, &out->locationFlags, &out->pose, &seen_ns);
    for (XrBaseOutStructure *part = out->next; part && XR_SUCCEEDED(result); part = part->next)
        if (part->type == XR_TYPE_EYE_GAZE_SAMPLE_TIME_EXT)
            ((XrEyeGazeSampleTimeEXT *)part)->time = seen_ns ? seen_ns + fake.epoch_ns + fake.lie_ns : 0;
    return result;
}
static XrResult LocateSpaces(XrSession of, const XrSpacesLocateInfo *info, XrSpaceLocations *out) {
    XrResult result = find(KIND_SESSION, of) ? XR_SUCCESS : XR_ERROR_HANDLE_INVALID;
    int64_t unused;
    for (uint32_t i = 0; i < info->spaceCount && XR_SUCCEEDED(result); i++)
        result = locate(info->spaces[i], info->baseSpace, info->time, &out->locations[i].locationFlags, &out->locations[i].pose, &unused);
    return result;
}
static XrResult CreateActionSet(XrInstance of, const XrActionSetCreateInfo *info, XrActionSet *made) { (void)info; *made = make(KIND_SET, (Object){.parent = of}); return *made ? XR_SUCCESS : XR_ERROR_LIMIT_REACHED; }
static XrResult DestroyActionSet(XrActionSet set) { return destroy(KIND_SET, set, KIND_ACTION); }
static XrResult CreateAction(XrActionSet of, const XrActionCreateInfo *info, XrAction *made) {
    if (!find(KIND_SET, of)) return XR_ERROR_HANDLE_INVALID;
    if (find(KIND_SET, of)->attached) return XR_ERROR_ACTIONSETS_ALREADY_ATTACHED;
    *made = make(KIND_ACTION, (Object){.parent = of, .pose = info->actionType == XR_ACTION_TYPE_POSE_INPUT});
    return *made ? XR_SUCCESS : XR_ERROR_LIMIT_REACHED;
}
static XrResult DestroyAction(XrAction action) { return destroy(KIND_ACTION, action, 0); }
static XrResult SuggestInteractionProfileBindings(XrInstance of, const XrInteractionProfileSuggestedBinding *info) {
    (void)of;
    if (!info->interactionProfile || info->interactionProfile >= path_count) return XR_ERROR_PATH_INVALID;
    bool gaze = strcmp(paths[info->interactionProfile], GAZE_PROFILE) == 0;
    if (gaze && (!with_gaze || fake.no_profile)) return XR_ERROR_PATH_UNSUPPORTED;
    if (!info->countSuggestedBindings) return XR_ERROR_VALIDATION_FAILURE;
    for (uint32_t i = 0; i < info->countSuggestedBindings; i++) {
        XrPath path = info->suggestedBindings[i].binding;
        if (!path || path >= path_count || strcmp(paths[path], gaze ? GAZE_POSE : HAND_POSE) != 0) return XR_ERROR_PATH_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < info->countSuggestedBindings; i++) {
        Object *action = find(KIND_ACTION, info->suggestedBindings[i].action);
        if (!action) return XR_ERROR_HANDLE_INVALID;
        if (find(KIND_SET, action->parent)->attached) return XR_ERROR_ACTIONSETS_ALREADY_ATTACHED;
    }
    for (int i = 0; i < MOST; i++) {
        Object *action = &objects[KIND_ACTION][i];
        if (!action->there || find(KIND_SET, action->parent)->attached) continue;
        if (gaze) action->gaze = false; else action->hand = false;
    }
    for (uint32_t i = 0; i < info->countSuggestedBindings; i++) {
        Object *action = find(KIND_ACTION, info->suggestedBindings[i].action);
        if (gaze) action->gaze = action->pose; else action->hand = action->pose;
    }
    return XR_SUCCESS;
}
static XrResult AttachSessionActionSets(XrSession to, const XrSessionActionSetsAttachInfo *info) {
    Object *session = find(KIND_SESSION, to);
    if (!session) return XR_ERROR_HANDLE_INVALID;
    if (session->count) return XR_ERROR_ACTIONSETS_ALREADY_ATTACHED;
    if (!info->countActionSets || info->countActionSets > COUNT(session->held)) return XR_ERROR_VALIDATION_FAILURE;
    for (uint32_t i = 0; i < info->countActionSets; i++) {
        if (!find(KIND_SET, info->actionSets[i])) return XR_ERROR_HANDLE_INVALID;
        if (fake.one_session && find(KIND_SET, info->actionSets[i])->attached) return XR_ERROR_ACTIONSETS_ALREADY_ATTACHED;
    }
    for (uint32_t i = 0; i < info->countActionSets; i++) {
        session->held[session->count++] = info->actionSets[i];
        find(KIND_SET, info->actionSets[i])->attached = true;
    }
    return XR_SUCCESS;
}
static bool holds(const Object *session, uint64_t set) {
    for (uint32_t i = 0; i < session->count; i++) if (session->held[i] == set) return true;
    return false;
}
static XrResult SyncActions(XrSession of, const XrActionsSyncInfo *info) {
    Object *session = find(KIND_SESSION, of);
    if (!session) return XR_ERROR_HANDLE_INVALID;
    if (!info->countActiveActionSets) return XR_ERROR_VALIDATION_FAILURE;
    for (uint32_t i = 0; i < info->countActiveActionSets; i++)
        if (!holds(session, info->activeActionSets[i].actionSet)) return XR_ERROR_ACTIONSET_NOT_ATTACHED;
    for (uint32_t i = 0; i < session->count; i++) {
        session->synced[i] = false;
        for (uint32_t k = 0; k < info->countActiveActionSets && !fake.unfocused; k++)
            session->synced[i] |= info->activeActionSets[k].actionSet == session->held[i];
    }
    return fake.unfocused ? XR_SESSION_NOT_FOCUSED : XR_SUCCESS;
}
static XrResult GetActionStatePose(XrSession of, const XrActionStateGetInfo *info, XrActionStatePose *out) {
    Object *session = find(KIND_SESSION, of), *action = find(KIND_ACTION, info->action);
    if (!session || !action) return XR_ERROR_HANDLE_INVALID;
    if (!holds(session, action->parent)) return XR_ERROR_ACTIONSET_NOT_ATTACHED;
    out->isActive = synced(session, action->parent) && ((action->gaze && fake.seen) || action->hand);
    return XR_SUCCESS;
}
static XrResult GetCurrentInteractionProfile(XrSession of, XrPath user, XrInteractionProfileState *out) {
    if (!find(KIND_SESSION, of)) return XR_ERROR_HANDLE_INVALID;
    if (!find(KIND_SESSION, of)->count) return XR_ERROR_ACTIONSET_NOT_ATTACHED;
    out->interactionProfile = XR_NULL_PATH;
    if (with_gaze && !fake.no_profile && strcmp(paths[user], "/user/eyes_ext") == 0) return StringToPath(1, GAZE_PROFILE, &out->interactionProfile);
    return XR_SUCCESS;
}
static XrResult EnumerateBoundSourcesForAction(XrSession of, const XrBoundSourcesForActionEnumerateInfo *info, uint32_t capacity, uint32_t *count, XrPath *out) {
    Object *session = find(KIND_SESSION, of), *action = find(KIND_ACTION, info->action);
    if (!session || !action) return XR_ERROR_HANDLE_INVALID;
    if (!holds(session, action->parent)) return XR_ERROR_ACTIONSET_NOT_ATTACHED;
    *count = (action->hand ? 1 : 0) + (action->gaze ? 1 : 0);
    if (!capacity) return XR_SUCCESS;
    if (capacity < *count) return XR_ERROR_SIZE_INSUFFICIENT;
    if (action->hand) StringToPath(1, HAND_POSE, out);
    if (action->gaze) StringToPath(1, GAZE_POSE, out + (action->hand ? 1 : 0));
    return XR_SUCCESS;
}
static XrResult EnumerateViewConfigurations(XrInstance of, XrSystemId system, uint32_t capacity, uint32_t *count, int32_t *out) {
    static const int32_t types[] = {2, 1000037000, 1000054000, 1};
    (void)of; (void)system;
    *count = COUNT(types);
    if (capacity && capacity < *count) return XR_ERROR_SIZE_INSUFFICIENT;
    if (capacity) memcpy(out, types, sizeof types);
    return XR_SUCCESS;
}
static XrResult GetViewConfigurationProperties(XrInstance of, XrSystemId system, int32_t type, void *out) { (void)of; (void)system; (void)type; (void)out; return XR_SUCCESS; }
static XrResult EnumerateViewConfigurationViews(XrInstance of, XrSystemId system, int32_t type, uint32_t capacity, uint32_t *count, void *out) { (void)of; (void)system; (void)capacity; (void)out; *count = type == 1 ? 1 : 2; return XR_SUCCESS; }
static XrResult LocateViews(XrSession of, const XrViewLocateInfo *info, void *state, uint32_t capacity, uint32_t *count, void *views) { (void)of; (void)info; (void)state; (void)capacity; (void)views; *count = 2; return XR_SUCCESS; }
#ifdef _WIN32
static int64_t counts_a_second(void) { LARGE_INTEGER hz; QueryPerformanceFrequency(&hz); return hz.QuadPart; }
static int64_t ns_of(XrClock at) { int64_t hz = counts_a_second(); return at / hz * 1000000000 + at % hz * 1000000000 / hz; }
static XrClock clock_of(int64_t ns) { int64_t hz = counts_a_second(); return ns / 1000000000 * hz + ns % 1000000000 * hz / 1000000000; }
#else
static int64_t ns_of(XrClock at) { return at.tv_sec * INT64_C(1000000000) + at.tv_nsec; }
static XrClock clock_of(int64_t ns) { return (XrClock){ns / 1000000000, ns % 1000000000}; }
#endif
static XrResult ClockToTime(XrInstance of, const XrClock *at, XrTime *out) { (void)of; *out = ns_of(*at) + fake.epoch_ns; return *out > 0 ? XR_SUCCESS : XR_ERROR_TIME_INVALID; }
static XrResult TimeToClock(XrInstance of, XrTime time, XrClock *out) {
    (void)of;
    if (time <= fake.epoch_ns) return XR_ERROR_TIME_INVALID;
    *out = clock_of(time - fake.epoch_ns);
    return XR_SUCCESS;
}
/* Handed out although its extension may not be enabled, as some runtimes do. */
static XrResult GetEyeGazesFB(void) { return XR_SUCCESS; }
static XrResult ResultToString(XrInstance of, XrResult result, char *out) { (void)of; snprintf(out, 64, "XR_RESULT_%d", result); return XR_SUCCESS; }
static XrResult StructureTypeToString(XrInstance of, int32_t type, char *out) { (void)of; snprintf(out, 64, "XR_TYPE_%d", type); return XR_SUCCESS; }
static XrResult EnumerateReferenceSpaces(XrSession of, uint32_t capacity, uint32_t *count, int32_t *out) { (void)of; *count = 2; if (capacity >= 2) { out[0] = 1; out[1] = 2; } return XR_SUCCESS; }

static XrResult GetInstanceProcAddr(XrInstance of, const char *name, PFN_xrVoidFunction *out);

/* Objects are made, looked for and destroyed by several threads. */
#define LOCKED(name, parameters, arguments)                                                                            \
    static XrResult locked_##name parameters {                                                                         \
        pthread_mutex_lock(&lock);                                                                                     \
        XrResult result = name arguments;                                                                              \
        pthread_mutex_unlock(&lock);                                                                                   \
        return result;                                                                                                 \
    }
LOCKED(StringToPath, (XrInstance a, const char *b, XrPath *c), (a, b, c))
LOCKED(PathToString, (XrInstance a, XrPath b, uint32_t c, uint32_t *d, char *e), (a, b, c, d, e))
LOCKED(CreateSession, (XrInstance a, const XrSessionCreateInfo *b, XrSession *c), (a, b, c))
LOCKED(DestroySession, (XrSession a), (a))
LOCKED(CreateReferenceSpace, (XrSession a, const XrReferenceSpaceCreateInfo *b, XrSpace *c), (a, b, c))
LOCKED(CreateActionSpace, (XrSession a, const XrActionSpaceCreateInfo *b, XrSpace *c), (a, b, c))
LOCKED(DestroySpace, (XrSpace a), (a))
LOCKED(LocateSpace, (XrSpace a, XrSpace b, XrTime c, XrSpaceLocation *d), (a, b, c, d))
LOCKED(LocateSpaces, (XrSession a, const XrSpacesLocateInfo *b, XrSpaceLocations *c), (a, b, c))
LOCKED(CreateActionSet, (XrInstance a, const XrActionSetCreateInfo *b, XrActionSet *c), (a, b, c))
LOCKED(DestroyActionSet, (XrActionSet a), (a))
LOCKED(CreateAction, (XrActionSet a, const XrActionCreateInfo *b, XrAction *c), (a, b, c))
LOCKED(DestroyAction, (XrAction a), (a))
LOCKED(SuggestInteractionProfileBindings, (XrInstance a, const XrInteractionProfileSuggestedBinding *b), (a, b))
LOCKED(AttachSessionActionSets, (XrSession a, const XrSessionActionSetsAttachInfo *b), (a, b))
LOCKED(SyncActions, (XrSession a, const XrActionsSyncInfo *b), (a, b))
LOCKED(GetActionStatePose, (XrSession a, const XrActionStateGetInfo *b, XrActionStatePose *c), (a, b, c))

static XrResult GetInstanceProcAddr(XrInstance of, const char *name, PFN_xrVoidFunction *out) {
#define AS(name, function) {"xr" #name, (PFN_xrVoidFunction)(function)}
#define PLAIN(name) AS(name, name)
#define NAMED(macro, function) AS(macro, function)
#define WITH_LOCK(name) AS(name, locked_##name)
    static const struct { const char *name; PFN_xrVoidFunction function; } all[] = {
        PLAIN(GetInstanceProcAddr), PLAIN(EnumerateInstanceExtensionProperties), PLAIN(CreateInstance), PLAIN(DestroyInstance),
        PLAIN(GetInstanceProperties), PLAIN(PollEvent), PLAIN(GetSystem), PLAIN(GetSystemProperties), PLAIN(BeginSession),
        AS(EndSession, SessionOnly), AS(RequestExitSession, SessionOnly), PLAIN(GetCurrentInteractionProfile),
        PLAIN(EnumerateBoundSourcesForAction), PLAIN(EnumerateViewConfigurations), PLAIN(GetViewConfigurationProperties),
        PLAIN(EnumerateViewConfigurationViews), PLAIN(LocateViews), NAMED(XR_CLOCK_TO_TIME, ClockToTime),
        NAMED(XR_TIME_TO_CLOCK, TimeToClock), PLAIN(GetEyeGazesFB), PLAIN(ResultToString), PLAIN(StructureTypeToString),
        PLAIN(EnumerateReferenceSpaces), AS(LocateSpacesKHR, locked_LocateSpaces), WITH_LOCK(StringToPath), WITH_LOCK(PathToString),
        WITH_LOCK(CreateSession), WITH_LOCK(DestroySession), WITH_LOCK(CreateReferenceSpace), WITH_LOCK(CreateActionSpace),
        WITH_LOCK(DestroySpace), WITH_LOCK(LocateSpace), WITH_LOCK(LocateSpaces), WITH_LOCK(CreateActionSet),
        WITH_LOCK(DestroyActionSet), WITH_LOCK(CreateAction), WITH_LOCK(DestroyAction), WITH_LOCK(SuggestInteractionProfileBindings),
        WITH_LOCK(AttachSessionActionSets), WITH_LOCK(SyncActions), WITH_LOCK(GetActionStatePose)};
    (void)of;
    *out = NULL;
    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(all[i].name, name) == 0) *out = all[i].function;
    return *out ? XR_SUCCESS : XR_ERROR_FUNCTION_UNSUPPORTED;
}

XR_EXPORT XrResult xrNegotiateLoaderRuntimeInterface(const XrNegotiateLoaderInfo *loader, XrNegotiateRuntimeRequest *request) {
    (void)loader;
    request->runtimeInterfaceVersion = 1;
    request->runtimeApiVersion = getenv("FAKE_1_0") ? (UINT64_C(1) << 48) + 20 : (UINT64_C(1) << 48) + (UINT64_C(1) << 32) + 40;
    request->getInstanceProcAddr = GetInstanceProcAddr;
    return XR_SUCCESS;
}
