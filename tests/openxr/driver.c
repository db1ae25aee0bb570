/* A program of OpenXR on layer and runtime in one executable: so that sanitisers see both, for the cost of a frame, and
 * for Windows.
 *
 *   driver PLACE turns SECONDS SEED     threads call in any order, while the page is spoilt and the sidecar comes and goes
 *   driver PLACE cost FRAMES            ns of each frame, with the layer and without, by turns: lines "layer ns"
 *   driver PLACE looks [LOADER RIGHTS]  what is seen, step by step: lines "step flags"; of Windows are the file of a loader,
 *                                       or "", and the rights of the sidecar's pipe
 *
 * It ends with a number that stands at the fault.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef _WIN32
#include <windows.h>
/* after windows.h */
#include <sddl.h>
#else
#include <sys/socket.h>
#include <sys/un.h>
#endif

#include "wire.h"
#include "xr.h"

#ifdef _WIN32
#define SHARED O_BINARY
#else
#define SHARED 0
#endif

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

static PFN_xrGetInstanceProcAddr loader_get; /* null: this program is the loader */

static Api begin(bool layered) {
    static const char *const names[] = {"XR_EXT_eye_gaze_interaction", XR_CLOCK_EXTENSION, "XR_MND_headless"};
    XrNegotiateLoaderInfo loader = {.structType = XR_LOADER_INFO, .minInterfaceVersion = 1, .maxInterfaceVersion = 1, .maxApiVersion = UINT64_C(2) << 48};
    XrNegotiateRuntimeRequest runtime = {.structType = XR_RUNTIME_REQUEST};
    XrNegotiateApiLayerRequest layer = {.structType = XR_API_LAYER_REQUEST};
    XrInstanceCreateInfo info = {.type = XR_TYPE_INSTANCE_CREATE_INFO, .applicationInfo = {"driver", 1, "", 0, UINT64_C(1) << 48},
                                 .enabledExtensionCount = 3, .enabledExtensionNames = names};
    XrApiLayerNextInfo here = {.structType = XR_API_LAYER_NEXT_INFO};
    XrApiLayerCreateInfo chain = {.structType = XR_API_LAYER_CREATE_INFO, .nextInfo = &here};
    Api api = {0};
    xrNegotiateLoaderRuntimeInterface(&loader, &runtime);
    runtime_get = runtime.getInstanceProcAddr;
    PFN_xrGetInstanceProcAddr get = runtime_get;
    XrResult result;
    if (loader_get) {
        runtime_get = get = loader_get;
        result = create_below(&info, NULL, &api.instance);
    } else if (layered) {
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

static unsigned chance(unsigned *state) {
    *state = *state * 1103515245u + 12345u;
    return *state >> 8;
}

static void *program(void *number) {
    unsigned state = seed + (unsigned)(uintptr_t)number;
    while (!atomic_load(&over)) {
        Looking looking = look_begin(shared);
        for (int i = chance(&state) % 200; i > 0 && !atomic_load(&over); i--) {
            XrFlags64 flags = frame(shared, &looking);
            if (flags == 3) atomic_fetch_add(&shown, 1);
            else if (flags != 0) exit(4); /* gaze of the eyes themselves */
            if (chance(&state) % 8 == 0) usleep(chance(&state) % 2000);
        }
        look_end(shared, &looking);
    }
    return NULL;
}

static char page_name[256];

static struct wire_page page_now(unsigned turn) {
    int64_t now = now_ns();
    return (struct wire_page){WIRE_PAGE, WIRE_VERSION, turn, 1, now, now + 60000000000, now - 700000000, 5, -5, turn, 0};
}

static void write_page(const struct wire_page *page, long at, long size) {
    int file = open(page_name, O_RDWR | O_CREAT | SHARED, 0600);
    if (lseek(file, at, SEEK_SET) < 0 || write(file, page, sizeof *page) < 0 || ftruncate(file, size)) exit(5);
    close(file);
}

static void *spoil(void *nothing) { /* the page: of a bridge, of nobody, cut, gone */
    unsigned state = seed, turn = 0;
    (void)nothing;
    while (!atomic_load(&over)) {
        struct wire_page page = page_now(turn += 2);
        unsigned what = chance(&state) % 8;
        if (what == 0) unlink(page_name);
        if (what == 1) for (size_t i = 0; i < 3; i++) ((unsigned char *)&page)[chance(&state) % sizeof page] = (unsigned char)chance(&state);
        if (what == 2) for (size_t i = 0; i < sizeof page; i++) ((unsigned char *)&page)[i] = (unsigned char)chance(&state);
        write_page(&page, what == 3 ? chance(&state) % sizeof page : 0, what == 4 ? 8 : sizeof page);
        usleep(3000);
    }
    return NULL;
}

static struct wire_sample heard_last;

static void hear(const struct wire_samples *message, size_t size) {
    if (size < 24 || message->magic != WIRE_SAMPLES || size != 8 + message->count * sizeof *message->samples) exit(7);
    heard_last = message->samples[message->count - 1];
    atomic_fetch_add(&heard, message->count);
}

/* One life of a sidecar: wait for a program a while, and hear so many messages. */
#ifdef _WIN32
static bool done_soon(HANDLE pipe, OVERLAPPED *way, DWORD *size) {
    bool done = GetLastError() == ERROR_PIPE_CONNECTED || GetOverlappedResultEx(pipe, way, size, 200, FALSE);
    if (!done && CancelIo(pipe)) GetOverlappedResult(pipe, way, size, TRUE);
    return done;
}

static const char *pipe_rights = "D:P(A;;GA;;;OW)"; /* its owner alone */

static void sidecar_life(int messages) {
    struct wire_samples message;
    SECURITY_ATTRIBUTES rights = {sizeof rights, NULL, FALSE};
    OVERLAPPED way = {.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL)};
    DWORD size = 0;
    if (!ConvertStringSecurityDescriptorToSecurityDescriptorA(pipe_rights, SDDL_REVISION_1, &rights.lpSecurityDescriptor, NULL)) exit(6);
    HANDLE pipe = CreateNamedPipeW(L"\\\\.\\pipe\\eyestream-openxr", PIPE_ACCESS_INBOUND | FILE_FLAG_OVERLAPPED | FILE_FLAG_FIRST_PIPE_INSTANCE,
                                   PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE | PIPE_REJECT_REMOTE_CLIENTS, 1, 0, 4096, 0, &rights);
    if (pipe == INVALID_HANDLE_VALUE) exit(6);
    bool there = ConnectNamedPipe(pipe, &way) || done_soon(pipe, &way, &size);
    for (int i = messages; i > 0 && there; i--) {
        ResetEvent(way.hEvent);
        bool came = ReadFile(pipe, &message, sizeof message, NULL, &way) || GetLastError() == ERROR_IO_PENDING;
        SetLastError(ERROR_SUCCESS);
        if (came && done_soon(pipe, &way, &size)) hear(&message, size);
    }
    CloseHandle(pipe);
    CloseHandle(way.hEvent);
    LocalFree(rights.lpSecurityDescriptor);
}
#else
static void sidecar_life(int messages) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct wire_samples message;
    struct timeval wait = {0, 200000};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/gaze.sock", place);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    unlink(address.sun_path);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1)) exit(6);
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    int peer = accept(listener, NULL, NULL);
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    for (int i = messages; i > 0 && peer >= 0; i--) {
        ssize_t size = recv(peer, &message, sizeof message, 0);
        if (size > 0) hear(&message, (size_t)size);
    }
    if (peer >= 0) close(peer);
    close(listener);
}
#endif

static void *sidecar(void *nothing) { /* comes, hears a while, and goes */
    unsigned state = seed + 77;
    (void)nothing;
    while (!atomic_load(&over)) {
        sidecar_life(chance(&state) % 40);
        if (chance(&state) % 3 == 0) usleep(100000);
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

/* ---- looks ---- */

static XrFlags64 soon(const Api *api, const Looking *looking, XrFlags64 wanted) { /* what is seen, two seconds from now at most */
    int64_t ends = now_ns() + 2000000000;
    XrFlags64 flags = frame(api, looking);
    for (; flags != wanted && now_ns() < ends; flags = frame(api, looking)) usleep(10000);
    return flags;
}

static void *hearing(void *nothing) {
    (void)nothing;
    while (!atomic_load(&over)) sidecar_life(20);
    return NULL;
}

static int looks(void) {
    struct wire_page page;
    pthread_t thread;
    Api api = begin(true);
    Looking looking = look_begin(&api);
    printf("nothing %d\n", (int)frame(&api, &looking));
    page = page_now(2);
    write_page(&page, 0, sizeof page);
    printf("released %d\n", (int)soon(&api, &looking, 3));
    printf("dead %d\n", (int)soon(&api, &looking, 0));
    page = page_now(4);
    page.version++;
    write_page(&page, 0, sizeof page);
    usleep(1200000);
    printf("other version %d\n", (int)frame(&api, &looking));
    pthread_create(&thread, NULL, hearing, NULL);
    for (int64_t ends = now_ns() + 3000000000; now_ns() < ends; usleep(10000)) frame(&api, &looking);
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    printf("heard %u, at the end %.2f %.2f\n", atomic_load(&heard), (double)heard_last.x_deg, (double)heard_last.y_deg);
    look_end(&api, &looking);
    api.DestroyInstance(api.instance);
    return 0;
}

/* ---- cost ---- */
#ifndef _WIN32

#ifdef COUNT_ALLOCATIONS /* of a frame of the program's own thread */
static _Thread_local bool in_frame;
static atomic_uint allocations;
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *malloc(size_t size) { allocations += in_frame; return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { allocations += in_frame; return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { allocations += in_frame; return __libc_realloc(old, size); }
#else
static bool in_frame;
static const unsigned allocations;
#endif


static int cost(int frames) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
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
            in_frame = true;
            frame(&api, &looking);
            in_frame = false;
            printf("%d %lld\n", layered, (long long)(now_ns() - begun));
            while (peer >= 0 && recv(peer, &message, sizeof message, MSG_DONTWAIT) > 0) atomic_fetch_add(&heard, message.count);
            usleep(5000);
        }
        look_end(&api, &looking);
        api.DestroyInstance(api.instance);
        if (peer >= 0) close(peer);
    }
    fprintf(stderr, "heard %u\n", atomic_load(&heard));
    return allocations || !atomic_load(&heard) ? 9 : 0;
}

#endif

int main(int count, char **words) {
    if (count < 3) return 1;
    place = words[1];
    snprintf(page_name, sizeof page_name, "%s/page", place);
    seed = count > 4 ? (unsigned)atoi(words[4]) : 1;
#ifdef _WIN32
    if (count > 4 && strcmp(words[2], "looks") == 0) pipe_rights = words[4];
    if (count > 3 && *words[3] && strcmp(words[2], "looks") == 0) {
        HMODULE loader = LoadLibraryA(words[3]);
        if (loader) loader_get = (PFN_xrGetInstanceProcAddr)(void *)GetProcAddress(loader, "xrGetInstanceProcAddr");
        if (!loader_get) return 8;
    }
#else
    if (strcmp(words[2], "cost") == 0) return cost(atoi(words[3]));
#endif
    return strcmp(words[2], "looks") == 0 ? looks() : turns(atof(words[3]));
}
