"""Groups of lanes by option, and schedules drawn from a seed: replayable, and right for right kernels."""

import numpy as np
import pytest
from click.testing import CliRunner
from numba import cuda, float32, int32

import refsim
from refsim.cli import main
from refsim.engine.options import launch_options

ALL = ("blocks", "block", "warp", "thread")
SEEDS = [f"seed:{n}" for n in range(6)]


def last_writer(out):
    out[0] = cuda.grid(1)


def written_last(**options):
    out = np.zeros(1, np.int64)
    report = refsim.launch(last_writer, 4, 64, out, **options)
    assert [finding.kind for finding in report.errors] == ["race"]
    return int(out[0])


def test_a_seed_gives_the_same_order_each_time_and_seeds_differ():
    winners = [written_last(schedule=seed) for seed in SEEDS]
    assert winners == [written_last(schedule=seed) for seed in SEEDS]
    assert len(set(winners)) > 1


@pytest.mark.parametrize("lanes", ALL)
def test_the_plain_order_ends_with_the_last_block(lanes):
    assert written_last(lanes=lanes) // 64 == 3


def lost_update(total):
    total[0] += 1


def test_accesses_of_threads_interleave():
    def counted(schedule):
        total = np.zeros(1, np.int64)
        refsim.launch(lost_update, 1, 32, total, schedule=schedule)
        return int(total[0])

    assert len({counted(seed) for seed in SEEDS}) > 1


def tree_sum(x, out):
    cells = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    cells[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    half = 32
    while half > 0:
        if t < half:
            cells[t] += cells[t + half]
        cuda.syncthreads()
        half //= 2
    if cuda.syncthreads_count(int32(cells[0] > 0)) == 64 and t == 0:
        out[cuda.blockIdx.x] = cells[0]


def warp_sum(x, out):
    value = x[cuda.grid(1)]
    step = 16
    while step > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
        step //= 2
    if cuda.laneid == 0:
        cuda.atomic.add(out, cuda.blockIdx.x, value)


def spin_lock(x, out):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.cas(x, 0, 0, 1) != 0:
            pass
        out[0] += 1
        cuda.threadfence()
        cuda.atomic.exch(x, 0, 0)


@pytest.mark.parametrize("options", [{"lanes": lanes} for lanes in ALL] + [{"schedule": s} for s in SEEDS[:2]], ids=str)
def test_right_kernels_give_one_answer(options):
    x = np.arange(1, 193, dtype=np.float32)
    sums = x.reshape(3, 64).sum(axis=1)
    for kernel in (tree_sum, warp_sum):
        out = np.zeros(3, np.float32)
        assert not refsim.launch(kernel, 3, 64, x, out, **options).findings
        np.testing.assert_array_equal(out, sums)
    count = np.zeros(1, np.int32)
    assert not refsim.launch(spin_lock, 8, 32, np.zeros(1, np.int32), count, **options).findings
    assert count[0] == 8


def unordered(out):
    cells = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    cells[t] = t
    out[t] = cells[63 - t]


@pytest.mark.parametrize("options", [{"lanes": lanes} for lanes in ALL] + [{"schedule": s} for s in SEEDS], ids=str)
def test_a_race_is_found_in_every_order(options):
    report = refsim.launch(unordered, 1, 64, np.zeros(64, np.int64), checks="racecheck", **options)
    assert [finding.kind for finding in report.errors] == ["race"]
    assert {report.errors[0].line, report.errors[0].other.line} == {
        unordered.__code__.co_firstlineno + 3, unordered.__code__.co_firstlineno + 4,
    }  # fmt: skip


def test_unknown_names_are_refused():
    for options in ({"lanes": "half"}, {"schedule": "seed"}, {"schedule": "seed:-1"}):
        with pytest.raises(ValueError, match="give"):
            refsim.launch(last_writer, 1, 1, np.zeros(1, np.int64), **options)


def test_a_command_says_it_for_all_its_launches():
    with launch_options(schedule="seed:1"):
        assert written_last() == written_last(schedule="seed:1")
    assert written_last() == 255


def test_the_commands_take_lanes_and_schedule(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom numba import cuda\n\n\n@cuda.jit\ndef last(out):\n    out[0] = cuda.grid(1)\n\n\n"
        "out = np.zeros(1, np.int64)\nlast[4, 64](out)\nprint(out[0])\n"
    )
    runner = CliRunner()
    results = [runner.invoke(main, ["run", "--schedule", seed, str(script)]) for seed in SEEDS]
    assert all(result.exit_code == 1 for result in results)
    assert [int(result.output.split()[0]) for result in results] == [written_last(schedule=seed) for seed in SEEDS]
    assert runner.invoke(main, ["check", "rmsnorm", "--schedule", "often"]).exit_code == 2
    checked = runner.invoke(main, ["check", "rmsnorm", "--dtype", "float32", "--cases", "2", "--lanes", "warp"])
    assert checked.exit_code == 0, checked.output
