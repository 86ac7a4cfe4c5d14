"""Files of others at the command line: nothing in them reaches the terminal that it would obey, and what asks too
much of the reader ends in a message and exit code 2."""

import gzip
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = os.environ["LLMSWEEP_BINARY"]
BASE = "base: {device: h100-sxm, model: llama-3.1-8b}\n"
ESCAPE = "\\e[31m\\x07\\u009b\\u202e"  # as YAML writes them between double quotes


def llmsweep(*arguments, **environment):
    return subprocess.run([BINARY, *arguments], capture_output=True, env={**os.environ, **environment})


class HostileInput(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-hostile-")
        self.home = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def write(self, name, content):
        file = self.home / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(file)

    def assert_harmless(self, ran):
        text = (ran.stdout + ran.stderr).decode("utf-8")  # fails on bytes that are no text
        for letter in text:
            shown = letter in "\n\t" or (ord(letter) >= 0x20 and not 0x7F <= ord(letter) <= 0x9F)
            self.assertTrue(shown and letter not in "\u202e\u2066", repr(text))
        return text

    def test_control_characters_of_a_spec_are_written_out(self):
        for spec in (f'"{ESCAPE}": 1\n',
                     f'base: {{device: "{ESCAPE}", model: llama-3.1-8b}}\n',
                     BASE + f'axes: [{{step.batch: ["{ESCAPE}"]}}]\n',
                     BASE + f'require: ["step.batch < {ESCAPE}"]\n'):
            ran = llmsweep("check", self.write("sweep.yaml", spec))
            self.assertEqual(ran.returncode, 2, ran)
            self.assertIn("\\x1b", self.assert_harmless(ran))

    def test_labels_and_reasons_are_written_out(self):
        spec = self.write("sweep.yaml", BASE + f'name: "{ESCAPE}"\n'
                          f'axes: [{{step.batch: [{{value: 1, label: "{ESCAPE}"}}, 2]}}]\n'
                          f'require: [{{expr: "step.batch < 2", reason: "{ESCAPE}"}}]\n')
        for arguments in (["check", spec], ["explain", spec, "--point", "0"],
                          ["run", spec, "-o", str(self.home / "out")]):
            ran = llmsweep(*arguments)
            self.assertEqual(ran.returncode, 0, ran)
            self.assertIn("\\x1b[31m", self.assert_harmless(ran), arguments)

    def test_arguments_are_written_out(self):
        for arguments in (["check", "\x1b[31m.yaml"], ["show", "\x1b[31m"], ["\x1b[31m"], ["run", "--\x1b[31m"],
                          ["list", "\x1b[31m"]):
            ran = llmsweep(*arguments)
            self.assertEqual(ran.returncode, 2, ran)
            self.assert_harmless(ran)

    def test_text_that_is_not_utf8_is_refused_with_its_place(self):
        ran = llmsweep("check", self.write("sweep.yaml", BASE.encode() + b"name: caf\xe9\n"))
        self.assertEqual(ran.returncode, 2)
        self.assertIn("sweep.yaml:2:10: error: byte 0xe9 is not UTF-8 text", self.assert_harmless(ran))
        self.write("trace.csv", b"arrival_s,prompt_tokens,output_tokens,model\n0,5,5,\xff\n")
        ran = llmsweep("check", self.write("sweep.yaml", BASE[:-2] + ", load: {arrivals: trace, trace: trace.csv}}\n"))
        self.assertEqual(ran.returncode, 2)
        self.assertIn("trace.csv:2:7: error: byte 0xff is not UTF-8 text", self.assert_harmless(ran))

    def test_a_gzip_bomb_is_refused(self):
        with gzip.open(self.home / "trace.csv.gz", "wb", compresslevel=1) as trace:
            trace.write(b"arrival_s,prompt_tokens,output_tokens\n")
            for _ in range(70):
                trace.write(b"0,1,1\n" * (1 << 16))
        spec = self.write("sweep.yaml", BASE[:-2] + ", load: {arrivals: trace, trace: trace.csv.gz}}\n")
        ran = llmsweep("check", spec, LLMSWEEP_LIMITS="table_bytes=1M")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("the file holds more than 1 MiB", self.assert_harmless(ran))

    def test_a_small_file_does_not_take_a_large_memory(self):
        """Ten times what one byte of text can become, and no more: however well a trace packs, it is read within that or refused."""
        header = b"arrival_s,prompt_tokens,output_tokens"
        ids = b"".join(b"0,1,1,%d\n" % i for i in range(100_000))
        for name, first, text, times in (
            ("rows", header, b"0,1,1\n" * (1 << 16), 400),
            ("blocks", header + b",hash_ids", b"0,99999999,1," + b"1 " * (1 << 22) + b"\n", 15),
            ("many_blocks", header + b",hash_ids", b"0,99999999,1," + b"1 " * (1 << 22) + b"\n", 120),
            ("names", header + b",request_id", ids, 1),
        ):
            with gzip.open(self.home / f"{name}.csv.gz", "wb", compresslevel=6) as trace:
                trace.write(first + b"\n")
                for _ in range(times):
                    trace.write(text)
            self.assertLess((self.home / f"{name}.csv.gz").stat().st_size, 1 << 20)
            spec = self.write(f"{name}.yaml", BASE[:-2] + f", task: serve, load: {{arrivals: trace, trace: {name}.csv.gz}}}}\n")
            checked = subprocess.Popen([BINARY, "check", spec], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            said = checked.stderr.read().decode()
            checked.stderr.close()
            _, status, used = os.wait4(checked.pid, 0)
            checked.returncode = os.waitstatus_to_exitcode(status)
            self.assertLess(used.ru_maxrss / 1024, 800, name)  # MiB
            if checked.returncode != 0:
                self.assertIn("the file unpacks to more than 64 MiB and more than 50 times its size", said)

    def test_limits_are_stated_in_the_environment(self):
        spec = self.write("sweep.yaml", BASE + "axes: [{step.batch: [1, 2]}]\n")
        self.assertEqual(llmsweep("check", spec, LLMSWEEP_LIMITS="depth=50").returncode, 0)
        ran = llmsweep("check", spec, LLMSWEEP_LIMITS="depth=3")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("more than 3 lists and maps inside one another", self.assert_harmless(ran))
        ran = llmsweep("check", spec, LLMSWEEP_LIMITS="dephts=9")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("LLMSWEEP_LIMITS: error: there is no limit 'dephts'", self.assert_harmless(ran))


if __name__ == "__main__":
    unittest.main()
