"""Lookups over HTTP: a server that follows the panes a pipeline writes. The only user of FastAPI and uvicorn."""
