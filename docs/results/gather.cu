// What the smallest iteration of PageRank takes on one GPU: 2^14 vertices of 16 edges each, whose sources are uniformly random. Each thread
// keeps the sources of its edges in registers, reads what they contribute, adds up with the threads beside it, and one of them writes the
// vertex's new contribution; then the blocks meet at a barrier. No dangling vertices, no ranks, no change, no sums, and nothing of the
// runtime runs. All loops are bounded.
//
//     nvcc -O3 -arch=sm_90 gather.cu -o gather && ./gather
//
// Of each the best of three launches is printed, in nanoseconds an iteration, of 1000 iterations behind 50 that are not timed.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

constexpr unsigned VERTICES = 1 << 14, EDGES = 16;
constexpr long BOUND = 1L << 22;

enum { CTA, WEAK, L2 };

template <int KIND> __device__ __forceinline__ float load(const float *p) {
    float v;
    if (KIND == CTA) asm volatile("ld.relaxed.cta.global.f32 %0,[%1];" : "=f"(v) : "l"(p));
    if (KIND == WEAK) asm volatile("ld.global.f32 %0,[%1];" : "=f"(v) : "l"(p));
    if (KIND == L2) asm volatile("ld.relaxed.gpu.global.f32 %0,[%1];" : "=f"(v) : "l"(p));
    return v;
}

// Thread t has N edges of vertex t N / 16; `what`: 1 gathers, 2 meets, 3 both.
template <int KIND, int N>
__global__ void iterate(int what, int n, const unsigned *sources, float *from, float *to, unsigned long long *counter, unsigned long long *ns, int *bad) {
    __shared__ int gone;
    if (threadIdx.x == 0) gone = 0;
    __syncthreads();
    const unsigned all = VERTICES * EDGES / N, lanes = EDGES / N;
    // Warps side by side are of different blocks, so that all have as many or one less.
    unsigned warp = threadIdx.x / 32 * gridDim.x + blockIdx.x, t = warp * 32 + threadIdx.x % 32;
    unsigned of[N];
    for (int k = 0; k < N; k++) of[k] = t < all ? sources[t * N + k] : VERTICES;
    unsigned long long t0 = 0, t1;
    for (int i = -50; i < n; i++) {
        if (i == 0) asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t0));
        if (what & 1) {
            float v[N], sum = 0;
            for (int k = 0; k < N; k++) v[k] = load<KIND>(from + of[k]);
            for (int k = 0; k < N; k++) sum += v[k];
            for (int d = 1; d < lanes; d *= 2) sum += __shfl_xor_sync(~0u, sum, d);
            if (t < all && t % lanes == 0) asm volatile("st.relaxed.cta.global.f32 [%0],%1;" ::"l"(to + t / lanes), "f"(1 + sum * 0.05f) : "memory");
            float *other = from; from = to; to = other;
        }
        if (what & 2) {
            __syncthreads();
            if (threadIdx.x == 0) {
                asm volatile("red.release.gpu.global.add.u64 [%0],1;" ::"l"(counter) : "memory");
                unsigned long long v;
                long k = 0;
                do asm volatile("ld.acquire.gpu.global.b64 %0,[%1];" : "=l"(v) : "l"(counter) : "memory");
                while (v < (unsigned long long)(i + 51) * gridDim.x && ++k < BOUND);
                if (k == BOUND) gone = 1, *bad = 1;
            }
            __syncthreads();
            if (gone) break;
        } else if (KIND != L2) {
            asm volatile("fence.acq_rel.gpu;" ::: "memory"); // else L1 would have all of it
        }
    }
    asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t1));
    if (threadIdx.x == 0) ns[blockIdx.x] = t1 - t0;
}

template <int KIND, int N> void run(const char *name, int blocks, int threads, const unsigned *sources, float *data) {
    unsigned long long *counter, *ns;
    int *bad;
    cudaMallocManaged(&ns, 8 * 132);
    cudaMallocManaged(&bad, 4);
    cudaMalloc(&counter, 8);
    for (int what = 1; what <= 3; what++) {
        double best = 1e30;
        *bad = 0;
        for (int r = 0; r < 3; r++) {
            cudaMemset(counter, 0, 8);
            float *from = data, *to = data + 2 * VERTICES;
            int n = 1000;
            void *args[] = {&what, &n, &sources, &from, &to, &counter, &ns, &bad};
            cudaLaunchCooperativeKernel((void *)iterate<KIND, N>, blocks, threads, args);
            if (cudaDeviceSynchronize() != cudaSuccess) { printf("%s: %s\n", name, cudaGetErrorString(cudaGetLastError())); exit(1); }
            best = std::min(best, *std::max_element(ns, ns + blocks) / 1000.0);
        }
        static const char *names[] = {"", "gathers, a fence", "meets", "gathers and meets"};
        printf("%d x %d, %d edges a thread, %s: %s: %.0f ns%s\n", blocks, threads, N, name, names[what], best, *bad ? " LOST" : "");
    }
}

int main() {
    std::mt19937 random(1);
    std::vector<unsigned> sources(VERTICES * EDGES);
    for (unsigned v = 0; v < VERTICES; v++) {
        for (unsigned k = 0; k < EDGES; k++) sources[v * EDGES + k] = random() % VERTICES;
        std::sort(&sources[v * EDGES], &sources[v * EDGES] + EDGES);
    }
    unsigned *d;
    float *data;
    cudaMalloc(&d, 4 * sources.size());
    cudaMemcpy(d, sources.data(), 4 * sources.size(), cudaMemcpyHostToDevice);
    cudaMalloc(&data, 16 * VERTICES + 64);
    cudaMemset(data, 0, 16 * VERTICES + 64);
    run<CTA, 8>("relaxed, of the block", 132, 256, d, data);
    run<WEAK, 8>("weak", 132, 256, d, data);
    run<L2, 8>("relaxed, of the GPU", 132, 256, d, data);
    run<CTA, 4>("relaxed, of the block", 132, 512, d, data);
    run<WEAK, 4>("weak", 132, 512, d, data);
    run<CTA, 2>("relaxed, of the block", 132, 1024, d, data);
    run<CTA, 16>("relaxed, of the block", 128, 128, d, data);
    run<CTA, 8>("relaxed, of the block", 64, 512, d, data);
    run<CTA, 4>("relaxed, of the block", 64, 1024, d, data);
}
