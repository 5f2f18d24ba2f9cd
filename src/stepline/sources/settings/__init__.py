"""Reads settings wherever they are said: launch commands, manifests, environments, dumps, start-up messages."""
