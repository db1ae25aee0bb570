/* Windows, experimental: a named pipe to the sidecar, and a file from the bridge in this user's own folder. */
#include "link.h"

#include <windows.h>
/* after windows.h */
#include <aclapi.h>
#include <knownfolders.h>
#include <shlobj.h>
#include <string.h>

#define PIPE L"\\\\.\\pipe\\eyestream-openxr"
#define PAGE L"\\eyestream-openxr\\page"
#define SECOND INT64_C(1000000000)

_Static_assert(sizeof(void *) == 8 && sizeof(LARGE_INTEGER) == sizeof(XrClock), "64 bits");

/* Of the one pipe: a message that is still under way. */
static OVERLAPPED under_way;
static struct wire_samples held;
static bool writing;

static int64_t counts_a_second(void) {
    LARGE_INTEGER hz;
    QueryPerformanceFrequency(&hz);
    return hz.QuadPart;
}

XrClock link_clock_of(int64_t ns) {
    int64_t hz = counts_a_second();
    return ns / SECOND * hz + ns % SECOND * hz / SECOND;
}

int64_t link_clock_to_ns(XrClock at) {
    int64_t hz = counts_a_second();
    return at / hz * SECOND + at % hz * SECOND / hz;
}

int64_t link_clock_ns(void) {
    LARGE_INTEGER now;
    QueryPerformanceCounter(&now);
    return link_clock_to_ns(now.QuadPart);
}

static bool is_ours(PSID owner, HANDLE token, TOKEN_INFORMATION_CLASS what) {
    BYTE said[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
    DWORD size;
    return GetTokenInformation(token, what, said, sizeof said, &size) && EqualSid(owner, *(PSID *)said);
}

/* Whether this user, the administrators or the system own it: whoever made the pipe first, or put the file there. */
static bool is_trusted(HANDLE object, SE_OBJECT_TYPE kind) {
    PSECURITY_DESCRIPTOR said = NULL;
    PSID owner = NULL;
    HANDLE token = NULL;
    bool trusted = false;
    if (GetSecurityInfo(object, kind, OWNER_SECURITY_INFORMATION, &owner, NULL, NULL, NULL, &said) != ERROR_SUCCESS) return false;
    if (owner && OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token)) {
        trusted = is_ours(owner, token, TokenUser) || is_ours(owner, token, TokenOwner)
            || IsWellKnownSid(owner, WinBuiltinAdministratorsSid) || IsWellKnownSid(owner, WinLocalSystemSid);
        CloseHandle(token);
    }
    LocalFree(said);
    return trusted;
}

Link link_open(void) {
    /* The server may ask who we are, and not act in our name. */
    HANDLE pipe = CreateFileW(PIPE, GENERIC_WRITE | READ_CONTROL, 0, NULL, OPEN_EXISTING,
                              FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION, NULL);
    if (pipe == INVALID_HANDLE_VALUE || is_trusted(pipe, SE_KERNEL_OBJECT)) return (Link)pipe;
    CloseHandle(pipe);
    return -1;
}

bool link_send(Link link, const void *message, size_t size) {
    DWORD sent;
    if (writing && !GetOverlappedResult((HANDLE)link, &under_way, &sent, FALSE)) return GetLastError() == ERROR_IO_INCOMPLETE;
    memcpy(&held, message, size);
    under_way = (OVERLAPPED){0};
    writing = !WriteFile((HANDLE)link, &held, (DWORD)size, NULL, &under_way);
    if (!writing || GetLastError() == ERROR_IO_PENDING) return true;
    writing = false;
    return false;
}

Link page_open(void) {
    WCHAR name[MAX_PATH + sizeof PAGE / sizeof(WCHAR)], *folder = NULL;
    BY_HANDLE_FILE_INFORMATION file;
    bool found = SUCCEEDED(SHGetKnownFolderPath(&FOLDERID_LocalAppData, 0, NULL, &folder)) && wcslen(folder) < MAX_PATH;
    if (found) wcscat(wcscpy(name, folder), PAGE);
    CoTaskMemFree(folder);
    if (!found) return -1;
    HANDLE page = CreateFileW(name, GENERIC_READ | READ_CONTROL, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    if (page == INVALID_HANDLE_VALUE) return -1;
    if (GetFileInformationByHandle(page, &file) && !(file.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT))
        && is_trusted(page, SE_FILE_OBJECT))
        return (Link)page;
    CloseHandle(page);
    return -1;
}

static bool read_once(Link page, struct wire_page *out) {
    OVERLAPPED at = {0};
    DWORD read;
    return ReadFile((HANDLE)page, out, sizeof *out, &read, &at) && read == sizeof *out;
}

bool page_read(Link page, struct wire_page *out) {
    struct wire_page again;
    return read_once(page, out) && read_once(page, &again) && page_is_whole(out, &again);
}

void link_close(Link link) {
    DWORD sent;
    if (link == -1) return;
    if (writing && CancelIoEx((HANDLE)link, &under_way)) { /* it is not of the page, which has nothing under way */
        GetOverlappedResult((HANDLE)link, &under_way, &sent, TRUE);
        writing = false;
    }
    CloseHandle((HANDLE)link);
}
