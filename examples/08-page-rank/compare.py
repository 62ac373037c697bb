#!/usr/bin/env python3
"""What else ranks the same graph on the same GPU, for comparison with the resident grid: a kernel for each iteration, launched one by
one and as one CUDA graph, by the same arithmetic over the same memory; and cuSPARSE, as CuPy calls it.

    cargo run --release -p ring-page-rank -- cuda 14 rmat --save FOLDER
    python3 examples/08-page-rank/compare.py FOLDER...

Each figure is the median over many runs, from the call to the answer on the host, in microseconds.
"""

import sys
import time
from pathlib import Path

import cupy as cp
import cupyx.scipy.sparse as sparse
import numpy as np

ITERATIONS, DAMPING = 20, np.float32(0.85)

SOURCE = r"""
struct Graph { const uint4 *longs, *shorts, *columns; const float *parts; float *ranks, *totals; unsigned long_count, short_count,
               vertices, nobody; float damping; };

__device__ float2 sum_block(float2 v) {
    __shared__ float2 of_warp[32];
    __shared__ float2 all;
    for (int d = 16; d; d /= 2) { v.x += __shfl_xor_sync(~0u, v.x, d); v.y += __shfl_xor_sync(~0u, v.y, d); }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : make_float2(0, 0);
        for (int d = 16; d; d /= 2) { v.x += __shfl_xor_sync(~0u, v.x, d); v.y += __shfl_xor_sync(~0u, v.y, d); }
        if (threadIdx.x == 0) all = v;
    }
    __syncthreads();
    return all;
}

__device__ void total(const Graph &g, float2 totals, int k) {
    totals = sum_block(totals);
    if (threadIdx.x == 0) { atomicAdd(&g.totals[2 * k], totals.x); atomicAdd(&g.totals[2 * k + 1], totals.y); }
}

extern "C" __global__ void begin(Graph g, float *to) {
    float even = 1.0f / g.vertices;
    float2 totals = {0, 0};
    for (unsigned v = blockIdx.x * blockDim.x + threadIdx.x; v < g.vertices; v += gridDim.x * blockDim.x) {
        float part = g.parts[v];
        g.ranks[v] = even;
        to[v] = even * part;
        if (part == 0) totals.x += even;
    }
    total(g, totals, 0);
}

struct Piece { uint4 sources[4]; unsigned row, lanes; float part, rank; };

// What a lane has of a slice behind so many fours.
__device__ Piece read(const Graph &g, uint4 slice, unsigned before) {
    Piece piece;
    unsigned lane = threadIdx.x % 32;
    #pragma unroll
    for (unsigned k = 0; k < 4; k++)
        piece.sources[k] = g.columns[before + k < slice.y ? slice.x + 32 * (before + k) + lane : g.nobody];
    piece.lanes = slice.w >> 8;
    piece.row = lane >> piece.lanes < (slice.w & 255) ? slice.z + (lane >> piece.lanes) : ~0u;
    unsigned v = min(piece.row, g.vertices - 1);
    piece.part = g.parts[v];
    piece.rank = g.ranks[v];
    return piece;
}

// What comes along the edges of a piece.
__device__ void along(const Graph &g, const Piece &piece, const float *from, float *of) {
    #pragma unroll
    for (int i = 0; i < 4; i++) {
        uint4 s = piece.sources[i];
        of[4 * i] = from[min(s.x, g.vertices)], of[4 * i + 1] = from[min(s.y, g.vertices)];
        of[4 * i + 2] = from[min(s.z, g.vertices)], of[4 * i + 3] = from[min(s.w, g.vertices)];
    }
}

__device__ float added(const float *of) {
    float sum = 0;
    #pragma unroll
    for (int i = 0; i < 16; i++) sum += of[i];
    return sum;
}

__device__ void set(const Graph &g, const Piece &piece, float sum, float base, float *to, float2 &totals) {
    float rank = base + g.damping * sum;
    totals.y += fabsf(rank - piece.rank);
    g.ranks[piece.row] = rank;
    to[piece.row] = rank * piece.part;
    if (piece.part == 0) totals.x += rank;
}

// One iteration. While what comes along a piece's edges is on its way, the next piece is read.
extern "C" __global__ void iterate(Graph g, const float *from, float *to, int k) {
    float base = (1 - g.damping + g.damping * g.totals[2 * k]) / g.vertices, of[16];
    float2 totals = {0, 0};
    uint4 none = {0, 0, 0, 0};
    unsigned warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32;
    unsigned step = gridDim.x * warps, at = warp * gridDim.x + (gridDim.x - 1 - blockIdx.x);
    uint4 now = at < g.short_count ? g.shorts[at] : none, next = at + step < g.short_count ? g.shorts[at + step] : none;
    Piece ahead = read(g, now, 0);
    for (unsigned v = blockIdx.x; v < g.long_count; v += gridDim.x) {
        uint4 slice = g.longs[v];
        Piece piece = read(g, slice, 4 * warp);
        float sum = 0;
        for (unsigned before = 4 * warp; before < slice.y; before += 4 * warps) {
            along(g, piece, from, of);
            piece = read(g, slice, before + 4 * warps);
            sum += added(of);
        }
        sum = sum_block(make_float2(sum, 0)).x;
        if (threadIdx.x == 0) set(g, piece, sum, base, to, totals);
    }
    for (; at < g.short_count; at += step) {
        Piece piece = ahead;
        along(g, piece, from, of);
        float sum = 0;
        for (unsigned before = 4; before < now.y; before += 4) {
            ahead = read(g, now, before);
            sum += added(of);
            along(g, ahead, from, of);
        }
        ahead = read(g, next, 0);
        now = next;
        next = at + 2 * step < g.short_count ? g.shorts[at + 2 * step] : none;
        sum += added(of);
        for (unsigned d = (1u << piece.lanes) / 2; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
        if (lane % (1u << piece.lanes) == 0 && piece.row != ~0u) set(g, piece, sum, base, to, totals);
    }
    total(g, totals, k + 1);
}
"""


class Graph:
    """A graph as the example has saved it."""

    def __init__(self, folder):
        self.name = Path(folder).name
        read = lambda name, kind: np.fromfile(Path(folder, name), kind)
        slices, shares = read("slices", np.uint32).reshape(-1, 4), read("shares", np.uint32)
        is_long = np.repeat(np.arange(len(shares) - 1) % 2 == 0, np.diff(shares.astype(np.int64)))
        # In the order of their rows: from the longest to the shortest.
        self.longs, self.shorts = (cp.asarray(of[np.argsort(of[:, 2])].ravel()) for of in (slices[is_long], slices[~is_long]))
        self.columns = cp.asarray(read("columns", np.uint32))
        self.parts = cp.asarray(read("parts", np.float32))
        self.edges = read("edges", np.uint32).reshape(-1, 2)
        self.right = read("ranks", np.float32)
        n = self.vertices = len(self.right)
        self.ranks = cp.zeros(n, cp.float32)
        self.ends = [cp.zeros(n + 1, cp.float32) for _ in range(2)]
        self.totals = cp.zeros(2 * (ITERATIONS + 1), cp.float32)

    def value(self):
        kind = np.dtype([(f"p{i}", np.uint64) for i in range(6)] + [(f"n{i}", np.uint32) for i in range(4)] + [("d", np.float32), ("_", np.uint32)])
        memory = (self.longs, self.shorts, self.columns, self.parts, self.ranks, self.totals)
        counts = (self.longs.size // 4, self.shorts.size // 4, self.vertices, self.columns.size // 4 - 1)
        return np.array([tuple(m.data.ptr for m in memory) + counts + (DAMPING, 0)], kind)

    def matrix(self):
        """Row `v` has what each of its sources contributes."""
        source, target = (cp.asarray(self.edges[:, k].astype(np.int32)) for k in range(2))
        matrix = sparse.csr_matrix((self.parts[source], (target, source)), shape=(self.vertices,) * 2)
        matrix.sum_duplicates()
        return matrix


def median(stream, call, least=0.3):
    """Of as many calls as take so many seconds; 15 at least."""
    call(), stream.synchronize()
    times = []
    while len(times) < 15 or sum(times) < least:
        begun = time.perf_counter()
        call(), stream.synchronize()
        times.append(time.perf_counter() - begun)
    return sorted(times)[len(times) // 2] * 1e6


def compare(graph, module):
    stream = cp.cuda.Stream(non_blocking=True)
    begin, iterate = module.get_function("begin"), module.get_function("iterate")
    own, n = graph.value(), graph.vertices
    multiprocessors = cp.cuda.Device().attributes["MultiProcessorCount"]
    best = {}
    with stream:
        for threads in (128, 256, 512):
            most = -(-graph.shorts.size // 4 * 32 // threads)
            for blocks in sorted({min(most, multiprocessors * k) for k in (1, 2, 4, 8, 16)}):
                def run():
                    graph.totals.fill(0)
                    begin((blocks,), (threads,), (own, graph.ends[0]))
                    for k in range(ITERATIONS):
                        iterate((blocks,), (threads,), (own, graph.ends[k % 2], graph.ends[1 - k % 2], np.int32(k)))

                run()
                stream.synchronize()
                off = np.abs(graph.ranks.get().astype(np.float64) - graph.right).sum()
                assert off < 2e-5, f"{graph.name}: the kernels' ranks are {off} off"
                stream.begin_capture()
                run()
                captured = stream.end_capture()
                for name, call in (("graph", captured.launch), ("launches", run)):
                    found = (median(stream, call, 0.05), f"{blocks} x {threads}")
                    best[name] = min(best.get(name, found), found)
        matrix, even = graph.matrix(), np.float32(1 / n)
        dangling = (graph.parts == 0).astype(cp.float32)
        update = cp.ElementwiseKernel(
            "float32 s, raw float32 lost", "float32 r", f"r = (0.15f + 0.85f * lost[0]) * {even}f + 0.85f * s", "update"
        )

        def by_cusparse():
            ranks = cp.full(n, even, cp.float32)
            for _ in range(ITERATIONS):
                ranks = update(matrix @ ranks, cp.dot(ranks, dangling))
            return ranks

        off = np.abs(by_cusparse().get().astype(np.float64) - graph.right).sum()
        assert off < 2e-5, f"{graph.name}: cuSPARSE's ranks are {off} off"
        best["cuSPARSE"] = (median(stream, by_cusparse), "CuPy")
        ranks = cp.full(n, even, cp.float32)
        start, end = cp.cuda.Event(), cp.cuda.Event()
        matrix @ ranks
        start.record()
        for _ in range(100):
            matrix @ ranks
        end.record()
        end.synchronize()
        best["cuSPARSE, products alone"] = (cp.cuda.get_elapsed_time(start, end) * 10 * ITERATIONS, "on the GPU, back to back")
    for name, (found, how) in best.items():
        print(f"{graph.name}: {name}: {found:.1f} us for {ITERATIONS} iterations ({how})", flush=True)


if __name__ == "__main__":
    code = cp.RawModule(code=SOURCE)
    for folder in sys.argv[1:]:
        compare(Graph(folder), code)
