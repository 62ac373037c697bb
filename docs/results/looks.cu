// How long a warp waits for what it reads of pinned host memory: by how many threads read 16 bytes each, side by side, by which
// instruction, and by how many warps, each with a part. A doorbell line is 128 bytes, which eight threads read; a message of up to
// 336 bytes takes four, which 32 threads read. One block, one read behind the other, each waiting for the one before.
//
//     nvcc -arch=sm_90 -O3 -o looks looks.cu && ./looks
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                         \
    do {                                                                                                    \
        cudaError_t error = (call);                                                                         \
        if (error != cudaSuccess) {                                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error));                  \
            exit(1);                                                                                        \
        }                                                                                                   \
    } while (0)

enum Kind { RELAXED, ACQUIRE, VOLATILE, PLAIN_64, KINDS };
static const char *const NAMES[KINDS] = {"ld.relaxed.sys.b128", "ld.acquire.sys.b128", "ld.volatile.v4.u32", "ld.relaxed.sys.v2.u64"};

template <int KIND> __device__ unsigned read16(const uint4 *at) {
    unsigned a, b, c, d;
    if (KIND == RELAXED || KIND == ACQUIRE) {
        unsigned long long low, high;
        if (KIND == RELAXED)
            asm volatile("{ .reg .b128 %q; ld.relaxed.sys.global.b128 %q, [%2]; mov.b128 {%0, %1}, %q; }" : "=l"(low), "=l"(high) : "l"(at) : "memory");
        else
            asm volatile("{ .reg .b128 %q; ld.acquire.sys.global.b128 %q, [%2]; mov.b128 {%0, %1}, %q; }" : "=l"(low), "=l"(high) : "l"(at) : "memory");
        return unsigned(low) + unsigned(high);
    }
    if (KIND == VOLATILE) {
        asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(at) : "memory");
        return a + b + c + d;
    }
    unsigned long long low, high;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(at) : "memory");
    return unsigned(low) + unsigned(high);
}

// Each warp reads `each` times 16 bytes, `apart` words of 16 bytes from one warp to the next; clock ticks of each look of warp 0.
template <int KIND> __global__ void looks(const uint4 *memory, int each, int apart, int n, unsigned *ticks, unsigned *sink) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint4 *at = memory + warp * apart + lane;
    unsigned sum = 0;
    for (int i = 0; i < n; i++) {
        __syncthreads();
        long long begun = clock64();
        unsigned found = 0;
        if (lane < each) found = read16<KIND>(at);
        // Used by all before the clock is read.
        sum += __reduce_add_sync(~0u, found);
        __syncthreads();
        long long ended = clock64();
        if (threadIdx.x == 0) ticks[i] = unsigned(ended - begun) + (sum == 0xffffffffu);
    }
    if (sum == 1) *sink = sum;
}

static unsigned *ticks, *sink;

template <int KIND> static void measure(const uint4 *memory, int each, int warps, int apart) {
    const int n = 4000;
    looks<KIND><<<1, 32 * warps>>>(memory, each, apart, n, ticks, sink);
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned> all(ticks, ticks + n);
    std::sort(all.begin(), all.end());
    printf(" %5u/%5u", all[n / 2], all[n * 99 / 100]);
}

template <int KIND> static void row(const uint4 *memory, const char *what) {
    printf("%-24s%s", NAMES[KIND], what);
    for (int each : {1, 2, 4, 8, 16, 24, 32}) measure<KIND>(memory, each, 1, 0);
    // 4 lines by 2 and by 4 warps, and one line by each of 4 warps of the same line.
    measure<KIND>(memory, 16, 2, 16);
    measure<KIND>(memory, 8, 4, 8);
    printf("\n");
    fflush(stdout);
}

int main() {
    int khz;
    CHECK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    printf("clock ticks, p50/p99, of %.0f MHz at most\n", khz / 1000.0);
    printf("threads of a warp, 16 bytes each                1           2           4           8          16          24          32   2 x 16      4 x 8\n");
    CHECK(cudaHostAlloc(&ticks, 1 << 16, cudaHostAllocMapped));
    CHECK(cudaMalloc(&sink, 4));
    uint4 *host, *device;
    CHECK(cudaHostAlloc(&host, 1 << 21, cudaHostAllocMapped | cudaHostAllocPortable));
    for (size_t k = 0; k < (1 << 21) / sizeof(uint4); k++) host[k] = make_uint4(k, 1, 2, 3);
    CHECK(cudaHostGetDevicePointer(&device, host, 0));
    // Two pages, of which one may be nearer.
    for (int page = 0; page < 4; page++) {
        printf("page %d\n", page);
        const uint4 *memory = device + page * 256;
        row<RELAXED>(memory, " idle    ");
        row<ACQUIRE>(memory, " idle    ");
        row<VOLATILE>(memory, " idle    ");
        row<PLAIN_64>(memory, " idle    ");
        std::atomic<bool> over{false};
        std::thread writer([&] {
            // As a host that sends: all four lines, and then nothing for 5 us.
            volatile uint4 *to = host + page * 256;
            while (!over.load()) {
                for (int k = 0; k < 32; k++) { to[k].x = k; to[k].y = k; to[k].z = k; to[k].w = k; }
                for (int k = 0; k < 2000 && !over.load(); k++) std::atomic_signal_fence(std::memory_order_seq_cst);
            }
        });
        row<RELAXED>(memory, " written ");
        row<ACQUIRE>(memory, " written ");
        over.store(true);
        writer.join();
    }
    return 0;
}
