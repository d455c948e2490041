"""Arrays on disk, complete or absent: the ground floor, which computes nothing.

arrays.py    open Zarr arrays for reading; create empty ones
urls.py      stores under URLs, the user's options for them, failures to reach them
objects.py   paths of objects, used like those of files
bounded.py   how many requests are under way
nodes.py     what stands under a path or URL, in words too
groups.py    what Zarr groups ask of an array that is put into them
atomic.py    outputs that appear under their names only when they are complete: renamed, or
record_last.py   in object stores, with the records written last
places.py    what stands under a path; outputs that would harm inputs, stores or each other
digests.py   digests of what is stored, to find damage
records.py   records that are added one after the other: to a file, or to objects (logs.py)
locks.py     one writer of a folder at a time; object_locks.py: of a place in an object store
disk.py      full disks
removal.py   folders are removed although tasks are writing into them
"""

from __future__ import annotations

from .arrays import choose_chunk_rows, create_array, create_group, open_rows, zarr_place
from .atomic import atomic_path, check_output, growing_path
from .objects import ObjectPath, Place
from .places import check_apart, check_outside, is_complete, kind_of, place_at, place_of
from .removal import remove, remove_all_now, remove_at_exit

__all__ = [
    "ObjectPath",
    "Place",
    "atomic_path",
    "check_apart",
    "check_output",
    "check_outside",
    "choose_chunk_rows",
    "create_array",
    "create_group",
    "growing_path",
    "is_complete",
    "kind_of",
    "open_rows",
    "place_at",
    "place_of",
    "remove",
    "remove_all_now",
    "remove_at_exit",
    "zarr_place",
]
