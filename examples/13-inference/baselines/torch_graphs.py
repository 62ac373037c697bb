#!/usr/bin/env python3
"""What inference of the two models of graphs.cu takes with PyTorch: an LSTM of 2 layers (128 hidden, 32 features, one step a request) as
torch.nn.LSTM, and an MLP (64-256-256-16, ReLU) as torch.nn.Sequential, at batch 1 and at batch 1024. All is in f32, and TF32 is off.

    eager: the model called from Python, between a copy of the input from pinned memory and one of the answer back;
    graph: the same, copies included, captured as torch.cuda.CUDAGraph and replayed.

In both the states are kept in tensors on the GPU, which each step updates in place, and the host synchronizes with the stream. At batch 1
the LSTM has the state of one stream (graphs.cu: one of 1024, found by its number).

    python3 torch_graphs.py [REQUESTS AT BATCH 1] [REQUESTS AT BATCH 1024]

Each line has percentiles of the time of a request in microseconds (20,000 and 2,000 requests unless told, behind 1000 that are not timed),
from before the input is written to pinned memory until the answer is visible there; the inferences a second of one such request behind
the other; and the largest absolute difference from f64 arithmetic on the host over 20 steps, which comes first: above 1e-4 the program
ends with status 1. Inputs repeat after 1000 requests at batch 1, after 64 at batch 1024. Whatever takes longer than 5 minutes is ended.
"""

import gc
import signal
import sys
import time

import numpy as np
import torch

HIDDEN, FEATURES, LAYERS = 128, 32, 2
IN, WIDE, OUT = 64, 256, 16
STEPS, WARM_UP, MOST_OFF = 20, 1000, 1e-4


def values(tensor, shape, scale):
    """Value k of tensor t is ((splitmix64(t * 2^32 + k) >> 40) / 2^24 - 0.5) * scale, in f32."""
    z = np.arange(int(np.prod(shape)), dtype=np.uint64) + np.uint64((tensor << 32) + 0x9E3779B97F4A7C15 & 2**64 - 1)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    z = z ^ z >> np.uint64(31)
    unit = (z >> np.uint64(40)).astype(np.float32) / np.float32(2**24)
    return ((unit - np.float32(0.5)) * np.float32(scale)).reshape(shape)


def of_fan_in(n):
    return np.float32(2) / np.sqrt(np.float32(n))


def fill(parameter, by):
    with torch.no_grad():
        parameter.copy_(torch.from_numpy(by))


class Model:
    """A model with its input and answer in pinned memory; `step` enqueues one step."""

    def __init__(self, batch, inputs, outputs, tensor):
        self.batch, self.tensor, self.inputs = batch, tensor, inputs
        self.x = torch.zeros(self.shape(inputs), device="cuda")
        self.x_pinned = torch.zeros(self.shape(inputs), pin_memory=True)
        self.answer_pinned = torch.zeros(self.shape(outputs), pin_memory=True)
        self.x_host, self.answer_host = self.x_pinned.numpy(), self.answer_pinned.numpy()

    def input(self, step):
        return values(self.tensor + step % 1000, self.shape(self.inputs), 2.0)


class Lstm(Model):
    name = "LSTM"

    def __init__(self, batch):
        super().__init__(batch, FEATURES, HIDDEN, 100)
        self.model = torch.nn.LSTM(FEATURES, HIDDEN, LAYERS).eval().cuda()
        self.model.requires_grad_(False)
        self.weights = []
        for layer in range(LAYERS):
            inputs = FEATURES if layer == 0 else HIDDEN
            scale = of_fan_in(inputs + HIDDEN)
            wi, wh = values(3 * layer, (4 * HIDDEN, inputs), scale), values(3 * layer + 1, (4 * HIDDEN, HIDDEN), scale)
            bias = values(3 * layer + 2, (4 * HIDDEN,), 0.2)
            for name, by in (("weight_ih", wi), ("weight_hh", wh), ("bias_ih", bias), ("bias_hh", np.zeros_like(bias))):
                fill(getattr(self.model, f"{name}_l{layer}"), by)
            self.weights.append((wi, wh, bias))
        self.h, self.c = (torch.zeros(LAYERS, batch, HIDDEN, device="cuda") for _ in range(2))

    def shape(self, n):
        return (1, self.batch, n)

    def reset(self):
        self.h.zero_(), self.c.zero_()

    def step(self):
        self.x.copy_(self.x_pinned, non_blocking=True)
        answer, (h, c) = self.model(self.x, (self.h, self.c))
        self.answer_pinned.copy_(answer, non_blocking=True)
        self.h.copy_(h), self.c.copy_(c)

    def right(self):
        def sigmoid(x):
            return 1 / (1 + np.exp(-x))

        h, c = np.zeros((LAYERS, self.batch, HIDDEN)), np.zeros((LAYERS, self.batch, HIDDEN))
        for step in range(STEPS):
            x = self.input(step)[0].astype(np.float64)
            for layer, weights in enumerate(self.weights):
                wi, wh, bias = (w.astype(np.float64) for w in weights)
                i, f, g, o = np.split(x @ wi.T + h[layer] @ wh.T + bias, 4, axis=1)
                c[layer] = sigmoid(f) * c[layer] + sigmoid(i) * np.tanh(g)
                x = h[layer] = sigmoid(o) * np.tanh(c[layer])
            yield x[None].copy()


class Mlp(Model):
    name = "MLP"

    def __init__(self, batch):
        super().__init__(batch, IN, OUT, 2000)
        linear, relu = torch.nn.Linear, torch.nn.ReLU
        self.model = torch.nn.Sequential(linear(IN, WIDE), relu(), linear(WIDE, WIDE), relu(), linear(WIDE, OUT)).eval().cuda()
        self.model.requires_grad_(False)
        self.weights = []
        for layer, (inputs, outputs) in enumerate(((IN, WIDE), (WIDE, WIDE), (WIDE, OUT))):
            w, bias = values(10 + 2 * layer, (outputs, inputs), of_fan_in(inputs)), values(11 + 2 * layer, (outputs,), 0.2)
            fill(self.model[2 * layer].weight, w), fill(self.model[2 * layer].bias, bias)
            self.weights.append((w, bias))

    def shape(self, n):
        return (self.batch, n)

    def reset(self):
        pass

    def step(self):
        self.x.copy_(self.x_pinned, non_blocking=True)
        self.answer_pinned.copy_(self.model(self.x), non_blocking=True)

    def right(self):
        for step in range(STEPS):
            x = self.input(step).astype(np.float64)
            for layer, (w, bias) in enumerate(self.weights):
                x = x @ w.astype(np.float64).T + bias.astype(np.float64)
                if layer < 2:
                    x = np.maximum(x, 0)
            yield x


def captured(model):
    """The model's step as a graph: what replays it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model.step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model.step()
    torch.cuda.synchronize()
    return graph.replay


def measure(model, how, n):
    signal.alarm(300)
    call = model.step if how == "eager" else captured(model)
    stream = torch.cuda.current_stream()
    clock, x_host = time.perf_counter_ns, model.x_host
    model.reset()
    torch.cuda.synchronize()
    off = 0.0
    for step, right in enumerate(model.right()):
        np.copyto(x_host, model.input(step))
        call()
        stream.synchronize()
        d = np.abs(model.answer_host.astype(np.float64) - right).max()
        off = d if not d <= off else off
    inputs = [model.input(step) for step in range(1000 if model.batch == 1 else 64)]
    times = np.zeros(WARM_UP + n)
    gc.collect()
    gc.disable()
    for k in range(WARM_UP + n):
        x = inputs[k % len(inputs)]
        begun = clock()
        np.copyto(x_host, x)
        call()
        stream.synchronize()
        times[k] = clock() - begun
    gc.enable()
    us = np.sort(times[WARM_UP:]) / 1000
    parts = [us[min(n - 1, int(n * part))] for part in (0.5, 0.99, 0.999)] + [us[-1]]
    rate = model.batch * n / us.sum() * 1e6
    name = f"{model.name}, batch {model.batch}: {how}"
    print(f"{name:<40}" + "".join(f" {t:>8.2f}" for t in parts) + f" {rate:>14.0f} {off:>9.1e}", flush=True)
    if not off <= MOST_OFF:
        sys.exit(f"{name}: the answers are wrong")


def main():
    n1, n2 = (int(sys.argv[k]) if len(sys.argv) > k else n for k, n in ((1, 20000), (2, 2000)))
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}; f32, TF32 off; "
          f"microseconds a request; {n1} requests at batch 1, {n2} at batch 1024\n")
    print(f"{'':<40} {'p50':>8} {'p99':>8} {'p99.9':>8} {'max':>8} {'inferences/s':>14} {'off by':>9}", flush=True)
    for kind in (Lstm, Mlp):
        for batch, n in ((1, n1), (1024, n2)):
            model = kind(batch)
            for how in ("eager", "graph"):
                with torch.inference_mode():
                    measure(model, how, n)


if __name__ == "__main__":
    main()
