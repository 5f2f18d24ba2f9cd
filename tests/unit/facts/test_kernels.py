import pytest

from stepline.facts import kernels


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "communication"),
        ("multimem_all_reduce_kernel", "communication"),
        ("void sglang::cross_device_reduce_1stage<__nv_bfloat16, 4>", "communication"),
        ("void vllm::one_shot_allreduce", "communication"),
        ("void deep_ep::internode::dispatch<true>", "communication"),
        ("void deep_ep::intranode::combine<int4>", "communication"),
        ("mscclpp::allreduce7", "communication"),
        ("nvshmemi_transfer_amo", "communication"),
        ("flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport", "communication"),
        ("quickreduce::allreduce_prototype_twoshot", "communication"),
        ("fused_q_indexer_rope_hadamard_quant", "indexer"),
        ("sm90_fp8_paged_mqa_logits", "indexer"),
        ("void flash_fwd_splitkv_mla_fp8_sparse_kernel", "attention"),
        ("_fwd_grouped_kernel_stage1", "attention"),
        ("void flashinfer::BatchDecodeWithPagedKVCacheKernel", "attention"),
        ("void vllm::reshape_and_cache_flash_kernel", "kv-write"),
        ("fused_moe_kernel", "moe"),
        ("moe_align_block_size_kernel", "moe"),
        ("nvjet_sm90_tst_64x16_64x16_2x1_v_bz_TNT", "gemm"),
        ("_w8a8_block_fp8_matmul", "gemm"),
        ("Cijk_Alik_Bljk_BBS_BH_MT64x32x256_MI16x16x1", "gemm"),
        ("void flashinfer::norm::RMSNormKernel<8u>", "norm"),
        ("per_token_group_quant_8bit_v2_kernel", "quantise"),
        ("void flashinfer::sampling::TopKTopPSamplingFromProbKernel", "sampling"),
        ("void verify_tree_greedy", "speculation"),
        ("void at::native::vectorized_elementwise_kernel<4>", "elementwise"),
        ("get_mla_metadata_kernel", "metadata"),
        ("zzz_unheard_of", "unattributed"),
    ],
)
def test_component(name, component):
    assert kernels.component(name).component == component


@pytest.mark.parametrize(
    ("name", "generic"), [("nvjet_sm90_tst", True), ("fused_moe_kernel", False), ("zzz_unheard_of", True)]
)
def test_a_name_that_says_what_but_not_for_whom_is_generic(name, generic):
    assert kernels.component(name).generic is generic


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step[DECODE bs=32]", ("decode", 32, None)),
        ("step[EXTEND bs=15 toks=15360]", ("prefill", 15, 15360)),
        ("step[TARGET_VERIFY bs=4]", ("verify", 4, None)),
        ("execute_context_1(888)_generation_0(0)", ("prefill", 1, 888)),
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)",
            ("decode", 32, None),
        ),
        ("decode[bs=8]", ("decode", 8, None)),
        ("ProfilerStep#6", ("step", None, None)),
    ],
)
def test_step_annotations(name, step):
    said = kernels.step(name)
    assert (said.kind, said.batch, said.tokens) == step


def test_other_annotations_are_no_steps():
    assert kernels.step("scheduler.run_batch") is None


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("nvjet_sm90_tst_64x16", "tensor"),
        ("void gemv2T_kernel_val", "cuda-core"),
        ("volta_sgemm_32x32_sliced1x4_tn", "cuda-core"),
        ("ampere_fp16_s16816gemm_fp16_64x64", "tensor"),
        ("void cublasLt::splitKreduce_kernel", "cuda-core"),
        ("zzz_unheard_of", None),
    ],
)
def test_tensor_path(name, path):
    assert kernels.path(name) == path


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("_tiled_sparse_decode_kernel", "attention"),  # SGLang, attention/flash_mla_sm120_triton.py
        ("_mxfp4_slot_gemv_kernel", "moe"),  # SGLang 0.5.13, fused_moe_triton/mxfp4_moe_sm120_triton.py
        ("_decode_score_kernel", "indexer"),  # SGLang, minimax_sparse/decode/flash_with_topk_idx.py
        ("_bias_kernel", "sampling"),  # vLLM, v1/worker/gpu/sample/logit_bias.py
        ("_gather_block_tables_kernel", "metadata"),  # vLLM, v1/worker/gpu/block_table.py
        ("_phase_check_kernel", "metadata"),
        ("fused_gdn_gating_kernel", "linear-attention"),
        ("compute_src2dst_triton_kernel", "moe"),
        ("_chunked_lora_shrink_kernel", "gemm"),
        ("void concat_mla_absorb_q_kernel(c10::BFloat16*)", "attention"),
    ],
)
def test_a_kernel_that_a_package_ships_is_placed_by_the_file_that_defines_it(name, component):
    assert kernels.component(name).component == component


def test_a_type_in_a_name_does_not_make_a_kernel_quantise():
    assert kernels.component("my_nvfp4_grouped_gemm_sm120").component == "moe"
    assert kernels.component("sm120_mxfp8_sparse_mla_decode_kernel").component != "quantise"
    assert kernels.component("cvt_fp16_to_fp4").component == "quantise"
    assert kernels.component("per_token_group_quant_fp8").component == "quantise"


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("triton_poi_fused_addmm_relu_3", "elementwise"),
        ("triton_poi_fused_add_mul_silu_0", "elementwise"),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_1", "norm"),
        ("triton_per_fused_argmax_5", "sampling"),
        ("triton_poi_fused__to_copy_clamp_float8_e4m3fn_2", "quantise"),
        ("triton_tem_fused_mm_7", "gemm"),
        ("triton_tem_fused_flex_attention_0", "attention"),
    ],
)
def test_a_compiled_kernel_is_what_it_computes_not_what_it_follows(name, component):
    assert kernels.component(name).component == component


def test_the_wrapper_of_a_class_is_read_by_the_class():
    name = "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloop> > >(P)"
    assert kernels.component(name).component == "attention"


@pytest.mark.parametrize(
    ("name", "component"),
    [
        (
            "gemm_half_q_half_gptq_4bit_kernel",
            "gemm",
        ),  # vLLM quantization/gptq: a product, whatever its folder
        ("_fwd_kernel_ep_scatter_2", "moe"),
        ("_down_gemv_kernel", "moe"),  # vLLM models/flint/ops/moe.py
        ("_sparse_mla_reduce_kernel", "attention"),
        ("_rmsnorm_expand_kernel", "norm"),
        ("expand_kernel", "speculation"),
        ("hc_combine_apply_kernel", "norm"),
        ("mul_mat_vec_q", "gemm"),
    ],
)
def test_a_folder_of_an_owner_outranks_a_generic_word_and_no_other_folder_does(name, component):
    assert kernels.component(name).component == component
