// What one host thread, the bus and one GPU allow for messages between a host and a kernel that stays resident.
//   nvcc -O3 -std=c++17 -Xcompiler -msse4.1 -gencode=arch=compute_90a,code=sm_90a bounds.cu -o bounds -lcuda
//   ./bounds [trip] [window] [slots] [block] [stream] [saturate]      without an argument: all, in under a minute
//
// Each section answers one question with a program as small as the question allows. All memory is pinned host memory
// that the GPU maps. Times are nanoseconds on the host's clock, from the write of a message (or from when it was due)
// until its answer has been read. "bad" counts wrong answers and is to be 0. Half of all 4 KiB pages of pinned memory
// are quick to read for the GPU and half are slow: the program finds out which, and puts the requests of the first four
// sections in pages of one class. Kernels end by themselves after 4e9 cycles, the host's loops at a time limit.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>
#define CHECK(x)                                                                                                       \
    do {                                                                                                               \
        auto e = (x);                                                                                                  \
        if (e != cudaSuccess) {                                                                                        \
            printf("%s: %s\n", #x, cudaGetErrorString(e));                                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
typedef uint32_t u32;
typedef uint64_t u64;
typedef unsigned long long ull;
struct alignas(16) Atom {
    u32 a, b, c, stamp;
}; // 16 bytes that one instruction reads or writes as a whole
struct alignas(128) Line {
    Atom at[8];
}; // atoms 0 to 5: 64 bytes of message and room to spare, each with a stamp; 7: stop
struct Pages {
    char *base;
    u32 page[16]; // up to 16 pages of one class, used as one piece of memory
    __host__ __device__ char *at(u32 byte) const { return base + page[byte >> 12] * 4096 + (byte & 4095); }
};
constexpr u32 STOP = ~0u, ALL = ~0u, TRIPS = 21000;
constexpr long long DEVICE_LIMIT = 4000000000ll; // cycles

// ---------------------------------------------------------------- loads, stores and fences of the device
#define LOAD16(NAME, KIND)                                                                                             \
    __device__ inline uint4 NAME(const void *p) {                                                                      \
        uint4 v;                                                                                                       \
        asm volatile("{.reg .b128 t; .reg .b64 l, h; " KIND                                                            \
                     ".b128 t, [%4]; mov.b128 {l, h}, t; mov.b64 {%0, %1}, l; mov.b64 {%2, %3}, h;}"                   \
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                                                      \
                     : "l"(p)                                                                                          \
                     : "memory");                                                                                      \
        return v;                                                                                                      \
    }
#define LOAD4(NAME, KIND)                                                                                              \
    __device__ inline u32 NAME(const void *p) {                                                                        \
        u32 v;                                                                                                         \
        asm volatile(KIND ".u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");                                             \
        return v;                                                                                                      \
    }
#define STORE4(NAME, KIND)                                                                                             \
    __device__ inline void NAME(void *p, u32 v) { asm volatile(KIND ".u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
LOAD16(load16, "ld.relaxed.sys.global")
LOAD16(load16_acquire, "ld.acquire.sys.global") LOAD4(load4, "ld.relaxed.sys.global")
    LOAD4(load4_acquire, "ld.acquire.sys.global") LOAD4(load4_plain, "ld.global")
        STORE4(store4, "st.relaxed.sys.global") STORE4(store4_release, "st.release.sys.global")
            LOAD4(shared_acquire, "ld.acquire.cta") STORE4(shared_release, "st.release.cta") __device__
    inline void store16(void *p, uint4 v) {
    asm volatile("{.reg .b128 t; .reg .b64 l, h; mov.b64 l, {%1, %2}; mov.b64 h, {%3, %4}; "
                 "mov.b128 t, {l, h}; st.relaxed.sys.global.b128 [%0], t;}" ::"l"(p),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}
__device__ inline void fence_sys() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
__device__ inline u64 nanoseconds() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// ---------------------------------------------------------------- the host's clock, threads and samples
static double tick_ns; // nanoseconds a tick
static inline u64 now() {
    unsigned core;
    return __rdtscp(&core);
} // in ticks; steady_clock reads the same counter
static u64 ticks(double seconds) { return (u64)(seconds * 1e9 / tick_ns); }
static void wait_until(u64 t) {
    while (now() < t) {
    }
}
static void pin(int k) {
    cpu_set_t s;
    CPU_ZERO(&s);
    CPU_SET((3 + k) % sysconf(_SC_NPROCESSORS_ONLN), &s);
    sched_setaffinity(0, sizeof s, &s);
}
static void calibrate() {
    using clock = std::chrono::steady_clock;
    auto a = clock::now(), b = a;
    u64 t = now();
    while (b - a < std::chrono::milliseconds(50)) b = clock::now();
    tick_ns = std::chrono::duration<double, std::nano>(b - a).count() / (now() - t);
    t = now();
    for (int k = 0; k < 1000; k++) now();
    printf("the host's clock: %.3f ns a tick, one reading takes %.1f ns\n", tick_ns, (now() - t) * tick_ns / 1001);
}
struct Times { // samples in ticks; the memory is touched before anything is timed
    std::vector<u32> v;
    size_t n = 0;
    explicit Times(size_t most) : v(most, 0u) {}
    void add(u64 t) {
        if (n < v.size()) v[n++] = (u32)std::min<u64>(t, ~0u);
    }
    double p(int percent) {
        if (!n) return 0;
        auto k = v.begin() + n * percent / 100;
        std::nth_element(v.begin(), k, v.begin() + n);
        return *k * tick_ns;
    }
};

// ---------------------------------------------------------------- memory: 2 MiB in classes, 1 of answers, 1 of
// control, 64 for the rest
static char *memory, *answers, *control, *bulk;
static ptrdiff_t to_device;
static cudaStream_t gpu;
static Pages classes[2];
static const char *class_name[2] = {"quick page", "slow page"};
template <class T> T *dev(T *p) { return (T *)((char *)p + to_device); }
static Pages dev(Pages p) {
    p.base += to_device;
    return p;
}
static void launched() {
    CHECK(cudaGetLastError());
    cudaStreamQuery(gpu);
}
static void finish() { CHECK(cudaStreamSynchronize(gpu)); }
static void get_memory() {
    size_t bytes = 68u << 20, huge = 2u << 20;
    char *d;
    char *m = (char *)mmap(0, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = (char *)(((u64)m + huge - 1) & ~(u64)(huge - 1));
    answers = memory + (2u << 20);
    control = memory + (3u << 20);
    bulk = memory + (4u << 20);
    madvise(memory, bytes, MADV_HUGEPAGE);
    memset(memory, 0, bytes);
    CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterMapped));
    CHECK(cudaHostGetDevicePointer((void **)&d, memory, 0));
    to_device = d - memory;
}
__global__ void page_cycles(const char *base,
                            u32 *out) { // one warp: for each of 512 pages the least cycles of 32 reads of a line
    long long end = clock64() + DEVICE_LIMIT;
    u32 l = threadIdx.x;
    for (u32 p = 0, best = ~0u; p < 512 && clock64() < end; p++, best = ~0u) {
        for (u32 k = 0; k < 33; k++) {
            long long t = clock64();
            uint4 v = load16(base + p * 4096 + (k * 7 + p) % 32 * 128 + (l & 7) * 16);
            t -= __shfl_sync(ALL, v.x + v.w, 0) == 0x12345678; // waits for the data
            if (k) best = min(best, (u32)(clock64() - t));
        }
        if (l == 0) out[p] = best;
    }
}
static void classify() {
    u32 *cycles = (u32 *)control, order[512];
    for (int k = 0; k < 2; k++) {
        page_cycles<<<1, 32, 0, gpu>>>(dev(memory), dev(cycles));
        launched();
        finish();
    }
    for (u32 p = 0; p < 512; p++) order[p] = p;
    std::sort(order, order + 512, [&](u32 a, u32 b) { return cycles[a] < cycles[b]; });
    for (u32 c = 0, first = 120; c < 2;
         c++, first += 256) { // the middle of the quicker half and the middle of the slower half
        classes[c].base = memory;
        for (u32 k = 0; k < 16; k++) classes[c].page[k] = order[first + k];
        printf("a %s: the GPU reads a line in %u to %u cycles\n", class_name[c], cycles[order[first]],
               cycles[order[first + 15]]);
    }
}

// ---------------------------------------------------------------- messages and loops of the host that several sections
// use
static inline void put(Atom *p, u32 a, u32 b, u32 c, u32 stamp) {
    _mm_store_si128((__m128i *)p, _mm_set_epi32(stamp, c, b, a));
}
static inline void write_line(Line &line, u32 i, u32 b = 0) {
    for (u32 k = 0; k < 6; k++) put(&line.at[k], i, b + k, i ^ k, i + 1);
}
static inline bool read_line(const Line &line, u32 i, u64 &bad) { // true: the answer to message i is there
    u32 wrong = 0;
    for (u32 k = 0; k < 6; k++) {
        __m128i x = _mm_load_si128((const __m128i *)&line.at[k]);
        asm volatile("" ::: "memory");
        if ((u32)_mm_extract_epi32(x, 3) != i + 1) return false;
        wrong |= ((u32)_mm_extract_epi32(x, 0) ^ (i + 1)) | ((u32)_mm_extract_epi32(x, 2) ^ i ^ k);
    }
    bad += wrong != 0;
    return true;
}
// A link has start, stop, push, flush, poll, room (how many may be unread) and turn (how many are sent before the next
// receive).
template <class L> bool closed_loop(L &link, u32 &next, u32 depth, u32 n, Times &times) {
    static u64 sent_at[128];
    u32 sent = next, got = next, to = next + n;
    u64 limit = now() + ticks(1);
    while (got != to) {
        while (sent - got < depth && sent != to) {
            sent_at[sent % 128] = now();
            link.push(sent++);
        }
        link.flush(sent);
        if (link.poll(got)) {
            times.add(now() - sent_at[got % 128]);
            got++;
        } else if (now() > limit) {
            printf("  (stopped: no answer to message %u)\n", got);
            return false;
        }
    }
    next = to;
    return true;
}
template <class Send, class Got>
Times trips(Send send, Got got) { // one message in flight; the first 1,000 do not count
    struct {
        Send push;
        Got poll;
        void flush(u32) {}
    } link{send, got};
    u32 next = 0;
    Times warm(1000), times(TRIPS - 1000);
    if (closed_loop(link, next, 1, 1000, warm)) closed_loop(link, next, 1, TRIPS - 1000, times);
    return times;
}
static Times clock_alone(size_t n, double step) { // how late a thread is that only reads the clock on the same schedule
    Times times(n);
    double due = 0;
    u64 start = now() + ticks(0.001);
    wait_until(start);
    while (times.n < n)
        for (u64 t = now() - start; times.n < n && due <= t; due += step) times.add(t - (u64)due);
    return times;
}
template <class L>
void open_loop(L link, double rate, const char *name) { // message i is due at i / rate; its time counts from then
    const double seconds = 0.1, step = 1e9 / tick_ns / rate;
    u32 n = (u32)(rate * seconds), base = 0, sent = 0, got = 0;
    double send_due = 0, get_due = 0;
    Times alone = clock_alone(n, step), warm(1000), times(n);
    link.start();
    if (!closed_loop(link, base, 8, 1000, warm)) return link.stop();
    u64 start = now() + ticks(0.001), last = 0, end = ticks(seconds), limit = end + ticks(1);
    wait_until(start);
    for (u64 t = 0; got < n && t < limit; t = now() - start) { // all in ticks since start
        if (t > end && sent) n = sent;                         // after 0.1 s nothing new is sent
        for (u32 k = 0; k < link.turn && sent < n && sent - got < link.room && send_due <= t; k++, send_due += step)
            link.push(base + sent++);
        link.flush(base + sent);
        for (; got < sent && link.poll(base + got); got++, get_due += step) {
            last = now() - start;
            times.add(last - (u64)get_due);
        }
    }
    link.stop();
    printf("%s, %4.1f M/s due: p50 %.0f p99 %.0f ns, %.2f M/s reached, bad %lu, lost %u; the clock alone is late by "
           "p50 %.0f p99 %.0f ns\n",
           name, rate / 1e6, times.p(50), times.p(99), got / (last * tick_ns) * 1e3, link.bad, n - got, alone.p(50),
           alone.p(99));
}

// ---------------------------------------------------------------- trip: how long does one message of 64 bytes take,
// alone?
__global__ void answer_flags(const u32 *req, u32 *rsp, u32 n) { // one thread
    long long end = clock64() + DEVICE_LIMIT;
    for (u32 i = 1; i <= n && clock64() < end;)
        if (load4_acquire(req) == i) store4_release(rsp, i++);
}
__global__ void answer_lines(const Line *req, Line *rsp, u32 n) { // two warps that poll the same line half a read apart
    __shared__ u32 next;
    if (threadIdx.x == 0) next = 0;
    __syncthreads();
    u32 l = threadIdx.x & 31;
    long long start = clock64(), end = start + DEVICE_LIMIT;
    while (clock64() < start + 900 * (threadIdx.x / 32)) {
    }
    for (;;) {
        u32 i = __shfl_sync(ALL, *(volatile u32 *)&next, 0), mine = 0;
        uint4 v = load16(&req->at[l & 7]);
        if (__any_sync(ALL, i == n || clock64() > end)) return;
        if (!__all_sync(ALL, v.w == i + 1 || (l & 7) >= 6)) continue;
        if (l == 0) mine = atomicCAS(&next, i, i + 1) == i;
        if (__shfl_sync(ALL, mine, 0) && l < 6) {
            v.x++;
            store16(&rsp->at[l], v);
        }
    }
}
static void trip() {
    for (int c = 0; c < 2; c++) {
        Line *req = (Line *)classes[c].at(0), *rsp = (Line *)answers;
        volatile u32 *flag = &req->at[0].a, *echo = &rsp->at[0].a;
        u64 bad = 0;
        memset((void *)req, 0, 128);
        memset((void *)rsp, 0, 128);
        answer_flags<<<1, 1, 0, gpu>>>((u32 *)dev(req), (u32 *)dev(rsp), TRIPS);
        launched();
        Times f = trips([&](u32 i) { *flag = i + 1; }, [&](u32 i) { return *echo == i + 1; });
        finish();
        memset((void *)req, 0, 128);
        memset((void *)rsp, 0, 128);
        answer_lines<<<1, 64, 0, gpu>>>(dev(req), dev(rsp), TRIPS);
        launched();
        Times s = trips([&](u32 i) { write_line(*req, i); }, [&](u32 i) { return read_line(*rsp, i, bad); });
        finish();
        printf("trip, %s: bare flag p50 %.0f p99 %.0f ns; 64 bytes in a stamped line, two warps: p50 %.0f p99 %.0f ns, "
               "bad %lu\n",
               class_name[c], f.p(50), f.p(99), s.p(50), s.p(99), bad);
    }
}

// ---------------------------------------------------------------- window: and with many in flight, each in a stamped
// line of its own? Message i is in line i % E. All warps of a group poll the same 4 lines; cur is the group's block of
// 4 lines, times 16, with one bit for each line that has been answered. The warp that sets a line's bit answers it.
// The section claims adds steps, by bits of STEPS (see there); without any they are compiled away.
__device__ inline void idle(long long cycles) {
    long long t = clock64();
    while (clock64() < t + cycles) {
    }
}
__device__ inline u32 claim_by_one_word(ull *claims, u32 base, u32 full) { // lane 0: which of 4 messages from base on
    for (;;) {
        ull old = *(volatile ull *)claims;
        u32 next = (u32)(old >> 32), ahead = (u32)old; // bit i % 32: message i is claimed
        int passed = (int)(next - base);
        u32 left = full & ~__funnelshift_r(ahead, ahead, base) & (passed >= 4 ? 0 : passed > 0 ? 15u << passed : 15u);
        if (!left) return 0;
        u32 run = left & ~(left + (left & -left)); // side by side
        u32 mine = __funnelshift_l(run, run, base), all = ahead | mine, from_next = __funnelshift_r(all, all, next);
        u32 done = __ffs(~from_next) - 1, rest = from_next >> done;
        ull claimed = (ull)(next + done) << 32 | __funnelshift_l(rest, rest, next + done);
        if (atomicCAS(claims, old, claimed) == old) return run;
    }
}
template <int STEPS>
__global__ void answer_window(const __grid_constant__ Pages req, Line *rsp, u32 E, u32 groups, u32 warps) {
    __shared__ ull cur[8], one;
    if (threadIdx.x < 8) cur[threadIdx.x] = threadIdx.x << 4;
    if (threadIdx.x == 0) one = 0;
    __syncthreads();
    u32 w = threadIdx.x / 32, g = w / warps, l = threadIdx.x & 31;
    long long start = clock64(), end = start + DEVICE_LIMIT;
    while (clock64() < start + 900 * (w % warps)) {
    }
    for (;;) {
        ull c = __shfl_sync(ALL, STEPS & 1 ? *(volatile ull *)&one : *(volatile ull *)&cur[g], 0);
        u32 next = (u32)(c >> 32) / 4, block = STEPS & 1 ? next + ((g - next) & (groups - 1)) : (u32)(c >> 4);
        u32 i = 4 * block + (l >> 3), full = 0, mine = 0;
        uint4 v = load16(req.at((i & (E - 1)) * 128 + (l & 7) * 16));
        if (__any_sync(ALL, ((l & 7) == 7 && v.w == STOP) || clock64() > end)) return;
        u32 there = __ballot_sync(ALL, v.w == i + 1 || (l & 7) >= 6);
        for (u32 k = 0; k < 4; k++)
            if ((there >> (8 * k) & 255) == 255) full |= 1u << k;
        if ((STEPS & 2) && full) idle(500);
        if ((STEPS & 1) && l == 0 && full)
            mine = claim_by_one_word(&one, 4 * block, full);
        else if (!(STEPS & 1) && l == 0 && full)
            for (ull old = c, was;; old = was) {
                mine = (u32)(old >> 4) == block ? full & ~(u32)(old & 15) : 0;
                if (!mine) break;
                was = atomicCAS(&cur[g], old, (old | mine) % 16 == 15 ? (ull)(block + groups) << 4 : old | mine);
                if (was == old) break;
            }
        mine = __shfl_sync(ALL, mine, 0);
        if ((mine >> (l >> 3) & 1) && (l & 7) < 6) {
            v.x++;
            store16(&rsp[i & (E - 1)].at[l & 7], v);
        }
        if (STEPS & 4) idle(mine ? 1300 : 800);
    }
}
struct Window {
    Pages req;
    u32 room, groups, turn;
    Line *rsp = (Line *)answers;
    u64 bad = 0;
    Window(int c, u32 E, u32 groups) : req(classes[c]), room(E), groups(groups), turn(E) {}
    Line &line(u32 i) { return *(Line *)req.at((i & (room - 1)) * 128); }
    template <int STEPS = 0> void start() {
        for (u32 i = 0; i < room; i++) {
            memset((void *)&line(i), 0, 128);
            memset((void *)&rsp[i], 0, 128);
        }
        answer_window<STEPS><<<1, 64 * groups, 0, gpu>>>(dev(req), dev(rsp), room, groups, 2);
        launched();
    }
    void stop() {
        for (u32 i = 0; i < room; i++) put(&line(i).at[7], 0, 0, 0, STOP);
        finish();
    }
    void push(u32 i) { write_line(line(i), i); }
    void flush(u32) {}
    bool poll(u32 i) { return read_line(rsp[i & (room - 1)], i, bad); }
};
static void window() {
    for (int c = 0; c < 2; c++)
        for (u32 E : {64u, 128u})
            for (u32 groups : {8u, 4u}) {
                char name[100];
                snprintf(name, sizeof name, "window, %s, E %u, %u groups x 2 warps", class_name[c], E, groups);
                for (u32 depth : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
                    Window w(c, E, groups);
                    u32 n = depth < 8 ? 20000 : 100000, next = 0;
                    Times warm(1000), times(n);
                    w.start();
                    bool ok = closed_loop(w, next, depth, 1000, warm);
                    u64 t = now();
                    ok = ok && closed_loop(w, next, depth, n, times);
                    t = now() - t;
                    w.stop();
                    if (ok)
                        printf("%s, %2u in flight: p50 %.0f p99 %.0f ns, %.2f M/s, bad %lu\n", name, depth, times.p(50),
                               times.p(99), n / (t * tick_ns) * 1e3, w.bad);
                }
                for (double rate : {0.1, 1., 2., 5., 7., 8., 9., 10., 11., 12.})
                    open_loop(Window(c, E, groups), rate * 1e6, name);
            }
}

// ---------------------------------------------------------------- claims: what do the steps between a look and the
// next one cost? By bits of STEPS: 1, one word of claims for all groups, which holds the first message that nobody has
// claimed and a bit for each of the 31 behind it, so that a group is looked at within these; 2, 500 cycles between a
// look that shows a message and the claim; 4, 800 cycles behind each look, 1300 if it answered. No clock is read in the
// loop. Then bursts of 64: when each answer has been read, from the first push.
template <int STEPS> void claims_of(const char *name) {
    Window w(0, 128, 8);
    w.start<STEPS>();
    printf("claims, %s, ns a message by how many are in flight,", name);
    u32 next = 0, at[] = {0, 7, 15, 31, 47, 63};
    u64 came[64] = {}, limit = now() + ticks(3);
    for (u32 depth : {1u, 2u, 8u, 32u, 64u}) {
        u32 n = depth < 8 ? 20000 : 200000, sent = 0, got = 0;
        u64 t = now();
        while (got < n && now() < limit) {
            while (sent - got < depth && sent < n) w.push(next + sent++);
            if (w.poll(next + got)) got++;
        }
        next += sent;
        printf(" %u: %.0f", depth, (now() - t) * tick_ns / n * depth);
    }
    for (u32 k = 0; k < 2000; k++, next += 64, wait_until(now() + ticks(5e-6))) {
        u64 t = now();
        for (u32 i = 0; i < 64; i++) w.push(next + i);
        for (u32 i = 0; i < 64 && now() < t + ticks(0.1);)
            if (w.poll(next + i)) came[i++] += now() - t;
    }
    printf("; of a burst, ns until message");
    for (u32 i : at) printf(" %u: %.0f", i, came[i] * tick_ns / 2000);
    w.stop();
    printf(", bad %lu\n", w.bad);
}
static void claims() {
    for (int k = 0; k < 2; k++) {
        claims_of<0>("a word for each group");
        claims_of<1>("one word");
        claims_of<2>("500 cycles before a claim");
        claims_of<4>("800 and 1300 cycles behind a look");
        claims_of<7>("all three");
    }
}

// ---------------------------------------------------------------- slots: and through plain slots with a tail each way?
// A slot is free once the answer of SLOTS messages before has been read, so the host needs no head. Warp 0 reads the
// tail and says in shared memory how far it is; warps 1 to 14 take up to 8 messages each and say where their piece
// ends; warp 15 publishes.
constexpr u32 SLOTS = 512; // of 4 atoms; the tail is in the page after the slots
__global__ void answer_slots(const __grid_constant__ Pages in, Atom *out, const u32 *in_tail, u32 *out_tail) {
    __shared__ u32 seen, taken, quit, piece_end[SLOTS];
    u32 w = threadIdx.x / 32, l = threadIdx.x & 31, t, last = 0;
    piece_end[threadIdx.x] = 0;
    if (threadIdx.x == 0) seen = taken = quit = 0;
    __syncthreads();
    long long end = clock64() + DEVICE_LIMIT;
    if (w == 0 && l == 0) {
        while ((t = load4_acquire(in_tail)) != STOP && clock64() < end)
            if (t != last) shared_release(&seen, last = t);
        shared_release(&quit, 1);
    } else if (w == 15 && l == 0)
        for (u32 to = 0; !shared_acquire(&quit);) {
            while ((t = shared_acquire(&piece_end[to % SLOTS])) - to - 1 < 8)
                to = t; // else: an end of an earlier round
            if (to != last) {
                fence_sys();
                store4(out_tail, last = to);
            }
        }
    else if (w > 0 && w < 15)
        for (u32 from, n;;) {
            if (l == 0) {
                from = shared_acquire(&taken);
                n = min(shared_acquire(&seen) - from, 8u);
                if (n && atomicCAS(&taken, from, from + n) != from) n = 0;
                if (!n && shared_acquire(&quit)) n = STOP;
            }
            n = __shfl_sync(ALL, n, 0);
            from = __shfl_sync(ALL, from, 0);
            if (n == STOP) return;
            u32 slot = (from + l / 4) % SLOTS;
            if (l / 4 < n) {
                uint4 v = load16(in.at(slot * 64 + l % 4 * 16));
                v.x++;
                store16(&out[slot * 4 + l % 4], v);
            }
            __syncwarp();
            if (l == 0 && n) shared_release(&piece_end[from % SLOTS], from + n);
        }
}
struct SlotLink {
    Pages in;
    u32 room = SLOTS, turn = 64, read = 0, written = 0, *in_tail, *out_tail = (u32 *)control;
    Atom *out = (Atom *)answers;
    u64 bad = 0;
    explicit SlotLink(int c) : in(classes[c]), in_tail((u32 *)in.at(SLOTS * 64)) {}
    void start() {
        *in_tail = *out_tail = 0;
        answer_slots<<<1, 512, 0, gpu>>>(dev(in), dev(out), dev(in_tail), dev(out_tail));
        launched();
    }
    void stop() {
        flush(STOP);
        finish();
    }
    void push(u32 i) {
        for (u32 k = 0; k < 4; k++) put((Atom *)in.at(i % SLOTS * 64) + k, i, k, i ^ k, ~i);
    }
    void flush(u32 tail) {
        std::atomic_thread_fence(std::memory_order_release);
        if (tail != written) *(volatile u32 *)in_tail = written = tail;
    }
    bool poll(u32 i) {
        if (read == i) {
            read = *(volatile u32 *)out_tail;
            std::atomic_thread_fence(std::memory_order_acquire);
            if (read == i) return false;
        }
        for (u32 k = 0; k < 4; k++) {
            const Atom &x = out[i % SLOTS * 4 + k];
            bad += x.a != i + 1 || x.c != (i ^ k) || x.stamp != ~i;
        }
        return true;
    }
};
static void slots() {
    for (int c = 0; c < 2; c++)
        for (double rate : {1., 5., 8., 10., 12., 15., 20.})
            open_loop(SlotLink(c), rate * 1e6, c ? "slots, slow page" : "slots, quick page");
}

// ---------------------------------------------------------------- block: what do a block of 512 threads, fences and a
// payload cost? Warp 0 polls all lines with one instruction; the block meets before and after the body. With a payload,
// A + B of 100 floats each is read from mapped memory and the sums are written there; the host's writes and checks of
// the floats are inside the time.
enum Read { NOTHING, WORDS_RELAXED, WORDS_PLAIN, ATOMS };
struct Order {
    bool acquire, before, after;
    Read read;
    u32 write;
};                                                     // before and after: fences; write: bytes a thread
constexpr u32 FLOATS = 100, PLACE = 1024, PLACES = 64; // A at the start of a place, B 512 bytes further
__device__ inline u32 sum(u32 a, u32 b) { return __float_as_uint(__uint_as_float(a) + __uint_as_float(b)); }
__device__ inline void add(Order o, const char *in, char *out, u32 t) {
    uint4 x = {}, y = {}, z;
    if (o.read == ATOMS && t < FLOATS / 4) {
        x = load16(in + 16 * t);
        y = load16(in + 512 + 16 * t);
    }
    if (o.read == WORDS_PLAIN && t < FLOATS) {
        x.x = load4_plain(in + 4 * t);
        y.x = load4_plain(in + 512 + 4 * t);
    }
    if (o.read == WORDS_RELAXED && t < FLOATS) {
        x.x = load4(in + 4 * t);
        y.x = load4(in + 512 + 4 * t);
    }
    z = make_uint4(sum(x.x, y.x), sum(x.y, y.y), sum(x.z, y.z), sum(x.w, y.w));
    if (o.read == ATOMS) {
        if (t < FLOATS / 4) store16(out + 16 * t, z);
        return;
    }
    if (o.write == 4) {
        if (t < FLOATS) store4(out + 4 * t, z.x);
        return;
    }
    z.y = __shfl_down_sync(ALL, z.x, 1);
    z.z = __shfl_down_sync(ALL, z.x, 2);
    z.w = __shfl_down_sync(ALL, z.x, 3);
    if (t < FLOATS && t % 4 == 0) store16(out + 4 * t, z);
}
__global__ void answer_block(const Line *req, Line *rsp, u32 lines, Order o, const char *in, char *out) {
    __shared__ uint4 message[32];
    __shared__ u32 body[512], quit;
    u32 t = threadIdx.x;
    long long end = clock64() + DEVICE_LIMIT;
    for (u32 i = 0; i < TRIPS; i++) {
        if (t < 32) {
            const Atom *mine = &req->at[t % (8 * lines)];
            bool there = false, late = false;
            for (uint4 v; !there && !late; message[t] = v) {
                v = o.acquire ? load16_acquire(mine) : load16(mine);
                there = __all_sync(ALL, v.w == i + 1 || (t & 7) >= 6);
                late = __any_sync(ALL, clock64() > end);
            }
            if (o.before) fence_sys();
            if (t == 0) quit = !there;
        }
        __syncthreads();
        if (quit) return;
        body[t] = message[t & 31].x + 1;
        if (o.read != NOTHING) add(o, in + message[0].y, out + message[0].y, t);
        __syncthreads();
        if (t >= 32) continue;
        if (o.after) fence_sys();
        if (t < 8 * lines && (t & 7) < 6) {
            uint4 v = message[t];
            v.x = body[t];
            store16(&rsp->at[t], v);
        }
    }
}
static void block_trips(int c, u32 lines, Order o) {
    static const char *reads[] = {"", ", A + B: reads 4 bytes relaxed.sys", ", A + B: reads 4 bytes ld.global",
                                  ", A + B: reads 16 bytes relaxed.sys"};
    Line *req = (Line *)classes[c].at(0), *rsp = (Line *)answers;
    float *in = (float *)bulk, *out = in + PLACE * PLACES / 4;
    u64 bad = 0;
    memset((void *)req, 0, 384);
    memset((void *)rsp, 0, 384);
    answer_block<<<1, 512, 0, gpu>>>(dev(req), dev(rsp), lines, o, (char *)dev(in), (char *)dev(out));
    launched();
    Times times = trips(
        [&](u32 i) {
            u32 place = i % PLACES * PLACE;
            float *a = in + place / 4;
            if (o.read != NOTHING)
                for (u32 k = 0; k < FLOATS; k++) {
                    a[k] = (float)(i + k);
                    a[128 + k] = (float)k;
                }
            for (u32 k = 0; k < lines; k++) write_line(req[k], i, place);
        },
        [&](u32 i) {
            for (u32 k = 0; k < lines; k++)
                if (!read_line(rsp[k], i, bad)) return false;
            if (o.read != NOTHING)
                for (u32 k = 0; k < FLOATS; k++) bad += out[i % PLACES * PLACE / 4 + k] != (float)(i + 2 * k);
            return true;
        });
    finish();
    printf("block of 512, %s, %u line%s, %s poll%s%s%s%s: p50 %.0f p99 %.0f ns, bad %lu\n", class_name[c], lines,
           lines > 1 ? "s" : "", o.acquire ? "acquire" : "relaxed", o.before ? ", fence before the body" : "",
           o.after ? ", fence before the answer" : "", reads[o.read],
           o.write == 4    ? ", writes 4 bytes"
           : o.write == 16 ? ", writes 16 bytes"
                           : "",
           times.p(50), times.p(99), bad);
}
static void block() {
    for (int c = 0; c < 2; c++) {
        for (u32 lines : {1u, 3u})
            for (bool after : {false, true})
                for (int k = 0; k < 3; k++) block_trips(c, lines, {k == 1, k == 2, after, NOTHING, 0});
        for (Read r : {WORDS_RELAXED, WORDS_PLAIN, ATOMS})
            for (u32 write : {4u, 16u})
                if (r != ATOMS || write == 16) block_trips(c, 1, {true, false, true, r, write});
    }
}

// ---------------------------------------------------------------- stream: what do the bus and a host thread allow,
// without a protocol?
template <bool READ, bool WRITE>
__global__ void stream_for(const uint4 *in, uint4 *out, u32 atoms, u64 ns, ull *bytes) {
    u64 start = nanoseconds();
    long long end = clock64() + DEVICE_LIMIT;
    uint4 v[8] = {};
    ull moved = 0;
    for (u32 piece = blockIdx.x; nanoseconds() - start < ns && clock64() < end;
         piece += gridDim.x, moved += 128 * blockDim.x) {
        u32 first = piece * 8 * blockDim.x % atoms + threadIdx.x;
        for (u32 k = 0; k < 8; k++)
            if (READ) v[k] = __ldcv(in + first + k * blockDim.x);
        for (u32 k = 0; k < 8; k++)
            if (WRITE)
                __stcs(out + first + k * blockDim.x, v[k]);
            else
                asm volatile("" ::"r"(v[k].x ^ v[k].w));
    }
    if (threadIdx.x == 0) atomicAdd(bytes, moved);
}
static ull *moved; // on the device: bytes each way, of all blocks
static void start_stream(decltype(&stream_for<true, true>) kernel, int blocks, char *in, char *out, u32 bytes) {
    CHECK(cudaMemsetAsync(moved, 0, 8, gpu));
    kernel<<<blocks, 512, 0, gpu>>>((uint4 *)dev(in), (uint4 *)dev(out), bytes / 16, 300000000ull, moved);
    launched();
}
static double end_stream() {
    ull n = 0;
    CHECK(cudaMemcpyAsync(&n, moved, 8, cudaMemcpyDefault, gpu));
    finish();
    return n / 0.3e9;
} // GB/s
constexpr u32 RING = 4u << 20, TURN = 32u << 10; // a host thread writes 32 KiB, reads 32 KiB, and so on
template <u32 S> static void write_turn(char *ring, u64 &i) {
    for (u32 done = 0; done < TURN; done += S, i++) {
        u64 *m = (u64 *)(ring + i * S % RING);
        for (u32 k = 0; k < S / 8; k++) m[k] = i + k;
    }
    asm volatile("" ::: "memory");
}
template <u32 S>
static u64 read_turn(const char *ring, u64 &i, bool check) { // how many messages are wrong, or the sum of all words
    u64 result = 0;
    asm volatile("" ::: "memory");
    for (u32 done = 0; done < TURN; done += S, i++) {
        u64 x = 0, first = i % (RING / S);
        const u64 *m = (const u64 *)(ring + first * S);
        if (check) {
            for (u32 k = 0; k < S / 8; k++) x |= m[k] ^ (first + k);
            result += x != 0;
        } else
            for (u32 k = 0; k < S / 8; k++) result += m[k];
    }
    return result;
}
template <u32 S> static void host(int threads, bool copying) {
    char *first = bulk, *second = bulk + RING;
    u64 filled = 0;
    while (filled < RING / S) write_turn<S>(second, filled);
    if (copying) start_stream(stream_for<true, true>, 1, first, second, RING);
    u64 start = now() + ticks(0.02), end = start + ticks(0.2), writes = 0, reads = 0, result = 0;
    auto work = [&](int k, bool write, bool read) { // starts 20 ms after the copy and ends 80 ms before it
        u64 w = 0, r = 0, sum = 0;
        pin(k);
        wait_until(start);
        while (now() < end) {
            if (write) write_turn<S>(first, w);
            if (read) sum += read_turn<S>(second, r, !copying);
        }
        if (write) writes = w;
        if (read) {
            reads = r;
            result = sum;
        }
    };
    if (threads == 1)
        work(0, true, true);
    else {
        std::thread reader(work, 1, false, true);
        work(0, true, false);
        reader.join();
    }
    printf("stream, messages of %4u bytes, %s, %s: the host writes %.1f and reads %.1f GB/s, ", S,
           threads == 1 ? "one host thread" : "a writing and a reading host thread",
           copying ? "a block copies" : "no GPU work", writes * S / 0.2e9, reads * S / 0.2e9);
    if (copying)
        printf("the block copies %.1f GB/s (sum %lx)\n", end_stream(), result);
    else
        printf("bad %lu\n", result);
}
static void stream() {
    for (int blocks : {8, 132})
        for (bool reads : {true, false}) {
            auto kernel = reads ? stream_for<true, true> : stream_for<false, true>;
            start_stream(kernel, blocks, bulk, bulk + (32u << 20), 32u << 20);
            const char *what = reads ? "reads and writes at once, each way" : "writes alone";
            printf("stream, the bus, %d blocks of 512: %s %.1f GB/s\n", blocks, what, end_stream());
        }
    for (int n : {1, 2})
        for (bool copying : {false, true}) {
            host<64>(n, copying);
            host<256>(n, copying);
            host<1024>(n, copying);
            host<4096>(n, copying);
        }
}

// ---------------------------------------------------------------- saturate: how many messages a second through rings
// with head and tail?
constexpr u32 CAPACITY = 32768, BATCH = 512;
struct alignas(128) End {
    volatile u32 at;
};
struct Ends {
    End in_tail, in_head, out_tail, out_head;
}; // a head: read up to here; a tail: written up to here, head - 1: stop
__global__ void answer_batches(Ends *e, const uint4 *in,
                               uint4 *out) { // a block a pair; thread 0 reads an end only if it knows too little
    e += blockIdx.x;
    in += blockIdx.x * CAPACITY * 4;
    out += blockIdx.x * CAPACITY * 4;
    __shared__ u32 count;
    uint4 v[4];
    u32 t = threadIdx.x, head = 0, tail = 0, free_from = 0;
    long long end = clock64() + DEVICE_LIMIT;
    for (u32 n;; head += n) {
        if (t == 0) {
            if (tail - head < BATCH) tail = load4_acquire((void *)&e->in_tail.at);
            if (head + BATCH - free_from > CAPACITY) free_from = load4_acquire((void *)&e->out_head.at);
            count = min(min(tail - head, CAPACITY - (head - free_from)), BATCH);
            if (clock64() > end || tail - head == STOP) count = STOP;
        }
        __syncthreads();
        n = count;
        if (n == STOP) return;
        for (u32 k = 0, j = t; k < 4; k++, j += blockDim.x)
            if (j < n * 4) v[k] = __ldcv(in + (head * 4 + j) % (CAPACITY * 4));
        for (u32 k = 0, j = t; k < 4; k++, j += blockDim.x)
            if (j < n * 4) {
                v[k].x++;
                v[k].z++;
                __stcs(out + (head * 4 + j) % (CAPACITY * 4), v[k]);
            }
        __syncthreads();
        if (t == 0 && n) {
            fence_sys();
            e->in_head.at = head + n;
            e->out_tail.at = head + n;
        }
    }
}
static void saturate_pair(Ends &e, u64 *in, const u64 *out, u64 end, std::atomic<u64> &total, std::atomic<u64> &bad) {
    u32 sent = 0, got = 0, to, wrong = 0;
    u64 limit = end + ticks(0.5);
    for (u64 t = now(); t < limit && (t < end || got != sent); t = now()) {
        to = t < end ? sent + std::min(e.in_head.at + CAPACITY - sent, BATCH) : sent;
        bool more = sent != to;
        for (; sent != to; sent++)
            for (u32 k = 0; k < 8; k++) in[sent % CAPACITY * 8 + k] = sent + k;
        std::atomic_thread_fence(std::memory_order_release);
        if (more) e.in_tail.at = sent;
        to = got + std::min(e.out_tail.at - got, BATCH);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (to == got) continue;
        for (u64 x = 0; got != to; got++, x = 0) {
            for (u32 k = 0; k < 8; k++) x |= out[got % CAPACITY * 8 + k] ^ (got + k + 1);
            wrong += x != 0;
        }
        std::atomic_thread_fence(std::memory_order_release);
        e.out_head.at = got;
    }
    total += got;
    bad += wrong + (sent - got);
} // a lost message is a bad one
static void saturate() {
    for (int pairs : {1, 8})
        for (int threads : {512, 1024}) {
            Ends *ends = (Ends *)control;
            u64 *in = (u64 *)bulk, *out = in + 8 * CAPACITY * 8;
            std::atomic<u64> total{0}, bad{0};
            std::vector<std::thread> hosts;
            memset((void *)ends, 0, 8 * sizeof(Ends));
            answer_batches<<<pairs, threads, 0, gpu>>>(dev(ends), (uint4 *)dev(in), (uint4 *)dev(out));
            launched();
            u64 start = now(), end = start + ticks(0.4);
            for (int p = 0; p < pairs; p++)
                hosts.emplace_back([&, p] {
                    pin(p);
                    saturate_pair(ends[p], in + p * CAPACITY * 8, out + p * CAPACITY * 8, end, total, bad);
                });
            for (auto &h : hosts) h.join();
            double ns = (now() - start) * tick_ns;
            for (int p = 0; p < pairs; p++) ends[p].in_tail.at = ends[p].in_tail.at - 1;
            finish();
            printf("saturate, %d pair%s, blocks of %d: %.1f M/s, %.2f GB/s each way, bad %lu\n", pairs,
                   pairs > 1 ? "s" : "", threads, total / ns * 1e3, total * 64 / ns, (u64)bad);
        }
}

int main(int argc, char **argv) {
    struct {
        const char *name;
        void (*run)();
    } sections[] = {{"trip", trip},   {"window", window}, {"claims", claims}, {"slots", slots},
                    {"block", block}, {"stream", stream}, {"saturate", saturate}};
    setvbuf(stdout, nullptr, _IOLBF, 0);
    alarm(90);
    pin(0);
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, 0));
    char driver[200] = "driver unknown\n";
    FILE *f = fopen("/proc/driver/nvidia/version", "r");
    if (f && !fgets(driver, sizeof driver, f)) driver[0] = 0;
    printf("%s, %s", p.name, driver);
    CHECK(cudaStreamCreateWithFlags(&gpu, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&moved, 8));
    calibrate();
    get_memory();
    start_stream(stream_for<true, false>, 8, bulk, bulk, 32u << 20);
    end_stream();
    classify(); // the stream lets the GPU's clock rise
    for (auto &s : sections) {
        bool wanted = argc == 1;
        for (int k = 1; k < argc; k++) wanted |= !strcmp(argv[k], s.name);
        if (wanted) {
            u64 t = now();
            s.run();
            printf("(%s took %.1f s)\n", s.name, (now() - t) * tick_ns / 1e9);
        }
    }
}
