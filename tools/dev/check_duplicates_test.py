"""The search for duplicates on small made-up files."""

import unittest

from check_duplicates import duplicates

PIECE = "".join(f"do_thing({i});\n" for i in range(5))


class CheckDuplicates(unittest.TestCase):
    def test_a_piece_that_stands_twice_is_named_once_with_its_first_lines(self):
        files = {"a.cc": "int x;\n" + PIECE, "b.cc": "\n// why\n" + PIECE.replace("do", "  do")}
        self.assertEqual(duplicates(files, 4), [("a.cc", 2, "b.cc", 3)])

    def test_shorter_pieces_and_lines_that_say_nothing_do_not_count(self):
        self.assertEqual(duplicates({"a.cc": PIECE, "b.cc": PIECE}, 6), [])
        said = "#include <a>\n// word\n}\n  visit(\"a\", self.a);\n" * 4
        self.assertEqual(duplicates({"a.cc": said, "b.cc": said}, 2), [])

    def test_a_piece_may_stand_twice_in_one_file_but_does_not_repeat_itself(self):
        self.assertEqual(duplicates({"a.cc": PIECE + "int between;\n" + PIECE}, 5), [("a.cc", 1, "a.cc", 7)])
        self.assertEqual(duplicates({"a.cc": "same();\n" * 6}, 5), [])


if __name__ == "__main__":
    unittest.main()
