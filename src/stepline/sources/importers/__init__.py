"""Results of other load generators, one tool a file, each turned into load levels with our meaning.

Names clash between tools: TPOT is (last - first token) / (tokens - 1) here, whatever a tool calls it; a gap
between chunks is never called a token gap; a peak of requests per wall-clock second is never a concurrency.
"""
