/* What the layer needs of OpenXR's binary interface: numbers, sizes and functions, as the specification gives them.
 * tests/openxr/test_abi.py compares each with headers and bindings, where those are installed. Handles are 64 bits wide
 * on every system that the layer is built for, and are never looked into. */
#ifndef EYESTREAM_XR_H
#define EYESTREAM_XR_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int32_t XrResult;
typedef uint32_t XrBool32;
typedef uint64_t XrVersion, XrPath, XrSystemId, XrFlags64;
typedef int64_t XrTime;
typedef uint64_t XrInstance, XrSession, XrSpace, XrActionSet, XrAction;
typedef void (*PFN_xrVoidFunction)(void);

#define XR_SUCCEEDED(result) ((result) >= 0)
#define XR_FAILED(result) ((result) < 0)
#define XR_NULL_PATH 0u
#define XR_NULL_HANDLE 0u

enum {
    XR_SUCCESS = 0,
    XR_SESSION_NOT_FOCUSED = 8,
    XR_ERROR_VALIDATION_FAILURE = -1,
    XR_ERROR_RUNTIME_FAILURE = -2,
    XR_ERROR_OUT_OF_MEMORY = -3,
    XR_ERROR_INITIALIZATION_FAILED = -6,
    XR_ERROR_FUNCTION_UNSUPPORTED = -7,
    XR_ERROR_EXTENSION_NOT_PRESENT = -9,
    XR_ERROR_LIMIT_REACHED = -10,
    XR_ERROR_SIZE_INSUFFICIENT = -11,
    XR_ERROR_HANDLE_INVALID = -12,
    XR_ERROR_PATH_INVALID = -19,
    XR_ERROR_PATH_UNSUPPORTED = -22,
    XR_ERROR_TIME_INVALID = -30,
    XR_ERROR_REFERENCE_SPACE_UNSUPPORTED = -31,
    XR_ERROR_VIEW_CONFIGURATION_TYPE_UNSUPPORTED = -41,
    XR_ERROR_NAME_DUPLICATED = -44,
    XR_ERROR_ACTIONSET_NOT_ATTACHED = -46,
    XR_ERROR_ACTIONSETS_ALREADY_ATTACHED = -47
};

enum {
    XR_TYPE_INSTANCE_CREATE_INFO = 3,
    XR_TYPE_SYSTEM_PROPERTIES = 5,
    XR_TYPE_SESSION_CREATE_INFO = 8,
    XR_TYPE_ACTION_STATE_POSE = 27,
    XR_TYPE_ACTION_SET_CREATE_INFO = 28,
    XR_TYPE_ACTION_CREATE_INFO = 29,
    XR_TYPE_REFERENCE_SPACE_CREATE_INFO = 37,
    XR_TYPE_ACTION_SPACE_CREATE_INFO = 38,
    XR_TYPE_SPACE_LOCATION = 42,
    XR_TYPE_INTERACTION_PROFILE_SUGGESTED_BINDING = 51,
    XR_TYPE_INTERACTION_PROFILE_STATE = 53,
    XR_TYPE_ACTION_STATE_GET_INFO = 58,
    XR_TYPE_SESSION_ACTION_SETS_ATTACH_INFO = 60,
    XR_TYPE_ACTIONS_SYNC_INFO = 61,
    XR_TYPE_BOUND_SOURCES_FOR_ACTION_ENUMERATE_INFO = 62,
    XR_TYPE_SYSTEM_EYE_GAZE_INTERACTION_PROPERTIES_EXT = 1000030000,
    XR_TYPE_EYE_GAZE_SAMPLE_TIME_EXT = 1000030001
};

enum {
    XR_VIEW_CONFIGURATION_TYPE_PRIMARY_MONO = 1,
    XR_VIEW_CONFIGURATION_TYPE_PRIMARY_STEREO = 2,
    XR_VIEW_CONFIGURATION_TYPE_PRIMARY_QUAD_VARJO = 1000037000, /* with foveated inset: core since 1.1 */
    XR_VIEW_CONFIGURATION_TYPE_SECONDARY_MONO_FIRST_PERSON_OBSERVER_MSFT = 1000054000,
    XR_REFERENCE_SPACE_TYPE_VIEW = 1,
    XR_REFERENCE_SPACE_TYPE_COMBINED_EYE_VARJO = 1000121000,
    XR_ACTION_TYPE_POSE_INPUT = 4,
    XR_SPACE_LOCATION_ORIENTATION_VALID_BIT = 1,
    XR_SPACE_LOCATION_POSITION_VALID_BIT = 2,
    XR_SPACE_LOCATION_ORIENTATION_TRACKED_BIT = 4,
    XR_MAX_PATH_LENGTH = 256
};

typedef struct { float x, y, z; } XrVector3f;
typedef struct { float x, y, z, w; } XrQuaternionf;
typedef struct { XrQuaternionf orientation; XrVector3f position; } XrPosef;

typedef struct XrBaseOutStructure { int32_t type; struct XrBaseOutStructure *next; } XrBaseOutStructure;

typedef struct {
    char applicationName[128];
    uint32_t applicationVersion;
    char engineName[128];
    uint32_t engineVersion;
    XrVersion apiVersion;
} XrApplicationInfo;

typedef struct {
    int32_t type;
    const void *next;
    XrFlags64 createFlags;
    XrApplicationInfo applicationInfo;
    uint32_t enabledApiLayerCount;
    const char *const *enabledApiLayerNames;
    uint32_t enabledExtensionCount;
    const char *const *enabledExtensionNames;
} XrInstanceCreateInfo;

typedef struct {
    int32_t type;
    void *next;
    XrSystemId systemId;
    uint32_t vendorId;
    char systemName[256];
    uint32_t graphicsProperties[3];
    XrBool32 trackingProperties[2];
} XrSystemProperties;

typedef struct { int32_t type; void *next; XrBool32 supportsEyeGazeInteraction; } XrSystemEyeGazeInteractionPropertiesEXT;
typedef struct { int32_t type; const void *next; XrFlags64 createFlags; XrSystemId systemId; } XrSessionCreateInfo;
typedef struct { int32_t type; const void *next; int32_t primaryViewConfigurationType; } XrSessionBeginInfo;

typedef struct {
    int32_t type;
    const void *next;
    char actionSetName[64];
    char localizedActionSetName[128];
    uint32_t priority;
} XrActionSetCreateInfo;

typedef struct {
    int32_t type;
    const void *next;
    char actionName[64];
    int32_t actionType;
    uint32_t countSubactionPaths;
    const XrPath *subactionPaths;
    char localizedActionName[128];
} XrActionCreateInfo;

typedef struct { XrAction action; XrPath binding; } XrActionSuggestedBinding;

typedef struct {
    int32_t type;
    const void *next;
    XrPath interactionProfile;
    uint32_t countSuggestedBindings;
    const XrActionSuggestedBinding *suggestedBindings;
} XrInteractionProfileSuggestedBinding;

typedef struct { int32_t type; void *next; XrPath interactionProfile; } XrInteractionProfileState;

typedef struct {
    int32_t type;
    const void *next;
    uint32_t countActionSets;
    const XrActionSet *actionSets;
} XrSessionActionSetsAttachInfo;

typedef struct { XrActionSet actionSet; XrPath subactionPath; } XrActiveActionSet;

typedef struct {
    int32_t type;
    const void *next;
    uint32_t countActiveActionSets;
    const XrActiveActionSet *activeActionSets;
} XrActionsSyncInfo;

typedef struct { int32_t type; const void *next; XrAction action; XrPath subactionPath; } XrActionStateGetInfo;
typedef struct { int32_t type; void *next; XrBool32 isActive; } XrActionStatePose;
typedef struct { int32_t type; const void *next; XrAction action; } XrBoundSourcesForActionEnumerateInfo;

typedef struct {
    int32_t type;
    const void *next;
    XrAction action;
    XrPath subactionPath;
    XrPosef poseInActionSpace;
} XrActionSpaceCreateInfo;

typedef struct {
    int32_t type;
    const void *next;
    int32_t referenceSpaceType;
    XrPosef poseInReferenceSpace;
} XrReferenceSpaceCreateInfo;

typedef struct { int32_t type; void *next; XrFlags64 locationFlags; XrPosef pose; } XrSpaceLocation;
typedef struct { int32_t type; void *next; XrTime time; } XrEyeGazeSampleTimeEXT;
typedef struct { XrFlags64 locationFlags; XrPosef pose; } XrSpaceLocationData;

typedef struct {
    int32_t type;
    const void *next;
    XrSpace baseSpace;
    XrTime time;
    uint32_t spaceCount;
    const XrSpace *spaces;
} XrSpacesLocateInfo;

typedef struct { int32_t type; void *next; uint32_t locationCount; XrSpaceLocationData *locations; } XrSpaceLocations;

typedef struct {
    int32_t type;
    const void *next;
    int32_t viewConfigurationType;
    XrTime displayTime;
    XrSpace space;
} XrViewLocateInfo;

/* Between a loader and its layers. */
enum { XR_LOADER_INFO = 1, XR_API_LAYER_REQUEST = 2, XR_RUNTIME_REQUEST = 3, XR_API_LAYER_CREATE_INFO = 4, XR_API_LAYER_NEXT_INFO = 5 };

typedef XrResult (*PFN_xrGetInstanceProcAddr)(XrInstance, const char *, PFN_xrVoidFunction *);

typedef struct {
    int32_t structType;
    uint32_t structVersion;
    size_t structSize;
    uint32_t minInterfaceVersion, maxInterfaceVersion;
    XrVersion minApiVersion, maxApiVersion;
} XrNegotiateLoaderInfo;

typedef struct XrApiLayerCreateInfo XrApiLayerCreateInfo;
typedef XrResult (*PFN_xrCreateApiLayerInstance)(const XrInstanceCreateInfo *, const XrApiLayerCreateInfo *, XrInstance *);

typedef struct XrApiLayerNextInfo {
    int32_t structType;
    uint32_t structVersion;
    size_t structSize;
    char layerName[256];
    PFN_xrGetInstanceProcAddr nextGetInstanceProcAddr;
    PFN_xrCreateApiLayerInstance nextCreateApiLayerInstance;
    struct XrApiLayerNextInfo *next;
} XrApiLayerNextInfo;

struct XrApiLayerCreateInfo {
    int32_t structType;
    uint32_t structVersion;
    size_t structSize;
    void *loaderInstance;
    char settings_file_location[512];
    XrApiLayerNextInfo *nextInfo;
};

typedef struct {
    int32_t structType;
    uint32_t structVersion;
    size_t structSize;
    uint32_t layerInterfaceVersion;
    XrVersion layerApiVersion;
    PFN_xrGetInstanceProcAddr getInstanceProcAddr;
    PFN_xrCreateApiLayerInstance createApiLayerInstance;
} XrNegotiateApiLayerRequest;

typedef struct {
    int32_t structType;
    uint32_t structVersion;
    size_t structSize;
    uint32_t runtimeInterfaceVersion;
    XrVersion runtimeApiVersion;
    PFN_xrGetInstanceProcAddr getInstanceProcAddr;
} XrNegotiateRuntimeRequest;

/* The system's clock, and what tells its times to the runtime. */
#ifdef _WIN32
#define XR_EXPORT __declspec(dllexport)
#define XR_CLOCK_EXTENSION "XR_KHR_win32_convert_performance_counter_time"
#define XR_CLOCK_TO_TIME ConvertWin32PerformanceCounterToTimeKHR
#define XR_TIME_TO_CLOCK ConvertTimeToWin32PerformanceCounterKHR
typedef int64_t XrClock; /* counts of QueryPerformanceCounter */
#define XR_CLOCK_FUNCTIONS(X)                                                                                        \
    X(ConvertWin32PerformanceCounterToTimeKHR, (XrInstance, const XrClock *, XrTime *))                              \
    X(ConvertTimeToWin32PerformanceCounterKHR, (XrInstance, XrTime, XrClock *))
#else
#define XR_EXPORT __attribute__((visibility("default")))
#define XR_CLOCK_EXTENSION "XR_KHR_convert_timespec_time"
#define XR_CLOCK_TO_TIME ConvertTimespecTimeToTimeKHR
#define XR_TIME_TO_CLOCK ConvertTimeToTimespecTimeKHR
typedef struct timespec XrClock; /* of CLOCK_MONOTONIC */
#define XR_CLOCK_FUNCTIONS(X)                                                                                        \
    X(ConvertTimespecTimeToTimeKHR, (XrInstance, const XrClock *, XrTime *))                                         \
    X(ConvertTimeToTimespecTimeKHR, (XrInstance, XrTime, XrClock *))
#endif

/* X(name, parameters): the functions that the layer calls below itself. */
#define XR_FUNCTIONS(X)                                                                                              \
    X(DestroyInstance, (XrInstance))                                                                                 \
    X(GetSystemProperties, (XrInstance, XrSystemId, XrSystemProperties *))                                           \
    X(StringToPath, (XrInstance, const char *, XrPath *))                                                            \
    X(PathToString, (XrInstance, XrPath, uint32_t, uint32_t *, char *))                                              \
    X(CreateSession, (XrInstance, const XrSessionCreateInfo *, XrSession *))                                         \
    X(DestroySession, (XrSession))                                                                                   \
    X(BeginSession, (XrSession, const XrSessionBeginInfo *))                                                         \
    X(CreateReferenceSpace, (XrSession, const XrReferenceSpaceCreateInfo *, XrSpace *))                              \
    X(CreateActionSpace, (XrSession, const XrActionSpaceCreateInfo *, XrSpace *))                                    \
    X(DestroySpace, (XrSpace))                                                                                       \
    X(LocateSpace, (XrSpace, XrSpace, XrTime, XrSpaceLocation *))                                                    \
    X(LocateSpaces, (XrSession, const XrSpacesLocateInfo *, XrSpaceLocations *))                                     \
    X(LocateSpacesKHR, (XrSession, const XrSpacesLocateInfo *, XrSpaceLocations *))                                  \
    X(CreateActionSet, (XrInstance, const XrActionSetCreateInfo *, XrActionSet *))                                   \
    X(DestroyActionSet, (XrActionSet))                                                                               \
    X(CreateAction, (XrActionSet, const XrActionCreateInfo *, XrAction *))                                           \
    X(DestroyAction, (XrAction))                                                                                     \
    X(SuggestInteractionProfileBindings, (XrInstance, const XrInteractionProfileSuggestedBinding *))                 \
    X(AttachSessionActionSets, (XrSession, const XrSessionActionSetsAttachInfo *))                                   \
    X(SyncActions, (XrSession, const XrActionsSyncInfo *))                                                           \
    X(GetActionStatePose, (XrSession, const XrActionStateGetInfo *, XrActionStatePose *))                            \
    X(GetCurrentInteractionProfile, (XrSession, XrPath, XrInteractionProfileState *))                                \
    X(EnumerateBoundSourcesForAction,                                                                                \
      (XrSession, const XrBoundSourcesForActionEnumerateInfo *, uint32_t, uint32_t *, XrPath *))                     \
    X(EnumerateViewConfigurations, (XrInstance, XrSystemId, uint32_t, uint32_t *, int32_t *))                        \
    X(GetViewConfigurationProperties, (XrInstance, XrSystemId, int32_t, void *))                                     \
    X(EnumerateViewConfigurationViews, (XrInstance, XrSystemId, int32_t, uint32_t, uint32_t *, void *))              \
    X(LocateViews, (XrSession, const XrViewLocateInfo *, void *, uint32_t, uint32_t *, void *))                      \
    XR_CLOCK_FUNCTIONS(X)

#endif
