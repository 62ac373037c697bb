// Which calls of the driver wait for a resident kernel, with two GPUs. One call a process, since each is made once:
//
//     nvcc -O3 -std=c++17 -arch=sm_90 peers.cu -o peers -lcuda && ./peers
//
// runs itself once for each call and for each place of the resident kernel, and prints what the call takes: 1.5 s or more if it waits
// for the kernel, which stays for 2 s. All loops are bounded.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <chrono>
#include <string>
#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

#define CK(x) do { int e = (int)(x); if (e) { printf("%s: error %d\n", #x, e); exit(1); } } while (0)

__global__ void resident(volatile unsigned *begun) {
    unsigned long long t0, t;
    asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t0));
    *begun = 1;
    __threadfence_system();
    for (long k = 0; k < 1l << 32; k++) {
        asm volatile("mov.u64 %0,%globaltimer;" : "=l"(t));
        if (t - t0 > 2000000000ull) break;
    }
}
__global__ void other(unsigned *p) { if (p) *p = 1; }

const char *MODULE = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry e() { ret; }\n";

const char *OPS[] = {"context of the other", "enable 0 to 1", "enable 1 to 0", "alloc", "free", "alloc on 0", "free on 0", "host alloc, portable",
                     "host register, portable", "host unregister", "load module", "load module on 0", "first launch", "stream", "copy to peer", "can access", "attribute"};
const int COUNT = sizeof OPS / sizeof *OPS;

CUcontext context[2];

int one(int op, int where) {
    CUdevice device[2];
    cudaStream_t stream[2];
    volatile unsigned *begun;
    CK(cuInit(0));
    for (int d = 0; d < 2; d++) CK(cuDeviceGet(&device[d], d));
    // Device 1's context is not there yet if making it is what is timed.
    bool lacks = op == 0;
    for (int d = 0; d < 2 - lacks; d++) {
        CK(cuDevicePrimaryCtxRetain(&context[d], device[d]));
        CK(cudaSetDevice(d));
        CK(cudaStreamCreateWithFlags(&stream[d], cudaStreamNonBlocking));
        if (d == 0 || op != 12) { // its code is loaded
            cudaFuncAttributes of;
            CK(cudaFuncGetAttributes(&of, resident));
            if (op != 12) { CK(cudaFuncGetAttributes(&of, other)); other<<<1, 1, 0, stream[d]>>>(nullptr); }
            CK(cudaDeviceSynchronize());
        }
    }
    CK(cudaSetDevice(0));
    CK(cudaHostAlloc((void **)&begun, 8, cudaHostAllocPortable | cudaHostAllocMapped));
    begun[0] = begun[1] = 0;
    unsigned *own[2], *there;
    for (int d = 0; d < 2 - lacks; d++) { CK(cudaSetDevice(d)); CK(cudaMalloc(&own[d], 1 << 20)); }
    if (op == 14) { CK(cudaSetDevice(0)); CK(cudaDeviceEnablePeerAccess(1, 0)); }
    void *pages = aligned_alloc(4096, 1 << 20);
    memset(pages, 0, 1 << 20);
    if (op == 9) CK(cudaHostRegister(pages, 1 << 20, cudaHostRegisterPortable | cudaHostRegisterMapped));
    for (int d = 0; d < 2 - lacks; d++)
        if (where >> d & 1) {
            CK(cudaSetDevice(d));
            resident<<<1, 1, 0, stream[d]>>>(begun + d);
            for (long k = 0; !begun[d] && k < 1l << 30; k++) cudaStreamQuery(stream[d]);
        }
    auto t0 = std::chrono::steady_clock::now();
    CUmodule module;
    CUcontext made;
    int value = 0, result = 0;
    cudaStream_t more;
    switch (op) {
        case 0: result = cuDevicePrimaryCtxRetain(&made, device[1]); break;
        case 1: cuCtxSetCurrent(context[0]); result = cuCtxEnablePeerAccess(context[1], 0); break;
        case 2: cuCtxSetCurrent(context[1]); result = cuCtxEnablePeerAccess(context[0], 0); break;
        case 3: cudaSetDevice(1); result = cudaMalloc(&there, 1 << 22); break;
        case 4: cudaSetDevice(1); result = cudaFree(own[1]); break;
        case 5: cudaSetDevice(0); result = cudaMalloc(&there, 1 << 22); break;
        case 6: cudaSetDevice(0); result = cudaFree(own[0]); break;
        case 7: cudaSetDevice(1); result = cudaHostAlloc((void **)&there, 1 << 22, cudaHostAllocPortable | cudaHostAllocMapped); break;
        case 8: cudaSetDevice(1); result = cudaHostRegister(pages, 1 << 20, cudaHostRegisterPortable | cudaHostRegisterMapped); break;
        case 9: cudaSetDevice(1); result = cudaHostUnregister(pages); break;
        case 10: cuCtxSetCurrent(context[1]); result = cuModuleLoadData(&module, MODULE); break;
        case 11: cuCtxSetCurrent(context[0]); result = cuModuleLoadData(&module, MODULE); break;
        case 12: cudaSetDevice(1); other<<<1, 1, 0, stream[1]>>>(own[1]); result = cudaGetLastError(); break;
        case 13: cudaSetDevice(1); result = cudaStreamCreateWithFlags(&more, cudaStreamNonBlocking); break;
        case 14: cudaSetDevice(0); cudaStreamCreateWithFlags(&more, cudaStreamNonBlocking); result = cudaMemcpyPeerAsync(own[1], 1, own[0], 0, 1 << 20, more); break;
        case 15: result = cuDeviceCanAccessPeer(&value, device[0], device[1]); break;
        case 16: result = cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, device[0], device[1]); break;
    }
    double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
    printf("%-24s kernel on %-7s %10.1f us%s, result %d, value %d\n", OPS[op], where == 1 ? "0" : where == 2 ? "1" : "0 and 1", took * 1e6,
           took > 1.5 ? ", WAITS" : "", result, value);
    fflush(stdout);
    _exit(0);
}

int main(int n, char **args) {
    if (n == 3) return one(atoi(args[1]), atoi(args[2]));
    for (int op = 0; op < COUNT; op++)
        for (int where = 1; where < 4; where++) {
            if (op == 0 && where > 1) continue;
            std::string line = "timeout 20 " + std::string(args[0]) + " " + std::to_string(op) + " " + std::to_string(where);
            int code = system(line.c_str());
            if (code) printf("%s, kernel on %d: exit %d\n", OPS[op], where, code);
        }
}
