// Threads that take turns on fewer processors: the part of a call's time that is the scheduler's, without a GPU or any channel.
//
// Each thread does as much work as sending and receiving a message takes, then waits for 2.4 us as for an answer, again and again. With
// more threads than processors it yields until the time is over. From one piece of work to the next is one call.
//
//     g++ -O2 -pthread yields.cpp && ./a.out

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <time.h>
#include <vector>

static long now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void pin(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

struct Calls {
    std::vector<unsigned> tens = std::vector<unsigned>(20000); // how many took so many times 10 ns; the last: or longer
    long count = 0, yields = 0;
    double sum = 0;
};

static void calls(int threads, bool pinned, long wait, long work, double seconds) {
    int processors = std::thread::hardware_concurrency();
    std::vector<Calls> each(threads);
    std::atomic<int> ready{0};
    std::vector<std::thread> running;
    for (int t = 0; t < threads; t++)
        running.emplace_back([&, t] {
            if (pinned) pin(t % processors);
            Calls own;
            ready++;
            while (ready < threads) sched_yield();
            long last = now(), counts_from = last + long(seconds * 1e8), end = last + long(seconds * 1e9);
            while (last < end) {
                while (now() - last < work) {}
                long sent = now();
                while (now() - sent < wait)
                    if (threads > processors) {
                        sched_yield();
                        own.yields++;
                    }
                long done = now();
                if (last > counts_from) {
                    own.tens[std::min((done - last) / 10, 19999L)]++;
                    own.count++;
                    own.sum += done - last;
                }
                last = done;
            }
            each[t] = std::move(own);
        });
    for (auto &thread : running) thread.join();
    Calls all;
    for (auto &own : each) {
        for (int k = 0; k < 20000; k++) all.tens[k] += own.tens[k];
        all.count += own.count, all.yields += own.yields, all.sum += own.sum;
    }
    auto quantile = [&](double q) {
        long below = 0;
        int k = 0;
        while (k < 19999 && (below += all.tens[k]) < q * all.count) k++;
        return k / 100.0;
    };
    printf("%2d threads, %s, work %3ld ns: p50 %.2f p90 %.2f p99 %.2f p99.9 %.2f mean %.2f us, %.2f M/s, %.2f yields a wait\n", threads,
           pinned ? "pinned" : "free", work, quantile(.5), quantile(.9), quantile(.99), quantile(.999), all.sum / all.count / 1e3,
           all.count / (seconds * .9e6), double(all.yields) / all.count);
}

static void yields(int threads) {
    const long each = 200000;
    std::atomic<int> ready{0};
    std::atomic<long> took{0};
    std::vector<std::thread> running;
    for (int t = 0; t < threads; t++)
        running.emplace_back([&] {
            pin(0);
            ready++;
            while (ready < threads) sched_yield();
            long begun = now();
            for (long k = 0; k < each; k++) sched_yield();
            took += now() - begun;
        });
    for (auto &thread : running) thread.join();
    printf("a yield among %d threads on one processor: %.0f ns\n", threads, double(took) / threads / each / threads);
}

int main() {
    int processors = std::thread::hardware_concurrency();
    printf("%d processors\n", processors);
    for (int threads : {1, 2, 4}) yields(threads);
    for (int round = 0; round < 2; round++)
        for (long work : {50, 150, 400}) {
            calls(1, false, 2400, work, .5);
            calls(4 * processors, false, 2400, work, .5);
            calls(4 * processors, true, 2400, work, .5);
        }
}
