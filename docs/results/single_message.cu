// What a 64-byte message takes from one block of a GPU to the next, by what the one warp must do that reads, handles and sends it.
//   nvcc -O3 -std=c++17 -arch=sm_90 single_message.cu -o single_message && ./single_message
//
// Block 0 and one other block, each of the others in turn, hand a message to and fro. A message lies in a line of eight atoms of 16
// bytes: six with 12 bytes of the message and its stamp each, one unused, and the control atom. What is printed is half of a round
// trip, of the nearest, the median and the farthest other block, in nanoseconds and in cycles. Ways:
//   1  Six lanes read the message and answer with what they have read: the ping-pong of kernel_to_kernel.cu.
//   2  All the parts of a kernel of this project that it cannot do without: two votes judge the line and the credit of the output,
//      the message goes through the block's memory to the one thread that handles it, and from there through the block's memory to
//      eight lanes that send; the producer is told by a credit.
//   3  As 2, but the thread that has handled the message sends it by itself.
//   4  As 3, but that thread reads all parts of the message and the credit as well.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>
#define CK(x) do { auto e = (x); if (e != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)
typedef unsigned long long u64;

struct Words { u64 lo, hi; };
struct alignas(128) Line { Words atoms[8]; };
struct Ring { Line line, credit; };
struct Shared {
  alignas(16) uint32_t request[24];
  alignas(16) uint32_t emitted[24];
  u64 counts, handled, ticks;
};
constexpr uint32_t ALL = ~0u;
constexpr int CONTROL = 7, CREDIT_LANE = 16, MESSAGES = 4000;

__device__ void store(void* at, Words v) {
  asm volatile("{.reg .b128 t; mov.b128 t,{%1,%2}; st.relaxed.sys.global.b128 [%0],t;}" ::"l"(at), "l"(v.lo), "l"(v.hi) : "memory");
}
__device__ Words load(const void* at) {
  Words v;
  asm volatile("{.reg .b128 t; ld.relaxed.sys.global.b128 t,[%2]; mov.b128 {%0,%1},t;}" : "=l"(v.lo), "=l"(v.hi) : "l"(at) : "memory");
  return v;
}
__device__ void store_credit(Line* at, u64 v) {
  asm volatile("st.relaxed.sys.global.u64 [%0],%1;" ::"l"(at), "l"(v) : "memory");
}
__device__ uint32_t high(u64 v) { return v >> 32; }
__device__ Words atom(uint32_t x, uint32_t y, uint32_t z, uint32_t stamp) {
  return {(u64)x | (u64)y << 32, (u64)z | (u64)stamp << 32};
}
__device__ Words control(u64 tail) { return atom(0, 0, (uint32_t)tail, (uint32_t)tail); }

__device__ void hand_on(Ring* in, Ring* out, bool is_first) {
  int lane = threadIdx.x;
  for (uint32_t i = 1; i <= MESSAGES; i++) {
    Words x = atom(lane, lane, lane, i);
    if (is_first && lane < 6) store(&out->line.atoms[lane], x);
    do {
      x = lane < 6 ? load(&in->line.atoms[lane]) : atom(0, 0, 0, i);
    } while (!__all_sync(ALL, high(x.hi) == i));
    if (!is_first && lane < 6) store(&out->line.atoms[lane], x);
  }
}

template <int WAY> __device__ void peer(Ring* in, Ring* out, bool is_first, Shared* shared, uint32_t add) {
  int lane = threadIdx.x;
  u64 taken = 0, sent = 0, consumed = 0;
  const void* at = lane < 8 ? (const void*)&in->line.atoms[lane] : lane == CREDIT_LANE ? (const void*)&out->credit : nullptr;
  uint32_t is_stamped = lane < 6 || lane == CONTROL ? ALL : 0, is_control = lane == CONTROL ? ALL : 0;
  uint32_t is_credit = lane == CREDIT_LANE ? ALL : 0;
  bool sends_first = is_first;
  for (int k = 0; k < MESSAGES;) {
    u64 next = lane == CREDIT_LANE ? sent : taken;
    uint32_t turn = (uint32_t)next + 1, m[16];
    if (sends_first) {
      for (int w = 0; w < 16; w++) m[w] = w;
    } else if (WAY < 4) {
      Words x;
      for (;;) {
        x = at && !(is_credit && next == consumed) ? load(at) : Words{next, 0};
        uint32_t differs = ((high(x.hi) ^ turn) & is_stamped) | (((uint32_t)x.hi ^ turn) & is_control)
                         | (((uint32_t)(x.lo ^ next) | high(x.lo ^ next)) & is_credit);
        if (__ballot_sync(ALL, differs == 0) == ALL) break;
        uint32_t is_new = ((high(x.hi) ^ (uint32_t)next) & is_control)
                        | (((uint32_t)(x.lo ^ consumed) | high(x.lo ^ consumed)) & is_credit);
        if (__ballot_sync(ALL, is_new != 0) >> lane & 1) consumed = x.lo;
      }
      consumed = sent;
      if (lane < 6) {
        shared->request[3 * lane] = x.lo;
        shared->request[3 * lane + 1] = high(x.lo);
        shared->request[3 * lane + 2] = x.hi;
      }
      if (lane == CONTROL) store_credit(&in->credit, next + 1);
      __syncwarp();
      if (lane == 0) {
        for (int w = 0; w < 4; w++) {
          uint4 v = ((uint4*)shared->request)[w];
          m[4 * w] = v.x; m[4 * w + 1] = v.y; m[4 * w + 2] = v.z; m[4 * w + 3] = v.w;
        }
      }
    } else if (lane == 0) {
      Words x[8];
      uint32_t differs;
      do {
        #pragma unroll
        for (int w = 0; w < 8; w++) if (w != 6) x[w] = load(&in->line.atoms[w]);
        if (sent != consumed) consumed = load(&out->credit).lo;
        differs = ((uint32_t)x[CONTROL].hi ^ turn) | (high(x[CONTROL].hi) ^ turn);
        #pragma unroll
        for (int w = 0; w < 6; w++) differs |= high(x[w].hi) ^ turn;
        differs |= (uint32_t)(sent ^ consumed) | high(sent ^ consumed);
      } while (differs);
      uint32_t p[18];
      #pragma unroll
      for (int w = 0; w < 6; w++) { p[3 * w] = x[w].lo; p[3 * w + 1] = high(x[w].lo); p[3 * w + 2] = x[w].hi; }
      #pragma unroll
      for (int w = 0; w < 16; w++) m[w] = p[w];
      store_credit(&in->credit, next + 1);
    }
    if (lane == 0) { // the handler
      #pragma unroll
      for (int w = 0; w < 16; w++) m[w] += add;
    }
    if (WAY == 2) {
      if (lane == 0) {
        #pragma unroll
        for (int w = 0; w < 4; w++) ((uint4*)shared->emitted)[w] = make_uint4(m[4 * w], m[4 * w + 1], m[4 * w + 2], m[4 * w + 3]);
        shared->counts = 1;
      }
      __syncwarp();
      uint32_t counts = shared->counts, k0 = 3 * (lane & 7);
      uint32_t a = shared->emitted[k0], b = shared->emitted[k0 + 1], c = shared->emitted[k0 + 2];
      u64 index = __shfl_sync(ALL, sent, CREDIT_LANE);
      if (!__all_sync(ALL, counts <= 1)) return;
      if (lane < 8 && lane != 6) store(&out->line.atoms[lane], lane == CONTROL ? control(index + 1) : atom(a, b, c, (uint32_t)index + 1));
      __syncwarp();
    } else if (lane == 0) {
      uint32_t p[18];
      #pragma unroll
      for (int w = 0; w < 18; w++) p[w] = w < 16 ? m[w] : 0;
      #pragma unroll
      for (int w = 0; w < 6; w++) store(&out->line.atoms[w], atom(p[3 * w], p[3 * w + 1], p[3 * w + 2], (uint32_t)sent + 1));
      store(&out->line.atoms[CONTROL], control(sent + 1));
    }
    sent++;
    if (lane == 0) { shared->handled++; shared->ticks += clock64(); }
    if (sends_first) { sends_first = false; continue; }
    taken++;
    k++;
    if (WAY < 4) __syncwarp();
  }
}

__global__ void run(Ring* rings, u64* out, int way, int other, uint32_t add) {
  extern __shared__ Shared shared[];
  bool is_first = blockIdx.x == 0;
  if ((!is_first && blockIdx.x != other) || threadIdx.x >= 32) return;
  Ring *in = rings + is_first, *to = rings + !is_first;
  u64 began;
  long long ticks = clock64();
  asm volatile("mov.u64 %0,%globaltimer;" : "=l"(began));
  if (way == 1) hand_on(in, to, is_first);
  if (way == 2) peer<2>(in, to, is_first, shared, add);
  if (way == 3) peer<3>(in, to, is_first, shared, add);
  if (way == 4) peer<4>(in, to, is_first, shared, add);
  u64 ended;
  asm volatile("mov.u64 %0,%globaltimer;" : "=l"(ended));
  if (is_first && threadIdx.x == 0) { out[0] = ended - began; out[1] = clock64() - ticks; }
}

int main() {
  int blocks;
  CK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0));
  u64* out;
  Ring* rings;
  const int bytes = 160 << 10; // a block has a multiprocessor for itself
  CK(cudaMalloc(&out, 64));
  CK(cudaMalloc(&rings, 2 * sizeof(Ring)));
  CK(cudaFuncSetAttribute(run, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  for (int way = 1; way <= 4; way++) {
    std::vector<double> ns, cycles;
    for (int other = 1; other < blocks; other++) {
      CK(cudaMemset(rings, 0, 2 * sizeof(Ring)));
      run<<<blocks, 512, bytes>>>(rings, out, way, other, 3);
      CK(cudaDeviceSynchronize());
      u64 found[2];
      CK(cudaMemcpy(found, out, 16, cudaMemcpyDeviceToHost));
      ns.push_back(found[0] / 2.0 / MESSAGES);
      cycles.push_back(found[1] / 2.0 / MESSAGES);
    }
    std::sort(ns.begin(), ns.end());
    std::sort(cycles.begin(), cycles.end());
    auto middle = ns.size() / 2;
    printf("%d  one way, ns: nearest %.0f median %.0f farthest %.0f; cycles %.0f %.0f %.0f\n", way, ns[0], ns[middle], ns.back(),
           cycles[0], cycles[middle], cycles.back());
  }
}
