"""The metadata operations that LMT knows, and which of our columns each is."""

from __future__ import annotations

from typing import Final

from iolens.schema import METADATA_OPERATIONS
from iolens.sources.lustre.stats import OTHER_COUNTERS

METADATA_COLUMN: Final = {operation: operation for operation in METADATA_OPERATIONS} | {"set_info_async": "set_info"}

# Operations of LMT's list that no table has a column for, besides those that Lustre's own files have.
UNUSED_OPERATIONS: Final = OTHER_COUNTERS | {
    "reget_short_lock", "release_short_lock", "queue_async_io", "queue_group_io", "trigger_group_io",
    "set_async_flags", "teardown_async_page", "quota_adjust_quint",
}  # fmt: skip

# What LMT's agent sends for every MDT at every time; of all others on its list a zero may mean "never looked at".
SAMPLED_OPERATIONS: Final = frozenset({
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getxattr", "statfs", "setattr", "getattr",
})  # fmt: skip
