"""Takes an engine's command line and serves a simulated SGLang, so that `lab run` can be tried without a GPU."""

import argparse
import sys
from pathlib import Path

from stepline.cli.main import main

parser = argparse.ArgumentParser()
parser.add_argument("model", type=Path)
parser.add_argument("--port")
parser.add_argument("--fault", default="healthy")
parser.add_argument("--refuse", action="store_true")
args = parser.parse_args()
if args.refuse:
    sys.exit("cannot start")
assert (args.model / "tokenizer.json").exists()
served = ["lab", "serve", "--fault", args.fault, "--port", args.port, "--log", "/dev/stdout", "--speed", "4"]
sys.exit(main(served))
