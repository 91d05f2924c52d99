"""Cases that test any quantizer: python -m quantd_conformance export | verify.

The oracle (oracle.py, oracle_types.py, oracle_embeddings.py) is the specification in plain numpy; cases/ calls it. files.py writes and
reads the kit, whose layout FORMAT.md defines. engines.py has the engines that can be tested, verify.py the comparison.
"""
