"""What a user asks for, one thing a file: a frozen request goes in, a result comes out, progress goes to a `Progress`.

Tasks join the layers below. The command line, the Python API, benchmarks and tests all call them, so that every door
gives the same answer; a task knows neither how a request was typed nor how a result is drawn.
"""
