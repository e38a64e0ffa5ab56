"""Typed clients from ``client/schema.json``: one module for each language, all fed by ``schema``."""

from __future__ import annotations
