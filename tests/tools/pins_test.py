"""Python packages come in exactly the files that were looked at: each pinned by version and hash, everywhere pip is called."""

import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
DEV = SOURCE / "tools" / "dev"


def logical_lines(file):
    """The lines of a file without comments, those ending in a backslash joined with the next."""
    text = re.sub(r"^\s*#.*\n", "", file.read_text(), flags=re.MULTILINE)
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


SETS = sorted(file.stem for file in DEV.glob("*.in"))


def wanted(name):
    return dict(line.split("==") for line in logical_lines(DEV / f"{name}.in"))


def pinned(name):
    """{name: (version, hashes)}"""
    pins = {}
    for line in logical_lines(DEV / f"{name}.txt"):
        requirement, *hashes = line.split()
        name, version = requirement.split("==")
        pins[name] = version, hashes
    return pins


class Pins(unittest.TestCase):
    def test_every_package_has_one_version_and_hashes(self):
        for packages in SETS:
            self.assertTrue(pinned(packages), packages)
            for name, (version, hashes) in pinned(packages).items():
                self.assertRegex(version, r"^\d+(\.\d+)*$", name)
                self.assertTrue(hashes, name)
                for digest in hashes:
                    self.assertRegex(digest, r"^--hash=sha256:[0-9a-f]{64}$", name)

    def test_what_we_ask_for_is_pinned_at_the_version_we_ask_for(self):
        self.assertIn("requirements", SETS)
        for packages in SETS:
            pins = pinned(packages)
            for name, version in wanted(packages).items():
                self.assertIn(name, pins)
                self.assertEqual(pins[name][0], version, f"{name}: call tools/dev/pin_packages.py")

    def test_pins_name_no_place_to_fetch_from(self):
        for file in [*DEV.glob("*.in"), *DEV.glob("*.txt"), DEV / "pin_packages.py", *DEV.glob("*.sh")]:
            text = file.read_text()
            for word in ("://", "--index-url", "--find-links", "--trusted-host"):
                self.assertNotIn(word, text, file)

    def test_every_call_of_pip_requires_hashes(self):
        calls = []
        for file in sorted([SOURCE / "tools" / "run", SOURCE / "tools" / "test", *DEV.glob("*.sh"), *DEV.glob("f*")]):
            if file.is_file():
                calls += [line for line in logical_lines(file) if re.search(r"pip\"? (install|download)\b", line)]
        self.assertEqual(len(calls), 3, calls)
        for call in calls:
            self.assertIn("--require-hashes", call)
            self.assertIn("--only-binary=:all:", call)


if __name__ == "__main__":
    unittest.main()
