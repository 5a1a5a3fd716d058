"""Reports: one writer per form, and what tells two reports apart."""

from refsim.conformance.reports.json_values import SCHEMA, from_json, json_text, to_json
from refsim.conformance.reports.text import text
from refsim.conformance.reports.writers import FORMS, write

__all__ = ["FORMS", "SCHEMA", "from_json", "json_text", "text", "to_json", "write"]
