"""Number types as engines, checkpoints and PyTorch spell them, to the few that bytes depend on."""

_SPELLED = {
    "bf16": ("bf16", "bfloat16", "fp16", "float16", "half", "f16"),
    "fp32": ("fp32", "float32", "float", "f32"),
    "fp8": (
        *(
            "fp8",
            "f8",
            "fp8_e4m3",
            "fp8_e5m2",
            "fp8_e4m3fn",
            "fp8_inc",
            "fp8_ds_mla",
            "fp8_per_tensor",
            "e4m3",
            "e5m2",
        ),
        *(
            "float8",
            "float8_e4m3",
            "float8_e4m3fn",
            "float8_e4m3fnuz",
            "float8_e5m2",
            "float8_e5m2fnuz",
            "e4m3fn",
        ),
        *("fp8_per_token_head", "float8e4m3fn"),
    ),
    "int8": ("int8", "i8", "int8_per_token_head"),
    "fp4": ("fp4", "nvfp4", "mxfp4", "fp4_e2m1", "e2m1", "float4_e2m1fn_x2", "float4_e2m1fn", "fp4_e2m1fn"),
}
"""PyTorch 2.8 torch.dtype; vLLM 0.26 config/cache.py CacheDType; SGLang 0.5.16 server_args.py --kv-cache-dtype;
TensorRT-LLM 1.2 KvCacheConfig.dtype; compressed-tensors and modelopt KV-cache schemes."""
_OF_THE_CHECKPOINT = {"auto", "model", "none", "default", ""}
_TYPES = {spelled: known for known, several in _SPELLED.items() for spelled in several}


def number_type(spelled: str) -> str | None:
    """`bf16` (any 16 bits), `fp32`, `fp8`, `int8`, `fp4`, or `auto` for the checkpoint's own; None for other words."""
    word = spelled.strip().lower().removeprefix("torch.").replace("-", "_")
    return "auto" if word in _OF_THE_CHECKPOINT else _TYPES.get(word)
