// What an iteration of PageRank over a small graph takes where no barrier orders memory: 2^14 vertices of 16 edges each, whose sources are
// uniformly random, on one GPU. What a vertex contributes is one word, whose sign bit says of which iteration it is. Each block reads the
// words of all vertices into its shared memory until all are of the iteration, and gathers there. Sums of two numbers over all blocks are on
// their way meanwhile. No ranks are written, no row is longer than another, and nothing of the runtime runs. All loops are bounded.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 told.cu -o told && ./told
//
// Of each the best of three launches is printed, in nanoseconds an iteration, of 1000 iterations behind 50 that are not timed.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

constexpr unsigned VERTICES = 1 << 14, EDGES = 16, COPIES = 4, MOST_BLOCKS = 256;
constexpr long BOUND = 1L << 18;

enum { NO_SUM, MEETS_BEHIND, MEETS_BEFORE };

__device__ uint4 latest(const uint4 *p) {
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.b32 {%0,%1,%2,%3},[%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

__device__ void tell(float *p, unsigned v) { asm volatile("st.relaxed.gpu.global.b32 [%0],%1;" ::"l"(p), "r"(v) : "memory"); }

__device__ bool is_told(uint4 v, unsigned mark) { return (((v.x ^ mark) | (v.y ^ mark) | (v.z ^ mark) | (v.w ^ mark)) >> 31) == 0; }

__device__ float2 sum_warp(float2 v, int lanes) {
    for (int d = lanes / 2; d; d /= 2) v.x += __shfl_xor_sync(~0u, v.x, d), v.y += __shfl_xor_sync(~0u, v.y, d);
    return v;
}

// Thread t has N edges of vertex t N / 16. A thread reads FOURS times four words at once.
template <int N, int T, int SUM, int FOURS>
__global__ void __launch_bounds__(T) iterate(int n, const unsigned *sources, float *to, float *other, uint4 *places, unsigned long long *ns, int *bad) {
    extern __shared__ __align__(16) float contributions[];
    __shared__ float2 of_warp[32], of_grid[32];
    const unsigned lanes = EDGES / N, all = VERTICES * EDGES / N, lane = threadIdx.x % 32, w = threadIdx.x / 32;
    const unsigned t = (w * gridDim.x + blockIdx.x) * 32 + lane;
    unsigned of[N];
    for (int k = 0; k < N; k++) of[k] = t < all ? sources[t * N + k] : VERTICES;
    if (threadIdx.x == 0) contributions[VERTICES] = 0;
    for (unsigned k = threadIdx.x; k < VERTICES / 4; k += T) ((uint4 *)contributions)[k] = latest((const uint4 *)other + k);
    __syncthreads();
    float rank = 1.0f / VERTICES, base = 0.15f / VERTICES, change = 0;
    unsigned long long t0 = 0, t1;
    bool gone = false;
    for (int i = 1; i <= n + 50; i++) {
        if (i == 51) asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t0));
        const unsigned mark = (i / 2 & 1) << 31;
        float sum = 0, v[N];
        for (int k = 0; k < N; k++) v[k] = contributions[of[k]];
        for (int k = 0; k < N; k++) sum += v[k];
        for (int d = 1; d < lanes; d *= 2) sum += __shfl_xor_sync(~0u, sum, d);
        float2 totals = {0, 0};
        if (t < all && t % lanes == 0) {
            float now = base + 0.85f * sum;
            totals.y = fabsf(now - rank);
            rank = now;
            tell(to + t / lanes, (__float_as_uint(now / EDGES) & 0x7fffffff) | mark);
        }
        totals = sum_warp(totals, 32);
        if (lane == 0) of_warp[w] = totals;
        __syncthreads(); // all have gathered
        uint4 *at = places + (i & 1) * COPIES * MOST_BLOCKS;
        if (SUM != NO_SUM && w == 0) {
            float2 a = sum_warp(lane < T / 32 ? of_warp[lane] : make_float2(0, 0), 32);
            if (lane < COPIES)
                asm volatile("st.relaxed.gpu.global.v4.b32 [%0],{%1,%2,%3,%4};" ::"l"(at + MOST_BLOCKS * lane + blockIdx.x),
                             "r"(__float_as_uint(a.x)), "r"(__float_as_uint(a.y)), "r"(i), "r"(0) : "memory");
        }
        auto meet = [&]() {
            if (w * 32 >= gridDim.x) return;
            unsigned block = w * 32 + lane;
            bool waits = block < gridDim.x;
            uint4 v;
            long looks = 0;
            do v = latest(at + MOST_BLOCKS * (blockIdx.x % COPIES) + (waits ? block : 0));
            while (!__all_sync(~0u, !waits || v.z == i) && ++looks < BOUND);
            gone |= looks == BOUND;
            float2 own = sum_warp(waits ? make_float2(__uint_as_float(v.x), __uint_as_float(v.y)) : make_float2(0, 0), 32);
            if (lane == 0) of_grid[w] = own;
        };
        auto bring = [&]() {
            for (unsigned k = threadIdx.x; k - lane < VERTICES / 4; k += FOURS * T) {
                uint4 f[FOURS];
                auto from = [&](int j) { return (const uint4 *)to + min(k + j * T, VERTICES / 4 - 1); };
                #pragma unroll
                for (int j = 0; j < FOURS; j++) f[j] = latest(from(j));
                for (long looks = 0;;) {
                    bool are = true;
                    #pragma unroll
                    for (int j = 0; j < FOURS; j++) if (!is_told(f[j], mark)) f[j] = latest(from(j)), are = false;
                    if (__all_sync(~0u, are)) break;
                    if (++looks == BOUND) { gone = true; break; }
                }
                #pragma unroll
                for (int j = 0; j < FOURS; j++)
                    if (k + j * T < VERTICES / 4)
                        ((uint4 *)contributions)[k + j * T] =
                            make_uint4(f[j].x & 0x7fffffff, f[j].y & 0x7fffffff, f[j].z & 0x7fffffff, f[j].w & 0x7fffffff);
            }
        };
        if (SUM == MEETS_BEFORE) meet();
        bring();
        if (SUM == MEETS_BEHIND) meet();
        if (__syncthreads_or(gone)) break;
        if (SUM != NO_SUM) {
            float2 a = sum_warp(lane < (gridDim.x + 31) / 32 ? of_grid[lane] : make_float2(0, 0), 32);
            base = (0.15f + 0.85f * a.x) / VERTICES;
            change = a.y;
        }
        float *swap = to; to = other; other = swap;
    }
    asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t1));
    if (gone || isnan(change)) *bad = 1;
    if (t == 0) *ns = t1 - t0;
}

template <int N, int T, int SUM, int FOURS> void run(int blocks) {
    std::mt19937 dice(1);
    std::vector<unsigned> s(VERTICES * EDGES);
    for (auto &v : s) v = dice() % VERTICES;
    std::vector<float> first(2 * VERTICES, -0.0f); // to the odd iterations nothing is told yet
    std::fill(first.begin(), first.begin() + VERTICES, 1.0f / VERTICES / EDGES);
    unsigned *sources;
    float *x;
    uint4 *places;
    unsigned long long *ns, best = ~0ull;
    int *bad, n = 1000, bytes = 4 * VERTICES + 16, places_bytes = 2 * 16 * COPIES * MOST_BLOCKS;
    cudaMalloc(&sources, 4 * s.size()), cudaMalloc(&x, 8 * VERTICES), cudaMalloc(&places, places_bytes);
    cudaMallocManaged(&ns, 8), cudaMallocManaged(&bad, 4);
    cudaMemcpy(sources, s.data(), 4 * s.size(), cudaMemcpyHostToDevice);
    *bad = 0;
    auto kernel = iterate<N, T, SUM, FOURS>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    for (int r = 0; r < 3; r++) {
        cudaMemcpy(x, first.data(), 8 * VERTICES, cudaMemcpyHostToDevice), cudaMemset(places, 0, places_bytes);
        float *even = x, *odd = x + VERTICES;
        void *args[] = {&n, &sources, &odd, &even, &places, &ns, &bad};
        auto e = cudaLaunchCooperativeKernel((void *)kernel, dim3(blocks), dim3(T), args, bytes, 0);
        if (e || (e = cudaDeviceSynchronize())) { printf("%s\n", cudaGetErrorString(e)); return; }
        best = std::min(best, *ns / n);
    }
    const char *sums[] = {"no sums", "sums found behind the words", "sums found before the words"};
    printf("%d x %d, %d edges a thread, %d words at once, %s: %llu ns%s\n", blocks, T, N, 4 * FOURS, sums[SUM], best, *bad ? " (did not end)" : "");
    cudaFree(sources), cudaFree(x), cudaFree(places), cudaFree(ns), cudaFree(bad);
}

int main() {
    run<8, 256, NO_SUM, 16>(132); run<8, 256, MEETS_BEHIND, 16>(132); run<8, 256, MEETS_BEFORE, 16>(132);
    run<4, 512, NO_SUM, 8>(132); run<4, 512, MEETS_BEHIND, 8>(132); run<4, 512, MEETS_BEFORE, 8>(132);
    run<2, 1024, NO_SUM, 4>(132); run<2, 1024, MEETS_BEHIND, 4>(132); run<2, 1024, MEETS_BEFORE, 4>(132);
    run<4, 1024, MEETS_BEHIND, 4>(64); run<4, 1024, MEETS_BEFORE, 4>(64);
    run<8, 1024, MEETS_BEHIND, 4>(32); run<16, 1024, MEETS_BEHIND, 4>(16);
}
