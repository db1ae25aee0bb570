/* A program of OpenXR on layer and runtime in one executable: so that sanitisers see both, and for the cost of a frame.
 *
 *   driver PLACE turns SECONDS SEED     threads call in any order, while the page is spoilt and the sidecar comes and goes
 *   driver PLACE cost FRAMES            ns of each frame, with the layer and without, by turns: lines "layer ns"
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire.h"
#include "xr.h"

XrResult xrNegotiateLoaderApiLayerInterface(const XrNegotiateLoaderInfo *, const char *, XrNegotiateApiLayerRequest *);
XrResult xrNegotiateLoaderRuntimeInterface(const XrNegotiateLoaderInfo *, XrNegotiateRuntimeRequest *);

static const char LAYER[] = "XR_APILAYER_EYESTREAM_private_gaze";
static const XrPosef STILL = {{0, 0, 0, 1}, {0, 0, 0}};
static PFN_xrGetInstanceProcAddr runtime_get;
static const char *place;
static atomic_bool over;
static atomic_uint heard, shown;

typedef struct {
    XrInstance instance;
#define FIELD(name, parameters) XrResult(*name) parameters;
    XR_FUNCTIONS(FIELD)
} Api;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static XrResult create_below(const XrInstanceCreateInfo *info, const XrApiLayerCreateInfo *layers, XrInstance *made) {
    XrResult (*create)(const XrInstanceCreateInfo *, XrInstance *);
    (void)layers;
    runtime_get(0, "xrCreateInstance", (PFN_xrVoidFunction *)(void *)&create);
    return create(info, made);
}

static Api begin(bool layered) {
    static const char *const names[] = {"XR_EXT_eye_gaze_interaction", "XR_KHR_convert_timespec_time"};
    XrNegotiateLoaderInfo loader = {.structType = XR_LOADER_INFO, .minInterfaceVersion = 1, .maxInterfaceVersion = 1, .maxApiVersion = UINT64_C(2) << 48};
    XrNegotiateRuntimeRequest runtime = {.structType = XR_RUNTIME_REQUEST};
    XrNegotiateApiLayerRequest layer = {.structType = XR_API_LAYER_REQUEST};
    XrInstanceCreateInfo info = {.type = XR_TYPE_INSTANCE_CREATE_INFO, .enabledExtensionCount = 2, .enabledExtensionNames = names};
    XrApiLayerNextInfo here = {.structType = XR_API_LAYER_NEXT_INFO};
    XrApiLayerCreateInfo chain = {.structType = XR_API_LAYER_CREATE_INFO, .nextInfo = &here};
    Api api = {0};
    xrNegotiateLoaderRuntimeInterface(&loader, &runtime);
    runtime_get = runtime.getInstanceProcAddr;
    PFN_xrGetInstanceProcAddr get = runtime_get;
    XrResult result;
    if (layered) {
        if (xrNegotiateLoaderApiLayerInterface(&loader, LAYER, &layer)) exit(2);
        strcpy(here.layerName, LAYER);
        here.nextGetInstanceProcAddr = get;
        here.nextCreateApiLayerInstance = create_below;
        result = layer.createApiLayerInstance(&info, &chain, &api.instance);
        get = layer.getInstanceProcAddr;
    } else result = create_below(&info, NULL, &api.instance);
    if (result) exit(3);
#define LOAD(f, parameters) get(api.instance, "xr" #f, (PFN_xrVoidFunction *)(void *)&api.f);
    XR_FUNCTIONS(LOAD)
    return api;
}

typedef struct { XrSession session; XrActionSet set; XrAction action; XrSpace gaze, view; } Looking;

static Looking look_begin(const Api *api) {
    Looking out = {0};
    XrPath profile, path;
    const XrSessionCreateInfo session = {.type = XR_TYPE_SESSION_CREATE_INFO, .systemId = 1};
    const XrActionSetCreateInfo set = {.type = XR_TYPE_ACTION_SET_CREATE_INFO, .actionSetName = "set"};
    const XrActionCreateInfo action = {.type = XR_TYPE_ACTION_CREATE_INFO, .actionName = "gaze", .actionType = XR_ACTION_TYPE_POSE_INPUT};
    api->CreateSession(api->instance, &session, &out.session);
    api->CreateActionSet(api->instance, &set, &out.set);
    api->CreateAction(out.set, &action, &out.action);
    api->StringToPath(api->instance, "/interaction_profiles/ext/eye_gaze_interaction", &profile);
    api->StringToPath(api->instance, "/user/eyes_ext/input/gaze_ext/pose", &path);
    const XrActionSuggestedBinding binding = {out.action, path};
    const XrInteractionProfileSuggestedBinding suggested = {XR_TYPE_INTERACTION_PROFILE_SUGGESTED_BINDING, NULL, profile, 1, &binding};
    api->SuggestInteractionProfileBindings(api->instance, &suggested);
    const XrSessionActionSetsAttachInfo attach = {XR_TYPE_SESSION_ACTION_SETS_ATTACH_INFO, NULL, 1, &out.set};
    api->AttachSessionActionSets(out.session, &attach);
    const XrActionSpaceCreateInfo gaze = {XR_TYPE_ACTION_SPACE_CREATE_INFO, NULL, out.action, 0, STILL};
    const XrReferenceSpaceCreateInfo view = {XR_TYPE_REFERENCE_SPACE_CREATE_INFO, NULL, XR_REFERENCE_SPACE_TYPE_VIEW, STILL};
    api->CreateActionSpace(out.session, &gaze, &out.gaze);
    api->CreateReferenceSpace(out.session, &view, &out.view);
    return out;
}

static void look_end(const Api *api, const Looking *looking) {
    api->DestroySpace(looking->gaze);
    api->DestroySession(looking->session);
    api->DestroyActionSet(looking->set);
}

static XrFlags64 frame(const Api *api, const Looking *looking) {
    const XrActiveActionSet active = {looking->set, 0};
    const XrActionsSyncInfo sync = {XR_TYPE_ACTIONS_SYNC_INFO, NULL, 1, &active};
    XrSpaceLocation location = {.type = XR_TYPE_SPACE_LOCATION};
    api->SyncActions(looking->session, &sync);
    api->LocateSpace(looking->gaze, looking->view, now_ns(), &location);
    return location.locationFlags;
}

/* ---- turns ---- */

static const Api *shared;
static unsigned seed;

static void *program(void *number) {
    unsigned state = seed + (unsigned)(uintptr_t)number;
    while (!atomic_load(&over)) {
        Looking looking = look_begin(shared);
        for (int i = rand_r(&state) % 200; i > 0 && !atomic_load(&over); i--) {
            XrFlags64 flags = frame(shared, &looking);
            if (flags == 3) atomic_fetch_add(&shown, 1);
            else if (flags != 0) exit(4); /* gaze of the eyes themselves */
            if (rand_r(&state) % 8 == 0) usleep(rand_r(&state) % 2000);
        }
        look_end(shared, &looking);
    }
    return NULL;
}

static void *spoil(void *nothing) { /* the page: of a bridge, of nobody, cut, gone */
    char name[256];
    unsigned state = seed, turn = 0;
    (void)nothing;
    snprintf(name, sizeof name, "%s/page", place);
    while (!atomic_load(&over)) {
        struct wire_page page = {WIRE_PAGE, WIRE_VERSION, turn += 2, 1, now_ns(), now_ns() + 1000000000, now_ns() - 700000000, 5, -5, turn, 0};
        unsigned what = rand_r(&state) % 8;
        if (what == 0) unlink(name);
        int file = open(name, O_RDWR | O_CREAT, 0600);
        if (what == 1) for (size_t i = 0; i < 3; i++) ((unsigned char *)&page)[rand_r(&state) % sizeof page] = (unsigned char)rand_r(&state);
        if (what == 2) for (size_t i = 0; i < sizeof page; i++) ((unsigned char *)&page)[i] = (unsigned char)rand_r(&state);
        if (pwrite(file, &page, what == 3 ? rand_r(&state) % sizeof page : sizeof page, 0) < 0 || ftruncate(file, what == 4 ? 8 : sizeof page)) exit(5);
        close(file);
        usleep(3000);
    }
    return NULL;
}

static void *sidecar(void *nothing) { /* comes, hears a while, and goes */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    unsigned state = seed + 77;
    (void)nothing;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/gaze.sock", place);
    while (!atomic_load(&over)) {
        struct wire_samples message;
        struct timeval wait = {0, 200000};
        int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        unlink(address.sun_path);
        if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1)) exit(6);
        setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        int peer = accept(listener, NULL, NULL);
        setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        for (int i = rand_r(&state) % 40; i > 0 && peer >= 0; i--) {
            ssize_t size = recv(peer, &message, sizeof message, 0);
            if (size > 0) {
                if (size < 24 || message.magic != WIRE_SAMPLES || (size_t)size != 8 + message.count * sizeof *message.samples) exit(7);
                atomic_fetch_add(&heard, message.count);
            }
        }
        if (peer >= 0) close(peer);
        close(listener);
        if (rand_r(&state) % 3 == 0) usleep(100000);
    }
    return NULL;
}

static int turns(double seconds) {
    int64_t ends = now_ns() + (int64_t)(seconds * 1e9);
    while (now_ns() < ends) {
        pthread_t threads[4];
        Api api = begin(true);
        shared = &api;
        atomic_store(&over, false);
        for (uintptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, program, (void *)i);
        pthread_create(&threads[2], NULL, spoil, NULL);
        pthread_create(&threads[3], NULL, sidecar, NULL);
        usleep(1500000);
        atomic_store(&over, true);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        api.DestroyInstance(api.instance);
        seed += 1000;
    }
    printf("heard %u shown %u\n", atomic_load(&heard), atomic_load(&shown));
    return 0;
}

/* ---- cost ---- */

static int cost(int frames) {
    pthread_t listener;
    atomic_store(&over, false);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)listener;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/gaze.sock", place);
    int server = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    unlink(address.sun_path);
    if (bind(server, (struct sockaddr *)&address, sizeof address) || listen(server, 64)) return 6;
    for (int round = 0; round < 8; round++) {
        bool layered = round % 2;
        Api api = begin(layered);
        Looking looking = look_begin(&api);
        int peer = -1;
        if (layered) {
            usleep(50000);
            peer = accept(server, NULL, NULL);
        }
        for (int i = 0; i < frames / 8; i++) {
            struct wire_samples message;
            int64_t begun = now_ns();
            frame(&api, &looking);
            printf("%d %lld\n", layered, (long long)(now_ns() - begun));
            while (peer >= 0 && recv(peer, &message, sizeof message, MSG_DONTWAIT) > 0) atomic_fetch_add(&heard, message.count);
            usleep(5000);
        }
        look_end(&api, &looking);
        api.DestroyInstance(api.instance);
        if (peer >= 0) close(peer);
    }
    fprintf(stderr, "heard %u\n", atomic_load(&heard));
    return 0;
}

int main(int count, char **words) {
    if (count < 4) return 1;
    place = words[1];
    if (strcmp(words[2], "cost") == 0) return cost(atoi(words[3]));
    seed = count > 4 ? (unsigned)atoi(words[4]) : 1;
    return turns(atof(words[3]));
}
