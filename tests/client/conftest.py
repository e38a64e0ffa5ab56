"""Fixtures of the client's tests."""

from __future__ import annotations

import pytest
from support.short_path import short_path

tmp_path = pytest.fixture(short_path, name="tmp_path")
