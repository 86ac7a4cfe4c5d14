"""What the built programs' ELF headers promise: libraries only from stated places, addresses that differ from
run to run, nothing left to overwrite after loading, and overruns of stack and buffers that end the program.

Reads the header itself, so that it needs no tools and means the same on every 64-bit machine.
"""

import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

BINARY = pathlib.Path(os.environ["LLMSWEEP_BINARY"])
CACHE = BINARY.parent / "CMakeCache.txt"

ET_DYN = 3
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 3, 0x6474E551, 0x6474E552
PF_X, PF_W = 1, 2
DT_NULL, DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_RPATH, DT_TEXTREL = 0, 1, 5, 10, 15, 22
DT_BIND_NOW, DT_RUNPATH, DT_FLAGS, DT_FLAGS_1 = 24, 29, 30, 0x6FFFFFFB
DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 0x8, 0x1, 0x08000000


class Elf:
    """The few parts of a 64-bit ELF file that say how it is loaded."""

    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        assert self.bytes[:5] == b"\x7fELF\x02", f"{path} is not a 64-bit ELF file"
        self.order = "<" if self.bytes[5] == 1 else ">"
        self.type, = self.unpack("H", 16)
        table, = self.unpack("Q", 32)
        size, count = self.unpack("HH", 54)
        self.segments = [self.unpack("IIQQQQQQ", table + i * size) for i in range(count)]
        self.dynamic = list(self.read_dynamic())
        strings = self.at(self.entries(DT_STRTAB)[0])
        self.strings = self.bytes[strings:strings + self.entries(DT_STRSZ)[0]]

    def unpack(self, form, offset):
        return struct.unpack_from(self.order + form, self.bytes, offset)

    def of_kind(self, kind):
        return [segment for segment in self.segments if segment[0] == kind]

    def at(self, address):
        """The place in the file of an address in memory."""
        for _, _, offset, start, _, in_file, *_ in self.of_kind(PT_LOAD):
            if start <= address < start + in_file:
                return offset + address - start
        raise ValueError(hex(address))

    def read_dynamic(self):
        _, _, offset, _, _, size, *_ = self.of_kind(PT_DYNAMIC)[0]
        for place in range(offset, offset + size, 16):
            tag, value = self.unpack("QQ", place)
            if tag == DT_NULL:
                return
            yield tag, value

    def entries(self, tag):
        return [value for found, value in self.dynamic if found == tag]

    def texts(self, tag):
        return [self.strings[start:self.strings.index(b"\0", start)].decode() for start in self.entries(tag)]

    def names(self):
        """Every name the loader may look for."""
        return {name.decode() for name in self.strings.split(b"\0")}


def setting(name):
    """A variable of the build's CMake cache, or nothing."""
    if CACHE.exists():
        for line in CACHE.read_text().splitlines():
            if line.startswith(name + ":"):
                return line.split("=", 1)[1]
    return ""


class Hardening(unittest.TestCase):
    program = BINARY

    @classmethod
    def setUpClass(cls):
        cls.elf = Elf(cls.program)

    def test_libraries_come_only_from_absolute_places(self):
        for path in self.elf.texts(DT_RUNPATH) + self.elf.texts(DT_RPATH):
            for element in path.split(":"):
                # An empty or relative element would be looked for in the working directory.
                self.assertTrue(element.startswith("/") or element.startswith("$ORIGIN/"), repr(path))
        for library in self.elf.texts(DT_NEEDED):
            self.assertNotIn("/", library)

    def test_addresses_differ_from_run_to_run(self):
        self.assertEqual(self.elf.type, ET_DYN)
        self.assertTrue(self.elf.of_kind(PT_INTERP))
        self.assertTrue(sum(self.elf.entries(DT_FLAGS_1)) & DF_1_PIE)

    def test_everything_is_resolved_at_the_start_and_then_read_only(self):
        self.assertTrue(self.elf.of_kind(PT_GNU_RELRO))
        now = (self.elf.entries(DT_BIND_NOW) or sum(self.elf.entries(DT_FLAGS)) & DF_BIND_NOW
               or sum(self.elf.entries(DT_FLAGS_1)) & DF_1_NOW)
        self.assertTrue(now)
        self.assertFalse(self.elf.entries(DT_TEXTREL))

    def test_no_memory_is_writable_and_executable(self):
        stack = self.elf.of_kind(PT_GNU_STACK)
        self.assertTrue(stack)
        for _, flags, *_ in stack + self.elf.of_kind(PT_LOAD):
            self.assertNotEqual(flags & (PF_X | PF_W), PF_X | PF_W)
        self.assertFalse(stack[0][1] & PF_X)

    def test_an_overrun_stack_ends_the_program(self):
        self.assertIn("__stack_chk_fail", self.elf.names())

    def test_our_code_is_compiled_with_checks_of_buffer_sizes(self):
        # Which calls remain to be checked at run time is up to the optimiser, so ask what it was told.
        if setting("LLMSWEEP_SANITIZE") or setting("CMAKE_BUILD_TYPE") == "Debug":
            self.skipTest("sanitizers and unoptimised builds go without")
        commands = BINARY.parent / "compile_commands.json"
        if not commands.exists():
            self.skipTest("this build left no compile_commands.json")
        for entry in json.loads(commands.read_text()):
            if entry["file"].endswith("file_shim.cc"):
                continue  # it stands in for the very functions that the checks are built into
            words = entry["command"].split()
            level = [word for word in words if "_FORTIFY_SOURCE" in word]
            self.assertRegex(" ".join(level), r"-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=[23]$", entry["file"])


class HardeningOfCalibrate(Hardening):
    program = BINARY.with_name("llmsweep-calibrate")


class WorkingDirectory(unittest.TestCase):
    def test_a_library_lying_in_the_working_directory_is_not_loaded(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-hardening-") as folder:
            for library in Elf(BINARY).texts(DT_NEEDED):
                # A loader that looked here would stop at a file that is no library.
                (pathlib.Path(folder) / library).write_bytes(b"not a library")
            ran = subprocess.run([BINARY, "version"], cwd=folder, capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == "__main__":
    unittest.main()
