"""llmsweep.run(..., cluster="ray") on a Ray cluster of several nodes, one of them removed in mid-run. Nothing lost, nothing twice.

Skipped, with the reason, where there is no Ray or it does not start; `tools/test --with cluster` installs it.
"""

import os
import pathlib
import sys
import tempfile
import threading
import unittest

BINARY = os.environ["LLMSWEEP_BINARY"]
PACKAGE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"]) / "tools" / "python"
HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(PACKAGE), str(HERE)]
# Ray starts processes of its own, slowly on a busy machine, and asks home about its use unless told not to.
os.environ.update(PYTHONPATH=f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}", RAY_USAGE_STATS_ENABLED="0", RAY_raylet_start_wait_time_s="120")

import llmsweep  # noqa: E402
from slurm_cluster import wait_for  # noqa: E402

try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError:
    ray = None

# Long enough that the node that is removed is at work.
SPEC = {
    "base": {
        "task": "serve", "model": "llama-3.1-8b", "device": "h100-sxm",
        "load": {"requests": 6000, "lengths": {"distribution": "lognormal", "prompt": 300, "output": 60}},
    },
    "axes": [{"load.rate": {"linear": ["1 req/s", "40 req/s"], "count": 320}}],
}
POSITIONS = 320
QUICK = {"base": {"task": "step", "model": "llama-3.1-8b", "device": "h100-sxm"}, "axes": [{"step.batch": {"linear": [1, 400], "count": 400}}]}
NODE = "LLMSWEEP_TEST_NODE"
SMALL = {"object_store_memory": 80 << 20, "include_dashboard": False}


def programs_on(node, folder):
    """The processes of the program that a node has started for a run."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            about = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[0] == BINARY and str(folder) in words and f"{NODE}={node}" in about:
            found.append(int(entry.name))
    return found


class OnRay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if ray is None:
            raise unittest.SkipTest("there is no Ray: tools/test --with cluster installs it")
        try:
            cls.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **SMALL})
            cls.addClassCleanup(cls.cluster.shutdown)
            cls.nodes = {name: cls.cluster.add_node(num_cpus=2, env_vars={NODE: name}, **SMALL) for name in ("stays", "goes")}
            cls.cluster.wait_for_nodes(timeout=120)
            ray.init(address=cls.cluster.address, log_to_driver=False)
            cls.addClassCleanup(ray.shutdown)
        except Exception as why:  # whatever Ray makes of a machine it does not like
            raise unittest.SkipTest(f"Ray did not start: {why}")

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="llmsweep ray-")
        self.addCleanup(scratch.cleanup)
        self.home = pathlib.Path(scratch.name)

    def rows(self, run):
        return run.points.pandas().sort_values("index").reset_index(drop=True)

    def test_1_shards_are_pulled_back_from_disks_of_the_nodes(self):
        run = llmsweep.run(QUICK, self.home / "pulled", cluster="ray", pull=True, shards=6, progress=False)
        self.assertEqual(list(self.rows(run)["index"]), list(range(400)))
        alone = llmsweep.run(QUICK, self.home / "alone", progress=False)
        self.assertTrue(llmsweep.compare(alone, run).same)

    def test_2_a_mistake_comes_back_in_the_programs_own_words(self):
        with self.assertRaises(llmsweep.LlmsweepError) as raised:
            llmsweep.run({"base": {"modell": "x"}}, self.home / "bad", cluster="ray", progress=False)
        self.assertEqual(raised.exception.exit_code, 2)
        self.assertTrue(str(raised.exception).startswith("base.modell: error: unknown key 'modell'"), raised.exception)
        for wrong in ({"cluster": "moon"}, {"pull": True}, {"shards": 3}, {"cluster": "ray", "pull": True, "overwrite": True}):
            with self.assertRaises(llmsweep.LlmsweepError):
                llmsweep.run(QUICK, self.home / "bad", **wrong)

    def test_2_a_run_of_another_spec_is_replaced_where_that_is_asked_for(self):
        other = {**QUICK, "axes": [{"step.batch": {"linear": [401, 420], "count": 20}}]}
        llmsweep.run(QUICK, self.home / "run", progress=False)
        with self.assertRaisesRegex(llmsweep.LlmsweepError, "holds a run of another spec"):
            llmsweep.run(other, self.home / "run", cluster="ray", shards=6)
        replaced = llmsweep.run(other, self.home / "run", cluster="ray", shards=6, overwrite=True)
        self.assertEqual(list(replaced.points["step.batch"]), list(range(401, 421)))

    def test_3_a_node_that_is_lost_loses_nothing_and_repeats_nothing(self):
        folder = self.home / "night"
        ended = []
        thread = threading.Thread(target=lambda: ended.append(llmsweep.run(SPEC, folder, cluster="ray", progress=False)))
        thread.start()
        lost = wait_for(lambda: programs_on("goes", folder))
        self.assertTrue(lost, "the node never worked on the run")
        self.cluster.remove_node(self.nodes["goes"], allow_graceful=False)
        self.assertTrue(wait_for(lambda: not programs_on("goes", folder)), "the programs of a lost node go on")
        thread.join(600)
        self.assertTrue(ended, "the run did not end")
        run = ended[0]
        self.assertEqual(list(self.rows(run)["index"]), list(range(POSITIONS)))
        alone = llmsweep.run(SPEC, self.home / "alone", progress=False)
        self.assertTrue(llmsweep.compare(alone, run).same)


if __name__ == "__main__":
    unittest.main()
