// What one way from a warp to another takes, by half a round trip, on one GPU and from one to another, when more and more is done of what a
// link of a graph does. All loops are bounded by the number of trips, which each side answers.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 hop.cu -o hop && ./hop
//
// A message is a line of eight atoms of 16 bytes, each with the number of the message in its last word. Each side looks at its own line
// until all atoms are of the next message, and answers into the line of the other one.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CK(x) do { auto e = (x); if (e != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)

__device__ void store(uint4 *p, uint4 v) {
    asm volatile("st.relaxed.sys.global.v4.u32 [%0],{%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ uint4 load(const uint4 *p) {
    uint4 v;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
    return v;
}

// BY_ONE: the first lane stores all atoms, as the thread does that has handled the message; else eight lanes one each. CREDIT: the sender of a
// message tells before that it has taken the one before, in a line of the other side. LOOK: other lanes look at that line meanwhile. STAGED: the message
// passes through shared memory.
template <bool BY_ONE, bool CREDIT, bool STAGED> __device__ void send(uint4 *to, uint4 atom, unsigned i, uint4 *stage) {
    unsigned lane = threadIdx.x;
    if (CREDIT && lane == 7) asm volatile("st.relaxed.sys.global.u64 [%0],%1;" ::"l"(to + 8), "l"((uint64_t)i) : "memory");
    if (STAGED) {
        if (lane < 8) stage[lane] = atom;
        __syncwarp();
    }
    if (BY_ONE && lane == 0) {
        uint4 atoms[8];
        #pragma unroll
        for (int k = 0; k < 8; k++) atoms[k] = STAGED ? stage[k] : atom;
        #pragma unroll
        for (int k = 0; k < 8; k++) atoms[k].w = i, store(to + k, atoms[k]);
    }
    if (!BY_ONE && lane < 8) {
        atom = STAGED ? stage[lane] : atom;
        atom.w = i;
        store(to + lane, atom);
    }
}

template <bool BY_ONE, bool CREDIT, bool LOOK, bool STAGED>
__device__ void side(uint4 *mine, uint4 *theirs, long long *cycles, unsigned trips, bool is_first) {
    __shared__ uint4 stage[8];
    unsigned lane = threadIdx.x;
    long long begun = clock64();
    uint4 atom = {lane, lane, lane, 0};
    for (unsigned i = 1; i <= trips; i++) {
        if (is_first) send<BY_ONE, CREDIT, STAGED>(theirs, atom, i, stage);
        do {
            atom = make_uint4(0, 0, 0, i);
            if (lane < 8) atom = load(mine + lane);
            if (LOOK && lane >= 16) atom = load(mine + 8), atom.w = i;
        } while (!__all_sync(~0u, atom.w == i));
        if (!is_first) send<BY_ONE, CREDIT, STAGED>(theirs, atom, i, stage);
    }
    if (lane == 0) *cycles = clock64() - begun;
}

template <bool A, bool B, bool C, bool D> __global__ void one_side(uint4 *mine, uint4 *theirs, long long *cycles, unsigned trips, bool is_first) {
    side<A, B, C, D>(mine, theirs, cycles, trips, is_first);
}
template <bool A, bool B, bool C, bool D> __global__ void both_sides(uint4 *lines, long long *cycles, unsigned trips) {
    uint4 *other = lines + 4096;
    if (blockIdx.x == 0) side<A, B, C, D>(lines, other, cycles, trips, true);
    else side<A, B, C, D>(other, lines, cycles + 1, trips, false);
}

uint4 *lines[2];
long long *cycles;
cudaStream_t streams[2];
double ghz;

template <bool A, bool B, bool C, bool D> void run(const char *what) {
    const unsigned trips = 20000;
    auto clear = [](int d) { CK(cudaSetDevice(d)); CK(cudaMemset(lines[d], 0, 1 << 20)); CK(cudaDeviceSynchronize()); };
    auto one_way = [&] { return *cycles / ghz / trips / 2; };
    clear(0), clear(1);
    for (int d = 1; d >= 0; d--) {
        CK(cudaSetDevice(d));
        one_side<A, B, C, D><<<1, 32, 0, streams[d]>>>(lines[d], lines[1 - d], cycles + d, trips, d == 0);
    }
    for (int d = 0; d < 2; d++) { CK(cudaSetDevice(d)); CK(cudaDeviceSynchronize()); }
    double across = one_way();
    clear(0);
    CK(cudaSetDevice(0));
    both_sides<A, B, C, D><<<2, 32, 0, streams[0]>>>(lines[0], cycles, trips);
    CK(cudaDeviceSynchronize());
    printf("%-64s on one GPU %4.0f ns, to another %4.0f ns\n", what, one_way(), across);
}

int main() {
    int khz;
    CK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    ghz = khz / 1e6;
    for (int d = 0; d < 2; d++) {
        CK(cudaSetDevice(d));
        CK(cudaDeviceEnablePeerAccess(1 - d, 0));
        CK(cudaMalloc(&lines[d], 1 << 20));
        CK(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
    }
    CK(cudaHostAlloc(&cycles, 64, cudaHostAllocPortable | cudaHostAllocMapped));
    for (int again = 0; again < 2; again++) {
        run<false, false, false, false>("eight lanes store an atom each");
        run<true, false, false, false>("one lane stores all");
        run<false, true, false, false>("eight lanes; credit is told");
        run<true, true, false, false>("one lane; credit is told");
        run<false, true, true, false>("eight lanes; credit is told and looked at");
        run<true, true, true, false>("one lane; credit is told and looked at");
        run<false, true, true, true>("eight lanes; credit; through shared memory");
        run<true, true, true, true>("one lane; credit; through shared memory");
    }
}
