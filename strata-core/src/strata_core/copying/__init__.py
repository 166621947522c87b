"""Copying threads, with their whole logs, from one store to another.

What is copied are records: the target stores them in its own form, with or without deltas and offload, in any backend.
Each keeps its sequence; its `Revision` is another, since revisions name a checkpoint in one store.

A copy is a second life of the thread.  Nothing is written to the source, so a thread that waits there goes on waiting:
end it in the source before anybody answers the copy, or both go on.
"""

from strata_core.copying._many import copy_threads
from strata_core.copying._one import copy_thread
from strata_core.copying._outcomes import CopyOutcome, CopyRefused, ThreadCopy

__all__ = ["CopyOutcome", "CopyRefused", "ThreadCopy", "copy_thread", "copy_threads"]
