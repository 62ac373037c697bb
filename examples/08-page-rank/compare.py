#!/usr/bin/env python3
"""What else ranks the same graph on the same GPU, for comparison with the resident grid: a kernel for each iteration, launched one by
one and as one CUDA graph, by the same arithmetic over the same memory; and cuSPARSE, as CuPy calls it.

    cargo run --release -p example-page-rank -- cuda 14 rmat --save FOLDER
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
struct Graph { const unsigned *rows, *sources; const uint4 *slices; const unsigned *columns; const float *parts; float *ranks;
               float *totals; unsigned vertices, rows_long, slice_count; float damping; };

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

__device__ void set(const Graph &g, unsigned v, float sum, float base, float *to, float2 &totals) {
    float rank = base + g.damping * sum, part = g.parts[v];
    totals.y += fabsf(rank - g.ranks[v]);
    g.ranks[v] = rank;
    to[v] = rank * part;
    if (part == 0) totals.x += rank;
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

extern "C" __global__ void iterate(Graph g, const float *__restrict__ from, float *to, int k) {
    float base = (1 - g.damping + g.damping * g.totals[2 * k]) / g.vertices;
    float2 totals = {0, 0};
    for (unsigned v = blockIdx.x; v < g.rows_long; v += gridDim.x) {
        float sum = 0;
        #pragma unroll 8
        for (unsigned e = g.rows[v] + threadIdx.x; e < g.rows[v + 1]; e += blockDim.x) sum += from[g.sources[e]];
        sum = sum_block(make_float2(sum, 0)).x;
        if (threadIdx.x == 0) set(g, v, sum, base, to, totals);
    }
    unsigned lane = threadIdx.x % 32, first = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (unsigned s = first; s < g.slice_count; s += gridDim.x * blockDim.x / 32) {
        uint4 slice = g.slices[s];
        unsigned at = slice.x + lane, end = slice.x + 32 * slice.y, of_row = slice.w >> 8, row = lane >> of_row;
        bool is_row = row < (slice.w & 255);
        float sum = 0;
        for (; at < end; at += 16 * 32) {
            unsigned source[16];
            #pragma unroll
            for (int i = 0; i < 16; i++) source[i] = at + 32 * i < end ? g.columns[at + 32 * i] : g.vertices;
            #pragma unroll
            for (int i = 0; i < 16; i++) sum += from[source[i]];
        }
        for (unsigned d = (1u << of_row) / 2; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
        if (is_row && lane % (1 << of_row) == 0) set(g, slice.z + row, sum, base, to, totals);
    }
    total(g, totals, k + 1);
}
"""


class Graph:
    """A graph as the example has saved it."""

    def __init__(self, folder):
        self.name = Path(folder).name
        read = lambda name, kind: cp.asarray(np.fromfile(Path(folder, name), kind))
        for name in ("rows", "sources", "slices", "columns"):
            setattr(self, name, read(name, np.uint32))
        self.parts = read("parts", np.float32)
        self.right = np.fromfile(Path(folder, "ranks"), np.float32)
        self.vertices, self.long = np.fromfile(Path(folder, "numbers"), np.uint32).tolist()
        n = self.vertices
        self.ranks = cp.zeros(n, cp.float32)
        self.ends = [cp.zeros(n + 1, cp.float32) for _ in range(2)]
        self.totals = cp.zeros(2 * (ITERATIONS + 1), cp.float32)

    def value(self):
        kind = np.dtype([(f"p{i}", np.uint64) for i in range(7)] + [(f"n{i}", np.uint32) for i in range(3)] + [("d", np.float32)])
        memory = (self.rows, self.sources, self.slices, self.columns, self.parts, self.ranks, self.totals)
        of = tuple(m.data.ptr for m in memory) + (self.vertices, self.long, self.slices.size // 4, DAMPING)
        return np.array([of], kind)

    def matrix(self):
        """Row `v` has what each of its sources contributes."""
        n, long = self.vertices, self.long
        sources, rows = [self.sources[: int(self.rows[-1])]], [np.repeat(np.arange(long), np.diff(self.rows.get().astype(np.int64)))]
        slices = self.slices.get().astype(np.int64).reshape(-1, 4)
        for shape in np.unique(slices[:, [1, 3]], axis=0):
            of = slices[(slices[:, [1, 3]] == shape).all(axis=1)]
            each = np.arange(32 * shape[0])
            source = self.columns[cp.asarray((of[:, :1] + each).ravel())]
            row = cp.asarray((of[:, 2:3] + (each % 32 >> (shape[1] >> 8))).ravel())
            is_edge = source != n
            sources.append(source[is_edge])
            rows.append(row[is_edge])
        sources = cp.concatenate([s.astype(cp.int32) for s in sources])
        rows = cp.concatenate([cp.asarray(r).astype(cp.int32) for r in rows])
        matrix = sparse.csr_matrix((self.parts[sources], (rows, sources)), shape=(n, n))
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
            most = -(-graph.slices.size // 4 * 32 // threads)
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
