"""JSON text of records and states, exact in both directions; the normative description is `schema/README.md`."""

from strata_core.codec._json import check_json, copy_json, dump_json, load_json
from strata_core.codec._record_decoder import decode_record
from strata_core.codec._record_encoder import encode_record
from strata_core.codec._versions import SCHEMA_VERSION

__all__ = ["SCHEMA_VERSION", "check_json", "copy_json", "decode_record", "dump_json", "encode_record", "load_json"]
