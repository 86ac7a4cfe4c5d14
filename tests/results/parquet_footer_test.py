"""Every reader of Parquet can read a run, and skip what a query does not ask for.

Looks at the footers of all tables: encodings, statistics, page checksums.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

import pyarrow.parquet as parquet

BINARY = os.environ["LLMSWEEP_BINARY"]

# Known to parquet-java and Spark since their first releases, and to everybody else.
COMMON = {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY"}
CODECS = {"ZSTD", "UNCOMPRESSED"}

SPEC = """
base:
  task: serve
  device: h100-sxm
  model: llama-3.1-8b
  load: {requests: 100}
  output: {requests: true, timeline: 200 ms}
axes:
  - serving.policy: [vllm_v1, sglang]
  - load.rate: {geometric: [1 req/s, 20 req/s], count: 20}
  - sample: {latin_hypercube: 20, of: {device.clock: [1.2 GHz, 2.6 GHz]}}
"""

# Figures that every point spreads over many orders of magnitude: a range would skip nothing.
WITHOUT_RANGE = {"calls", "seconds", "low_ratio", "high_ratio", "flops", "bytes", "energy_j", "limited_s", "hidden_s"}


class Footer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-footer-")
        home = pathlib.Path(cls.scratch.name)
        (home / "sweep.yaml").write_text(SPEC)
        cls.run_folder = home / "run"
        subprocess.run([BINARY, "run", home / "sweep.yaml", "-o", cls.run_folder],
                       check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def chunks(self):
        """(table, column chunk) of every file."""
        for table in ("points", "kernels", "requests", "timeline"):
            files = sorted((self.run_folder / table).glob("*.parquet"))
            self.assertTrue(files, table)
            for file in files:
                footer = parquet.read_metadata(file)
                self.assertGreater(footer.num_rows, 0)
                for group in range(footer.num_row_groups):
                    for column in range(footer.num_columns):
                        yield table, file, footer.row_group(group).column(column)

    def test_encodings_are_those_everybody_reads(self):
        for table, _, chunk in self.chunks():
            name = f"{table}.{chunk.path_in_schema}"
            self.assertLessEqual(set(chunk.encodings), COMMON, name)
            self.assertIn(chunk.compression, CODECS, name)

    def test_files_name_their_writer_and_its_version(self):
        file = next((self.run_folder / "points").glob("*.parquet"))
        self.assertRegex(parquet.read_metadata(file).created_by, r"^llmsweep version \d+\.\d+\.\d+$")

    def test_every_column_states_its_range(self):
        for table, file, chunk in self.chunks():
            name = f"{table}.{chunk.path_in_schema}"
            statistics = chunk.statistics
            self.assertIsNotNone(statistics, name)
            self.assertTrue(statistics.has_null_count, name)
            if chunk.path_in_schema in WITHOUT_RANGE and table == "kernels":
                continue
            values = parquet.ParquetFile(file).read([chunk.path_in_schema]).column(0).drop_null().to_pylist()
            self.assertEqual(statistics.null_count, chunk.num_values - len(values), name)
            if not values:
                self.assertFalse(statistics.has_min_max, name)
                continue
            if isinstance(values[0], str) and max(map(len, values)) > 256:
                continue
            self.assertTrue(statistics.has_min_max, name)
            self.assertEqual((statistics.min, statistics.max), (min(values), max(values)), name)

    def test_kernels_have_intervals(self):
        for row in parquet.read_table(self.run_folder / "kernels").to_pylist():
            self.assertLessEqual(row["low_ratio"], 1)
            self.assertLessEqual(1, row["high_ratio"])

    def test_a_flipped_bit_shows_to_readers_that_know_nothing_of_manifests(self):
        file = next((self.run_folder / "points").glob("*.parquet"))
        # The keys are the largest column of a file: a bit in the middle of them.
        chunk = next(c for t, f, c in self.chunks() if f == file and c.path_in_schema == "key")
        damaged = bytearray(file.read_bytes())
        damaged[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 4
        copy = self.run_folder.parent / "damaged.parquet"
        copy.write_bytes(damaged)
        parquet.ParquetFile(file, page_checksum_verification=True).read(["key"])
        with self.assertRaisesRegex(OSError, "CRC"):
            parquet.ParquetFile(copy, page_checksum_verification=True).read(["key"])


if __name__ == "__main__":
    unittest.main()
