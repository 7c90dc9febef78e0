"""Every path keeps what the OpenAPI document promises, whatever is sent to it."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Ok

import panewise as pw

from .logs import TOKEN, Writer

pytestmark = pytest.mark.slow

Case: TypeAlias = "schemathesis.Case[Any]"

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
FEW = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def known(case: Case) -> None:
    """About half of all requests are for the query that is there."""
    name = (case.path_parameters or {}).get("name")
    if case.method == "GET" and isinstance(name, str) and len(name) % 2:
        case.path_parameters["name"] = "q"
    if isinstance(case.body, dict) and isinstance(query := case.body.get("query"), str) and len(query) % 2:
        case.body["query"] = "q"


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_the_document_is_kept(writer: Writer, mode: GenerationMode) -> None:
    """Events never end, so that they are not drawn here; they have tests of their own."""
    with pw.serve.LookupServer(writer.folder, token=TOKEN) as server:
        document = schemathesis.openapi.from_url(f"{server.url}/openapi.json").exclude(path_regex="events")
        drawn = set()
        for found in document.get_all_operations():
            assert isinstance(found, Ok)
            operation = found.ok()
            if mode is GenerationMode.NEGATIVE and operation.path in ("/health", "/queries"):
                continue  # Nothing that is sent there can be wrong.

            @FEW
            @given(case=operation.as_strategy(generation_mode=mode))
            def keeps_it(case: Case) -> None:
                known(case)
                case.call_and_validate(checks=CHECKS, headers={"Authorization": f"Bearer {TOKEN}"})

            keeps_it()
            drawn.add(operation.label)
    assert drawn >= {"GET /queries/{name}", "PUT /queries/{name}", "GET /queries/{name}/lookup", "POST /lookup"}
