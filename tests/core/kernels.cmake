quantd_core_test(kernels
  kernels_bins_test.cc
  kernels_convert_test.cc
  kernels_dequantize_test.cc
  kernels_dispatch_test.cc
  kernels_embed_test.cc
  kernels_errors_test.cc kernels_layouts_test.cc
  kernels_quantize_test.cc
  kernels_range_test.cc
  kernels_read_elements_test.cc
  kernels_scale_columns_test.cc)

# Has a flag --exhaustive: every scale and every tie, 16 s on two cores.
quantd_core_test(quotient quotient_test.cc significands.cc)

# The same for embeddings.
quantd_core_test(embed_quotient embed_quotient_test.cc significands.cc)
