// How long a request to a block takes by who polls for it: its first warp, which then works with the others, or two warps that do nothing else, whose
// looks are half a look apart. A request is 64 bytes or 512 in mapped memory, pairs of a word and its number; the answer is 64 bytes. The block works for
// so many cycles between two barriers. By the pause between an answer and the next request.
//   nvcc -arch=sm_90 -O3 pollers.cu -o pollers && ./pollers
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>
#include <unistd.h>

typedef unsigned long long u64;
typedef unsigned u32;
constexpr u32 STOP = ~0u;
constexpr long long LIMIT = 4000000000ll;

__device__ void load2(const u64 *p, u64 &a, u64 &b) { asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory"); }
__device__ void store2(u64 *p, u64 a, u64 b) { asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b) : "memory"); }
__device__ u32 number_of(u64 v) { return (u32)(v >> 32); }
__device__ void arrive(int n) { asm volatile("barrier.cta.arrive 1, %0;" ::"r"(n) : "memory"); }
__device__ void sync_of(int id, int n) { asm volatile("barrier.cta.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }

__device__ void work(int cycles) {
    long long end = clock64() + cycles;
    while (clock64() < end) {}
}

// Blocks of 512 threads: warp 0 polls.
template <int PAIRS> __global__ void __launch_bounds__(512) alone(const u64 *request, u64 *answer, int cycles) {
    __shared__ u64 words[2 * PAIRS];
    __shared__ u32 end;
    const u32 t = threadIdx.x, lane = t % 32;
    for (u32 number = 1;; number++) {
        if (t < 32) {
            u64 a = 0, b = 0;
            long long begun = clock64();
            bool is_last = false;
            for (;;) {
                bool have = true;
                if (lane < PAIRS) {
                    load2(request + 2 * lane, a, b);
                    have = number_of(a) == number && number_of(b) == number;
                    is_last = number_of(a) == STOP;
                }
                if (__all_sync(~0u, have)) break;
                is_last = __any_sync(~0u, is_last || clock64() - begun > LIMIT);
                if (is_last) break;
            }
            if (lane < PAIRS) words[2 * lane] = a, words[2 * lane + 1] = b;
            if (lane == 0) end = is_last;
        }
        __syncthreads();
        if (end) return;
        work(cycles);
        __syncthreads();
        if (t < 4) store2(answer + 2 * t, (u64)number << 32 | (u32)words[t % (2 * PAIRS)], (u64)number << 32 | t);
    }
}

// Blocks of 512 threads that work and of WARPS warps that poll.
template <int PAIRS, int WARPS> __global__ void __launch_bounds__(512 + 32 * WARPS) apart(const u64 *request, u64 *answer, int cycles, int between) {
    constexpr int ALL = 512 + 32;
    __shared__ u64 words[2 * PAIRS];
    __shared__ u32 end;
    __shared__ volatile u32 found;    // the last request that was found
    __shared__ unsigned long long looked; // when the last look began
    const u32 t = threadIdx.x, lane = t % 32;
    if (t == 0) found = 0, end = 0, looked = 0;
    __syncthreads();
    if (t < 512) {
        for (u32 number = 1;; number++) {
            sync_of(1, ALL);
            if (end) return;
            work(cycles);
            sync_of(2, 512);
            if (t < 4) store2(answer + 2 * t, (u64)number << 32 | (u32)words[t % (2 * PAIRS)], (u64)number << 32 | t);
        }
    }
    u32 number = 1;
    long long begun = clock64();
    for (;;) {
        // One of the warps begins a look so long behind the last one.
        bool mine = false;
        if (lane == 0) {
            unsigned long long last = *(volatile unsigned long long *)&looked, now = clock64();
            mine = now - last >= (u64)between && atomicCAS(&looked, last, now) == last;
        }
        mine = __shfl_sync(~0u, mine, 0);
        number = __shfl_sync(~0u, found, 0) + 1;
        if (!mine) {
            if (__shfl_sync(~0u, *(volatile u32 *)&end, 0)) return;
            continue;
        }
        u64 a = 0, b = 0;
        bool have = true, is_last = false;
        if (lane < PAIRS) {
            load2(request + 2 * lane, a, b);
            have = number_of(a) == number && number_of(b) == number;
            is_last = number_of(a) == STOP;
        }
        bool all = __all_sync(~0u, have);
        is_last = __any_sync(~0u, is_last || clock64() - begun > LIMIT);
        if (!all && !is_last) continue;
        // The other warp may have found it meanwhile.
        bool won = false;
        if (lane == 0) won = atomicCAS((u32 *)&found, number - 1, number) == number - 1;
        won = __shfl_sync(~0u, won, 0);
        if (!won) { if (is_last) return; continue; }
        if (lane < PAIRS) words[2 * lane] = a, words[2 * lane + 1] = b;
        if (lane == 0 && is_last) end = 1;
        __syncwarp();
        __threadfence_block();
        arrive(ALL);
        begun = clock64();
        if (is_last) return;
    }
}

static double now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class F> static void measure(const char *what, int pairs, F launch) {
    volatile u64 *request, *answer;
    cudaHostAlloc((void **)&request, 4096, cudaHostAllocMapped);
    cudaHostAlloc((void **)&answer, 4096, cudaHostAllocMapped);
    for (int i = 0; i < 512; i++) request[i] = answer[i] = 0;
    launch((const u64 *)request, (u64 *)answer);
    u32 number = 0;
    double sum = 0;
    printf("%s\n   ", what);
    for (int k = 0; k <= 20; k++) {
        std::vector<double> times;
        for (int i = 0; i < 4000; i++) {
            for (double made = now(); now() - made < 0.1 * k;) {}
            double begun = now();
            number++;
            for (int w = 0; w < 2 * pairs; w++) __atomic_store_n((u64 *)request + w, (u64)number << 32 | w, __ATOMIC_RELAXED);
            bool late = false;
            for (int w = 0; w < 8 && !late; w++)
                while ((u32)(__atomic_load_n((u64 *)answer + w, __ATOMIC_ACQUIRE) >> 32) != number && !(late = now() - begun > 1e6)) {}
            if (late) { printf(" late: %u\n", number); fflush(stdout); _exit(1); }
            times.push_back(now() - begun);
        }
        std::sort(times.begin(), times.end());
        printf(" %.2f", times[2000]);
        sum += times[2000];
    }
    for (int w = 0; w < 2 * pairs; w++) __atomic_store_n((u64 *)request + w, (u64)STOP << 32, __ATOMIC_RELAXED);
    cudaError_t error = cudaDeviceSynchronize();
    printf("; mean %.2f (%s)\n", sum / 21, cudaGetErrorString(error));
    fflush(stdout);
}

template <int PAIRS> static void of(const char *bytes) {
    for (int cycles : {0, 2000}) {
        char what[200];
        snprintf(what, 200, "%s bytes, %d cycles of work, the first warp polls", bytes, cycles);
        measure(what, PAIRS, [&](const u64 *r, u64 *a) { alone<PAIRS><<<1, 512>>>(r, a, cycles); });
        snprintf(what, 200, "%s bytes, %d cycles of work, one warp does nothing else", bytes, cycles);
        measure(what, PAIRS, [&](const u64 *r, u64 *a) { apart<PAIRS, 1><<<1, 544>>>(r, a, cycles, 0); });
        for (int between : {600, 900, 1200}) {
            snprintf(what, 200, "%s bytes, %d cycles of work, two warps do nothing else, looks %d apart", bytes, cycles, between);
            measure(what, PAIRS, [&](const u64 *r, u64 *a) { apart<PAIRS, 2><<<1, 576>>>(r, a, cycles, between); });
        }
        snprintf(what, 200, "%s bytes, %d cycles of work, three warps, looks 700 apart", bytes, cycles);
        measure(what, PAIRS, [&](const u64 *r, u64 *a) { apart<PAIRS, 3><<<1, 608>>>(r, a, cycles, 700); });
    }
}

int main() {
    of<4>("64");
    of<32>("512");
}
