"""Gating of a mixture of experts: a block per token, its softmax and each choice by shared-memory trees.

logits[tokens, experts]; block b owns token b, and thread t owns experts t, t + 128, …, up to 1024:

    sweep 1:  maximum of my logits          ──block_max──► token_max
    sweep 2:  sum of exp(logit - token_max) ──block_sum──► token_sum
    sweep 3:  scores[e] = score of e + bias[e]                                     in shared memory

    score     softmax exp(logit - token_max) / token_sum, sigmoid 1 / (1 + exp(-logit)), or √log(1 + exp(logit))

    for each of top_k places:
        my best score that is left, the lowest expert of equal ones  ──fold──►  ids[b, place]; its score becomes -inf

    best    s0 s1 s2 s3 s4 s5 s6 s7        the better of two: the higher score, of equal ones the lower expert
    reach 4 0,4 1,5 2,6 3,7                (eight threads drawn, each with a score and an expert)
    reach 2 0,2 1,3
    reach 1 0,1

    at last thread 0 divides the scores of the chosen ones by their sum:  weights[b, place]
"""

import math
from typing import Any

import numpy as np
from numba import cuda, int32

from kernels_numba.accumulator import DTYPES, NUMERICS, accumulator_of, per_accumulator
from kernels_numba.block_tree import THREADS, block_max, block_sum
from refsim.library import Kernel, Launcher

MOST_EXPERTS = 1024
NEGATIVE_INFINITY = float("-inf")
NOBODY = 2147483647  # an expert behind all others
SOFTMAX, SIGMOID, SQRT_SOFTPLUS = 0, 1, 2
SCORINGS = {"softmax": SOFTMAX, "sigmoid": SIGMOID, "sqrt_softplus": SQRT_SOFTPLUS}
SOFTPLUS_IS_ITSELF = 20.0  # from here on log(1 + exp(x)) is x


@per_accumulator
def moe_gate(real):
    @cuda.jit(device=True)
    def score_of(logit, scoring, token_max, token_sum):
        """An expert's score."""
        if scoring == SOFTMAX:
            return math.exp(logit - token_max) / token_sum
        if scoring == SIGMOID:
            return real(1.0) / (real(1.0) + math.exp(-logit))
        if logit > real(SOFTPLUS_IS_ITSELF):
            return math.sqrt(logit)
        return math.sqrt(math.log1p(math.exp(logit)))

    @cuda.jit
    def moe_gate(logits, bias, scoring, top_k, renormalise, scaling, ids, weights):
        """Choose top_k experts of logits[tokens, experts] into ids and weights[tokens, top_k]; one block per token."""
        cells = cuda.shared.array(THREADS, real)
        winners = cuda.shared.array(THREADS, int32)
        scores = cuda.shared.array(MOST_EXPERTS, real)
        thread = cuda.threadIdx.x
        token = cuda.blockIdx.x
        experts = logits.shape[1]

        my_max = real(NEGATIVE_INFINITY)
        for first in range(0, experts, THREADS):
            expert = first + thread
            if expert < experts:
                my_max = max(my_max, real(logits[token, expert]))
        token_max = block_max(cells, thread, my_max)

        my_sum = real(0.0)
        for first in range(0, experts, THREADS):
            expert = first + thread
            if expert < experts:
                my_sum += math.exp(real(logits[token, expert]) - token_max)
        token_sum = block_sum(cells, thread, my_sum)

        for first in range(0, experts, THREADS):
            expert = first + thread
            if expert < experts:  # only I read and write this cell of scores
                score = score_of(real(logits[token, expert]), scoring, token_max, token_sum)
                scores[expert] = score + real(bias[expert])

        for place in range(top_k):
            best = real(NEGATIVE_INFINITY)
            winner = int32(NOBODY)
            for first in range(0, experts, THREADS):
                expert = first + thread
                if expert < experts and scores[expert] > best:
                    best = scores[expert]
                    winner = int32(expert)
            cells[thread] = best
            winners[thread] = winner
            cuda.syncthreads()  # every thread's best is written before the first fold reads its partner's
            reach = THREADS // 2
            while reach > 0:
                if thread < reach:
                    other, rival = cells[thread + reach], winners[thread + reach]
                    if other > cells[thread] or (other == cells[thread] and rival < winners[thread]):
                        cells[thread] = other
                        winners[thread] = rival
                cuda.syncthreads()  # this fold's bests are written before the next fold, or the last line, reads them
                reach //= 2
            chosen = winners[0]
            cuda.syncthreads()  # cell 0 is read by all before the next place's fold writes it
            if chosen % THREADS == thread:
                scores[chosen] = real(NEGATIVE_INFINITY)
            if thread == 0:
                ids[token, place] = chosen

        if thread == 0:  # I wrote the ids, and read them back
            total = real(0.0)
            for place in range(top_k):
                total += score_of(real(logits[token, ids[token, place]]), scoring, token_max, token_sum)
            for place in range(top_k):
                weight = score_of(real(logits[token, ids[token, place]]), scoring, token_max, token_sum)
                if renormalise:
                    weight = weight / total
                weights[token, place] = weight * real(scaling)

    return moe_gate


def run_moe_gate(launcher: Launcher, inputs: dict[str, Any], params: dict[str, Any]) -> tuple[Any, ...]:
    logits, bias, top_k = inputs["logits"], inputs["bias"], params["top_k"]
    tokens, experts = logits.shape
    real = accumulator_of(logits)
    ids, weights = launcher.empty((tokens, top_k), np.int32), launcher.empty((tokens, top_k), real)
    if tokens > 0:
        correction = np.zeros(experts, np.float32) if bias is None else bias
        arrays = launcher.array(logits), launcher.array(correction)
        choice = SCORINGS[params["scoring"]], top_k, params["renormalise"], params["scaling"]
        launcher.launch(moe_gate(real), tokens, THREADS, *arrays, *choice, ids, weights)
    return ids, weights


def accept_one_group(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    """A choice among all experts, whose scores fit into shared memory."""
    if params["groups"] != 1:
        return f"groups={params['groups']}; this kernel chooses among all experts"
    experts = inputs["logits"].shape[1]
    return None if experts <= MOST_EXPERTS else f"{experts} experts; shared memory holds the scores of {MOST_EXPERTS}"


KERNELS = [
    Kernel(
        name="moe_gate",
        operators=("moe_gate",),
        dtypes=DTYPES,
        run=run_moe_gate,
        accepts=accept_one_group,
        numerics=NUMERICS,
        doc="One block per token: its softmax by trees, then each choice by a tree of its own.",
    ),
]
