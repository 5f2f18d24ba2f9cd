"""One engine a file or folder, which exports `ENGINE`: the only place its metric, log and flag names appear.

`stepline.sources.engine` says what the record holds. To add an engine is one file here and two lines below.
"""

from stepline.sources.engine import Engine
from stepline.sources.engines import dynamo, llama_cpp, lmdeploy, sglang, tensorrt_llm, tgi, vllm

ENGINES: tuple[Engine, ...] = (
    sglang.ENGINE,
    vllm.ENGINE,
    tensorrt_llm.ENGINE,
    llama_cpp.ENGINE,
    lmdeploy.ENGINE,
    tgi.ENGINE,
    dynamo.ENGINE,
)
"""In the order they are asked. Each recognises its own words alone, so the order decides nothing but where
two engines wrote into one file: what the first says of the server is kept, and the other is a contradiction."""
