// What 20 iterations of PageRank over a graph of 2^14 vertices take by one grid without a barrier that orders memory, with ranks, with rows of
// any length, and with what vertices without edges have. What a vertex contributes is one word, whose sign bit says of which iteration it is.
// Each block reads the words of all vertices into its shared memory until all are of the iteration, and gathers there. Nothing of the runtime
// runs: a command and its answer, and a barrier before and behind, come on top. All loops are bounded.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 slices.cu -o slices && ./slices
//
// Of each the best of 30 times is printed, in all for 20 iterations and for one of 200, and by how much the ranks are off in all (L1).
//
// Ranks that have no edge to go along go to all alike. The sum of them is under way for an iteration more than the words: a vertex's rank is what comes
// along its edges, and an even share of the sum before. Only the first part goes along edges; what the second would have brought is the share
// times the sum of the parts of the vertex's sources, its weight.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <queue>
#include <random>
#include <vector>

using u32 = unsigned;
using u16 = unsigned short;
constexpr long BOUND = 1L << 20;
constexpr float DAMPING = 0.85f;
constexpr u32 LONG = 6, NOBODY_PART = 0xc0000000; // the part of a place without a vertex, -2

// What a block has: slices of 32 items of 8 edges; the first `longs` rows have several slices each.
struct Block { u32 slices, first_slice, longs, first_long; };
struct Args {
    const uint4 *items, *rows; // a row: weight, part
    const uint2 *slices, *longs;
    const Block *blocks;
    float *words[2], *ranks;
    u32 n, all, rows_each, dangling, most_slices, used;
};

__device__ void again(uint4 &v, const uint4 *p, bool is) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p ld.relaxed.gpu.global.v4.b32 {%0,%1,%2,%3},[%4];}"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w) : "l"(p), "r"((u32)is));
}
__device__ void tell(float *p, float v, u32 mark) {
    asm volatile("st.relaxed.gpu.global.b32 [%0],%1;" ::"l"(p), "r"((__float_as_uint(v) & 0x7fffffff) | mark) : "memory");
}
__device__ bool is_told(uint4 v, u32 mark) { return (((v.x ^ mark) | (v.y ^ mark) | (v.z ^ mark) | (v.w ^ mark)) >> 31) == 0; }
__device__ float number(u32 word) { return __uint_as_float(word & 0x7fffffff); }
__device__ float2 sum_warp(float2 v) {
    for (int d = 16; d; d /= 2) v.x += __shfl_xor_sync(~0u, v.x, d), v.y += __shfl_xor_sync(~0u, v.y, d);
    return v;
}
__device__ float sum_of(float v, u32 log) {
    for (u32 d = 0; d < log; d++) v += __shfl_xor_sync(~0u, v, 1u << d);
    return v;
}

// FOURS at once of each thread of all warps but the last one.
template <int STEP, int FOURS> __device__ bool bring(const uint4 *from, uint4 *to, u32 fours, u32 mark) {
    for (u32 k = threadIdx.x; k - threadIdx.x % 32 < fours; k += FOURS * STEP) {
        uint4 f[FOURS];
        u32 nothing = ~mark;
        #pragma unroll
        for (int j = 0; j < FOURS; j++) {
            u32 first = k + j * STEP < fours ? nothing : mark;
            f[j] = make_uint4(first, first, first, first);
        }
        for (long looks = 0;;) {
            bool are = true;
            #pragma unroll
            for (int j = 0; j < FOURS; j++) {
                bool is = is_told(f[j], mark);
                are &= is;
                again(f[j], from + k + j * STEP, !is);
            }
            if (__all_sync(~0u, are)) break;
            if (++looks == BOUND) return false;
        }
        #pragma unroll
        for (int j = 0; j < FOURS; j++)
            if (k + j * STEP < fours)
                to[k + j * STEP] = make_uint4(f[j].x & 0x7fffffff, f[j].y & 0x7fffffff, f[j].z & 0x7fffffff, f[j].w & 0x7fffffff);
    }
    return true;
}

// The part of an iteration behind the words: sums of the block's new ranks without edges, and of how much ranks have changed.
template <u32 WARPS> __device__ float2 update(const Args &a, const Block &me, const float *now, const uint4 *items, const uint2 *slices, float *slots, float4 *state,
                         float *to, u32 mark, float even) {
    u32 lane = threadIdx.x % 32, w = threadIdx.x / 32;
    float base = (1 - DAMPING) / a.n;
    float2 totals = {0, 0};
    auto set = [&](u32 k, float4 s, float sum) { // weight, part, rank less its even share, rank before
        float next = s.y == -2 ? 0 : base + DAMPING * (sum + even * s.x), rank = s.y == -2 ? 0 : s.z + even;
        tell(to + k, next * s.y, mark);
        state[k] = make_float4(s.x, s.y, next, rank);
        totals.y += fabsf(rank - s.w);
        if (s.y == 0) totals.x += next;
    };
    for (u32 k = w; k < me.slices; k += WARPS) {
        uint2 slice = slices[k];
        uint4 i = items[32 * k + lane];
        u32 log = slice.y >> 8, row = slice.x + (lane >> log);
        bool mine = log < LONG && lane % (1u << log) == 0 && (lane >> log) < (slice.y & 255);
        float4 s = state[mine ? row : 0];
        float sum = ((now[i.x & 0xffff] + now[i.x >> 16]) + (now[i.y & 0xffff] + now[i.y >> 16])) +
                    ((now[i.z & 0xffff] + now[i.z >> 16]) + (now[i.w & 0xffff] + now[i.w >> 16]));
        sum = sum_of(sum, min(log, 5));
        if (mine) set(row, s, sum);
        else if (log == LONG && lane == 0) slots[slice.x] = sum;
    }
    if (me.longs) {
        __syncthreads();
        for (u32 k = WARPS - 1 - w; k < me.longs; k += WARPS) {
            uint2 of = a.longs[me.first_long + k];
            float sum = 0;
            for (u32 j = lane; j < of.y; j += 32) sum += slots[of.x + j];
            sum = sum_of(sum, 5);
            if (lane == 0) set(k, state[k], sum);
        }
    }
    return totals;
}

template <int T, int FOURS> __global__ void __launch_bounds__(T) resident(Args a, int n, int reps, unsigned long long *ns, int *bad, u32 *met) {
    extern __shared__ __align__(16) float memory[];
    __shared__ float2 own[2][32], all[2];
    const u32 t = threadIdx.x, lane = t % 32, w = t / 32, warps = T / 32, b = blockIdx.x, rows = a.rows_each, words = a.all + 4;
    float4 *state = (float4 *)(memory + 2 * words);
    uint4 *items = (uint4 *)(state + rows);
    uint2 *slices = (uint2 *)(items + 32 * a.most_slices);
    float *slots = (float *)(slices + a.most_slices);
    const Block me = a.blocks[b];
    const float even_rank = 1.0f / a.n, share = DAMPING / a.n;
    const u32 sums = 2 * a.used, sum_fours = (sums + 3) / 4;
    unsigned long long best = ~0ull;
    for (int r = 0; r < reps; r++) {
        for (int odd = 0; odd < 2; odd++) {
            for (u32 k = t; k < rows; k += T) tell(a.words[odd] + b * rows + k, 0, odd << 31);
            if (b == 0) for (u32 k = a.used * rows + t; k < a.all + 4 * sum_fours; k += T) tell(a.words[odd] + k, 0, odd << 31);
        }
        __threadfence(), __syncthreads();
        if (t == 0) {
            atomicAdd(met, 1);
            for (long k = 0; *(volatile u32 *)met < a.used * (r + 1) && k < BOUND; k++);
            __threadfence();
        }
        __syncthreads();
        unsigned long long t0, t1;
        asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t0));
        for (u32 k = t; k < 32 * me.slices; k += T) items[k] = a.items[32 * me.first_slice + k];
        for (u32 k = t; k < me.slices; k += T) slices[k] = a.slices[me.first_slice + k];
        for (u32 k = t; k < 2 * words; k += T) memory[k] = k < a.used * rows ? even_rank * fmaxf(__uint_as_float(a.rows[k].y), 0) : 0;
        float2 totals = {0, 0};
        for (u32 k = t; k < rows; k += T) {
            uint4 row = a.rows[b * rows + k];
            float rank = row.y == NOBODY_PART ? 0 : even_rank;
            state[k] = make_float4(__uint_as_float(row.x), __uint_as_float(row.y), rank, rank);
            if (row.y == 0) totals.x += rank;
        }
        float even = 0, change = 0;
        bool gone = false;
        if (t == 0) all[0] = make_float2(0, 0);
        for (int i = 0; i < n; i++) {
            float *now = memory + (i & 1) * words;
            totals = sum_warp(totals);
            if (lane == 0) own[i & 1][w] = totals;
            const float *from = a.words[i & 1];
            const u32 mark = (u32)(i / 2 & 1) << 31, next = (u32)((i + 1) / 2 & 1) << 31;
            if (i && w < warps - 1) gone |= !bring<T - 32, FOURS>((const uint4 *)from, (uint4 *)now, a.all / 4, mark);
            if (i && w == warps - 1) {
                float2 s = {0, 0};
                for (u32 k = lane; k - lane < sum_fours; k += 32) {
                    u32 first = k < sum_fours ? ~mark : mark;
                    uint4 f = {first, first, first, first};
                    for (long looks = 0; !__all_sync(~0u, is_told(f, mark)) && !gone; gone |= ++looks == BOUND)
                        again(f, (const uint4 *)(from + a.all) + k, !is_told(f, mark));
                    s.x += number(f.x) + number(f.z), s.y += number(f.y) + number(f.w);
                }
                s = sum_warp(s);
                if (lane == 0) all[i & 1] = s;
            }
            if (__syncthreads_or(gone)) break;
            even = share * (all[i & 1].x + a.dangling * even), change = all[i & 1].y;
            float *to = a.words[(i + 1) & 1];
            if (w == warps - 1) {
                float2 sum = sum_warp(lane < warps ? own[i & 1][lane] : make_float2(0, 0));
                if (lane < 2) tell(to + a.all + 2 * b + lane, lane ? sum.y : sum.x, next);
                // What is missing to whole fours.
                if (b == 0 && lane < a.all - a.used * rows) tell(to + a.used * rows + lane, 0, next);
                if (b == 0 && lane < 4 * sum_fours - sums) tell(to + a.all + sums + lane, 0, next);
            }
            totals = update<T / 32>(a, me, now, items, slices, slots, state, to + b * rows, next, even);
        }
        __syncthreads();
        for (u32 k = t; k < rows; k += T) a.ranks[b * rows + k] = state[k].z;
        asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t1));
        best = min(best, t1 - t0);
        if (gone || isnan(change)) { *bad = 1; break; }
    }
    if (b == 0 && t == 0) *ns = best;
}

struct Edges {
    u32 n;
    std::vector<std::pair<u32, u32>> all;
};

Edges make(bool is_rmat, int log) {
    std::mt19937_64 dice(1);
    Edges g{1u << log, {}};
    for (long k = 0; k < (16L << log); k++) {
        u32 s = 0, t = 0;
        for (int j = 0; is_rmat && j < log; j++) {
            u32 d = dice() % 100, both = d < 57 ? 0 : d < 76 ? 1 : d < 95 ? 2 : 3;
            s = s << 1 | both >> 1, t = t << 1 | (both & 1);
        }
        if (!is_rmat) s = dice() % g.n, t = dice() % g.n;
        g.all.push_back({s, t});
    }
    return g;
}

u32 log_of(u32 edges) {
    for (u32 l = 0; l < LONG; l++) if (edges <= 8u << l) return l;
    return LONG;
}

template <class T> T *copied(const std::vector<T> &of) {
    T *p;
    cudaMalloc(&p, of.size() * sizeof(T) + 16), cudaMemcpy(p, of.data(), of.size() * sizeof(T), cudaMemcpyHostToDevice);
    return p;
}

template <int T, int FOURS> void run(const Edges &g, const char *name, u32 of_block) {
    const u32 n = g.n, used = std::min(132u, (n + of_block - 1) / of_block);
    const u32 rows_each = (n + used - 1) / used | 1; // odd, so that the busiest vertices of the blocks are in different banks
    const u32 all = (used * rows_each + 3) / 4 * 4, none = all;
    std::vector<u32> in(n), out(n), order(n), place(n);
    for (auto &e : g.all) out[e.first]++, in[e.second]++;
    for (u32 k = 0; k < n; k++) order[k] = k;
    std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return in[a] > in[b]; });
    std::vector<std::vector<u32>> of(used), sources(n);
    std::priority_queue<std::pair<long, u32>> idle; // by falling work, negative
    for (u32 b = 0; b < used; b++) idle.push({0, b});
    for (u32 v : order) {
        auto [work, b] = idle.top();
        idle.pop();
        place[v] = b * rows_each + of[b].size();
        of[b].push_back(v);
        if (of[b].size() < rows_each) idle.push({work - (in[v] > 256 ? (in[v] + 255) / 256 * 256 : 8 << log_of(in[v])), b});
    }
    for (auto &e : g.all) sources[e.second].push_back(place[e.first]);
    std::vector<uint4> items, rows(used * rows_each, uint4{0, NOBODY_PART, 0, 0});
    std::vector<uint2> slices, longs;
    std::vector<Block> blocks;
    u32 most_slices = 0, most_slots = 0;
    auto put = [&](const std::vector<u32> &s, u32 lanes) {
        std::vector<u16> x(8 * lanes, none);
        for (u32 j = 0; j < s.size(); j++) x[j % lanes * 8 + j / lanes] = s[j];
        for (u32 l = 0; l < lanes; l++) {
            uint4 item;
            memcpy(&item, &x[8 * l], 16), items.push_back(item);
        }
    };
    for (u32 b = 0; b < used; b++) {
        Block me = {0, (u32)slices.size(), 0, (u32)longs.size()};
        u32 slot = 0;
        auto row = [&](u32 k) {
            auto s = k < of[b].size() ? sources[of[b][k]] : std::vector<u32>();
            return s;
        };
        for (u32 k = 0; k < rows_each;) {
            auto s = row(k);
            u32 log = log_of(s.size()), count = 0;
            if (log == LONG) {
                u32 parts = (s.size() + 255) / 256;
                longs.push_back({slot, parts});
                for (u32 p = 0; p < parts; p++) {
                    std::vector<u32> part;
                    for (u32 j = p; j < s.size(); j += parts) part.push_back(s[j]);
                    put(part, 32), slices.push_back({slot++, 1 | LONG << 8});
                }
                me.longs++, k++;
                continue;
            }
            for (; count < 32u >> log && k + count < rows_each && log_of(row(k + count).size()) == log; count++) put(row(k + count), 1 << log);
            while (items.size() % 32) put({}, 1);
            slices.push_back({k, count | log << 8}), k += count;
        }
        me.slices = slices.size() - me.first_slice, blocks.push_back(me);
        most_slices = std::max(most_slices, me.slices), most_slots = std::max(most_slots, slot);
    }
    std::vector<double> weights(n), right(n, 1.0 / n);
    double lost = 0;
    for (auto &e : g.all) weights[e.second] += 1.0 / out[e.first];
    for (u32 v = 0; v < n; v++) {
        float both[2] = {(float)weights[v], out[v] ? 1.0f / out[v] : 0};
        memcpy(&rows[place[v]], both, 8);
    }
    for (int i = 0; i < 20; i++) {
        lost = 0;
        for (u32 v = 0; v < n; v++) if (!out[v]) lost += right[v];
        std::vector<double> next(n, (1 - 0.85 + 0.85 * lost) / n);
        for (auto &e : g.all) next[e.second] += 0.85 * right[e.first] / out[e.first];
        right = next;
    }
    Args a{copied(items), copied(rows), copied(slices), copied(longs), copied(blocks)};
    u32 bytes_of_words = 4 * (all + 2 * used + 8), *met;
    unsigned long long *ns;
    int *bad;
    cudaMalloc(&a.words[0], bytes_of_words), cudaMalloc(&a.words[1], bytes_of_words), cudaMalloc(&a.ranks, 4 * all), cudaMalloc(&met, 4);
    cudaMallocManaged(&ns, 8), cudaMallocManaged(&bad, 4);
    *bad = 0;
    a.n = n, a.all = all, a.rows_each = rows_each, a.dangling = std::count(out.begin(), out.end(), 0u), a.most_slices = most_slices, a.used = used;
    // What lies behind the words begins at a multiple of 16: two times the words are a multiple of 4.
    size_t bytes = 8 * (all + 4) + 16 * rows_each + (512 + 8) * most_slices + 4 * most_slots;
    auto kernel = resident<T, FOURS>;
    auto e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    double times[2] = {}, off = 0;
    for (int n_of[2] = {200, 20}, k = 0; k < 2 && !e; k++) {
        int reps = 30;
        cudaMemset(met, 0, 4);
        void *args[] = {&a, &n_of[k], &reps, &ns, &bad, &met};
        e = cudaLaunchCooperativeKernel((void *)kernel, dim3(used), dim3(T), args, bytes, 0);
        if (!e) e = cudaDeviceSynchronize();
        times[k] = *ns;
    }
    if (e) { printf("%s: %s\n", name, cudaGetErrorString(e)); return; }
    std::vector<float> ranks(all);
    cudaMemcpy(ranks.data(), a.ranks, 4 * used * rows_each, cudaMemcpyDeviceToHost);
    for (u32 v = 0; v < n; v++) off += fabs(ranks[place[v]] + 0.85 / n * lost - right[v]);
    printf("%s: %u x %d, %d words at once, %u slices of a block at most: %.1f us, %.0f ns an iteration; off by %.1e%s\n", name, used, T, 4 * FOURS,
           most_slices, times[1] / 1e3, times[0] / 200, off, *bad ? " (did not end)" : "");
    void *mine[] = {(void *)a.items, (void *)a.rows, (void *)a.slices, (void *)a.longs, (void *)a.blocks, a.words[0], a.words[1], a.ranks, met, ns, bad};
    for (void *p : mine) cudaFree(p);
}

int main() {
    for (int is_rmat = 0; is_rmat < 2; is_rmat++)
        for (int log : {12, 13, 14}) {
            Edges g = make(is_rmat, log);
            char name[32];
            snprintf(name, sizeof name, "%s 2^%d", is_rmat ? "R-MAT" : "uniform", log);
            if (log < 14) run<544, 4>(g, name, 125);
            for (u32 of_block : {125u, 160u, 190u, 256u}) {
                if (log == 14) run<672, 7>(g, name, of_block), run<544, 8>(g, name, of_block), run<416, 11>(g, name, of_block);
            }
        }
}
