// What a barrier of the grids of two GPUs takes, with nothing of a runtime: 132 blocks of 512 threads on each GPU. Each block stores an atom of
// 16 bytes with the barrier's number to both GPUs, in four copies as a grid of ring does, and waits for the atoms of all 264 blocks in the
// memory of its own GPU. All loops are bounded by the number of barriers, to which all blocks come.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 meet.cu -o meet && ./meet
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CK(x) do { auto e = (x); if (e != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)

constexpr int BLOCKS = 132, THREADS = 512, COPIES = 4, ROOM = 2048;

struct alignas(16) Atom { uint64_t lo, hi; };

#define STORE(name, order) \
    __device__ void name(Atom *p, uint64_t n) { \
        asm volatile("{ .reg .b128 a; mov.b128 a, {%1, %1}; st." order ".sys.global.b128 [%0], a; }" ::"l"(p), "l"(n) : "memory"); \
    }
STORE(store_relaxed, "relaxed")
STORE(store_release, "release")

#define LOAD(name, order) \
    __device__ uint64_t name(Atom *p) { \
        uint64_t lo, hi; \
        asm volatile("{ .reg .b128 a; ld." order ".global.b128 a, [%2]; mov.b128 {%0, %1}, a; }" : "=l"(lo), "=l"(hi) : "l"(p) : "memory"); \
        return lo == hi ? hi : 0; \
    }
LOAD(load_relaxed, "relaxed.sys")
LOAD(load_acquire, "acquire.sys")
LOAD(load_acquire_gpu, "acquire.gpu")

// What a block writes before each barrier, by what it releases that, and by what a block acquires what others have written. What is of the scope
// of the GPU orders nothing for the other one: it is here for what it takes.
enum Writes { NOTHING, WORD_THERE, WORD_HERE, LINE_THERE };
enum Release { NOT_RELEASED, BY_STORE, BY_FENCE, BY_FENCE_OF_GPU };
enum Acquire { NOT_ACQUIRED, BY_LOAD, BY_LOAD_OF_GPU, BY_FENCE_BEHIND };

__global__ void __launch_bounds__(THREADS)
meet(Atom *const *all, int own, uint32_t *here, uint32_t *there, int n, int writes, int release, int acquire, long long *ticks) {
    int block = blockIdx.x, thread = threadIdx.x;
    long long begun = clock64();
    for (int i = 1; i <= n; i++) {
        if (writes == WORD_THERE && thread == 0) *(volatile uint32_t *)(there + block) = i;
        if (writes == WORD_HERE && thread == 0) *(volatile uint32_t *)(here + block) = i;
        if (writes == LINE_THERE && thread < 32) *(volatile uint32_t *)(there + 32 * block + thread) = i;
        __syncthreads();
        int even = (i & 1) * COPIES;
        if (thread < 32) {
            if (release == BY_FENCE && thread == 0) asm volatile("fence.acq_rel.sys;" ::: "memory");
            if (release == BY_FENCE_OF_GPU && thread == 0) asm volatile("fence.acq_rel.gpu;" ::: "memory");
            __syncwarp();
            if (thread < 2 * COPIES) {
                Atom *p = all[thread / COPIES] + (even + thread % COPIES) * ROOM + own * BLOCKS + block;
                if (release == BY_STORE) store_release(p, i);
                else store_relaxed(p, i);
            }
        }
        if (thread < (2 * BLOCKS + 31) / 32 * 32) {
            Atom *p = all[own] + (even + block % COPIES) * ROOM + (thread < 2 * BLOCKS ? thread : 0);
            uint64_t found;
            do {
                if (acquire == BY_LOAD) found = load_acquire(p);
                else if (acquire == BY_LOAD_OF_GPU) found = load_acquire_gpu(p);
                else found = load_relaxed(p);
            } while (!__all_sync(~0u, found == (uint64_t)i));
            if (acquire == BY_FENCE_BEHIND) asm volatile("fence.acq_rel.sys;" ::: "memory");
        }
        __syncthreads();
    }
    if (block == 0 && thread == 0) *ticks = clock64() - begun;
}

int main() {
    int count, khz, n = 2000;
    CK(cudaGetDeviceCount(&count));
    if (count < 2) return printf("it needs two GPUs\n"), 1;
    CK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    size_t bytes = sizeof(Atom) * 2 * COPIES * ROOM;
    Atom *places[2], **all[2];
    uint32_t *words[2];
    long long *ticks[2];
    cudaStream_t stream[2];
    for (int d = 0; d < 2; d++) {
        CK(cudaSetDevice(d));
        CK(cudaDeviceEnablePeerAccess(1 - d, 0));
        CK(cudaMalloc(&places[d], bytes));
        CK(cudaMalloc(&words[d], 4 * 32 * BLOCKS));
        CK(cudaMalloc(&all[d], sizeof places));
        CK(cudaMallocHost(&ticks[d], sizeof(long long)));
        CK(cudaStreamCreateWithFlags(&stream[d], cudaStreamNonBlocking));
    }
    for (int d = 0; d < 2; d++) { CK(cudaSetDevice(d)); CK(cudaMemcpy(all[d], places, sizeof places, cudaMemcpyHostToDevice)); }
    const char *writes[] = {"nothing", "a word to the other", "a word to its own", "128 bytes to the other"};
    const char *release[] = {"none", "each store", "a fence", "a fence of the GPU"}, *acquire[] = {"none", "each load", "of the GPU", "a fence"};
    int kinds[][3] = {{0, 0, 0}, {0, 0, 1}, {0, 1, 1}, {0, 2, 1}, {1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {1, 2, 0}, {1, 2, 1},
                      {1, 2, 2}, {1, 2, 3}, {1, 3, 1}, {2, 1, 1}, {2, 2, 1}, {3, 1, 1}, {3, 2, 1}};
    for (int rep = 0; rep < 2; rep++)
        for (auto &k : kinds) {
            for (int d = 0; d < 2; d++) { CK(cudaSetDevice(d)); CK(cudaMemset(places[d], 0, bytes)); CK(cudaDeviceSynchronize()); }
            for (int d = 0; d < 2; d++) {
                CK(cudaSetDevice(d));
                meet<<<BLOCKS, THREADS, 0, stream[d]>>>(all[d], d, words[d], words[1 - d], n, k[0], k[1], k[2], ticks[d]);
                CK(cudaGetLastError());
            }
            for (int d = 0; d < 2; d++) { CK(cudaSetDevice(d)); CK(cudaDeviceSynchronize()); }
            printf("writes %-24s release: %-18s acquire: %-10s %5.0f ns\n", writes[k[0]], release[k[1]], acquire[k[2]], *ticks[0] * 1e6 / khz / n);
        }
}
