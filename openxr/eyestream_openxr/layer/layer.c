/* An OpenXR API layer. The application's actions are never bound to the eyes. An action of the layer's own is, and its
 * samples go to the sidecar. The application is shown what the sidecar released, or nothing. There is no pass-through.
 *
 * All else stays as the runtime has it: order of calls, handles, errors. What the layer adds is one action set, one
 * action, two spaces a session, and the extension that converts times. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaze.h"
#include "link.h"
#include "objects.h"
#include "policy.h"
#include "xr.h"

#define LAYER_NAME "XR_APILAYER_EYESTREAM_private_gaze"
#define GAZE_EXTENSION "XR_EXT_eye_gaze_interaction"
#define EYES "/user/eyes_ext"
#define GAZE EYES "/input/gaze_ext"
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SECOND INT64_C(1000000000)

static const XrPosef IDENTITY = {{0, 0, 0, 1}, {0, 0, 0}};
static const XrFlags64 VALID = XR_SPACE_LOCATION_ORIENTATION_VALID_BIT | XR_SPACE_LOCATION_POSITION_VALID_BIT;
static const XrFlags64 SEEN = XR_SPACE_LOCATION_ORIENTATION_VALID_BIT | XR_SPACE_LOCATION_ORIENTATION_TRACKED_BIT;

/* What stands below: the next layer, or the runtime. */
static struct {
    PFN_xrGetInstanceProcAddr GetInstanceProcAddr;
#define FIELD(name, parameters) XrResult(*name) parameters;
    XR_FUNCTIONS(FIELD)
} next;

static XrInstance instance;      /* a loader has one at a time */
static bool asked;               /* the application asked for gaze */
static XrResult profile_said;    /* what the runtime says of gaze's interaction profile */
static XrActionSet own_set;      /* null: gaze is neither read nor shown */
static XrAction own_action;
static XrPath eyes_path, gaze_path, profile_path;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the tables; never held while something below is called */

/* ---- times and poses ---- */

static XrResult time_of(int64_t ns, XrTime *time) {
    const XrClock at = link_clock_of(ns);
    return next.XR_CLOCK_TO_TIME(instance, &at, time);
}

static bool clock_of(XrTime time, int64_t *ns) {
    XrClock at;
    if (XR_FAILED(next.XR_TIME_TO_CLOCK(instance, time, &at))) return false;
    *ns = link_clock_to_ns(at);
    return true;
}

static XrQuaternionf turned(XrQuaternionf a, XrQuaternionf b) {
    return (XrQuaternionf){a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
                           a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w, a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z};
}

static XrQuaternionf back(XrQuaternionf q) { return (XrQuaternionf){-q.x, -q.y, -q.z, q.w}; }

static XrVector3f moved(XrQuaternionf q, XrVector3f v) {
    XrQuaternionf out = turned(turned(q, (XrQuaternionf){v.x, v.y, v.z, 0}), back(q));
    return (XrVector3f){out.x, out.y, out.z};
}

static XrPosef composed(XrPosef a, XrPosef b) {
    XrVector3f p = moved(a.orientation, b.position);
    return (XrPosef){turned(a.orientation, b.orientation), {a.position.x + p.x, a.position.y + p.y, a.position.z + p.z}};
}

static XrPosef inverse(XrPosef a) {
    XrVector3f p = moved(back(a.orientation), a.position);
    return (XrPosef){back(a.orientation), {-p.x, -p.y, -p.z}};
}

/* ---- gaze to the sidecar: once a frame, seen or not, so that a lost eye saves no time ---- */

static void hand_on(XrSpace gaze, XrSpace view) {
    XrEyeGazeSampleTimeEXT seen = {XR_TYPE_EYE_GAZE_SAMPLE_TIME_EXT, NULL, 0};
    XrSpaceLocation now = {XR_TYPE_SPACE_LOCATION, &seen, 0, IDENTITY}, then = {XR_TYPE_SPACE_LOCATION, NULL, 0, IDENTITY};
    int64_t now_ns, then_ns;
    XrTime time;
    if (!gaze_linked()) return; /* nobody takes it: the eyes are not read */
    now_ns = link_clock_ns();
    if (XR_FAILED(time_of(now_ns, &time))) return;
    bool located = XR_SUCCEEDED(next.LocateSpace(gaze, view, time, &now));
    /* Again, at the sample's own time: the head has moved since. */
    XrTime when = seen.time ? seen.time : time; /* 0: the runtime does not tell */
    bool timed = clock_of(when, &then_ns) && then_ns > now_ns - SECOND && then_ns <= now_ns + SECOND / 20;
    located = XR_SUCCEEDED(next.LocateSpace(gaze, view, timed ? when : time, &then)) && located;
    bool is_seen = located && timed && (now.locationFlags & SEEN) == SEEN && (then.locationFlags & SEEN) == SEEN;
    gaze_put(&(struct gaze_raw){is_seen ? then_ns : now_ns, then.pose.orientation, is_seen});
}

/* ---- gaze from the sidecar ---- */

typedef struct { bool is_gaze, active; XrSpace view; XrPosef offset; } Through;

static bool is_active(const Session *session, const Action *action) {
    for (uint32_t i = 0; i < session->count; i++)
        if (session->active[i] == action->parent) return true;
    return false;
}

static bool shows_eyes(XrPath subaction) { return subaction == XR_NULL_PATH || subaction == eyes_path; }

/* Whether a space of the application follows the eyes, as it thinks. */
static Through through(XrSpace handle) {
    Through out = {false, false, XR_NULL_HANDLE, IDENTITY};
    pthread_mutex_lock(&lock);
    const Space *space = table_find(&spaces, handle);
    const Action *action = space ? table_find(&actions, space->action) : NULL;
    const Session *session = space ? table_find(&sessions, space->parent) : NULL;
    if (action && session && action->eyes && shows_eyes(space->subaction))
        out = (Through){true, session->view && is_active(session, action), session->view, space->offset};
    pthread_mutex_unlock(&lock);
    return out;
}

/* Where a space lies in another, when released gaze is one of them or both. */
static bool locate(XrSpace space, XrSpace base, XrTime time, XrSpaceLocationData *out, int64_t *gaze_ns) {
    Through to = through(space), from = through(base);
    struct gaze_released last;
    XrSpaceLocation head = {XR_TYPE_SPACE_LOCATION, NULL, 0, IDENTITY};
    *gaze_ns = 0;
    if (!(to.active || from.active) || to.is_gaze != to.active || from.is_gaze != from.active || !gaze_read(&last)) return false;
    if (XR_FAILED(next.LocateSpace(to.active ? to.view : space, from.active ? from.view : base, time, &head))) return false;
    if ((head.locationFlags & VALID) != VALID) return false;
    const XrPosef turn = {gaze_turn(last.x_deg, last.y_deg), {0, 0, 0}};
    XrPosef pose = head.pose;
    if (to.active) pose = composed(pose, composed(turn, to.offset));
    if (from.active) pose = composed(inverse(composed(turn, from.offset)), pose);
    *out = (XrSpaceLocationData){VALID, pose}; /* never tracked: nobody is to take it for a measurement */
    *gaze_ns = to.active ? last.gaze_ns : 0;
    return true;
}

static XrResult layer_LocateSpace(XrSpace space, XrSpace base, XrTime time, XrSpaceLocation *location) {
    XrResult result = next.LocateSpace(space, base, time, location);
    if (XR_FAILED(result) || location->locationFlags) return result;
    XrSpaceLocationData found;
    int64_t gaze_ns;
    if (!locate(space, base, time, &found, &gaze_ns)) return result;
    location->locationFlags = found.locationFlags;
    location->pose = found.pose;
    for (XrBaseOutStructure *part = location->next; gaze_ns && part; part = part->next)
        if (part->type == XR_TYPE_EYE_GAZE_SAMPLE_TIME_EXT) time_of(gaze_ns, &((XrEyeGazeSampleTimeEXT *)part)->time);
    return result;
}

static XrResult located(XrResult result, const XrSpacesLocateInfo *info, const XrSpaceLocations *locations) {
    int64_t gaze_ns;
    for (uint32_t i = 0; XR_SUCCEEDED(result) && i < info->spaceCount; i++)
        if (!locations->locations[i].locationFlags)
            locate(info->spaces[i], info->baseSpace, info->time, &locations->locations[i], &gaze_ns);
    return result;
}

static XrResult layer_LocateSpaces(XrSession of, const XrSpacesLocateInfo *info, XrSpaceLocations *locations) {
    return located(next.LocateSpaces(of, info, locations), info, locations);
}

static XrResult layer_LocateSpacesKHR(XrSession of, const XrSpacesLocateInfo *info, XrSpaceLocations *locations) {
    return located(next.LocateSpacesKHR(of, info, locations), info, locations);
}

/* Whether an action follows the eyes in a session that has attached and synchronised it. */
static bool action_active(XrSession of, XrAction handle, bool synchronised) {
    pthread_mutex_lock(&lock);
    const Action *action = table_find(&actions, handle);
    const Session *session = table_find(&sessions, of);
    bool active = action && session && action->eyes && session->view && (!synchronised || is_active(session, action));
    pthread_mutex_unlock(&lock);
    return active;
}

static XrResult layer_GetActionStatePose(XrSession of, const XrActionStateGetInfo *info, XrActionStatePose *state) {
    XrResult result = next.GetActionStatePose(of, info, state);
    struct gaze_released last;
    if (XR_SUCCEEDED(result) && !state->isActive && shows_eyes(info->subactionPath) && action_active(of, info->action, true))
        state->isActive = gaze_read(&last);
    return result;
}

static XrResult layer_EnumerateBoundSourcesForAction(XrSession of, const XrBoundSourcesForActionEnumerateInfo *info,
                                                     uint32_t capacity, uint32_t *count, XrPath *sources) {
    XrResult result = next.EnumerateBoundSourcesForAction(of, info, capacity, count, sources);
    if ((XR_FAILED(result) && result != XR_ERROR_SIZE_INSUFFICIENT) || !gaze_bridged()) return result;
    if (!action_active(of, info->action, false)) return result;
    uint32_t below = (*count)++;
    if (result == XR_ERROR_SIZE_INSUFFICIENT || capacity == 0) return result;
    if (capacity <= below) return XR_ERROR_SIZE_INSUFFICIENT;
    sources[below] = gaze_path;
    return result;
}

static XrResult layer_GetCurrentInteractionProfile(XrSession of, XrPath user, XrInteractionProfileState *state) {
    XrResult result = next.GetCurrentInteractionProfile(of, user, state);
    if (XR_SUCCEEDED(result) && user == eyes_path && !gaze_bridged()) state->interactionProfile = XR_NULL_PATH;
    return result;
}

static XrResult layer_GetSystemProperties(XrInstance of, XrSystemId system, XrSystemProperties *properties) {
    XrResult result = next.GetSystemProperties(of, system, properties);
    if (XR_FAILED(result) || (own_set && gaze_bridged())) return result;
    for (XrBaseOutStructure *part = properties->next; part; part = part->next)
        if (part->type == XR_TYPE_SYSTEM_EYE_GAZE_INTERACTION_PROPERTIES_EXT)
            ((XrSystemEyeGazeInteractionPropertiesEXT *)part)->supportsEyeGazeInteraction = 0;
    return result;
}

/* ---- bindings ---- */

/* Whether a path begins with `prefix`; what cannot be read does. */
static bool path_begins(XrPath path, const char *prefix) {
    char text[XR_MAX_PATH_LENGTH];
    uint32_t length;
    if (XR_FAILED(next.PathToString(instance, path, sizeof text, &length, text))) return true;
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Under the lock: what the runtime would answer to bindings of the eyes. They are noted, and never made. */
static XrResult note_bindings(const XrInteractionProfileSuggestedBinding *info) {
    for (uint32_t i = 0; i < info->countSuggestedBindings; i++) {
        const Action *action = table_find(&actions, info->suggestedBindings[i].action);
        const Set *set = action ? table_find(&sets, action->parent) : NULL;
        if (!set) return XR_ERROR_HANDLE_INVALID;
        if (set->attached) return XR_ERROR_ACTIONSETS_ALREADY_ATTACHED;
    }
    for (size_t i = 0; i < actions.count; i++) { /* a later suggestion replaces an earlier one */
        Action *action = (Action *)actions.items + i;
        const Set *set = table_find(&sets, action->parent);
        if (set && !set->attached) action->eyes = false;
    }
    for (uint32_t i = 0; i < info->countSuggestedBindings; i++) {
        Action *action = table_find(&actions, info->suggestedBindings[i].action);
        action->eyes = action->pose;
    }
    return XR_SUCCESS;
}

static XrResult layer_SuggestInteractionProfileBindings(XrInstance of, const XrInteractionProfileSuggestedBinding *info) {
    bool of_eyes = info->interactionProfile == profile_path;
    for (uint32_t i = 0; i < info->countSuggestedBindings; i++)
        if (path_begins(info->suggestedBindings[i].binding, of_eyes ? GAZE : EYES) != of_eyes) return XR_ERROR_PATH_UNSUPPORTED;
    if (!of_eyes) return next.SuggestInteractionProfileBindings(of, info);
    if (XR_FAILED(profile_said)) return profile_said;
    if (!info->countSuggestedBindings) return XR_ERROR_VALIDATION_FAILURE;
    pthread_mutex_lock(&lock);
    XrResult result = note_bindings(info);
    pthread_mutex_unlock(&lock);
    return result;
}

static void note_attached(XrSession to, const XrSessionActionSetsAttachInfo *info, XrSpace gaze, XrSpace view) {
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < info->countActionSets; i++) {
        Set *set = table_find(&sets, info->actionSets[i]);
        if (set) set->attached = true;
    }
    Session *session = table_find(&sessions, to);
    if (session && gaze && view) {
        session->gaze = gaze;
        session->view = view;
    }
    pthread_mutex_unlock(&lock);
}

static XrResult layer_AttachSessionActionSets(XrSession to, const XrSessionActionSetsAttachInfo *info) {
    XrSpace gaze = XR_NULL_HANDLE, view = XR_NULL_HANDLE;
    XrActionSet *all = own_set ? malloc((info->countActionSets + 1) * sizeof *all) : NULL;
    XrResult result = XR_ERROR_OUT_OF_MEMORY;
    if (all) {
        XrSessionActionSetsAttachInfo more = *info;
        memcpy(all, info->actionSets, info->countActionSets * sizeof *all);
        all[info->countActionSets] = own_set;
        more.countActionSets++;
        more.actionSets = all;
        result = next.AttachSessionActionSets(to, &more);
        free(all);
    }
    if (XR_SUCCEEDED(result)) {
        const XrActionSpaceCreateInfo of_gaze = {XR_TYPE_ACTION_SPACE_CREATE_INFO, NULL, own_action, XR_NULL_PATH, IDENTITY};
        const XrReferenceSpaceCreateInfo of_view = {XR_TYPE_REFERENCE_SPACE_CREATE_INFO, NULL, XR_REFERENCE_SPACE_TYPE_VIEW,
                                                    IDENTITY};
        if (XR_FAILED(next.CreateActionSpace(to, &of_gaze, &gaze))) gaze = XR_NULL_HANDLE;
        if (XR_FAILED(next.CreateReferenceSpace(to, &of_view, &view))) view = XR_NULL_HANDLE;
    } else { /* without the layer's own it may succeed, and if it fails it does so with the runtime's error */
        result = next.AttachSessionActionSets(to, info);
    }
    if (XR_SUCCEEDED(result)) note_attached(to, info, gaze, view);
    return result;
}

/* The spaces of a session that reads the eyes; whether it is the one of the process that hands gaze on. */
static bool reading(XrSession of, XrSpace *gaze, XrSpace *view, bool *feeds) {
    pthread_mutex_lock(&lock);
    const Session *session = table_find(&sessions, of), *first = NULL;
    for (size_t i = 0; i < sessions.count && !first; i++) {
        const Session *each = (const Session *)sessions.items + i;
        if (each->gaze) first = each;
    }
    bool found = session && session->gaze;
    *gaze = found ? session->gaze : XR_NULL_HANDLE;
    *view = found ? session->view : XR_NULL_HANDLE;
    *feeds = found && first == session;
    pthread_mutex_unlock(&lock);
    return found;
}

static void note_synchronised(XrSession of, uint32_t count, const XrActiveActionSet *active) {
    pthread_mutex_lock(&lock);
    Session *session = table_find(&sessions, of);
    if (session) {
        for (uint32_t i = 0; i < count; i++) session->active[i] = active[i].actionSet;
        session->count = count;
    }
    pthread_mutex_unlock(&lock);
}

static XrResult layer_SyncActions(XrSession of, const XrActionsSyncInfo *info) {
    XrActiveActionSet active[MOST_SETS + 1];
    XrSpace gaze, view;
    bool feeds;
    uint32_t count = info->countActiveActionSets;
    if (!reading(of, &gaze, &view, &feeds) || count == 0 || count > MOST_SETS) {
        XrResult alone = next.SyncActions(of, info);
        if (XR_SUCCEEDED(alone)) note_synchronised(of, 0, NULL);
        return alone;
    }
    memcpy(active, info->activeActionSets, count * sizeof *active);
    active[count] = (XrActiveActionSet){own_set, XR_NULL_PATH};
    XrActionsSyncInfo more = *info;
    more.countActiveActionSets++;
    more.activeActionSets = active;
    XrResult result = next.SyncActions(of, &more);
    if (XR_SUCCEEDED(result)) note_synchronised(of, result == XR_SUCCESS ? count : 0, active); /* else all stays */
    if (result == XR_SUCCESS && feeds) hand_on(gaze, view);
    return result;
}

/* ---- objects ---- */

static void note(Table *table, const void *item) {
    pthread_mutex_lock(&lock);
    table_add(table, item);
    pthread_mutex_unlock(&lock);
}

static XrResult layer_CreateSession(XrInstance of, const XrSessionCreateInfo *info, XrSession *made) {
    XrResult result = next.CreateSession(of, info, made);
    if (XR_SUCCEEDED(result)) note(&sessions, &(Session){.handle = *made, .parent = of});
    return result;
}

static XrResult layer_CreateActionSet(XrInstance of, const XrActionSetCreateInfo *info, XrActionSet *made) {
    XrResult result = next.CreateActionSet(of, info, made);
    if (XR_SUCCEEDED(result)) note(&sets, &(Set){*made, of, false});
    return result;
}

static XrResult layer_CreateAction(XrActionSet of, const XrActionCreateInfo *info, XrAction *made) {
    XrResult result = next.CreateAction(of, info, made);
    if (XR_SUCCEEDED(result)) note(&actions, &(Action){*made, of, info->actionType == XR_ACTION_TYPE_POSE_INPUT, false});
    return result;
}

static XrResult layer_CreateActionSpace(XrSession of, const XrActionSpaceCreateInfo *info, XrSpace *made) {
    XrResult result = next.CreateActionSpace(of, info, made);
    if (XR_SUCCEEDED(result)) note(&spaces, &(Space){*made, of, info->action, info->subactionPath, info->poseInActionSpace});
    return result;
}

static XrResult layer_CreateReferenceSpace(XrSession of, const XrReferenceSpaceCreateInfo *info, XrSpace *made) {
    if (info->referenceSpaceType == XR_REFERENCE_SPACE_TYPE_COMBINED_EYE_VARJO) return XR_ERROR_REFERENCE_SPACE_UNSUPPORTED;
    return next.CreateReferenceSpace(of, info, made);
}

static XrResult layer_DestroySession(XrSession session) {
    pthread_mutex_lock(&lock);
    table_drop(&sessions, session);
    table_drop_of(&spaces, session);
    pthread_mutex_unlock(&lock);
    return next.DestroySession(session);
}

static XrResult layer_DestroyActionSet(XrActionSet set) {
    pthread_mutex_lock(&lock);
    table_drop(&sets, set);
    table_drop_of(&actions, set);
    pthread_mutex_unlock(&lock);
    return next.DestroyActionSet(set);
}

static XrResult layer_DestroyAction(XrAction action) {
    pthread_mutex_lock(&lock);
    table_drop(&actions, action);
    pthread_mutex_unlock(&lock);
    return next.DestroyAction(action);
}

static XrResult layer_DestroySpace(XrSpace space) {
    pthread_mutex_lock(&lock);
    table_drop(&spaces, space);
    pthread_mutex_unlock(&lock);
    return next.DestroySpace(space);
}

static XrResult layer_DestroyInstance(XrInstance of) {
    gaze_stop();
    pthread_mutex_lock(&lock);
    objects_clear();
    pthread_mutex_unlock(&lock);
    instance = XR_NULL_HANDLE;
    own_set = own_action = XR_NULL_HANDLE;
    asked = false;
    return next.DestroyInstance(of);
}

/* ---- views whose inner pair may follow the eyes: core since OpenXR 1.1, so no extension has to be asked for ---- */

static bool follows_eyes(int32_t type) {
    return type != XR_VIEW_CONFIGURATION_TYPE_PRIMARY_MONO && type != XR_VIEW_CONFIGURATION_TYPE_PRIMARY_STEREO
        && type != XR_VIEW_CONFIGURATION_TYPE_SECONDARY_MONO_FIRST_PERSON_OBSERVER_MSFT;
}

static XrResult layer_EnumerateViewConfigurations(XrInstance of, XrSystemId system, uint32_t capacity, uint32_t *count,
                                                  int32_t *types) {
    int32_t all[32];
    uint32_t found = 0, kept = 0;
    XrResult result = next.EnumerateViewConfigurations(of, system, COUNT(all), &found, all);
    if (XR_FAILED(result)) return result;
    for (uint32_t i = 0; i < found; i++)
        if (!follows_eyes(all[i])) all[kept++] = all[i];
    *count = kept;
    if (capacity == 0) return XR_SUCCESS;
    if (capacity < kept) return XR_ERROR_SIZE_INSUFFICIENT;
    memcpy(types, all, kept * sizeof *all);
    return XR_SUCCESS;
}

static XrResult layer_GetViewConfigurationProperties(XrInstance of, XrSystemId system, int32_t type, void *properties) {
    if (follows_eyes(type)) return XR_ERROR_VIEW_CONFIGURATION_TYPE_UNSUPPORTED;
    return next.GetViewConfigurationProperties(of, system, type, properties);
}

static XrResult layer_EnumerateViewConfigurationViews(XrInstance of, XrSystemId system, int32_t type, uint32_t capacity,
                                                      uint32_t *count, void *views) {
    if (follows_eyes(type)) return XR_ERROR_VIEW_CONFIGURATION_TYPE_UNSUPPORTED;
    return next.EnumerateViewConfigurationViews(of, system, type, capacity, count, views);
}

static XrResult layer_BeginSession(XrSession of, const XrSessionBeginInfo *info) {
    if (follows_eyes(info->primaryViewConfigurationType)) return XR_ERROR_VIEW_CONFIGURATION_TYPE_UNSUPPORTED;
    return next.BeginSession(of, info);
}

static XrResult layer_LocateViews(XrSession of, const XrViewLocateInfo *info, void *state, uint32_t capacity, uint32_t *count,
                                  void *views) {
    if (follows_eyes(info->viewConfigurationType)) return XR_ERROR_VIEW_CONFIGURATION_TYPE_UNSUPPORTED;
    return next.LocateViews(of, info, state, capacity, count, views);
}

/* ---- the loader's side ---- */

static bool among(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

typedef struct { const char *name; PFN_xrVoidFunction function; } Hook;

static PFN_xrVoidFunction hooked(const Hook *hooks, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, hooks[i].name) == 0) return hooks[i].function;
    return NULL;
}

static XrResult layer_GetInstanceProcAddr(XrInstance of, const char *name, PFN_xrVoidFunction *function) {
#define HOOK(f) {"xr" #f, (PFN_xrVoidFunction)layer_##f}
    static const Hook always[] = {HOOK(GetInstanceProcAddr), HOOK(DestroyInstance), HOOK(CreateReferenceSpace),
                                  HOOK(EnumerateViewConfigurations), HOOK(GetViewConfigurationProperties),
                                  HOOK(EnumerateViewConfigurationViews), HOOK(BeginSession), HOOK(LocateViews)};
    static const Hook with_gaze[] = {HOOK(GetSystemProperties), HOOK(CreateSession), HOOK(DestroySession), HOOK(CreateActionSpace),
                                     HOOK(DestroySpace), HOOK(LocateSpace), HOOK(LocateSpaces), HOOK(LocateSpacesKHR),
                                     HOOK(CreateActionSet), HOOK(DestroyActionSet), HOOK(CreateAction), HOOK(DestroyAction),
                                     HOOK(SuggestInteractionProfileBindings), HOOK(AttachSessionActionSets), HOOK(SyncActions),
                                     HOOK(GetActionStatePose), HOOK(GetCurrentInteractionProfile),
                                     HOOK(EnumerateBoundSourcesForAction)};
    *function = NULL;
    if (among(name, denied_functions, COUNT(denied_functions))) return XR_ERROR_FUNCTION_UNSUPPORTED;
    XrResult result = next.GetInstanceProcAddr(of, name, function);
    if (XR_FAILED(result) || !*function) return result; /* what the runtime lacks, the layer does not pretend */
    PFN_xrVoidFunction own = hooked(always, COUNT(always), name);
    if (!own && asked) own = hooked(with_gaze, COUNT(with_gaze), name);
    if (own) *function = own;
    return result;
}

/* The layer's own action of the eyes. Where the headset has none, gaze's profile is as unsupported as without the layer. */
static void make_own(void) {
    const XrActionSetCreateInfo set = {.type = XR_TYPE_ACTION_SET_CREATE_INFO, .actionSetName = "eyestream_private_gaze",
                                       .localizedActionSetName = "eyestream: private gaze"};
    const XrActionCreateInfo action = {.type = XR_TYPE_ACTION_CREATE_INFO, .actionName = "eyestream_gaze",
                                       .localizedActionName = "eyestream: gaze", .actionType = XR_ACTION_TYPE_POSE_INPUT};
    if (XR_FAILED(next.CreateActionSet(instance, &set, &own_set))) own_set = XR_NULL_HANDLE;
    if (!own_set) return;
    bool made = XR_SUCCEEDED(next.CreateAction(own_set, &action, &own_action));
    if (made) {
        const XrActionSuggestedBinding binding = {own_action, gaze_path};
        const XrInteractionProfileSuggestedBinding own = {XR_TYPE_INTERACTION_PROFILE_SUGGESTED_BINDING, NULL, profile_path, 1,
                                                          &binding};
        profile_said = next.SuggestInteractionProfileBindings(instance, &own);
    }
    if (made && XR_SUCCEEDED(profile_said) && gaze_start()) return;
    next.DestroyActionSet(own_set);
    own_set = XR_NULL_HANDLE;
}

static XrResult find_paths(void) {
    XrResult result = next.StringToPath(instance, EYES, &eyes_path);
    if (XR_SUCCEEDED(result)) result = next.StringToPath(instance, GAZE "/pose", &gaze_path);
    if (XR_SUCCEEDED(result)) result = next.StringToPath(instance, "/interaction_profiles/ext/eye_gaze_interaction", &profile_path);
    return result;
}

/* The extensions that go down, one line to stderr for each that does not. */
static uint32_t passed(const XrInstanceCreateInfo *info, const char *below, const char **names) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
        const char *name = info->enabledExtensionNames[i];
        bool is_gaze = strcmp(name, GAZE_EXTENSION) == 0;
        asked = asked || is_gaze;
        if (is_gaze && below) fprintf(stderr, LAYER_NAME ": no gaze, because the layer %s below would see it raw\n", below);
        else if (is_gaze || among(name, passed_extensions, COUNT(passed_extensions))) names[count++] = name;
        else fprintf(stderr, LAYER_NAME ": dropped %s, which has no private form\n", name);
    }
    return count;
}

static XrResult layer_CreateApiLayerInstance(const XrInstanceCreateInfo *info, const XrApiLayerCreateInfo *layers,
                                             XrInstance *made) {
    if (!info || !layers || !layers->nextInfo || strcmp(layers->nextInfo->layerName, LAYER_NAME) != 0)
        return XR_ERROR_INITIALIZATION_FAILED;
    if (instance) return XR_ERROR_LIMIT_REACHED;
    const XrApiLayerNextInfo *here = layers->nextInfo;
    const char *below = here->next ? here->next->layerName : NULL;
    const char **names = malloc((info->enabledExtensionCount + 1) * sizeof *names);
    if (!names) return XR_ERROR_OUT_OF_MEMORY;
    asked = false;
    XrInstanceCreateInfo mine = *info;
    XrApiLayerCreateInfo rest = *layers;
    rest.nextInfo = here->next;
    mine.enabledExtensionNames = names;
    mine.enabledExtensionCount = passed(info, below, names);
    bool reads = asked && !below, timed = among(XR_CLOCK_EXTENSION, names, mine.enabledExtensionCount);
    XrResult result = XR_ERROR_EXTENSION_NOT_PRESENT;
    if (reads && !timed) {
        names[mine.enabledExtensionCount++] = XR_CLOCK_EXTENSION;
        result = here->nextCreateApiLayerInstance(&mine, &rest, made);
        if (result == XR_ERROR_EXTENSION_NOT_PRESENT) { /* a runtime whose times nobody can read gives no gaze */
            mine.enabledExtensionCount--;
            reads = false;
        }
    }
    if (result == XR_ERROR_EXTENSION_NOT_PRESENT) result = here->nextCreateApiLayerInstance(&mine, &rest, made);
    free(names);
    if (XR_FAILED(result)) return result;
    instance = *made;
    profile_said = XR_SUCCESS;
    next.GetInstanceProcAddr = here->nextGetInstanceProcAddr;
#define LOAD(f, parameters) \
    if (XR_FAILED(next.GetInstanceProcAddr(instance, "xr" #f, (PFN_xrVoidFunction *)(void *)&next.f))) next.f = NULL;
    XR_FUNCTIONS(LOAD)
    if (asked && XR_FAILED(result = find_paths())) {
        next.DestroyInstance(instance);
        instance = XR_NULL_HANDLE;
        return result;
    }
    if (reads && next.XR_CLOCK_TO_TIME && next.XR_TIME_TO_CLOCK) make_own();
    return XR_SUCCESS;
}

XR_EXPORT XrResult xrNegotiateLoaderApiLayerInterface(const XrNegotiateLoaderInfo *loader, const char *name,
                                                      XrNegotiateApiLayerRequest *request) {
    if (!loader || !request || loader->structType != XR_LOADER_INFO || loader->minInterfaceVersion > 1
        || loader->maxInterfaceVersion < 1 || request->structType != XR_API_LAYER_REQUEST
        || (name && strcmp(name, LAYER_NAME) != 0))
        return XR_ERROR_INITIALIZATION_FAILED;
    request->layerInterfaceVersion = 1;
    request->layerApiVersion = loader->maxApiVersion;
    request->getInstanceProcAddr = layer_GetInstanceProcAddr;
    request->createApiLayerInstance = layer_CreateApiLayerInstance;
    return XR_SUCCESS;
}
