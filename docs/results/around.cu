// What a message of 64 bytes takes from the host through kernels of one GPU, or of two, and back, with nothing of a runtime but what no kernel
// that hands a message to a handler can do without. All loops end when the host sets a word, which each kernel looks at now and then.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 around.cu -o around && ./around
//
// A line is eight atoms of 16 bytes, each with 12 bytes of a message, or 4 in the sixth, and the number of the message. A warp looks at its line, an atom a
// lane, until all are of the next message; tells the one before it that the line is free; puts the message into shared memory, where one thread reads
// it whole, adds one to each word, and stores the atoms of the next line: in the other GPU's memory, its own, or the host's. PAUSES: the host sends
// each message up to 4 us after the one before is back, at random; else at once.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <emmintrin.h>
#include <vector>

#define CK(x) do { auto e = (x); if (e != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)

constexpr int ATOMS = 6, LOOKS = 1 << 14; // 16 words: five atoms of three, and one of one
struct alignas(128) Line { uint4 atoms[8]; };

__device__ void store(uint4 *p, uint4 v) {
    asm volatile("st.relaxed.sys.global.v4.u32 [%0],{%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ uint4 load(const uint4 *p) {
    uint4 v;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
    return v;
}

__global__ void hop(const Line *in, Line *out, uint64_t *credit, const uint32_t *stop) {
    __shared__ uint4 stage[ATOMS];
    unsigned lane = threadIdx.x;
    for (uint32_t i = 1;; i++) {
        uint4 atom;
        int looks = 0;
        do {
            atom = load(&in->atoms[lane < ATOMS ? lane : 0]);
            if (++looks % LOOKS == 0 && *(volatile const uint32_t *)stop) return;
        } while (!__all_sync(~0u, atom.w == i));
        if (lane == 7) asm volatile("st.relaxed.sys.global.u64 [%0],%1;" ::"l"(credit), "l"((uint64_t)i) : "memory");
        if (lane < ATOMS) stage[lane] = atom;
        __syncwarp();
        if (lane == 0) {
            #pragma unroll
            for (int k = 0; k < ATOMS; k++) {
                uint4 v = stage[k];
                v.x++, v.y++, v.z++;
                store(&out->atoms[k], v);
            }
        }
        __syncwarp();
    }
}

using Clock = std::chrono::steady_clock;

int main() {
    int count, gpus;
    CK(cudaGetDeviceCount(&count));
    gpus = std::min(count, 2);
    uint32_t *stop;
    CK(cudaHostAlloc(&stop, 4096, cudaHostAllocPortable));
    cudaStream_t stream[2][3];
    Line *memory[2];
    for (int d = 0; d < gpus; d++) {
        CK(cudaSetDevice(d));
        if (gpus == 2) CK(cudaDeviceEnablePeerAccess(1 - d, 0));
        CK(cudaMalloc(&memory[d], 64 * sizeof(Line)));
        for (auto &s : stream[d]) CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    }
    Line *host;
    CK(cudaHostAlloc(&host, 4096, cudaHostAllocPortable));
    const char *chains[] = {"0", "00", "000", "01", "010"};
    for (int pauses = 1; pauses >= 0; pauses--)
        for (auto chain : chains) {
            int n = strlen(chain), trips = 30000;
            if (strchr(chain, '1') && gpus < 2) continue;
            memset(host, 0, 4096);
            *stop = 0;
            for (int d = 0; d < gpus; d++) { CK(cudaSetDevice(d)); CK(cudaMemset(memory[d], 0, 64 * sizeof(Line))); CK(cudaDeviceSynchronize()); }
            for (int k = 0; k < n; k++) {
                int d = chain[k] - '0', to = k + 1 < n ? chain[k + 1] - '0' : -1, from = k ? chain[k - 1] - '0' : -1;
                const Line *in = k ? &memory[d][2 * k] : &host[0];
                Line *out = to < 0 ? &host[1] : &memory[to][2 * (k + 1)];
                uint64_t *credit = (uint64_t *)(from < 0 ? &host[2] : &memory[from][2 * (k - 1) + 1]);
                CK(cudaSetDevice(d));
                hop<<<1, 32, 0, stream[d][k]>>>(in, out, credit, stop);
                CK(cudaGetLastError());
            }
            std::vector<double> times;
            bool lost = false;
            for (uint32_t i = 1; i <= (uint32_t)trips && !lost; i++) {
                if (pauses) {
                    auto until = Clock::now() + std::chrono::nanoseconds((i * 0x9e3779b97f4a7c15ull) >> 52);
                    while (Clock::now() < until) _mm_pause();
                }
                auto begun = Clock::now();
                for (int k = 0; k < ATOMS; k++) _mm_store_si128((__m128i *)&host[0].atoms[k], _mm_set_epi32(i, i + k, i, i));
                for (int k = 0; k < ATOMS; k++) {
                    __m128i v;
                    do {
                        v = _mm_load_si128((const __m128i *)&host[1].atoms[k]);
                        asm volatile("" ::: "memory"); // it is read again
                        lost = Clock::now() - begun > std::chrono::seconds(2);
                    } while (_mm_extract_epi16(v, 6) + (_mm_extract_epi16(v, 7) << 16) != (int)i && !lost);
                    if (_mm_cvtsi128_si32(v) != (int)(i + n)) lost = true;
                }
                if (i > 1000) times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begun).count());
            }
            *(volatile uint32_t *)stop = 1;
            for (int d = 0; d < gpus; d++) { CK(cudaSetDevice(d)); CK(cudaDeviceSynchronize()); }
            if (lost) { printf("%s: a message was lost or wrong\n", chain); continue; }
            std::sort(times.begin(), times.end());
            printf("kernels of GPUs %-4s %-12s p50 %.3f  p90 %.3f  p99 %.3f us\n", chain, pauses ? "with pauses" : "at once", times[times.size() / 2],
                   times[times.size() * 9 / 10], times[times.size() * 99 / 100]);
        }
}
