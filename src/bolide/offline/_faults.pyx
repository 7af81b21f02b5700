"""The compiled twin of faults_twin.py: a page of a mapped file that cannot be had reads as zeros, and is counted.

The handler does what systemd's journal does for the same reason: it puts an empty page where the fault is and goes
on.  Nobody has asked yet whether zeros are right; `files.OpenFiles.check` does, before anything read is believed.
A fault anywhere else has the consequence that it had before.
"""

from libc.stdint cimport uintptr_t
from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_FIXED, MAP_PRIVATE, PROT_READ, mmap
from posix.unistd cimport _SC_PAGESIZE, sysconf

cdef extern from "<signal.h>" nogil:
    ctypedef struct siginfo_t:
        void* si_addr
    ctypedef struct sigset_t:
        pass
    ctypedef struct sigaction_t "struct sigaction":
        void (*sa_sigaction)(int, siginfo_t*, void*) noexcept nogil
        sigset_t sa_mask
        int sa_flags
    int SIGBUS, SA_SIGINFO
    int sigaction(int number, const sigaction_t* action, sigaction_t* before)
    int sigemptyset(sigset_t* signals)

cdef enum:
    WATCHED_MAX = 1024

cdef struct Watched:
    uintptr_t start
    uintptr_t end
    long lost_pages

cdef Watched watched[WATCHED_MAX]
cdef int in_use = 0
cdef uintptr_t page_bytes = sysconf(_SC_PAGESIZE)
cdef sigaction_t before


cdef void on_fault(int number, siginfo_t* info, void* context) noexcept nogil:
    cdef uintptr_t at = <uintptr_t> info.si_addr
    cdef int place
    for place in range(WATCHED_MAX):
        if watched[place].start <= at < watched[place].end:
            if mmap(
                <void*> (at - at % page_bytes), page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0
            ) != MAP_FAILED:
                watched[place].lost_pages += 1
                return
    sigaction(SIGBUS, &before, NULL)  # it happens again at once, and is heard by whoever listened before


def watch(const unsigned char[::1] view):
    global in_use
    cdef sigaction_t action
    cdef int place
    if view.shape[0] == 0:
        return -1
    for place in range(WATCHED_MAX):
        if watched[place].end == 0:
            break
    else:
        return -1
    watched[place] = Watched(<uintptr_t> &view[0], <uintptr_t> &view[0] + view.shape[0], 0)
    if in_use == 0:
        action.sa_sigaction = on_fault
        action.sa_flags = SA_SIGINFO
        sigemptyset(&action.sa_mask)
        sigaction(SIGBUS, &action, &before)
    in_use += 1
    return place


def lost_pages(int place):
    return watched[place].lost_pages if 0 <= place < WATCHED_MAX else 0


def forget(int place):
    global in_use
    if not 0 <= place < WATCHED_MAX or watched[place].end == 0:
        return
    watched[place] = Watched(0, 0, 0)
    in_use -= 1
    if in_use == 0:
        sigaction(SIGBUS, &before, NULL)
