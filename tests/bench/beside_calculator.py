"""Training strategies per CPU second, beside a public closed-form calculator (llm-analysis, from PyPI).

    python3 -m venv calculator && calculator/bin/pip install llm-analysis
    calculator/bin/python tests/bench/beside_calculator.py build/release/llmsweep

Both answer for a 70B model on 256 devices: memory and time of one step for every layout of tensor, pipeline and data
parallelism. llmsweep writes both tables, kernel by kernel; the calculator returns its summary. One run, one thread.
"""

import contextlib
import io
import logging
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

SPEC = pathlib.Path(__file__).resolve().parents[2] / "specs" / "sweeps" / "train_70b.yaml"


def ours(binary):
    """Returns (rows, CPU seconds) of the whole program, start included."""
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = subprocess.run([binary, "run", str(SPEC), "-o", f"{folder}/run", "-j", "1"],
                              capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows = int((told.stdout + told.stderr).split(" rows in ")[0].split()[-1].replace(",", ""))
    return rows, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def theirs():
    """Returns (strategies, CPU seconds) of the calculator's training analysis."""
    logging.disable(logging.CRITICAL)
    from llm_analysis.analysis import LLMAnalysis
    from llm_analysis.config import ModelConfig, ParallelismConfig, get_dtype_config_by_name, get_gpu_config_by_name

    model = ModelConfig(name="llama-70b", num_layers=80, n_head=64, hidden_dim=8192, vocab_size=128256, max_seq_len=8192,
                        num_key_value_heads=8, ffn_embed_dim=32768)
    gpu, dtype = get_gpu_config_by_name("h100-sxm-80gb"), get_dtype_config_by_name("w16a16e16")
    count, start = 0, time.process_time()
    for tensor in (1, 2, 4, 8):
        for stages in (1, 2, 4, 8, 16):
            replicas = 256 // (tensor * stages)
            # It stops at layouts whose replicas have not one micro-batch each.
            for batch in (batch for batch in (1, 2, 4) if batch * replicas <= 512):
                layout = ParallelismConfig(tp_size=tensor, pp_size=stages, dp_size=replicas)
                with contextlib.redirect_stdout(io.StringIO()):
                    LLMAnalysis(model, gpu, dtype, layout).training(
                        batch_size_per_gpu=batch, global_batch_size=512, seq_len=4096, total_num_tokens=10**12)
                count += 1
    return count, time.process_time() - start


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rows, seconds = ours(os.path.abspath(sys.argv[1]))
    strategies, spent = theirs()
    print(f"llmsweep: {rows} strategies in {seconds:.2f} CPU s: {1e6 * seconds / rows:.0f} us each")
    print(f"calculator: {strategies} strategies in {spent:.2f} CPU s: {1e6 * spent / strategies:.0f} us each")
    print(f"ratio: {spent / strategies / (seconds / rows):.1f}")


if __name__ == "__main__":
    main()
