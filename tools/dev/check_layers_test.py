"""The layer check on small made-up files, and its table on itself."""

import unittest

from check_layers import ROOMS, check_file, room_of


class CheckLayers(unittest.TestCase):
    def test_an_arrow_of_the_table_is_allowed(self):
        self.assertEqual(check_file("engine/step/a.cc", '#include "engine/kernels/gemm.h"\n'), [])

    def test_an_arrow_against_the_table_is_named_with_its_line(self):
        self.assertEqual(
            check_file("engine/kernels/a.cc", '// why\n#include "engine/comm/collective.h"\n'),
            ["engine/kernels/a.cc:2: error: engine/kernels may not include engine/comm"])

    def test_the_front_door_sees_every_room_but_no_room_sees_it(self):
        self.assertEqual(check_file("engine/evaluate.cc", '#include "engine/step/step_time.h"'), [])
        self.assertEqual(
            check_file("engine/step/a.cc", '#include "engine/scenario.h"'),
            ["engine/step/a.cc:1: error: engine/step may not include engine"])

    def test_a_floor_sees_those_below_it_and_the_room_around_all_of_them(self):
        below, above = '#include "engine/serving/lane/lane.h"', '#include "engine/serving/fleet/scaler.h"'
        self.assertEqual(check_file("engine/serving/replica/a.cc", below), [])
        self.assertEqual(
            check_file("engine/serving/replica/a.cc", above),
            ["engine/serving/replica/a.cc:1: error: engine/serving/replica may not include engine/serving/fleet"])
        self.assertEqual(check_file("engine/serving/a.cc", below + "\n" + above), [])
        self.assertEqual(len(check_file("engine/serving/lane/a.cc", '#include "engine/serving/serving_sim.h"')), 1)

    def test_a_package_stays_in_its_room(self):
        self.assertEqual(check_file("results/a.cc", "#include <parquet/arrow/writer.h>"), [])
        self.assertEqual(
            check_file("sweep/space/a.cc", "#include <yaml-cpp/yaml.h>"),
            ["sweep/space/a.cc:1: error: <yaml-cpp/yaml.h> belongs in sweep/language, not in sweep/space"])

    def test_the_engine_has_no_clock(self):
        self.assertEqual(len(check_file("engine/base/a.cc", "#include <chrono>")), 1)
        self.assertEqual(check_file("sweep/run/a.cc", "#include <chrono>"), [])

    def test_a_path_from_elsewhere_and_an_unknown_room_are_refused(self):
        self.assertEqual(len(check_file("engine/base/a.cc", '#include "units.h"')), 1)
        self.assertEqual(len(check_file("engine/newroom/a.cc", "")), 1)
        self.assertIsNone(room_of("sweep/a.cc"))

    def test_the_table_has_no_cycle(self):
        done = set()

        def walk(room, above):
            self.assertNotIn(room, above, f"{room} reaches itself")
            if room not in done:
                for other in ROOMS[room]:
                    if other != room:
                        walk(other, above | {room})
                done.add(room)

        for room in ROOMS:
            walk(room, frozenset())


if __name__ == "__main__":
    unittest.main()
