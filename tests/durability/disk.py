"""What is on a disk after a power cut, from the changes that file_shim.cc wrote down: for power_cut_test.py."""

import dataclasses
import pathlib


@dataclasses.dataclass
class Change:
    what: str
    inode: int
    offset: int
    path: str
    data: bytes


def changes(log):
    """The changes in a log, in their order."""
    found, at = [], 0
    while at < len(log):
        end = log.index(b"\n", at)
        what, inode, offset, size, path = log[at:end].decode().split("\t")
        begin, at = end + 1, end + 1 + int(size)
        found.append(Change(what, int(inode), int(offset), path.removesuffix(" (deleted)"), log[begin:at]))
    return found


class File:
    def __init__(self):
        self.now, self.synced, self.torn = bytearray(), None, b""  # `torn`: with half of the last write

    def write(self, offset, data):
        self.now.extend(bytes(max(0, offset - len(self.now))))
        half = data[:len(data) // 2]
        self.torn = bytes(self.now[:offset]) + half + bytes(self.now[offset + len(half):])
        self.now[offset:offset + len(data)] = data


FOLDER = object()


class Disk:
    """Names and contents as programs see them, and as a disk keeps them: what was synced."""

    def __init__(self):
        self.names, self.kept, self.by_inode = {}, {}, {}

    def file(self, inode):
        return self.by_inode.setdefault(inode, File())

    def unname(self, path):
        file = self.names.pop(path, None)
        if file not in self.names.values():  # its number may be given to another one
            self.by_inode = {inode: other for inode, other in self.by_inode.items() if other is not file}

    def apply(self, change):
        if change.what == "folder":
            self.names[change.path] = FOLDER
        elif change.what == "name":
            self.names[change.path] = self.file(change.inode)
        elif change.what == "rename":
            moved = self.names.pop(change.data.decode())
            self.unname(change.path)
            self.names[change.path] = moved
        elif change.what == "unname":
            self.unname(change.path)
        elif change.what == "write":
            self.file(change.inode).write(change.offset, change.data)
        elif change.what == "cut":
            file = self.file(change.inode)
            del file.now[change.offset:]
        elif change.what == "sync":
            file = self.file(change.inode)
            file.synced = bytes(file.now)
        elif change.what == "sync_folder":
            inside = lambda path: path.rpartition("/")[0] == change.path
            self.kept = {path: file for path, file in self.kept.items() if not inside(path)}
            self.kept.update({path: file for path, file in self.names.items() if inside(path)})
        else:
            raise ValueError(change)

    def after_power_cut(self, how):
        """{path: bytes, or None for a folder}.

        least: only what was synced, names too. names: all names, as a journal of names keeps them, with what was synced of
        the contents. torn: everything but half of each last write.
        """
        left = {}
        for path, file in (self.kept if how == "least" else self.names).items():
            if file is FOLDER:
                left[path] = None
            elif how == "torn" and file.synced != bytes(file.now):
                left[path] = file.torn
            else:
                left[path] = bytes(file.now) if file.synced == bytes(file.now) else file.synced or b""
        if how == "least":  # a name in a folder that is lost is lost
            left = {path: data for path, data in left.items() if all(str(around) in left or str(around) not in self.names
                                                                     for around in pathlib.PurePath(path).parents)}
        return left


def restore(left, old, new):
    """Makes a folder of what a disk kept of another one."""
    pathlib.Path(new).mkdir(parents=True)
    for path, data in sorted(left.items()):
        place = pathlib.Path(new) / pathlib.PurePath(path).relative_to(old)
        if data is None:
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
