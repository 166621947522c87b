"""What runs Strata: the command `strata` (`strata_host.cli`), which looks into stores and never writes to them.

Stores are reached through `strata_core.open_store` only; which backends there are is up to what is installed.
"""
