"""Verification of rain forecasts against observed rain."""

from nowcast.verification.archive import valid_starts
from nowcast.verification.findings import findings
from nowcast.verification.report import score_table, to_json, write_json
from nowcast.verification.verify import verify

__all__ = ["findings", "score_table", "to_json", "valid_starts", "verify", "write_json"]
