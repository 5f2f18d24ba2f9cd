"""stepline finds why an LLM server decodes slower than its hardware allows, and proves it."""

__version__ = "0.1.0"
