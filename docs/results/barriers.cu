// How fast the blocks of one GPU can meet, by several means; nothing else runs, and all loops are bounded.
//
//     nvcc -O3 -arch=sm_90 barriers.cu -o barriers && ./barriers
//
// Of each barrier the best of three launches is printed, each of 1000 barriers behind 50 that are not timed.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

struct alignas(16) W { unsigned long long lo, hi; };

__device__ __forceinline__ W ldr(const W *p) {
    W w;
    asm volatile("{.reg .b128 a; ld.relaxed.gpu.global.b128 a,[%2]; mov.b128 {%0,%1},a;}" : "=l"(w.lo), "=l"(w.hi) : "l"(p) : "memory");
    return w;
}
__device__ __forceinline__ W lda(const W *p) {
    W w;
    asm volatile("{.reg .b128 a; ld.acquire.gpu.global.b128 a,[%2]; mov.b128 {%0,%1},a;}" : "=l"(w.lo), "=l"(w.hi) : "l"(p) : "memory");
    return w;
}
__device__ __forceinline__ void str(W *p, W w) {
    asm volatile("{.reg .b128 a; mov.b128 a,{%1,%2}; st.relaxed.gpu.global.b128 [%0],a;}" ::"l"(p), "l"(w.lo), "l"(w.hi) : "memory");
}
__device__ __forceinline__ unsigned long long ld64(const unsigned long long *p, bool acq) {
    unsigned long long v;
    if (acq) asm volatile("ld.acquire.gpu.global.b64 %0,[%1];" : "=l"(v) : "l"(p) : "memory");
    else asm volatile("ld.relaxed.gpu.global.b64 %0,[%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

constexpr long BOUND = 1L << 22;

// Modes, as `names` has them. 0 and 1: one thread of each block adds to a counter, and polls it. 2 to 5: each block writes its place, in R
// copies, and a thread of each block polls each place of one copy. 6 and 7: block 0 polls the places, and tells the others in 32 copies.
__global__ void __launch_bounds__(1024) barrier(int mode, int R, int n, bool writes, unsigned long long *counter, W *places, W *copies,
                                                unsigned *data, unsigned long long *ns, int *bad) {
    __shared__ int gone;
    if (threadIdx.x == 0) gone = 0;
    __syncthreads();
    unsigned long long t0 = 0;
    unsigned B = gridDim.x, b = blockIdx.x, t = threadIdx.x;
    for (int i = -50; i < n; i++) {
        if (i == 0 && t == 0) asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t0));
        unsigned long long stamp = i + 51;
        if (writes && t == 0) ((volatile unsigned *)data)[b] = i;
        __syncthreads();
        if (gone) break;
        if (mode <= 1) {
            if (t == 0) {
                if (mode == 1) asm volatile("red.release.gpu.global.add.u64 [%0],1;" ::"l"(counter) : "memory");
                else asm volatile("red.relaxed.gpu.global.add.u64 [%0],1;" ::"l"(counter) : "memory");
                long k = 0;
                while (ld64(counter, mode == 1) < stamp * B)
                    if (++k > BOUND) { gone = 1; *bad = 1; break; }
            }
        } else if (mode <= 5) {
            W *at = places + (stamp & 1) * 8192;
            if (t < R) {
                if (mode == 4) asm volatile("fence.acq_rel.gpu;" ::: "memory");
                str(at + t * 1024 + b, {stamp, stamp});
            }
            at += b % R * 1024;
            for (unsigned f = t & ~31u; f < B; f += blockDim.x) {
                unsigned of = f + (t & 31);
                long k = 0;
                while (true) {
                    W w = (mode == 3 || mode == 4) ? lda(at + (of < B ? of : 0)) : ldr(at + (of < B ? of : 0));
                    if (__all_sync(~0u, of >= B || w.hi == stamp)) break;
                    if (++k > BOUND) { gone = 1; *bad = 1; break; }
                }
                if (mode == 5) asm volatile("fence.acq_rel.gpu;" ::: "memory");
            }
        } else {
            bool acq = mode == 7;
            W *at = places + (stamp & 1) * 1024;
            if (b == 0) {
                if (t < 32) {
                    bool all;
                    long k = 0;
                    do {
                        all = true;
                        for (unsigned of = 1 + t; of < B; of += 32) {
                            W w = acq ? lda(at + of) : ldr(at + of);
                            all &= w.hi == stamp;
                        }
                        if (++k > BOUND) { gone = 1; *bad = 1; break; }
                    } while (!__all_sync(~0u, all));
                    str(copies + 8 * t, {stamp, stamp});
                }
            } else if (t == 0) {
                str(at + b, {stamp, stamp});
                long k = 0;
                while (true) {
                    W w = acq ? lda(copies + 8 * ((b - 1) % 32)) : ldr(copies + 8 * ((b - 1) % 32));
                    if (w.hi == stamp) break;
                    if (++k > BOUND) { gone = 1; *bad = 1; break; }
                }
            }
        }
        __syncthreads();
        if (gone) break;
    }
    if (b == 0 && t == 0) {
        unsigned long long t1;
        asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t1));
        *ns = t1 - t0;
    }
}

// One block answers another by a 16-byte store and load: there and back.
__global__ void pingpong(int n, bool acq, W *p, unsigned long long *ns, int *bad) {
    unsigned long long t0 = 0;
    W *mine = p + (blockIdx.x == 0 ? 0 : 64), *other = p + (blockIdx.x == 0 ? 64 : 0);
    for (int i = 1; i <= n; i++) {
        if (i == 50) asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t0));
        if (blockIdx.x == 0) str(mine, {(unsigned long long)i, (unsigned long long)i});
        long k = 0;
        while ((acq ? lda(other) : ldr(other)).hi != (unsigned long long)i)
            if (++k > BOUND) { *bad = 1; return; }
        if (blockIdx.x) str(mine, {(unsigned long long)i, (unsigned long long)i});
    }
    if (blockIdx.x == 0) {
        unsigned long long t1;
        asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t1));
        *ns = (t1 - t0) / (n - 49);
    }
}

int main() {
    unsigned long long *c, *ns;
    W *pl, *co;
    unsigned *d;
    int *bad;
    cudaMalloc(&c, 128); cudaMalloc(&pl, 1 << 18); cudaMalloc(&co, 8192); cudaMalloc(&d, 8192);
    cudaMallocHost(&ns, 8); cudaMallocHost(&bad, 4);
    for (int acq = 0; acq < 2; acq++) {
        cudaMemset(pl, 0, 1 << 18);
        *bad = 0;
        bool a = acq;
        int n = 5000;
        void *args[] = {&n, &a, &pl, &ns, &bad};
        cudaLaunchCooperativeKernel((void *)pingpong, 2, 1, args, 0, 0);
        cudaDeviceSynchronize();
        printf("there and back, %s: %llu ns%s\n", acq ? "acquire" : "relaxed", *ns, *bad ? " BAD" : "");
    }
    const char *names[] = {"counter, relaxed", "counter, release and acquire", "a place each, relaxed", "a place each, acquire",
                           "a place each, release and acquire", "a place each, relaxed and a fence behind",
                           "block 0 gathers and tells, relaxed", "the same, acquire"};
    int grids[][2] = {{132, 512}, {132, 256}, {132, 1024}, {264, 256}, {8, 512}};
    for (auto &g : grids) for (int w = 0; w < 2; w++) for (int m = 0; m < 8; m++) for (int R : {1, 2, 4, 8}) {
        if (m == 0 && w) continue;
        if (R > 1 && (m < 2 || m > 4)) continue;
        unsigned long long best = ~0ull;
        for (int r = 0; r < 3; r++) {
            cudaMemset(c, 0, 128); cudaMemset(pl, 0, 1 << 18); cudaMemset(co, 0, 8192);
            *bad = 0;
            *ns = 0;
            int n = 1000;
            bool wr = w;
            void *args[] = {&m, &R, &n, &wr, &c, &pl, &co, &d, &ns, &bad};
            auto e = cudaLaunchCooperativeKernel((void *)barrier, g[0], g[1], args, 0, 0);
            cudaDeviceSynchronize();
            if (e || *bad) { printf("error %d bad %d\n", e, *bad); break; }
            best = std::min(best, *ns / n);
        }
        printf("barrier %d x %d%s: %s%s%d: %llu ns\n", g[0], g[1], w ? ", each block writes a word" : "", names[m],
               R > 1 ? ", copies " : ", ", R, best);
        fflush(stdout);
    }
}
