"""Cases by which anyone's quantizer can be judged: python -m quantd.conformance export | verify.

The oracle (oracle.py, oracle_types.py, oracle_embeddings.py) is the specification as plain numpy; cases/ asks it; files.py writes
and reads the kit, whose layout FORMAT.md says; engines.py is who can be judged, verify.py how.
"""
