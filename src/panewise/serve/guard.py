"""Checks who may send a request: every request passes the guard before anything of it is read."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from panewise.core.errors import PanewiseError
from panewise.runtime.json_text import json_bytes

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: A shorter token could be guessed.
MIN_TOKEN_LENGTH = 16
#: Seconds to wait for the body of a refused request.
BODY_TIMEOUT = 2.0
_WRITES = ("PUT", "DELETE", "PATCH")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_token(token: str | None, host: str) -> str | None:
    """The token, if there is one; refuses a token that can be guessed, and a public address without a token."""
    if token is None:
        if not is_loopback(host):
            raise PanewiseError(
                f"{host!r} can be reached from other machines, and there is no token",
                fix="give one, or listen on 127.0.0.1",
            )
        return None
    if len(token) < MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        raise PanewiseError(
            f"the token is not made of {MIN_TOKEN_LENGTH} or more plain characters",
            fix="make one with: python -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    return token


class Guard:
    """Passes a request on or refuses it, by its token, its host and its size.

    Reading needs a token only if other machines can reach the server; changes always need one. A page in a browser must
    not reach a server on this machine under another name, so there the host is checked as well.
    """

    def __init__(self, app: App, token: str | None, host: str, body: int) -> None:
        self._app, self._body = app, body
        self._token = token.encode() if token is not None else None
        self._local = is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if refusal := self._refusal(scope, headers):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._discard_body(receive), BODY_TIMEOUT)
            await _send_refusal(send, *refusal)
            return
        if scope["method"] == "HEAD" and not scope["path"].endswith("/events"):
            scope = {**scope, "method": "GET"}  # uvicorn has the original method, and sends no body
        await self._forward_limited(scope, receive, send)

    async def _discard_body(self, receive: Receive) -> None:
        """Read the body of a refused request, up to the limit: with unread data, closing would cut the client off."""
        read, more = 0, True
        while more and read <= self._body:
            message = await receive()
            read += len(message.get("body", b""))
            more = message["type"] == "http.request" and message.get("more_body", False)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str, str] | None:
        if self._local and not is_loopback(_host_of(headers.get(b"host", b"localhost"))):
            return 421, "this server is reached by another name", "use localhost or 127.0.0.1"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._body:
            return 413, f"the request is larger than {self._body} bytes", "ask for less at once"
        writes = scope["method"] in _WRITES
        if scope["path"] == "/health" or (self._local and not writes):
            return None
        if self._token is None:
            return 403, "this server has no token, so that nothing can be changed", "start it with a token"
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
            return 401, "the token is missing or wrong", "send the header Authorization: Bearer TOKEN"
        return None

    async def _forward_limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stop reading a body that is longer than allowed, whatever the application does then."""
        read = 0

        async def receive_counted() -> MutableMapping[str, Any]:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            return message if read <= self._body else {"type": "http.request", "body": b"", "more_body": False}

        async def unless_oversized(message: MutableMapping[str, Any]) -> None:
            if read <= self._body:
                await send(message)

        await self._app(scope, receive_counted, unless_oversized)
        if read > self._body:
            await _send_refusal(send, 413, f"the request is larger than {self._body} bytes", "ask for less at once")


def _host_of(value: bytes) -> str:
    """The host without its port."""
    text = value.decode("latin-1")
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]


async def _send_refusal(send: Send, status: int, error: str, fix: str) -> None:
    body = json_bytes({"error": error, "fix": fix})
    length = str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length), (b"connection", b"close")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
