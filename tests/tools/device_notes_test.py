"""What the command line says of devices whose files lack something that figures need."""
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = os.environ["LLMSWEEP_BINARY"]


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


class DeviceNotes(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-devices-")
        self.home = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def spec(self, text):
        file = self.home / "sweep.yaml"
        file.write_text(text)
        return file

    def test_a_device_without_rent_is_said_to_have_no_price(self):
        spec = self.spec("base: {device: {from: h100-sxm, rent: unknown}, model: llama-3.1-8b}\n")
        self.assertIn("note: no prices for h100-sxm: no rent is stated", llmsweep("check", spec).stdout)
        self.assertIn("note: no prices for h100-sxm", llmsweep("run", spec, "-o", self.home / "out").stderr)
        self.assertIn("no price: h100-sxm has no rent", llmsweep("explain", spec).stdout)

    def test_a_device_that_does_not_say_how_many_multiprocessors_it_has_is_named(self):
        mine = "{name: mine, rent: 1 USD/h, memory_bandwidth: 1 TB/s, memory_capacity: 100 GB, peak: {bf16: 100 TFLOP/s}}"
        told = "note: mine: no multiprocessors are stated, so kernels are rooflines"
        alone = self.spec(f"base: {{model: llama-3.1-8b, device: {mine}}}\n")
        self.assertIn(told, llmsweep("check", alone).stdout)
        self.assertIn(told, llmsweep("run", alone, "-o", self.home / "lone").stderr)
        beside = self.spec(f"base: {{model: llama-3.1-8b}}\naxes:\n  - device: [h100-sxm, {mine}]\n")
        self.assertIn(told, llmsweep("check", beside).stdout)
        stated = self.spec(f"base: {{model: llama-3.1-8b, device: {mine}}}\naxes:\n  - device.multiprocessors: [1, 100]\n")
        self.assertNotIn("multiprocessors are stated", llmsweep("check", stated).stdout)
        # One is a number like any other.
        one = self.spec(f"base: {{model: llama-3.1-8b, device: {mine[:-1]}, multiprocessors: 1}}}}\n")
        self.assertNotIn("multiprocessors are stated", llmsweep("check", one).stdout)


if __name__ == "__main__":
    unittest.main()
