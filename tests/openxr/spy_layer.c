/* A layer that hands everything down, as an application may put one below any other. */
#include "xr.h"

static PFN_xrGetInstanceProcAddr below;

static XrResult get(XrInstance of, const char *name, PFN_xrVoidFunction *out) { return below(of, name, out); }

static XrResult create(const XrInstanceCreateInfo *info, const XrApiLayerCreateInfo *layers, XrInstance *made) {
    XrApiLayerCreateInfo rest = *layers;
    rest.nextInfo = layers->nextInfo->next;
    below = layers->nextInfo->nextGetInstanceProcAddr;
    return layers->nextInfo->nextCreateApiLayerInstance(info, &rest, made);
}

XrResult xrNegotiateLoaderApiLayerInterface(const XrNegotiateLoaderInfo *, const char *, XrNegotiateApiLayerRequest *);
XrResult xrNegotiateLoaderApiLayerInterface(const XrNegotiateLoaderInfo *loader, const char *name,
                                            XrNegotiateApiLayerRequest *request) {
    (void)name;
    request->layerInterfaceVersion = 1;
    request->layerApiVersion = loader->maxApiVersion;
    request->getInstanceProcAddr = get;
    request->createApiLayerInstance = create;
    return XR_SUCCESS;
}
