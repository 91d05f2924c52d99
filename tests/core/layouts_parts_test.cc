// PlanWeight and WeightParts: the parts of every layout, and the text of every error.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "layouts/constants.h"
#include "quantd/field_error.h"
#include "quantd/layout.h"

namespace quantd {
namespace {

std::string Parts(absl::string_view layout, const Shape& shape,
                  DataType type = DataType::kBfloat16) {
  const LayoutInfo* info = FindLayout(layout);
  if (info == nullptr) return "no such layout";
  const absl::StatusOr<WeightPlan> plan =
      PlanWeight({.layout = info->layout, .type = type, .shape = shape});
  if (!plan.ok()) return std::string(plan.status().message());
  std::string text;
  for (const LayoutPart& part : WeightParts(*plan)) {
    absl::StrAppend(&text, text.empty() ? "" : " ", PartName("w", part), ":", part.dtype,
                    ShapeString(part.shape), "=", part.bytes);
  }
  return text;
}

TEST(Layouts, TableAndNames) {
  int encoding = 0;
  for (const LayoutInfo& info : AllLayouts()) {
    EXPECT_EQ(FindLayout(info.name), &info);
    EXPECT_EQ(&Info(info.layout), &info);
    EXPECT_EQ(info.family == LayoutFamily::kGguf, info.ggml_type >= 0);
    if (info.ggml_type >= 0) {
      EXPECT_EQ(FindGgmlType(info.ggml_type), &info);
    }
    encoding += info.encodes;
  }
  EXPECT_EQ(encoding, 26);  // gguf:f32 among them
  EXPECT_EQ(FindLayout("int8"), nullptr);
  EXPECT_EQ(FindGgmlType(-1), nullptr);
  EXPECT_EQ(FindGgmlType(9), nullptr);
}

TEST(Layouts, PartsOfEach) {
  const Shape shape = {130, 256};
  EXPECT_EQ(Parts("fp8-tiles", shape), "w:F8_E4M3[130, 256]=33280 w_scale_inv:F32[2, 2]=16");
  EXPECT_EQ(Parts("fp8-tiles", {1, 129}), "w:F8_E4M3[1, 129]=129 w_scale_inv:F32[1, 2]=8");
  EXPECT_EQ(Parts("compressed-tensors:int8", shape),
            "w:I8[130, 256]=33280 w_scale:BF16[130, 1]=260");
  EXPECT_EQ(Parts("compressed-tensors:int8-tensor", shape, DataType::kFloat),
            "w:I8[130, 256]=33280 w_scale:F32[1]=4");
  EXPECT_EQ(Parts("compressed-tensors:int4-g128", shape),
            "w_packed:I32[130, 32]=16640 w_scale:BF16[130, 2]=520 w_shape:I64[2]=16");
  EXPECT_EQ(Parts("compressed-tensors:int4-g32-asym", shape, DataType::kFloat16),
            "w_packed:I32[130, 32]=16640 w_scale:F16[130, 8]=2080 w_zero_point:I32[17, 8]=544 "
            "w_shape:I64[2]=16");
  EXPECT_EQ(Parts("compressed-tensors:fp8", shape),
            "w:F8_E4M3[130, 256]=33280 w_scale:BF16[130, 1]=260");
  EXPECT_EQ(Parts("compressed-tensors:fp8-tensor", shape),
            "w:F8_E4M3[130, 256]=33280 w_scale:BF16[1]=2");
  EXPECT_EQ(Parts("compressed-tensors:fp8-block", shape),
            "w:F8_E4M3[130, 256]=33280 w_scale:BF16[2, 2]=8");
  EXPECT_EQ(Parts("compressed-tensors:nvfp4", shape),
            "w_packed:U8[130, 128]=16640 w_scale:F8_E4M3[130, 16]=2080 w_global_scale:F32[1]=4");
  EXPECT_EQ(Parts("compressed-tensors:mxfp4", shape),
            "w_packed:U8[130, 128]=16640 w_scale:U8[130, 8]=1040");
  EXPECT_EQ(Parts("gguf:f16", {3, 5}), "w:F16[3, 5]=30");
  EXPECT_EQ(Parts("gguf:f32", {7}), "w:F32[7]=28");
  EXPECT_EQ(Parts("gguf:f32", {}), "w:F32[]=4");
  EXPECT_EQ(Parts("gguf:f32", {0, 7}), "w:F32[0, 7]=0");
  EXPECT_EQ(Parts("gguf:q8_0", shape), "w:Q8_0[130, 256]=35360");
  EXPECT_EQ(Parts("gguf:q4_0", {2, 3, 64}), "w:Q4_0[2, 3, 64]=216");
  EXPECT_EQ(Parts("gguf:mxfp4", shape), "w:MXFP4[130, 256]=17680");
  EXPECT_EQ(Parts("gguf:q6_k", shape), "w:Q6_K[130, 256]=27300");
  EXPECT_EQ(Parts("bnb:nf4", {5, 13}),
            "w:U8[33, 1]=33 w.absmax:F32[2]=8 w.quant_map:F32[16]=64 "
            "w.quant_state.bitsandbytes__nf4:U8[77]=77");
  EXPECT_EQ(Parts("bnb:fp4-double", shape),
            "w:U8[16640, 1]=16640 w.absmax:U8[520]=520 w.quant_map:F32[16]=64 "
            "w.nested_absmax:F32[3]=12 w.nested_quant_map:F32[256]=1024 "
            "w.quant_state.bitsandbytes__fp4:U8[154]=154");
  EXPECT_EQ(Parts("bnb:int8", shape), "w:I8[130, 256]=33280 w.SCB:F32[130]=520 w_format:U8[]=1");
}

TEST(Layouts, Errors) {
  EXPECT_EQ(Parts("compressed-tensors:int8", {4, 4}, DataType::kInt8),
            "type is INT8, layouts are made of FLOAT, FLOAT16 and BFLOAT16");
  EXPECT_EQ(Parts("compressed-tensors:int8", {4}),
            "shape [4] has 1 dimensions, compressed-tensors:int8 takes 2");
  EXPECT_EQ(Parts("bnb:int8", {4, 4, 4}), "shape [4, 4, 4] has 3 dimensions, bnb:int8 takes 2");
  EXPECT_EQ(Parts("fp8-tiles", {0, 4}), "shape [0, 4] has 0 elements, fp8-tiles takes 1 or more");
  EXPECT_EQ(Parts("gguf:q4_0", {0, 32}), "shape [0, 32] has 0 elements, gguf:q4_0 takes 1 or more");
  EXPECT_EQ(Parts("gguf:q4_0", {}), "shape [] has 1 columns, no multiple of 32 as gguf:q4_0 needs");
  EXPECT_EQ(Parts("compressed-tensors:int4-g128", {4, 64}),
            "shape [4, 64] has 64 columns, no multiple of 128 as compressed-tensors:int4-g128 "
            "needs");
  EXPECT_EQ(Parts("gguf:q6_k", {4, 128}),
            "shape [4, 128] has 128 columns, no multiple of 256 as gguf:q6_k needs");
  EXPECT_EQ(Parts("bnb:nf4", {int64_t{1} << 30, int64_t{1} << 30}),
            "shape [1073741824, 1073741824] has 1152921504606846976 elements, at most 2^59 are "
            "supported");
  const absl::Status status =
      PlanWeight({.layout = Layout::kInt8, .type = DataType::kFloat, .shape = {1}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorField(status), "shape");
}

TEST(Layouts, PartNames) {
  const LayoutPart scale = {"_scale", "F32", {}, 0};
  const LayoutPart scb = {".SCB", "F32", {}, 0};
  EXPECT_EQ(PartName("m.weight", scale), "m.weight_scale");
  EXPECT_EQ(PartName("m.weight", scb), "m.SCB");
  EXPECT_EQ(PartName("weight", scb), "SCB");
  EXPECT_EQ(PartName("m.my_weight", scb), "m.my_weight.SCB");
}

TEST(Layouts, QuantState) {
  WeightPlan plan;
  plan.layout = Layout::kBnbNf4;
  plan.type = DataType::kBfloat16;
  plan.shape = {64, 64};
  EXPECT_EQ(QuantStateText(plan, {}),
            R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [64, 64]})");
  plan.layout = Layout::kBnbFp4Double;
  plan.type = DataType::kFloat;
  plan.shape = {7};
  EXPECT_EQ(QuantStateText(plan, {.offset = 2.7139892578125f}),
            R"({"quant_type": "fp4", "blocksize": 64, "dtype": "float32", "shape": [7], )"
            R"("nested_blocksize": 256, "nested_dtype": "float32", )"
            R"("nested_offset": 2.7139892578125})");
}

TEST(Layouts, NestedCodes) {
  const std::array<float, 256> map = rules::MakeNestedMap();
  const auto& codes = NestedCodes();
  for (int step = 0; step < rules::kNestedSteps; ++step) {
    ASSERT_EQ(codes[static_cast<size_t>(step)], rules::NestedCode(map, step)) << step;
  }
  EXPECT_EQ(rules::NestedStep(-3, 3), 0);
  EXPECT_EQ(rules::NestedStep(0, 3), 32768);
  EXPECT_EQ(rules::NestedStep(3, 3), 65535);
  EXPECT_EQ(rules::NestedStep(0, 0x1p-140f), 0);
  EXPECT_EQ(rules::NestedStep(0x1p-141f, 0x1p-140f), 65535);
}

// What Python's repr() prints.
TEST(Layouts, PythonFloats) {
  EXPECT_EQ(PythonFloat(0), "0.0");
  EXPECT_EQ(PythonFloat(-0.0), "-0.0");
  EXPECT_EQ(PythonFloat(1), "1.0");
  EXPECT_EQ(PythonFloat(10), "10.0");
  EXPECT_EQ(PythonFloat(1e-4), "0.0001");
  EXPECT_EQ(PythonFloat(-1.5e-4), "-0.00015");
  EXPECT_EQ(PythonFloat(9e-5), "9e-05");
  EXPECT_EQ(PythonFloat(1.25e-7), "1.25e-07");
  EXPECT_EQ(PythonFloat(123456.75), "123456.75");
  EXPECT_EQ(PythonFloat(1e15), "1000000000000000.0");
  EXPECT_EQ(PythonFloat(1e16), "1e+16");
  EXPECT_EQ(PythonFloat(static_cast<double>(0.1f)), "0.10000000149011612");
  EXPECT_EQ(PythonFloat(static_cast<double>(0x1.fffffep127f)), "3.4028234663852886e+38");
}

}  // namespace
}  // namespace quantd
