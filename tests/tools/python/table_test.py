"""A table of a run is at home in a notebook: columns by name, Tab, a preview, rows in the order of their index."""

import os
import pathlib
import pickle
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"]) / "tools" / "python"))

import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.dataset  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

import llmsweep  # noqa: E402
from llmsweep.preview import html_of  # noqa: E402

SPEC = {"base": {"task": "step", "model": "llama-3.1-8b", "device": "h100-sxm"}, "axes": [{"parallel.tp": [1, 2]}, {"step.batch": [1, 16, 256, 1024]}]}


class Notebook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-table-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.run_of_spec = llmsweep.run(SPEC, pathlib.Path(cls.scratch.name) / "run")
        cls.points = cls.run_of_spec.points

    def test_it_is_used_like_a_dataframe(self):
        frame = self.points.to_pandas()
        self.assertEqual((len(self.points), list(self.points), self.points.columns), (8, list(frame.columns), list(frame.columns)))
        pd.testing.assert_frame_equal(self.points.head(), frame.head())
        pd.testing.assert_frame_equal(self.points.head(3), frame.head(3))
        self.assertEqual([len(self.points.head(n)) for n in (0, 8, 100)], [0, 8, 8])
        pd.testing.assert_series_equal(self.points["step.batch"], frame["step.batch"])
        pd.testing.assert_series_equal(self.points.step_time_s, frame.step_time_s)
        pd.testing.assert_frame_equal(self.points[["status", "step.batch"]], frame[["status", "step.batch"]])
        self.assertTrue("step_time_s" in self.points and "nope" not in self.points)
        self.assertTrue(self.points.to_arrow().equals(self.points.arrow()))
        self.assertEqual(self.points.to_polars().collect()["index"].to_list(), list(range(8)))

    def test_tab_knows_the_columns(self):
        self.assertEqual(self.points._ipython_key_completions_(), self.points.columns)
        self.assertLessEqual({"step_time_s", "status", "head", "to_pandas"}, set(dir(self.points)))
        self.assertNotIn("step.batch", dir(self.points))  # is no name of Python's
        # IPython looks into attributes, and runs no property for a press of a key.
        self.assertLessEqual({"points", "kernels", "requests", "timeline"}, vars(self.run_of_spec).keys())

    def test_a_column_that_is_not_there_is_said_with_what_was_meant(self):
        with self.assertRaisesRegex(llmsweep.LlmsweepError, "no column 'step_time'\n  hint: did you mean 'step_time_s'"):
            self.points["step_time"]
        with self.assertRaises(AttributeError):
            self.points.step_time

    def test_a_notebook_shows_its_first_rows_and_what_tells_them_apart(self):
        shown = self.points._repr_html_()
        self.assertIn("points: 8 rows, ", shown)
        self.assertEqual(shown.count("<tr>"), 1 + 5)
        heads = shown.partition("</thead>")[0]
        for head in ("<th>index</th>", "<th>axis.step.batch</th>", "<th>status</th>", "<th>step_time_s [s]</th>"):
            self.assertIn(head, heads)
        self.assertNotIn("<th>model_version</th>", heads)
        self.assertIn("points: 8 rows, ", repr(self.points))

    def test_texts_of_others_are_texts_in_a_notebook(self):
        shown = html_of(pa.table({"index": [0, 1], "<b>": ["<script>", "&"]}), {"<b>": "<s>"}, "<i>")
        for tag in ("<b>", "<script>", "<s>", "<i>"):
            self.assertNotIn(tag, shown)

    def test_nothing_is_read_before_it_is_asked_for(self):
        with mock.patch("pyarrow.dataset.dataset") as opened:
            points = llmsweep.open_run(self.run_of_spec.folder).points
            hasattr(points, "_ipython_display_")
            opened.assert_not_called()
        self.assertEqual(len(pickle.loads(pickle.dumps(points))), 8)

    def test_a_table_is_what_its_files_are_now(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-table-") as folder:
            run = llmsweep.run(SPEC, folder, shard="1/2")
            self.assertEqual(len(run.points), 4)
            llmsweep.run(SPEC, folder, shard="2/2")
            self.assertEqual(len(run.points), 8)
            llmsweep.run({**SPEC, "axes": [{"step.batch": [7]}]}, folder, overwrite=True)
            self.assertEqual(list(run.points["step.batch"]), [7])

    def test_a_table_that_is_not_there_can_be_looked_at(self):
        requests = self.run_of_spec.requests
        self.assertTrue(repr(requests).endswith("requests: no rows"))
        self.assertIsNone(requests._repr_html_())
        self.assertIn("head", dir(requests))
        self.assertFalse(hasattr(requests, "first_token_s"))
        with self.assertRaisesRegex(llmsweep.LlmsweepError, "no such table"):
            len(requests)


class Order(unittest.TestCase):
    def test_rows_are_in_the_order_of_their_index_however_parts_were_written(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-order-") as folder:
            # The rows of one point stay as they are: its second kernel comes after its first.
            for number, part in enumerate(({"index": [3, 3, 2], "op": ["a", "b", "a"]}, {"index": [0, 1, 1], "op": ["a", "z", "b"]})):
                pq.write_table(pa.table(part), f"{folder}/part-1of1-{number:06}.parquet")
            table = llmsweep.Table(pathlib.Path(folder))
            rows = [(0, "a"), (1, "z"), (1, "b"), (2, "a"), (3, "a"), (3, "b")]
            self.assertEqual(list(table.pandas().itertuples(index=False, name=None)), rows)
            self.assertEqual(table.polars().collect().rows(), rows)
            self.assertEqual([row[0] for row in table.duckdb().fetchall()], [0, 1, 1, 2, 3, 3])
            self.assertEqual(list(table["op"]), [op for _, op in rows])
            self.assertEqual(table.arrow(["op"]).column_names, ["op"])
            self.assertEqual(list(table.head(2)["op"]), ["a", "z"])
            self.assertEqual(table.arrow(filter=pyarrow.dataset.field("index") > 1)["index"].to_pylist(), [2, 3, 3])

    def test_shards_come_in_one_order(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-order-") as folder:
            for shard in ("3/3", "1/3", "2/3"):
                run = llmsweep.run(SPEC, folder, shard=shard)
            for table in (run.points, run.kernels):
                index = list(table["index"])
                self.assertEqual(index, sorted(index))
            self.assertEqual(list(run.points["index"]), list(range(8)))


if __name__ == "__main__":
    unittest.main()
