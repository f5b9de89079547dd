#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_sbom.py FILE: is it CycloneDX 1.6?  Needs cyclonedx-python-lib with its schemas."""
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

with open(sys.argv[1], encoding="utf-8") as text:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text.read())
sys.exit(f"{sys.argv[1]}: {error}" if error else 0)
