"""What a picture says of one cause: one question a file, each a pure function of the picture, worked out once.

Step
  accounting           accounting              the step by part, with floor and typical time
                       largest_excess          the part above its typical time by most
                       speculates              whether a step works for more than one token a request
Batch
  batch_limit          running_limit           what keeps the running batch below the load
                       enough_context          a configured context with room over the live one
  flat_rate            flat_rate               a rate that no further request raises
  speculation          tokens_a_step           tokens that a request gets in a step
                       wasted                  whether speculation brings next to nothing
Prompts
  others_prompts       others_prompts          prompts that other clients send beside the load
  cached_prompts       cached_share            share of the prompts that came from the prefix cache
  recompute            prompt_floor_ms         least time of a prompt of some length
                       own_prompt_floor_ms     least time of the load's mean prompt
                       repeated_by_loop        share of the time spent on retracted requests again
  stretched_prompts    stretches_prompts       a cause in a decode trace that slows prefill too
Host
  host                 graph_use               decode passes with and without CUDA graphs
                       beyond_graphs           whether the batch exceeds the largest CUDA graph
                       beside_prompt           tokens of a mixed batch of one prompt and the load
                       prompts_beyond_graphs   tokens of a mixed batch that runs eagerly
                       traced_eager            whether the traced step ran eagerly
                       gpu_busy                busy share of the GPU and its instrument
                       gpu_busy_share          busy share of the GPU by unprofiled samples
                       idles_in_decode         whether the GPU idles inside decode steps
                       idles_beside_prompts    whether eager mixed batches explain the idle time
  host_memory          offloaded_weights       weights that cross the link from the host in each step
  front_end            both_sides              each load by client and by engine
Kernels
  kernel_paths         component_floor_ms      least time of a component at the traced batch
                       weights_floor_ms        least time to read all weights
  traced_floors        part_floors             least time of each part of the traced step
                       peaks                   FLOP/s of the types that the model multiplies in
  tensor_pipe          tensor_reading          tensor pipe activity, measured and expected
                       tensor_statement        the two in a sentence
  trace_integrity      trace_integrity         whether the trace can carry conclusions
Context
  context_law          law_at_load             how the step grows with live context
                       cache_at_load           how fast the KV cache is read beside the weights
                       cache_at_most           upper bound on what reading the KV cache costs
  per_request_excess   per_request_cost        cost of a request in a step beside what its bytes need
                       capacity_explains       whether the configured context may make that cost
GPUs
  communication        communication           exchange in the traced step, moving and waiting
                       world                   GPUs that exchange data in a step
                       collective_floor_us     usual time of one all-reduce
                       slow_exchange_share     share of the step that exchange takes too long
                       late_rank_share         share of the step that ranks wait for the last one
  sm_clocks            clocks                  SM clock of the slowest GPU under load
"""
