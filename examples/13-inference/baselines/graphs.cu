// What inference of two small models takes on one GPU, from the host's request to the answer in the host's memory: an LSTM of 2 layers
// (128 hidden, 32 features, one step a request, the state of 1024 streams on the GPU) and an MLP (64-256-256-16, ReLU). All is in f32, but
// for the weights of the resident MLP, which are f16. The same arithmetic is run
//
//   launches: as kernels launched one by one: the input is copied from pinned memory, the answer is copied back, the host synchronizes;
//   graph:    as one CUDA graph of the same;
//   mapped:   as a CUDA graph without copies: kernels read the input from, and write the answer to, pinned memory that is mapped, where
//             the host polls for it. `flag`: the last kernel writes a flag behind its answer. `pairs`: each value of the answer has the
//             number of its request beside it in the same 8 bytes, so that no fence is needed. `fetched`: the first kernel of the graph only
//             copies the input to the GPU's memory. `early`: kernels are launched ahead of the one before (programmatic dependent launch),
//             and have read their weights when it ends;
//   resident: by a kernel that stays, keeps its weights in shared memory, and polls mapped memory for its requests. `flags`: its blocks
//             meet by flags, written with st.release and read with ld.acquire, and one block writes the answer and a flag behind it.
//             `pairs`: whatever is passed on between host and blocks has the number of the request beside it, and nothing is fenced.
//
//     nvcc -O3 -arch=sm_90 -std=c++17 graphs.cu -o graphs && ./graphs [REQUESTS AT BATCH 1] [REQUESTS AT BATCH 1024]
//
// Each line has percentiles of the time of a request in microseconds (20,000 and 2,000 requests unless told, behind 1000 that are not
// timed), from before the input is written to pinned memory until the whole answer is visible there, by the host's monotonic clock; the
// inferences a second of one such request behind the other (the making of inputs, between requests, not counted); and the largest absolute
// difference from f64 arithmetic on the host over 20 steps, which comes first: above 1e-4 the program ends with status 1.
//
// Value k of tensor t is ((splitmix64(t * 2^32 + k) >> 40) / 2^24 - 0.5) * scale, in f32; see `value` and `Weights`.
// All waits are bounded, by some seconds.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

typedef uint32_t u32;
typedef uint64_t u64;

constexpr int STREAMS = 1024, HIDDEN = 128, FEATURES = 32, GATES = 4 * HIDDEN;
constexpr int IN = 64, WIDE = 256, OUT = 16;
constexpr int K1 = FEATURES + HIDDEN, K2 = 2 * HIDDEN; // the columns of a row of weights of either layer
constexpr int STEPS = 20, WARM_UP = 1000;
constexpr double MOST_OFF = 1e-4, HOST_SECONDS = 15;
constexpr long long CYCLES = 10'000'000'000ll; // that a kernel waits at most: about 5 s
constexpr u32 STOP = ~0u;

// ---------------------------------------------------------------- loads, stores and fences of the GPU
// BEGIN OF ASSEMBLY
// Two neighbouring words of 8 bytes; each is read or written as a whole.
__device__ __forceinline__ void load2_sys(const u64 *p, u64 &a, u64 &b) {
    asm volatile("ld.relaxed.sys.global.v2.b64 {%0,%1},[%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory");
}
__device__ __forceinline__ void load2_gpu(const u64 *p, u64 &a, u64 &b) {
    asm volatile("ld.relaxed.gpu.global.v2.b64 {%0,%1},[%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory");
}
__device__ __forceinline__ void store2_gpu(u64 *p, u64 a, u64 b) {
    asm volatile("st.relaxed.gpu.global.v2.b64 [%0],{%1,%2};" ::"l"(p), "l"(a), "l"(b) : "memory");
}
__device__ __forceinline__ u64 load_gpu(const u64 *p) {
    u64 v;
    asm volatile("ld.relaxed.gpu.global.b64 %0,[%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ float load_gpu(const float *p) {
    float v;
    asm volatile("ld.relaxed.gpu.global.f32 %0,[%1];" : "=f"(v) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ float4 load4_gpu(const float *p) {
    float4 v;
    asm volatile("ld.relaxed.gpu.global.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ void store_gpu(u64 *p, u64 v) { asm volatile("st.relaxed.gpu.global.b64 [%0],%1;" ::"l"(p), "l"(v) : "memory"); }
__device__ __forceinline__ void store_sys(u64 *p, u64 v) { asm volatile("st.relaxed.sys.global.b64 [%0],%1;" ::"l"(p), "l"(v) : "memory"); }
__device__ __forceinline__ void store_sys(u32 *p, u32 v) { asm volatile("st.relaxed.sys.global.b32 [%0],%1;" ::"l"(p), "r"(v) : "memory"); }
__device__ __forceinline__ u32 acquire_gpu(const u32 *p) {
    u32 v;
    asm volatile("ld.acquire.gpu.global.b32 %0,[%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ void release_gpu(u32 *p, u32 v) { asm volatile("st.release.gpu.global.b32 [%0],%1;" ::"l"(p), "r"(v) : "memory"); }
__device__ __forceinline__ void release_sys(u32 *p, u32 v) { asm volatile("st.release.sys.global.b32 [%0],%1;" ::"l"(p), "r"(v) : "memory"); }
// 16 bytes to shared memory, while the thread goes on.
__device__ __forceinline__ void copy16(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void await_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }
// The kernels behind this one may be launched; and: all kernels before it have ended.
__device__ __forceinline__ void let_next() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ __forceinline__ void await_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// END OF ASSEMBLY

__device__ __forceinline__ void await_groups(int left) {
    switch (left) {
    case 0: await_groups<0>(); break;
    case 1: await_groups<1>(); break;
    case 2: await_groups<2>(); break;
    case 3: await_groups<3>(); break;
    case 4: await_groups<4>(); break;
    case 5: await_groups<5>(); break;
    case 6: await_groups<6>(); break;
    default: await_groups<7>();
    }
}
__device__ __forceinline__ u64 pair(float v, u32 number) { return (u64)number << 32 | __float_as_uint(v); }
__device__ __forceinline__ float first(u64 pair) { return __uint_as_float((u32)pair); }
__device__ __forceinline__ u32 second(u64 pair) { return (u32)(pair >> 32); }

// ---------------------------------------------------------------- arithmetic
__device__ __forceinline__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ __forceinline__ float tangent(float x) { return 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x)); }
__device__ __forceinline__ float relu(float x) { return fmaxf(x, 0.0f); }

// The new hidden state of a unit, of its gates i, f, g and o.
__device__ __forceinline__ float cell(float i, float f, float g, float o, float &c) {
    c = sigmoid(f) * c + sigmoid(i) * tangent(g);
    return sigmoid(o) * tangent(c);
}

// One step of `reduce`: of LEFT values, lanes keep one half and give away the other.
template <int LANES, int LEFT, int N> __device__ __forceinline__ void halve(float (&v)[N]) {
    if constexpr (LEFT > 1) {
        constexpr int n = LEFT / 2, d = LANES * n / N;
        const bool upper = threadIdx.x & d;
#pragma unroll
        for (int j = 0; j < n; j++) {
            float keep = upper ? v[j + n] : v[j], give = upper ? v[j] : v[j + n];
            v[j] = keep + __shfl_xor_sync(~0u, give, d);
        }
        halve<LANES, n>(v);
    }
}
// The sums of N values over the lanes of each group of so many: lane l of a group gets that of value l / (LANES / N).
template <int N, int LANES = 32> __device__ __forceinline__ float reduce(float (&v)[N]) {
    halve<LANES, N>(v);
#pragma unroll
    for (int d = LANES / 2 / N; d > 0; d /= 2) v[0] += __shfl_xor_sync(~0u, v[0], d);
    return v[0];
}

// ---------------------------------------------------------------- answers of the kernels of graphs
// Where an answer goes: to `values`, with a flag behind it or none, or to `pairs`.
struct Answer {
    float *values;
    u64 *pairs;
    u32 *flag, *counter; // of the blocks that are done
};

__device__ __forceinline__ void put(const Answer &a, int k, float v, u32 number) {
    if (a.pairs) store_sys(a.pairs + k, pair(v, number));
    else a.values[k] = v;
}

// By all threads of a block, when they have put what they have: the last block writes the flag.
__device__ __forceinline__ void finish(const Answer &a, u32 number) {
    if (!a.flag) return;
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (gridDim.x > 1) {
        __threadfence_system();
        if (atomicAdd(a.counter, 1) != gridDim.x - 1) return;
        *a.counter = 0;
        __threadfence_system();
    }
    release_sys(a.flag, number);
}

// Copies a request from mapped memory.
__global__ void fetch(const uint4 *from, uint4 *to, int n) {
    let_next();
    await_before();
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) to[k] = from[k];
}

// ---------------------------------------------------------------- LSTM, batch 1, a kernel a layer
// A request: 32 features, twice the stream plus the parity of its step, the request's number. Hidden states are kept twice, by parity, so
// that no block overwrites what another one reads.
struct One {
    const float *w1, *w2;        // rows 4 unit + gate: of the input, then of the hidden state
    const float4 *b1, *b2;       // of each unit
    float *h1, *h2, *c1, *c2;    // [STREAMS][2][HIDDEN], [STREAMS][HIDDEN]
    uint2 *now;                  // what the second layer needs of the request
};

// A warp a unit.
template <int LAYER> __global__ void lstm_one(One g, const float *request, Answer answer) {
    __shared__ float4 x[FEATURES / 4];
    __shared__ uint2 head;
    __shared__ float of_warp[32];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, unit = blockIdx.x * warps + warp;
    let_next();
    float4 wi[4], wh[4], bias = (LAYER == 1 ? g.b1 : g.b2)[unit];
    const float4 *rows = (const float4 *)(LAYER == 1 ? g.w1 + unit * 4 * K1 : g.w2 + unit * 4 * K2);
    if (LAYER == 1) {
        wi[0] = rows[lane / 8 * (K1 / 4) + lane % 8];
        for (int k = 0; k < 4; k++) wh[k] = rows[k * (K1 / 4) + FEATURES / 4 + lane];
    } else {
        for (int k = 0; k < 4; k++) wi[k] = rows[k * (K2 / 4) + lane], wh[k] = rows[k * (K2 / 4) + HIDDEN / 4 + lane];
    }
    await_before();
    if (LAYER == 1) {
        if (warp == 0) {
            if (lane < 8) x[lane] = ((const float4 *)request)[lane];
            if (lane == 8) head = *(const uint2 *)(request + FEATURES);
        }
    } else if (threadIdx.x == 0) {
        head = *g.now;
    }
    __syncthreads();
    uint2 of = head;
    if (LAYER == 1 && blockIdx.x == 0 && threadIdx.x == 0) *g.now = of;
    u32 stream = of.x / 2;
    float *h = LAYER == 1 ? g.h1 : g.h2, *cells = (LAYER == 1 ? g.c1 : g.c2) + stream * HIDDEN + unit;
    float4 old = ((const float4 *)(h + of.x * HIDDEN))[lane];
    float c = *cells, v[4];
    if (LAYER == 1) {
        float of_x = dot(wi[0], x[lane % 8]);
        for (int k = 0; k < 4; k++) v[k] = dot(wh[k], old) + (lane / 8 == k ? of_x : 0.0f);
    } else {
        float4 in = ((const float4 *)(g.h1 + (of.x ^ 1) * HIDDEN))[lane];
        for (int k = 0; k < 4; k++) v[k] = dot(wi[k], in) + dot(wh[k], old);
    }
    float sum = reduce<4>(v);
    float i = __shfl_sync(~0u, sum, 0), f = __shfl_sync(~0u, sum, 8), n = __shfl_sync(~0u, sum, 16), o = __shfl_sync(~0u, sum, 24);
    float hidden = cell(i + bias.x, f + bias.y, n + bias.z, o + bias.w, c);
    if (lane == 0) {
        *cells = c;
        h[(of.x ^ 1) * HIDDEN + unit] = hidden;
        of_warp[warp] = hidden;
    }
    if (LAYER == 2) {
        __syncthreads();
        if (threadIdx.x < warps) put(answer, blockIdx.x * warps + threadIdx.x, of_warp[threadIdx.x], of.y);
        finish(answer, of.y);
    }
}

// ---------------------------------------------------------------- MLP, batch 1
// A request: 64 features, a word that is not used, the request's number.
struct OneMlp {
    const float *w1, *w2, *w3, *b1, *b2, *b3; // [out][in]
    float *a1, *a2;
    u32 *now; // the request's number
};

// A kernel a layer: half a warp an output in the first one, then a warp.
template <int LAYER> __global__ void mlp_one(OneMlp g, const float *request, Answer answer) {
    __shared__ float4 x[IN / 4];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, of = blockIdx.x * (blockDim.x / 32) + warp;
    let_next();
    if (LAYER == 1) {
        u32 k = 2 * of + lane / 16;
        float4 w = ((const float4 *)g.w1)[k * (IN / 4) + lane % 16];
        float bias = g.b1[k];
        await_before();
        if (warp == 0 && lane < 16) x[lane] = ((const float4 *)request)[lane];
        if (blockIdx.x == 0 && warp == 0 && lane == 16) *g.now = ((const u32 *)request)[IN + 1];
        __syncthreads();
        float v[1] = {dot(w, x[lane % 16])};
        float sum = reduce<1, 16>(v);
        if (lane % 16 == 0) g.a1[k] = relu(sum + bias);
    } else {
        const float4 *w = (const float4 *)(LAYER == 2 ? g.w2 : g.w3) + of * (WIDE / 4), *a = (const float4 *)(LAYER == 2 ? g.a1 : g.a2);
        float4 w0 = w[lane], w1 = w[lane + 32];
        float bias = (LAYER == 2 ? g.b2 : g.b3)[of];
        await_before();
        u32 number = LAYER == 3 ? *g.now : 0;
        float v[1] = {dot(w0, a[lane]) + dot(w1, a[lane + 32])};
        float sum = reduce<1>(v);
        if (LAYER == 2) {
            if (lane == 0) g.a2[of] = relu(sum + bias);
        } else {
            if (lane == 0) put(answer, of, sum + bias, number);
            finish(answer, number);
        }
    }
}

// All layers in one block of 1024 threads.
__global__ void __launch_bounds__(1024, 1) mlp_one_block(OneMlp g, const float *request, Answer answer) {
    __shared__ float4 x[IN / 4], a1[WIDE / 4], a2[WIDE / 4];
    __shared__ u32 head;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    let_next();
    float4 w[8];
    for (int j = 0; j < 4; j++) w[j] = ((const float4 *)g.w1)[(warp * 8 + 2 * j) * (IN / 4) + lane];
    await_before();
    if (warp == 0) {
        if (lane < 16) x[lane] = ((const float4 *)request)[lane];
        if (lane == 16) head = ((const u32 *)request)[IN + 1];
    }
    __syncthreads();
    float v[8];
    for (int j = 0; j < 4; j++) v[j] = dot(w[j], x[lane % 16]);
    // Outputs 2 j and 2 j + 1 are those of the lanes below and above 16.
    float low[4] = {v[0], v[1], v[2], v[3]};
    float sum = reduce<4, 16>(low);
    if (lane % 4 == 0) {
        u32 k = warp * 8 + 2 * (lane % 16 / 4) + lane / 16;
        ((float *)a1)[k] = relu(sum + g.b1[k]);
    }
    const float4 *w2 = (const float4 *)g.w2 + warp * 8 * (WIDE / 4);
    for (int j = 0; j < 4; j++) w[2 * j] = w2[j * 64 + lane], w[2 * j + 1] = w2[j * 64 + 32 + lane];
    __syncthreads();
    float4 in0 = a1[lane], in1 = a1[lane + 32];
    for (int j = 0; j < 4; j++) v[j] = dot(w[2 * j], in0) + dot(w[2 * j + 1], in1);
    for (int j = 0; j < 4; j++) w[2 * j] = w2[(j + 4) * 64 + lane], w[2 * j + 1] = w2[(j + 4) * 64 + 32 + lane];
    for (int j = 0; j < 4; j++) v[j + 4] = dot(w[2 * j], in0) + dot(w[2 * j + 1], in1);
    sum = reduce<8>(v);
    if (lane % 4 == 0) {
        u32 k = warp * 8 + lane / 4;
        ((float *)a2)[k] = relu(sum + g.b2[k]);
    }
    if (warp < OUT) w[0] = ((const float4 *)g.w3)[warp * (WIDE / 4) + lane], w[1] = ((const float4 *)g.w3)[warp * (WIDE / 4) + 32 + lane];
    __syncthreads();
    if (warp < OUT) {
        float last[1] = {dot(w[0], a2[lane]) + dot(w[1], a2[lane + 32])};
        sum = reduce<1>(last);
        if (lane == 0) put(answer, warp, sum + g.b3[warp], head);
    }
    finish(answer, head);
}

// ---------------------------------------------------------------- batch 1024: products of matrices, a kernel a layer
// Requests and answers have a row a stream; all else has a column a stream, so that tiles are copied as they are. The kernels count the
// requests themselves: the first layer reads `next` and writes `now`, the last one reads `now` and writes `next`.
struct Many {
    const float *w1, *w2, *w3; // [in][out]; of the LSTM: columns 4 unit + gate, rows of the hidden state, then of the input
    const float *b1, *b2, *b3; // (in its second layer: of the input, then of the hidden state); and of its sums
    float *h1, *h2, *c1, *c2;  // [2][HIDDEN][STREAMS], [HIDDEN][STREAMS]
    float *a1, *a2;            // [WIDE][STREAMS]
    u32 *now, *next;
    bool sums; // of the LSTM's second hidden state 16 sums are the answer, and else all of it
};

enum { LSTM_1, LSTM_2, MLP_1, MLP_2 };
constexpr int BM = 32, KT = 32, STRIDE = 36; // streams a block, inputs a tile
// Of a layer: the columns of a block, the tiles of inputs, and how many of them, the last ones, are of the request; the shared memory.
__host__ __device__ constexpr int columns(int layer) { return layer <= LSTM_2 ? 128 : 64; }
__host__ __device__ constexpr int tiles(int layer) { return layer == LSTM_1 ? 5 : layer == MLP_1 ? 2 : 8; }
__host__ __device__ constexpr int tiles_of_x(int layer) { return layer == LSTM_1 ? 1 : layer == MLP_1 ? 2 : 0; }
constexpr int bytes(int layer) { return 4 * (tiles(layer) * KT * (STRIDE + columns(layer)) + 32 * 256); }

// Each block of 256 threads has 32 streams and 128 or 64 columns. All tiles are on their way to shared memory at once. The threads are 2 or
// 4 groups, which have different inputs of each tile; each thread has 8 streams and 4 columns: the four gates of a unit. Then the groups'
// sums are added up, and each group ends its part of the streams.
template <int LAYER> __global__ void __launch_bounds__(256, 1) layer(Many g, const float *x, Answer answer, int early) {
    constexpr bool LSTM = LAYER <= LSTM_2;
    constexpr int BN = columns(LAYER), TILES = tiles(LAYER), X = tiles_of_x(LAYER), N = LSTM ? GATES : WIDE;
    constexpr int GROUPS = 256 / BN, EACH = KT / GROUPS, OWN = 8 / GROUPS;
    extern __shared__ float4 dynamic[];
    float *sa = (float *)dynamic, *sb = sa + TILES * KT * STRIDE, *sums = sb + TILES * KT * BN;
    const int t = threadIdx.x, group = t / BN, in_group = t % BN, lane = t % 32;
    const int quad = in_group / 32 * 8 + lane % 8, four = lane / 8; // 4 columns, and streams 4 four + 0..3 and 16 + 4 four + 0..3
    const int m0 = blockIdx.x / (N / BN) * BM, n0 = blockIdx.x % (N / BN) * BN;
    const float *w = LAYER == LSTM_1 || LAYER == MLP_1 ? g.w1 : g.w2;
    auto weights = [&](int tile) {
#pragma unroll
        for (int i = 0; i < KT * BN / 4 / 256; i++) {
            int k = (i * 256 + t) / (BN / 4), c = (i * 256 + t) % (BN / 4);
            copy16(sb + (tile * KT + k) * BN + 4 * c, w + (tile * KT + k) * N + n0 + 4 * c);
        }
    };
    let_next();
    if (early) {
        for (int tile = 0; tile < TILES; tile++) weights(tile);
    }
    float4 bias = ((const float4 *)(LAYER == LSTM_1 || LAYER == MLP_1 ? g.b1 : g.b2))[n0 / 4 + quad];
    await_before();

    u32 count = LAYER == LSTM_1 || LAYER == MLP_1 ? *g.next : LAYER == LSTM_2 ? *g.now : 0;
    if (blockIdx.x == 0 && t == 0) {
        if (LAYER == LSTM_1 || LAYER == MLP_1) *g.now = count;
        if (LAYER == LSTM_2) *g.next = count + 1;
    }
    const int from = (count & 1) * HIDDEN * STREAMS, to = HIDDEN * STREAMS - from;
    float4 features[X > 0 ? X : 1];
#pragma unroll
    for (int j = 0; j < X; j++) features[j] = ((const float4 *)x)[(m0 + t / 8) * (X * KT / 4) + j * (KT / 4) + t % 8];
    for (int tile = 0; tile < TILES; tile++) {
        if (tile < TILES - X) {
            const float *a = LAYER == LSTM_1  ? g.h1 + from + tile * KT * STREAMS
                             : LAYER == MLP_2 ? g.a1 + tile * KT * STREAMS
                             : tile < 4       ? g.h1 + to + tile * KT * STREAMS
                                              : g.h2 + from + (tile - 4) * KT * STREAMS;
            copy16(sa + (tile * KT + t / 8) * STRIDE + t % 8 * 4, a + t / 8 * STREAMS + m0 + t % 8 * 4);
        }
        if (!early) weights(tile);
        end_group();
    }
    // This thread's part of the streams, where they are side by side: 4 for the LSTM, 2 for the MLP.
    const int unit = n0 / 4 + quad, mine = m0 + (group * OWN) / 4 * 16 + 4 * four + (group * OWN) % 4;
    alignas(16) float c[4];
    if (LSTM) *(float4 *)c = *(const float4 *)((LAYER == LSTM_1 ? g.c1 : g.c2) + unit * STREAMS + mine);

    float v[8][4] = {};
#pragma unroll 1
    for (int tile = 0; tile < TILES; tile++) {
        if (X > 0 && tile == TILES - X) {
#pragma unroll
            for (int j = 0; j < X; j++) {
                float *column = sa + ((tile + j) * KT + t % 8 * 4) * STRIDE + t / 8;
                column[0] = features[j].x, column[STRIDE] = features[j].y, column[2 * STRIDE] = features[j].z, column[3 * STRIDE] = features[j].w;
            }
        }
        await_groups(TILES - 1 - tile);
        __syncthreads();
        const float *a = sa + (tile * KT + group * EACH) * STRIDE + 4 * four, *b = sb + (tile * KT + group * EACH) * BN + 4 * quad;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            float4 a0 = *(const float4 *)(a + k * STRIDE), a1 = *(const float4 *)(a + k * STRIDE + 16), b0 = *(const float4 *)(b + k * BN);
            float of_a[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w}, of_b[4] = {b0.x, b0.y, b0.z, b0.w};
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) v[i][j] += of_a[i] * of_b[j];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sums[(group * 32 + i * 4 + j) * BN + in_group] = v[i][j];
    __syncthreads();
    float own[OWN][4];
#pragma unroll
    for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            own[i][j] = j == 0 ? bias.x : j == 1 ? bias.y : j == 2 ? bias.z : bias.w;
#pragma unroll
            for (int k = 0; k < GROUPS; k++) own[i][j] += sums[(k * 32 + (group * OWN + i) * 4 + j) * BN + in_group];
        }

    if constexpr (LSTM) {
        alignas(16) float h[4];
#pragma unroll
        for (int i = 0; i < 4; i++) h[i] = cell(own[i][0], own[i][1], own[i][2], own[i][3], c[i]);
        *(float4 *)((LAYER == LSTM_1 ? g.c1 : g.c2) + unit * STREAMS + mine) = *(float4 *)c;
        *(float4 *)((LAYER == LSTM_1 ? g.h1 : g.h2) + to + unit * STREAMS + mine) = *(float4 *)h;
        if (LAYER == LSTM_2 && !g.sums) {
#pragma unroll
            for (int i = 0; i < 4; i++) sa[(mine - m0 + i) * STRIDE + quad] = h[i]; // all have read their tiles
            __syncthreads();
            ((float4 *)answer.values)[(m0 + t / 8) * (HIDDEN / 4) + n0 / 16 + t % 8] = *(const float4 *)(sa + t / 8 * STRIDE + t % 8 * 4);
            finish(answer, count + 1);
        }
    } else {
        float *a = LAYER == MLP_1 ? g.a1 : g.a2;
#pragma unroll
        for (int j = 0; j < 4; j++)
            *(float2 *)(a + (n0 + 4 * quad + j) * STREAMS + mine) = make_float2(relu(own[0][j]), relu(own[1][j]));
    }
}

// The last layer of the MLP, or the sums of the LSTM's hidden state: 8 streams a block, whose 8 warps have different inputs.
template <bool LSTM> __global__ void __launch_bounds__(256, 1) last(Many g, Answer answer) {
    constexpr int FROM = LSTM ? HIDDEN : WIDE, OWN = FROM / 8;
    __shared__ float4 w[FROM * OUT / 4], a[FROM * 2], sums[8 * 32];
    int t = threadIdx.x, m0 = blockIdx.x * 8, lane = t % 32, warp = t / 32;
    let_next();
    for (int i = 0; i < FROM / 64; i++) copy16(w + i * 256 + t, (const float4 *)g.w3 + i * 256 + t);
    float bias = g.b3[t % OUT];
    await_before();
    u32 count = *g.now;
    const float *from = LSTM ? g.h2 + (1 - (count & 1)) * HIDDEN * STREAMS : g.a2;
    for (int i = 0; i < FROM / 128; i++) copy16(a + i * 256 + t, from + (i * 256 + t) / 2 * STREAMS + m0 + t % 2 * 4);
    end_group();
    if (!LSTM && blockIdx.x == 0 && t == 0) *g.next = count + 1;
    await_groups<0>();
    __syncthreads();
    float4 v = {0, 0, 0, 0}; // of stream lane / 4 and outputs 4 (lane % 4) + 0..3
#pragma unroll 8
    for (int k = warp * OWN; k < warp * OWN + OWN; k++) {
        float of = ((const float *)a)[k * 8 + lane / 4];
        float4 by = w[k * 4 + lane % 4];
        v.x += of * by.x, v.y += of * by.y, v.z += of * by.z, v.w += of * by.w;
    }
    sums[t] = v;
    __syncthreads();
    if (t < 128) {
        float sum = bias;
        for (int k = 0; k < 8; k++) sum += ((const float *)sums)[k * 128 + t];
        answer.values[m0 * OUT + t] = sum;
    }
    finish(answer, count + 1);
}

// ---------------------------------------------------------------- the resident LSTM, batch 1
// A request is 34 pairs of a word and the request's number: the features, twice the stream plus the parity of its step, and the number of
// the stream's request before.
constexpr int WORDS = FEATURES + 2;

struct Resident {
    const float *w1, *w2;
    const float4 *b1, *b2;
    float *h1, *h2, *c1, *c2;
    u64 *pairs1, *pairs2; // [STREAMS][2][HIDDEN]: hidden states with the numbers of their requests
    const u64 *request;   // mapped
    u64 *record;          // the request, for the other blocks
    u32 *go, *flags1, *flags2;
    u64 *answer_pairs; // mapped
    float *answer;     // mapped
    u32 *flag, *bad;   // mapped
};

__device__ __forceinline__ bool late(long long begun) { return clock64() - begun > CYCLES; }

template <int BLOCKS, bool PAIRS> __global__ void __launch_bounds__(512, 1) lstm_resident(Resident g) {
    constexpr int UNITS = HIDDEN / BLOCKS, ROWS = 4 * UNITS, EACH = ROWS > 16 ? ROWS / 16 : 1, WARPS = ROWS / EACH;
    extern __shared__ float4 dynamic[];
    __shared__ u32 words[WORDS];
    __shared__ float4 h1_old[HIDDEN / 4], h2_old[HIDDEN / 4], h1_new[HIDDEN / 4];
    __shared__ float gates[ROWS];
    const float4 *w1 = dynamic, *w2 = dynamic + ROWS * K1 / 4;
    const u32 t = threadIdx.x, lane = t % 32, warp = t / 32, unit = blockIdx.x * UNITS + t % UNITS;
    for (u32 k = t; k < (u32)ROWS * K1 / 4; k += 512) dynamic[k] = ((const float4 *)g.w1)[blockIdx.x * ROWS * K1 / 4 + k];
    for (u32 k = t; k < (u32)ROWS * K2 / 4; k += 512) dynamic[ROWS * K1 / 4 + k] = ((const float4 *)g.w2)[blockIdx.x * ROWS * K2 / 4 + k];
    const float4 b1 = g.b1[unit], b2 = g.b2[unit];
    bool lost = false;
    for (u32 number = 1;; number++) {
        // The request: block 0 polls for it and passes it on.
        if (warp == 0 && !lost) {
            u64 a = 0, b = 0;
            long long begun = clock64();
            if (PAIRS || blockIdx.x == 0) {
                for (;;) {
                    bool have = true;
                    if (lane < WORDS / 2) {
                        if (blockIdx.x == 0) load2_sys(g.request + 2 * lane, a, b);
                        else load2_gpu(g.record + 2 * lane, a, b);
                        have = second(a) == number && second(b) == number;
                    }
                    if (__all_sync(~0u, have)) break;
                    lost = __any_sync(~0u, late(begun));
                    if (lost) break;
                }
            } else {
                while (!__all_sync(~0u, acquire_gpu(g.go) == number) && !lost) lost = __any_sync(~0u, late(begun));
                if (lane < WORDS / 2) load2_gpu(g.record + 2 * lane, a, b);
            }
            if (!lost && blockIdx.x == 0) {
                if (lane < WORDS / 2) store2_gpu(g.record + 2 * lane, a, b);
                if (!PAIRS) {
                    __syncwarp();
                    if (lane == 0) release_gpu(g.go, number);
                }
            }
            if (lane < WORDS / 2) words[2 * lane] = (u32)a, words[2 * lane + 1] = (u32)b;
        }
        if (__syncthreads_or(lost)) break;
        const u32 which = words[FEATURES], before = words[FEATURES + 1];
        if (which == STOP) return;

        // The stream's state.
        float *cells1 = g.c1 + which / 2 * HIDDEN + unit, *cells2 = g.c2 + which / 2 * HIDDEN + unit;
        float c1 = 0, c2 = 0;
        if (t < UNITS) c1 = *cells1, c2 = *cells2;
        if (t < 2 * HIDDEN) {
            u32 at = which * HIDDEN + t % HIDDEN;
            float old;
            if (PAIRS) {
                u64 v;
                long long begun = clock64();
                while (second(v = load_gpu((t < HIDDEN ? g.pairs1 : g.pairs2) + at)) != before && !(lost = late(begun))) {}
                old = first(v);
            } else {
                old = load_gpu((t < HIDDEN ? g.h1 : g.h2) + at);
            }
            ((float *)(t < HIDDEN ? h1_old : h2_old))[t % HIDDEN] = old;
        }
        if (__syncthreads_or(lost)) break;

        // Layer 1.
        if (warp < WARPS) {
            float v[EACH], x = __uint_as_float(words[lane]);
            float4 h = h1_old[lane];
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                u32 row = warp * EACH + j;
                v[j] = ((const float *)w1)[row * K1 + lane] * x + dot(w1[row * (K1 / 4) + FEATURES / 4 + lane], h);
            }
            float sum = reduce<EACH>(v);
            if (lane % (32 / EACH) == 0) gates[warp * EACH + lane / (32 / EACH)] = sum;
        }
        __syncthreads();
        const u32 at = (which ^ 1) * HIDDEN;
        if (t < UNITS) {
            float h = cell(gates[4 * t] + b1.x, gates[4 * t + 1] + b1.y, gates[4 * t + 2] + b1.z, gates[4 * t + 3] + b1.w, c1);
            if (PAIRS) store_gpu(g.pairs1 + at + unit, pair(h, number));
            else g.h1[at + unit] = h;
            *cells1 = c1;
        }
        if (!PAIRS && warp == 0) {
            __syncwarp();
            if (lane == 0) release_gpu(g.flags1 + blockIdx.x, number);
        }

        // What layer 2 makes of its own state, while the blocks exchange the first one's.
        float v[EACH];
        if (warp < WARPS) {
            float4 h = h2_old[lane];
#pragma unroll
            for (int j = 0; j < EACH; j++) v[j] = dot(w2[(warp * EACH + j) * (K2 / 4) + HIDDEN / 4 + lane], h);
        }
        if (t < HIDDEN) {
            long long begun = clock64();
            float h;
            if (PAIRS) {
                u64 of;
                while (second(of = load_gpu(g.pairs1 + at + t)) != number && !(lost = late(begun))) {}
                h = first(of);
            } else {
                // The blocks that have the 32 units of this warp.
                if (lane < 32 / UNITS)
                    while (acquire_gpu(g.flags1 + warp * (32 / UNITS) + lane) != number && !(lost = late(begun))) {}
                __syncwarp();
                h = load_gpu(g.h1 + at + t);
            }
            ((float *)h1_new)[t] = h;
        }
        if (__syncthreads_or(lost)) break;

        // Layer 2, and the answer.
        if (warp < WARPS) {
            float4 h = h1_new[lane];
#pragma unroll
            for (int j = 0; j < EACH; j++) v[j] += dot(w2[(warp * EACH + j) * (K2 / 4) + lane], h);
            float sum = reduce<EACH>(v);
            if (lane % (32 / EACH) == 0) gates[warp * EACH + lane / (32 / EACH)] = sum;
        }
        __syncthreads();
        if (t < UNITS) {
            float h = cell(gates[4 * t] + b2.x, gates[4 * t + 1] + b2.y, gates[4 * t + 2] + b2.z, gates[4 * t + 3] + b2.w, c2);
            if (PAIRS) {
                store_sys(g.answer_pairs + unit, pair(h, number));
                store_gpu(g.pairs2 + at + unit, pair(h, number));
            } else {
                g.h2[at + unit] = h;
            }
            *cells2 = c2;
        }
        if (!PAIRS && warp == 0) {
            __syncwarp();
            if (lane == 0) release_gpu(g.flags2 + blockIdx.x, number);
        }
        if (!PAIRS && blockIdx.x == 0 && warp == 0) {
            long long begun = clock64();
            for (u32 k = lane; k < BLOCKS; k += 32)
                while (acquire_gpu(g.flags2 + k) != number && !(lost = late(begun))) {}
            lost = __any_sync(~0u, lost);
            ((float4 *)g.answer)[lane] = load4_gpu(g.h2 + at + 4 * lane);
            __syncwarp();
            if (lane == 0 && !lost) release_sys(g.flag, number);
        }
    }
    if (t == 0) store_sys(g.bad, 1u);
}

// ---------------------------------------------------------------- the resident MLP, batch 1: one block, weights in f16
// A request is 64 pairs of a feature and the request's number.
struct ResidentMlp {
    const uint4 *weights; // of all layers, [out][in]
    const float *b1, *b2, *b3;
    const u64 *request; // mapped
    u64 *answer_pairs;  // mapped
    float *answer;      // mapped
    u32 *flag, *bad;    // mapped
};
constexpr int HALVES = IN * WIDE + WIDE * WIDE + WIDE * OUT;

__device__ __forceinline__ float dot(uint4 halves, float4 a, float4 b) {
    const __half2 *h = (const __half2 *)&halves;
    float2 h0 = __half22float2(h[0]), h1 = __half22float2(h[1]), h2 = __half22float2(h[2]), h3 = __half22float2(h[3]);
    return h0.x * a.x + h0.y * a.y + h1.x * a.z + h1.y * a.w + (h2.x * b.x + h2.y * b.y + h3.x * b.z + h3.y * b.w);
}

// A warp reads 512 bytes side by side at once: four rows of the first layer, or one row of the others.
template <bool PAIRS> __global__ void __launch_bounds__(512, 1) mlp_resident(ResidentMlp g) {
    extern __shared__ uint4 halves[];
    __shared__ float4 x[IN / 4], a1[WIDE / 4], a2[WIDE / 4];
    __shared__ float out[OUT];
    __shared__ u32 stop;
    const u32 t = threadIdx.x, lane = t % 32, warp = t / 32;
    for (u32 k = t; k < (u32)HALVES / 8; k += 512) halves[k] = g.weights[k];
    const uint4 *w1 = halves, *w2 = w1 + IN * WIDE / 8, *w3 = w2 + WIDE * WIDE / 8;
    const u32 of1 = warp * 16 + lane % 8 / 2 * 4 + lane / 8, of2 = warp * 16 + lane / 2; // the outputs whose sums this lane gets
    const float b1 = g.b1[of1], b2 = g.b2[of2], b3 = g.b3[warp];
    bool lost = false;
    for (u32 number = 1;; number++) {
        if (warp == 0) {
            u64 a, b;
            bool have, end = false;
            long long begun = clock64();
            for (;;) {
                load2_sys(g.request + 2 * lane, a, b);
                have = second(a) == number && second(b) == number;
                if (__all_sync(~0u, have)) break;
                end = __any_sync(~0u, second(a) == STOP);
                lost = __any_sync(~0u, late(begun));
                if (end || lost) break;
            }
            ((float2 *)x)[lane] = make_float2(first(a), first(b));
            if (lane == 0) stop = end;
        }
        if (__syncthreads_or(lost)) break;
        if (stop) return;
        {
            float4 in0 = x[lane % 8 * 2], in1 = x[lane % 8 * 2 + 1];
            float v[4];
#pragma unroll
            for (int j = 0; j < 4; j++) v[j] = dot(w1[(warp * 16 + j * 4) * (IN / 8) + lane], in0, in1);
            float sum = reduce<4, 8>(v);
            if (lane % 2 == 0) ((float *)a1)[of1] = relu(sum + b1);
        }
        __syncthreads();
        {
            float4 in0 = a1[2 * lane], in1 = a1[2 * lane + 1];
            float v[16];
#pragma unroll
            for (int j = 0; j < 16; j++) v[j] = dot(w2[(warp * 16 + j) * (WIDE / 8) + lane], in0, in1);
            float sum = reduce<16>(v);
            if (lane % 2 == 0) ((float *)a2)[of2] = relu(sum + b2);
        }
        __syncthreads();
        float v[1] = {dot(w3[warp * (WIDE / 8) + lane], a2[2 * lane], a2[2 * lane + 1])};
        float sum = reduce<1>(v) + b3;
        if (PAIRS) {
            if (lane == 0) store_sys(g.answer_pairs + warp, pair(sum, number));
        } else {
            if (lane == 0) out[warp] = sum;
            __syncthreads();
            if (warp == 0) {
                if (lane < OUT) g.answer[lane] = out[lane];
                __syncwarp();
                if (lane == 0) release_sys(g.flag, number);
            }
        }
    }
    if (t == 0) store_sys(g.bad, 1u);
}

// ---------------------------------------------------------------- the host
#define CHECK(call)                                                                                                                        \
    do {                                                                                                                                   \
        cudaError_t error = (call);                                                                                                        \
        if (error != cudaSuccess) {                                                                                                        \
            printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(error));                                                       \
            fflush(stdout);                                                                                                                \
            _exit(1);                                                                                                                      \
        }                                                                                                                                  \
    } while (0)

static cudaStream_t stream;

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static u64 splitmix64(u64 x) {
    u64 z = x + 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}
static float value(u64 tensor, u64 k, float scale) {
    return ((float)(splitmix64((tensor << 32) + k) >> 40) / 16777216.0f - 0.5f) * scale;
}
static std::vector<float> tensor(u64 t, int count, float scale) {
    std::vector<float> v(count);
    for (int k = 0; k < count; k++) v[k] = value(t, k, scale);
    return v;
}
static float of_fan_in(int n) { return 2.0f / sqrtf((float)n); }

struct Weights {
    std::vector<float> wi1 = tensor(0, GATES * FEATURES, of_fan_in(K1)), wh1 = tensor(1, GATES * HIDDEN, of_fan_in(K1)), b1 = tensor(2, GATES, 0.2f);
    std::vector<float> wi2 = tensor(3, GATES * HIDDEN, of_fan_in(K2)), wh2 = tensor(4, GATES * HIDDEN, of_fan_in(K2)), b2 = tensor(5, GATES, 0.2f);
    std::vector<float> o = tensor(6, OUT * HIDDEN, of_fan_in(HIDDEN)), p = tensor(7, OUT, 0.2f);
    std::vector<float> m1 = tensor(10, WIDE * IN, of_fan_in(IN)), n1 = tensor(11, WIDE, 0.2f);
    std::vector<float> m2 = tensor(12, WIDE * WIDE, of_fan_in(WIDE)), n2 = tensor(13, WIDE, 0.2f);
    std::vector<float> m3 = tensor(14, OUT * WIDE, of_fan_in(WIDE)), n3 = tensor(15, OUT, 0.2f);
};

// -------- the models in f64
// [out][in] to [in][out].
static std::vector<double> turned(const std::vector<float> &w, int out, int in) {
    std::vector<double> to(w.size());
    for (int o = 0; o < out; o++)
        for (int i = 0; i < in; i++) to[i * out + o] = w[o * in + i];
    return to;
}
static void add_product(std::vector<double> &sum, const double *x, const std::vector<double> &turned) {
    int out = (int)sum.size(), in = (int)turned.size() / out;
    for (int i = 0; i < in; i++) {
        const double *w = &turned[(size_t)i * out];
        for (int o = 0; o < out; o++) sum[o] += x[i] * w[o];
    }
}

// What the second layer's hidden state is: [step][stream][unit].
static std::vector<float> right_lstm(const Weights &w) {
    std::vector<double> wi1 = turned(w.wi1, GATES, FEATURES), wh1 = turned(w.wh1, GATES, HIDDEN);
    std::vector<double> wi2 = turned(w.wi2, GATES, HIDDEN), wh2 = turned(w.wh2, GATES, HIDDEN);
    std::vector<float> right((size_t)STEPS * STREAMS * HIDDEN);
    auto gate = [](double x) { return 1 / (1 + exp(-x)); };
    for (int s = 0; s < STREAMS; s++) {
        double x[FEATURES], h1[HIDDEN] = {}, c1[HIDDEN] = {}, h2[HIDDEN] = {}, c2[HIDDEN] = {};
        for (int step = 0; step < STEPS; step++) {
            for (int k = 0; k < FEATURES; k++) x[k] = value(100 + step, s * FEATURES + k, 2.0f);
            auto layer = [&](const double *in, double *h, double *c, const std::vector<double> &wi, const std::vector<double> &wh, const std::vector<float> &b) {
                std::vector<double> sum(b.begin(), b.end());
                add_product(sum, in, wi);
                add_product(sum, h, wh);
                for (int u = 0; u < HIDDEN; u++) {
                    c[u] = gate(sum[HIDDEN + u]) * c[u] + gate(sum[u]) * tanh(sum[2 * HIDDEN + u]);
                    h[u] = gate(sum[3 * HIDDEN + u]) * tanh(c[u]);
                }
            };
            layer(x, h1, c1, wi1, wh1, w.b1);
            layer(h1, h2, c2, wi2, wh2, w.b2);
            for (int u = 0; u < HIDDEN; u++) right[((size_t)step * STREAMS + s) * HIDDEN + u] = (float)h2[u];
        }
    }
    return right;
}

// And its 16 sums: [step][stream][sum].
static std::vector<float> right_sums(const Weights &w, const std::vector<float> &hidden) {
    std::vector<double> o = turned(w.o, OUT, HIDDEN);
    std::vector<float> right((size_t)STEPS * STREAMS * OUT);
    for (size_t of = 0; of < (size_t)STEPS * STREAMS; of++) {
        std::vector<double> sum(w.p.begin(), w.p.end()), h(&hidden[of * HIDDEN], &hidden[of * HIDDEN] + HIDDEN);
        add_product(sum, h.data(), o);
        for (int k = 0; k < OUT; k++) right[of * OUT + k] = (float)sum[k];
    }
    return right;
}

// [request][index in the batch][output], for so many indices.
static std::vector<float> right_mlp(const Weights &w, int batch) {
    std::vector<double> m1 = turned(w.m1, WIDE, IN), m2 = turned(w.m2, WIDE, WIDE), m3 = turned(w.m3, OUT, WIDE);
    std::vector<float> right((size_t)STEPS * batch * OUT);
    for (int step = 0; step < STEPS; step++)
        for (int b = 0; b < batch; b++) {
            double x[IN];
            for (int k = 0; k < IN; k++) x[k] = value(2000 + step, b * IN + k, 2.0f);
            std::vector<double> a1(w.n1.begin(), w.n1.end()), a2(w.n2.begin(), w.n2.end()), a3(w.n3.begin(), w.n3.end());
            add_product(a1, x, m1);
            for (double &a : a1) a = std::max(a, 0.0);
            add_product(a2, a1.data(), m2);
            for (double &a : a2) a = std::max(a, 0.0);
            add_product(a3, a2.data(), m3);
            for (int k = 0; k < OUT; k++) right[((size_t)step * batch + b) * OUT + k] = (float)a3[k];
        }
    return right;
}

// -------- memory
static std::vector<std::pair<void *, size_t>> to_clear; // what a way begins with as zeros: of the GPU
static std::vector<std::pair<void *, size_t>> to_clear_pinned;

template <class T> static T *on_gpu(size_t count, bool clear = false) {
    void *p;
    CHECK(cudaMalloc(&p, count * sizeof(T)));
    CHECK(cudaMemset(p, 0, count * sizeof(T)));
    if (clear) to_clear.push_back({p, count * sizeof(T)});
    return (T *)p;
}
template <class T> static T *copied(const std::vector<T> &v) {
    T *p = on_gpu<T>(v.size());
    CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}
template <class T> struct Pinned {
    T *host, *gpu;
    explicit Pinned(size_t count) {
        void *p;
        CHECK(cudaHostAlloc(&p, count * sizeof(T), cudaHostAllocMapped));
        memset(p, 0, count * sizeof(T));
        host = (T *)p;
        CHECK(cudaHostGetDevicePointer(&p, host, 0));
        gpu = (T *)p;
        to_clear_pinned.push_back({host, count * sizeof(T)});
    }
};
static void clear() {
    CHECK(cudaStreamSynchronize(stream));
    for (auto &m : to_clear) CHECK(cudaMemsetAsync(m.first, 0, m.second, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (auto &m : to_clear_pinned) memset(m.first, 0, m.second);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// -------- requests and waits
struct Request {
    const float *in;
    u32 which, number, before; // twice the stream plus the parity of its step, if it has one; the number of the stream's request before
};

template <class Seen> static void await(Seen seen) {
    double begun = 0;
    for (u64 k = 1; !seen(); k++) {
        if (k % 65536) continue;
        if (begun == 0) begun = now();
        if (now() - begun < HOST_SECONDS) continue;
        printf("no answer within %.0f s (%s)\n", HOST_SECONDS, cudaGetErrorString(cudaStreamQuery(stream)));
        fflush(stdout);
        _exit(1);
    }
}
static void await_flag(const u32 *flag, u32 number) {
    await([=] { return __atomic_load_n(flag, __ATOMIC_ACQUIRE) == number; });
}
static void await_pairs(const u64 *pairs, int count, u32 number) {
    for (int k = 0; k < count; k++) await([=] { return __atomic_load_n(pairs + k, __ATOMIC_ACQUIRE) >> 32 == number; });
}
static void unpack(const u64 *pairs, float *to, int count) {
    for (int k = 0; k < count; k++) {
        u32 bits = (u32)pairs[k];
        memcpy(to + k, &bits, 4);
    }
}
static u64 packed(float v, u32 number) {
    u32 bits;
    memcpy(&bits, &v, 4);
    return (u64)number << 32 | bits;
}

// A way to get requests answered.
struct Way {
    std::string kind, name;
    std::function<void(const Request &)> call;
    std::function<const float *()> answer;       // of the last call
    std::function<void()> begin = [] { clear(); }, end = [] { CHECK(cudaStreamSynchronize(stream)); };
};

// -------- measurement
struct Best {
    std::string kind, name;
    double p50, p99;
};
static std::vector<Best> best;

static void head(const char *title) {
    printf("\n%-58s %8s %8s %8s %8s %14s %9s\n", title, "p50", "p99", "p99.9", "max", "inferences/s", "off by");
    best.clear();
}
static void report(const char *title, const Way &way, std::vector<double> &us, int batch, double off) {
    double sum = 0;
    for (double t : us) sum += t;
    std::sort(us.begin(), us.end());
    size_t n = us.size();
    auto at = [&](double part) { return us[std::min(n - 1, (size_t)(n * part))]; };
    std::string name = way.kind + (way.name.empty() ? "" : ": " + way.name);
    printf("%-58s %8.2f %8.2f %8.2f %8.2f %14.0f %9.1e\n", name.c_str(), at(0.5), at(0.99), at(0.999), us[n - 1], batch * n / sum * 1e6, off);
    fflush(stdout);
    if (!(off <= MOST_OFF)) {
        printf("%s: the answers are wrong\n", title);
        fflush(stdout);
        _exit(1);
    }
    for (Best &b : best)
        if (b.kind == way.kind) {
            if (at(0.5) < b.p50) b = {way.kind, name, at(0.5), at(0.99)};
            return;
        }
    best.push_back({way.kind, name, at(0.5), at(0.99)});
}
static void say_best(const char *title) {
    for (const Best &b : best) printf("%s: best of its kind: %s: p50 %.2f us, p99 %.2f us\n", title, b.name.c_str(), b.p50, b.p99);
}

// Prints the medians of requests that come so long behind the answer before and the making of their inputs: a kernel that polls has a rhythm, with
// which a host may be in step.
static void report_by_pause(double &pause, const std::function<double()> &ask) {
    printf("    p50 by the pause before a request, from 0 to 2 us:");
    double sum = 0;
    for (int k = 0; k <= 20; k++) {
        pause = k * 1e-7;
        std::vector<double> us(2000);
        for (double &t : us) t = ask();
        std::nth_element(us.begin(), us.begin() + us.size() / 2, us.end());
        printf(" %.2f", us[us.size() / 2]);
        sum += us[us.size() / 2];
    }
    printf("; mean %.2f\n", sum / 21);
    fflush(stdout);
}

// Streams have steps of their own; a request is of one stream, or of one step of all.
static void measure_lstm(const char *title, const Way &way, int batch, int n, const std::vector<float> &right, int outputs = HIDDEN, bool pauses = false) {
    alarm(300);
    double pause = 0;
    way.begin();
    u32 number = 0;
    std::vector<u32> steps(STREAMS), before(STREAMS);
    std::vector<float> in(batch * FEATURES);
    auto ask = [&](u32 s) {
        u32 step = steps[s]++;
        for (int k = 0; k < batch * FEATURES; k++) in[k] = value(100 + step % 1000, s * FEATURES + k, 2.0f);
        Request r = {in.data(), 2 * s + step % 2, ++number, before[s]};
        before[s] = number;
        for (double made = now(); now() - made < pause;) {
        }
        double begun = now();
        way.call(r);
        return (now() - begun) * 1e6;
    };
    double off = 0;
    const std::vector<u32> checked = batch == 1 ? std::vector<u32>{0, 1, 517, 1023} : std::vector<u32>{0};
    for (int step = 0; step < STEPS; step++)
        for (u32 s : checked) {
            ask(s);
            const float *got = way.answer(), *want = &right[((size_t)step * STREAMS + s) * outputs];
            for (int k = 0; k < batch * outputs; k++) {
                double d = fabs((double)got[k] - want[k]);
                if (!(d <= off)) off = d;
            }
        }
    std::vector<double> us;
    us.reserve(n);
    for (int k = 0; k < WARM_UP + n; k++) {
        double t = ask(batch == 1 ? k % STREAMS : 0);
        if (k >= WARM_UP) us.push_back(t);
    }
    report(title, way, us, batch, off);
    u32 next = 0;
    if (pauses) report_by_pause(pause, [&] { return ask(next++ % STREAMS); });
    way.end();
}

static void measure_mlp(const char *title, const Way &way, int batch, int n, const std::vector<float> &right, int of_right, bool pauses = false) {
    alarm(300);
    double pause = 0;
    way.begin();
    u32 number = 0;
    std::vector<float> in(batch * IN);
    auto ask = [&] {
        for (int k = 0; k < batch * IN; k++) in[k] = value(2000 + number % 1000, k, 2.0f);
        Request r = {in.data(), 0, ++number, 0};
        for (double made = now(); now() - made < pause;) {
        }
        double begun = now();
        way.call(r);
        return (now() - begun) * 1e6;
    };
    double off = 0;
    for (int step = 0; step < STEPS; step++) {
        ask();
        const float *got = way.answer(), *want = &right[(size_t)step * of_right * OUT];
        for (int k = 0; k < batch * OUT; k++) {
            double d = fabs((double)got[k] - want[k]);
            if (!(d <= off)) off = d;
        }
    }
    std::vector<double> us;
    us.reserve(n);
    for (int k = 0; k < WARM_UP + n; k++) {
        double t = ask();
        if (k >= WARM_UP) us.push_back(t);
    }
    report(title, way, us, batch, off);
    if (pauses) report_by_pause(pause, ask);
    way.end();
}

// -------- launches and graphs
enum Input { COPIED_IN, DIRECT, FETCHED };
enum Output { COPIED_OUT, FLAG, PAIRS };

// `early`: ahead of the end of the kernel before.
template <class... P, class... A> static void launch(void (*kernel)(P...), int blocks, int threads, int shared, bool early, A... args) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = early ? 1 : 0;
    CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

// Where the requests and answers of a model are.
struct Place {
    int inputs, outputs, bytes_in; // floats of a request and of an answer; the bytes of a request, a multiple of 16
    Pinned<float> in, out;
    Pinned<u64> pairs;
    Pinned<u32> flag;
    float *in_gpu, *out_gpu;
    u32 *counter;
    std::vector<float> unpacked;

    Place(int inputs, int outputs)
        : inputs(inputs), outputs(outputs), bytes_in((4 * (inputs + 2) + 15) / 16 * 16), in(bytes_in / 4), out(outputs), pairs(outputs), flag(1),
          in_gpu(on_gpu<float>(bytes_in / 4)), out_gpu(on_gpu<float>(outputs)), counter(on_gpu<u32>(1, true)), unpacked(outputs) {}

    // Puts the input where the kernels read it, as they are launched.
    const float *begin(Input input) {
        if (input == DIRECT) return in.gpu;
        if (input == COPIED_IN) CHECK(cudaMemcpyAsync(in_gpu, in.host, bytes_in, cudaMemcpyHostToDevice, stream));
        else launch(fetch, bytes_in > 4096 ? 64 : 1, bytes_in > 4096 ? 128 : 32, 0, false, (const uint4 *)in.gpu, (uint4 *)in_gpu, bytes_in / 16);
        return in_gpu;
    }
    Answer answer(Output output) {
        if (output == COPIED_OUT) return {out_gpu, nullptr, nullptr, nullptr};
        if (output == FLAG) return {out.gpu, nullptr, flag.gpu, counter};
        return {nullptr, pairs.gpu, nullptr, nullptr};
    }
    void end(Output output) {
        if (output == COPIED_OUT) CHECK(cudaMemcpyAsync(out.host, out_gpu, outputs * 4, cudaMemcpyDeviceToHost, stream));
    }

    // `enqueue` puts all on the stream, for each call or once, into a graph.
    Way way(const char *kind, const std::string &name, Output output, bool as_graph, std::function<void()> enqueue) {
        std::function<void()> go = enqueue;
        if (as_graph) {
            cudaGraph_t graph;
            cudaGraphExec_t ready;
            CHECK(cudaStreamSynchronize(stream));
            CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
            enqueue();
            CHECK(cudaStreamEndCapture(stream, &graph));
            CHECK(cudaGraphInstantiate(&ready, graph, 0));
            CHECK(cudaGraphUpload(ready, stream));
            CHECK(cudaStreamSynchronize(stream));
            go = [ready] { CHECK(cudaGraphLaunch(ready, stream)); };
        }
        Way way;
        way.kind = kind;
        way.name = name;
        way.call = [this, go, output](const Request &r) {
            memcpy(in.host, r.in, inputs * 4);
            memcpy(in.host + inputs, &r.which, 4);
            memcpy(in.host + inputs + 1, &r.number, 4);
            go();
            if (output == COPIED_OUT) CHECK(cudaStreamSynchronize(stream));
            if (output == FLAG) await_flag(flag.host, r.number);
            if (output == PAIRS) await_pairs(pairs.host, outputs, r.number);
        };
        way.answer = [this, output]() -> const float * {
            if (output != PAIRS) return out.host;
            unpack(pairs.host, unpacked.data(), outputs);
            return unpacked.data();
        };
        return way;
    }
};

static bool can_be_early() {
    int version = 0;
    CHECK(cudaRuntimeGetVersion(&version));
    return version >= 12030; // else graphs can't have it
}
static std::string shape(int blocks, int threads) { return std::to_string(blocks) + " x " + std::to_string(threads); }

// -------- the LSTM
static std::vector<float> by_unit(const std::vector<float> &b) {
    std::vector<float> to(GATES);
    for (int n = 0; n < GATES; n++) to[n] = b[n % 4 * HIDDEN + n / 4];
    return to;
}
// Rows 4 unit + gate: of the input, then of the hidden state.
static std::vector<float> rows_by_unit(const std::vector<float> &wi, const std::vector<float> &wh) {
    int in = (int)wi.size() / GATES, all = in + HIDDEN;
    std::vector<float> to(GATES * all);
    for (int n = 0; n < GATES; n++) {
        int row = n % 4 * HIDDEN + n / 4;
        std::copy(&wi[row * in], &wi[row * in] + in, &to[n * all]);
        std::copy(&wh[row * HIDDEN], &wh[row * HIDDEN] + HIDDEN, &to[n * all + in]);
    }
    return to;
}
// [in][out], the outputs in the order of `rows`' rows, and its columns turned so that column `first` comes first.
static std::vector<float> by_input(const std::vector<float> &rows, int out, int first) {
    int in = (int)rows.size() / out;
    std::vector<float> to(rows.size());
    for (int k = 0; k < in; k++)
        for (int n = 0; n < out; n++) to[k * out + n] = rows[n * in + (k + first) % in];
    return to;
}

static void lstm_graphs(const One &one, const Many &many, int n1, int n2, const std::vector<float> &right, const std::vector<float> &of_hidden,
                        bool with_early) {
    static Place place1(FEATURES, HIDDEN), place(STREAMS * FEATURES, STREAMS * HIDDEN);
    const char *title = "LSTM, batch 1";
    head(title);
    auto run1 = [&](const char *kind, bool as_graph, Input input, Output output, bool early, int warps) {
        std::string name = shape(HIDDEN / warps, 32 * warps);
        if (output == FLAG) name += ", flag";
        if (output == PAIRS) name += ", pairs";
        if (input == FETCHED) name += ", fetched";
        if (early) name += ", early";
        Way way = place1.way(kind, name, output, as_graph, [=] {
            const float *in = place1.begin(input);
            Answer answer = place1.answer(output);
            launch(lstm_one<1>, HIDDEN / warps, 32 * warps, 0, early && input == FETCHED, one, in, answer);
            launch(lstm_one<2>, HIDDEN / warps, 32 * warps, 0, early, one, in, answer);
            place1.end(output);
        });
        measure_lstm(title, way, 1, n1, right);
    };
    for (int warps : {1, 4}) run1("launches", false, COPIED_IN, COPIED_OUT, false, warps);
    for (int warps : {1, 4}) run1("graph", true, COPIED_IN, COPIED_OUT, false, warps);
    for (Output output : {FLAG, PAIRS})
        for (int early = 0; early <= with_early; early++)
            for (Input input : {DIRECT, FETCHED})
                for (int warps : {1, 4, 8}) run1("mapped", true, input, output, early, warps);
    say_best(title);

    CHECK(cudaFuncSetAttribute((const void *)layer<LSTM_1>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes(LSTM_1)));
    CHECK(cudaFuncSetAttribute((const void *)layer<LSTM_2>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes(LSTM_2)));
    static Place of_sums(STREAMS * FEATURES, STREAMS * OUT);
    for (bool sums : {false, true}) {
        title = sums ? "LSTM, batch 1024, 16 sums" : "LSTM, batch 1024";
        head(title);
        Place &at = sums ? of_sums : place;
        Many g = many;
        g.sums = sums;
        auto run = [&](const char *kind, bool as_graph, Input input, Output output, bool early) {
            std::string name = output == FLAG ? "flag" : "";
            if (input == FETCHED) name += ", fetched";
            if (early) name += ", early";
            Way way = at.way(kind, name, output, as_graph, [=, &at] {
                const float *in = at.begin(input);
                Answer answer = at.answer(output);
                bool early1 = early && input == FETCHED;
                launch(layer<LSTM_1>, STREAMS / BM * GATES / 128, 256, bytes(LSTM_1), early1, g, in, answer, (int)early1);
                launch(layer<LSTM_2>, STREAMS / BM * GATES / 128, 256, bytes(LSTM_2), early, g, in, answer, (int)early);
                if (g.sums) launch(last<true>, STREAMS / 8, 256, 0, early, g, answer);
                at.end(output);
            });
            measure_lstm(title, way, STREAMS, n2, sums ? of_hidden : right, sums ? OUT : HIDDEN);
        };
        run("launches", false, COPIED_IN, COPIED_OUT, false);
        run("graph", true, COPIED_IN, COPIED_OUT, false);
        for (int early = 0; early <= with_early; early++)
            for (Input input : {DIRECT, FETCHED}) run("mapped", true, input, FLAG, early);
        say_best(title);
    }
}

// Launches a resident kernel; false if it does not fit.
template <class G> static bool launch_resident(void (*kernel)(G), G g, int blocks, int shared) {
    int device, most, multiprocessors;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    cudaFuncAttributes of = {};
    CHECK(cudaFuncGetAttributes(&of, (const void *)kernel));
    if ((int)of.sharedSizeBytes + shared > most || blocks > multiprocessors) return false;
    CHECK(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    void *args[] = {&g};
    CHECK(cudaLaunchCooperativeKernel((const void *)kernel, dim3(blocks), dim3(512), args, shared, stream));
    return true;
}

// The mapped memory of a resident kernel.
struct Channel {
    int words, outputs;
    Pinned<u64> request, pairs;
    Pinned<float> out;
    Pinned<u32> flag, bad;
    std::vector<float> unpacked;
    u32 number = 0; // of the last request

    Channel(int words, int outputs) : words(words), outputs(outputs), request(words), pairs(outputs), out(outputs), flag(1), bad(1), unpacked(outputs) {}

    void put(int k, float v, u32 number) { __atomic_store_n(request.host + k, packed(v, number), __ATOMIC_RELAXED); }
    void put(int k, u32 v, u32 number) { __atomic_store_n(request.host + k, (u64)number << 32 | v, __ATOMIC_RELAXED); }
    void get(bool by_pairs) {
        if (by_pairs) await_pairs(pairs.host, outputs, number);
        else await_flag(flag.host, number);
    }
    const float *answer(bool by_pairs) {
        if (!by_pairs) return out.host;
        unpack(pairs.host, unpacked.data(), outputs);
        return unpacked.data();
    }
    void end() {
        CHECK(cudaStreamSynchronize(stream));
        if (__atomic_load_n(bad.host, __ATOMIC_ACQUIRE)) {
            printf("a resident kernel gave up waiting\n");
            fflush(stdout);
            _exit(1);
        }
    }
};

template <int BLOCKS, bool BY_PAIRS> static void lstm_resident_of(const char *title, Channel &channel, Resident g, int n, const std::vector<float> &right) {
    const int shared = GATES / BLOCKS * (K1 + K2) * 4;
    Way way;
    way.kind = "resident";
    way.name = shape(BLOCKS, 512) + (BY_PAIRS ? ", pairs" : ", flags");
    bool fits = true;
    way.begin = [&] {
        clear();
        channel.number = 0;
        fits = launch_resident(lstm_resident<BLOCKS, BY_PAIRS>, g, BLOCKS, shared);
    };
    way.call = [&](const Request &r) {
        channel.number = r.number;
        for (int k = 0; k < FEATURES; k++) channel.put(k, r.in[k], r.number);
        channel.put(FEATURES, r.which, r.number);
        channel.put(FEATURES + 1, r.before, r.number);
        channel.get(BY_PAIRS);
    };
    way.answer = [&] { return channel.answer(BY_PAIRS); };
    way.end = [&] {
        u32 number = channel.number + 1;
        for (int k = 0; k < WORDS; k++) channel.put(k, k == FEATURES ? STOP : 0u, number);
        channel.end();
    };
    way.begin();
    if (!fits) {
        printf("%s: %s: does not fit\n", way.kind.c_str(), way.name.c_str());
        return;
    }
    way.begin = [] {}; // it has begun
    measure_lstm(title, way, 1, n, right, HIDDEN, true);
}

static void lstm(const Weights &w, int n1, int n2, bool with_early) {
    std::vector<float> rows1 = rows_by_unit(w.wi1, w.wh1), rows2 = rows_by_unit(w.wi2, w.wh2), b1 = by_unit(w.b1), b2 = by_unit(w.b2);
    const size_t hidden = (size_t)STREAMS * 2 * HIDDEN, cells = (size_t)STREAMS * HIDDEN;
    One one = {};
    one.w1 = copied(rows1), one.w2 = copied(rows2);
    one.b1 = (const float4 *)copied(b1), one.b2 = (const float4 *)copied(b2);
    one.h1 = on_gpu<float>(hidden, true), one.h2 = on_gpu<float>(hidden, true);
    one.c1 = on_gpu<float>(cells, true), one.c2 = on_gpu<float>(cells, true);
    one.now = on_gpu<uint2>(1, true);
    Many many = {};
    many.w1 = copied(by_input(rows1, GATES, FEATURES)), many.w2 = copied(by_input(rows2, GATES, 0));
    many.b1 = (const float *)one.b1, many.b2 = (const float *)one.b2;
    many.h1 = one.h1, many.h2 = one.h2, many.c1 = one.c1, many.c2 = one.c2; // in another order
    many.now = on_gpu<u32>(1, true), many.next = on_gpu<u32>(1, true);
    std::vector<float> right = right_lstm(w);
    many.w3 = copied(by_input(w.o, OUT, 0)), many.b3 = copied(w.p);
    lstm_graphs(one, many, n1, n2, right, right_sums(w, right), with_early);

    static Channel channel(WORDS, HIDDEN);
    Resident g = {};
    g.w1 = one.w1, g.w2 = one.w2, g.b1 = one.b1, g.b2 = one.b2, g.h1 = one.h1, g.h2 = one.h2, g.c1 = one.c1, g.c2 = one.c2;
    g.pairs1 = on_gpu<u64>(hidden, true), g.pairs2 = on_gpu<u64>(hidden, true);
    g.request = channel.request.gpu, g.answer_pairs = channel.pairs.gpu, g.answer = channel.out.gpu, g.flag = channel.flag.gpu, g.bad = channel.bad.gpu;
    g.record = on_gpu<u64>(WORDS, true);
    g.go = on_gpu<u32>(1, true), g.flags1 = on_gpu<u32>(HIDDEN, true), g.flags2 = on_gpu<u32>(HIDDEN, true);
    const char *title = "LSTM, batch 1, resident";
    head(title);
    lstm_resident_of<4, false>(title, channel, g, n1, right);
    lstm_resident_of<8, false>(title, channel, g, n1, right);
    lstm_resident_of<16, false>(title, channel, g, n1, right);
    lstm_resident_of<32, false>(title, channel, g, n1, right);
    lstm_resident_of<64, false>(title, channel, g, n1, right);
    lstm_resident_of<4, true>(title, channel, g, n1, right);
    lstm_resident_of<8, true>(title, channel, g, n1, right);
    lstm_resident_of<16, true>(title, channel, g, n1, right);
    lstm_resident_of<32, true>(title, channel, g, n1, right);
    lstm_resident_of<64, true>(title, channel, g, n1, right);
    say_best(title);
}

// -------- the MLP
template <bool BY_PAIRS> static void mlp_resident_of(const char *title, Channel &channel, ResidentMlp g, int n, const std::vector<float> &right, int of_right) {
    Way way;
    way.kind = "resident";
    way.name = std::string("1 x 512, f16 weights") + (BY_PAIRS ? ", pairs" : ", flag");
    way.begin = [&] {
        clear();
        channel.number = 0;
        if (launch_resident(mlp_resident<BY_PAIRS>, g, 1, HALVES * 2)) return;
        printf("%s: does not fit\n", title);
        fflush(stdout);
        _exit(1);
    };
    way.call = [&](const Request &r) {
        channel.number = r.number;
        for (int k = 0; k < IN; k++) channel.put(k, r.in[k], r.number);
        channel.get(BY_PAIRS);
    };
    way.answer = [&] { return channel.answer(BY_PAIRS); };
    way.end = [&] {
        for (int k = 0; k < IN; k++) channel.put(k, 0u, STOP);
        channel.end();
    };
    measure_mlp(title, way, 1, n, right, of_right, true);
}

static void mlp(const Weights &w, int n1, int n2, bool with_early) {
    OneMlp one = {};
    one.w1 = copied(w.m1), one.w2 = copied(w.m2), one.w3 = copied(w.m3), one.b1 = copied(w.n1), one.b2 = copied(w.n2), one.b3 = copied(w.n3);
    one.a1 = on_gpu<float>(WIDE), one.a2 = on_gpu<float>(WIDE), one.now = on_gpu<u32>(1, true);
    Many many = {};
    many.w1 = copied(by_input(w.m1, WIDE, 0)), many.w2 = copied(by_input(w.m2, WIDE, 0)), many.w3 = copied(by_input(w.m3, OUT, 0));
    many.b1 = one.b1, many.b2 = one.b2, many.b3 = one.b3;
    many.a1 = on_gpu<float>(WIDE * STREAMS), many.a2 = on_gpu<float>(WIDE * STREAMS);
    many.now = on_gpu<u32>(1, true), many.next = on_gpu<u32>(1, true);
    std::vector<float> right = right_mlp(w, STREAMS);

    static Place place1(IN, OUT), place(STREAMS * IN, STREAMS * OUT);
    const char *title = "MLP, batch 1";
    head(title);
    auto run1 = [&](const char *kind, bool as_graph, Input input, Output output, bool early, int warps) { // warps 0: all in one block
        std::string name = warps ? "3 kernels, " + shape(128 / warps, 32 * warps) + " first" : "one block";
        if (output == FLAG) name += ", flag";
        if (output == PAIRS) name += ", pairs";
        if (input == FETCHED) name += ", fetched";
        if (early) name += ", early";
        Way way = place1.way(kind, name, output, as_graph, [=] {
            const float *in = place1.begin(input);
            Answer answer = place1.answer(output);
            bool early1 = early && input == FETCHED;
            if (warps) {
                launch(mlp_one<1>, 128 / warps, 32 * warps, 0, early1, one, in, answer);
                launch(mlp_one<2>, 256 / (2 * warps), 64 * warps, 0, early, one, in, answer);
                launch(mlp_one<3>, 1, 32 * OUT, 0, early, one, in, answer);
            } else {
                launch(mlp_one_block, 1, 1024, 0, early1, one, in, answer);
            }
            place1.end(output);
        });
        measure_mlp(title, way, 1, n1, right, STREAMS);
    };
    for (int warps : {0, 1, 4}) run1("launches", false, COPIED_IN, COPIED_OUT, false, warps);
    for (int warps : {0, 1, 4}) run1("graph", true, COPIED_IN, COPIED_OUT, false, warps);
    for (Output output : {FLAG, PAIRS})
        for (int early = 0; early <= with_early; early++)
            for (Input input : {DIRECT, FETCHED})
                for (int warps : {0, 1, 4})
                    if (warps || !early || input == FETCHED) run1("mapped", true, input, output, early, warps);
    say_best(title);

    title = "MLP, batch 1024";
    head(title);
    CHECK(cudaFuncSetAttribute((const void *)layer<MLP_1>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes(MLP_1)));
    CHECK(cudaFuncSetAttribute((const void *)layer<MLP_2>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes(MLP_2)));
    auto run = [&](const char *kind, bool as_graph, Input input, Output output, bool early) {
        std::string name = output == FLAG ? "flag" : "";
        if (input == FETCHED) name += ", fetched";
        if (early) name += ", early";
        Way way = place.way(kind, name, output, as_graph, [=] {
            const float *in = place.begin(input);
            Answer answer = place.answer(output);
            bool early1 = early && input == FETCHED;
            launch(layer<MLP_1>, STREAMS / BM * WIDE / 64, 256, bytes(MLP_1), early1, many, in, answer, (int)early1);
            launch(layer<MLP_2>, STREAMS / BM * WIDE / 64, 256, bytes(MLP_2), early, many, in, answer, (int)early);
            launch(last<false>, STREAMS / 8, 256, 0, early, many, answer);
            place.end(output);
        });
        measure_mlp(title, way, STREAMS, n2, right, STREAMS);
    };
    run("launches", false, COPIED_IN, COPIED_OUT, false);
    run("graph", true, COPIED_IN, COPIED_OUT, false);
    for (int early = 0; early <= with_early; early++)
        for (Input input : {DIRECT, FETCHED}) run("mapped", true, input, FLAG, early);
    say_best(title);

    // Its answers are compared with f64 arithmetic on the same weights in f16.
    Weights rounded = w;
    std::vector<__half> halves;
    for (std::vector<float> *m : {&rounded.m1, &rounded.m2, &rounded.m3})
        for (float &v : *m) {
            halves.push_back(__float2half_rn(v));
            v = __half2float(halves.back());
        }
    std::vector<float> right_rounded = right_mlp(rounded, 1);
    double away = 0;
    for (int step = 0; step < STEPS; step++)
        for (int k = 0; k < OUT; k++)
            away = std::max(away, fabs((double)right_rounded[step * OUT + k] - right[(size_t)step * STREAMS * OUT + k]));
    static Channel channel(IN, OUT);
    ResidentMlp g = {};
    g.weights = (const uint4 *)copied(halves), g.b1 = one.b1, g.b2 = one.b2, g.b3 = one.b3;
    g.request = channel.request.gpu, g.answer_pairs = channel.pairs.gpu, g.answer = channel.out.gpu, g.flag = channel.flag.gpu, g.bad = channel.bad.gpu;
    title = "MLP, batch 1, resident";
    head(title);
    mlp_resident_of<false>(title, channel, g, n1, right_rounded, 1);
    mlp_resident_of<true>(title, channel, g, n1, right_rounded, 1);
    say_best(title);
    printf("(off by: from the model of the same f16 weights; that of f32 weights is up to %.1e away)\n", away);
}

int main(int argc, char **argv) {
    int n1 = argc > 1 ? atoi(argv[1]) : 20000, n2 = argc > 2 ? atoi(argv[2]) : 2000;
    if (n1 < 1 || n2 < 1) {
        printf("%s [REQUESTS AT BATCH 1] [REQUESTS AT BATCH 1024]\n", argv[0]);
        return 2;
    }
    int device;
    cudaDeviceProp of;
    CHECK(cudaSetDeviceFlags(cudaDeviceScheduleSpin)); // of a host that synchronizes
    CHECK(cudaGetDevice(&device));
    CHECK(cudaGetDeviceProperties(&of, device));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    bool with_early = can_be_early();
    printf("%s, %d multiprocessors; microseconds a request; %d requests at batch 1, %d at batch 1024\n", of.name, of.multiProcessorCount, n1, n2);
    fflush(stdout);
    Weights weights;
    lstm(weights, n1, n2, with_early);
    mlp(weights, n1, n2, with_early);
    fflush(stdout);
    return 0;
}
