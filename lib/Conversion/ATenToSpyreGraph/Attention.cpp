// SPDX-License-Identifier: Apache-2.0
//===- Attention.cpp - Attention and the fused encoder layer ----*- C++ -*-===//

#include "ATenCall.h"
#include "Builders.h"

#include <cmath>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

static RankedTensorType logsumexpType(const ATenCall &c, Value query) {
  return RankedTensorType::get(shapeOf(query).drop_back(), c.b.getF32Type());
}

static double scaleOf(Value query, std::optional<double> scale) {
  return scale ? *scale
               : 1.0 / std::sqrt(static_cast<double>(shapeOf(query).back()));
}

static std::optional<double> optionalScale(const ATenCall &c) {
  if (!c.has("scale"))
    return std::nullopt;
  return c.number("scale");
}

/// Refuses shapes that spyre_graph.attention does not take.
static void checkAttention(const ATenCall &c, Value query, Value key,
                           Value value, Value mask) {
  c.require(rankOf(query) == 4 && rankOf(key) == 4 && rankOf(value) == 4,
            "query, key and value must have four dimensions");
  ArrayRef<int64_t> q = shapeOf(query), k = shapeOf(key), v = shapeOf(value);
  c.require(q[0] == k[0] && q[0] == v[0], "batch sizes differ");
  c.require(k[1] == v[1] && k[1] > 0 && q[1] % k[1] == 0,
            "query heads are not a multiple of key and value heads");
  c.require(k[2] == v[2] && k[3] == q[3], "shapes do not agree");
  for (Value operand : {query, key, value})
    c.require(!varies(operand, 1) && !varies(operand, 3),
              "the number of heads or their width varies");
  if (!mask)
    return;
  c.require(AttentionOp::isMaskShape(shapeOf(mask), {q[0], q[1], q[2], k[2]}),
            "the mask does not broadcast to the scores");
  c.require(AttentionOp::isMaskElementType(elementOf(mask)),
            "the mask is neither boolean nor of floats of more than 8 bits");
}

AttentionResults aten::buildAttention(const ATenCall &c, Value query, Value key,
                                      Value value, Value mask, bool causal,
                                      std::optional<double> scale,
                                      RankedTensorType type) {
  checkAttention(c, query, key, value, mask);
  auto op =
      AttentionOp::create(c.b, c.loc, type, logsumexpType(c, query), query, key,
                          value, mask, causal ? c.b.getUnitAttr() : UnitAttr(),
                          c.b.getF64FloatAttr(scaleOf(query, scale)));
  return {op.getResult(), op.getLogsumexp()};
}

static Values lowerFusedAttention(ATenCall &c) {
  c.require(c.number("dropout_p", 0.0) == 0.0, "dropout is not supported");
  c.require(!c.flag("return_debug_mask"), "there is no debug mask");
  AttentionResults attention =
      buildAttention(c, c.tensor("query"), c.tensor("key"), c.tensor("value"),
                     c.tensorOrNull("attn_bias"), c.flag("is_causal"),
                     optionalScale(c), c.type(0));
  Values values(c.numResults());
  values[0] = attention.result;
  if (c.wants(1))
    values[1] = c.cast(attention.logsumexp, c.type(1).getElementType());
  // Sequence starts and random state, which only dropout and nested tensors
  // use.
  for (unsigned i = 2; i < c.numResults(); ++i)
    if (c.wants(i))
      values[i] = c.full(c.type(i), c.immInt(0));
  return values;
}

static Value lowerAttention(ATenCall &c) {
  c.require(c.number("dropout_p", 0.0) == 0.0, "dropout is not supported");
  return buildAttention(c, c.tensor("query"), c.tensor("key"),
                        c.tensor("value"), c.tensorOrNull("attn_mask"),
                        c.flag("is_causal"), optionalScale(c), c.type())
      .result;
}

static Values lowerFusedAttentionBackward(ATenCall &c) {
  c.require(c.number("dropout_p", 0.0) == 0.0, "dropout is not supported");
  c.require(!c.wants(3), "the gradient of the attention mask is not supported");
  Value query = c.tensor("query"), key = c.tensor("key"),
        value = c.tensor("value"), mask = c.tensorOrNull("attn_bias");
  checkAttention(c, query, key, value, mask);
  auto like = [&](unsigned i, Value value) {
    return c.wants(i) ? c.type(i) : c.typeLike(value, elementOf(value));
  };
  auto op = AttentionBackwardOp::create(
      c.b, c.loc, like(0, query), like(1, key), like(2, value),
      c.tensor("grad_out"), query, key, value, c.tensor("out"),
      c.cast(c.tensor("logsumexp"), c.b.getF32Type()), mask,
      c.flag("is_causal") ? c.b.getUnitAttr() : UnitAttr(),
      c.b.getF64FloatAttr(scaleOf(query, optionalScale(c))));
  return {op.getGradQuery(), op.getGradKey(), op.getGradValue(), nullptr};
}

//===----------------------------------------------------------------------===//
// nn.TransformerEncoderLayer's fused path
//===----------------------------------------------------------------------===//

namespace {
/// The layer on src [batch, time, width].
class EncoderLayer {
public:
  explicit EncoderLayer(ATenCall &c)
      : c(c), source(c.tensor("src")), heads(c.integer("num_heads")) {
    c.require(rankOf(source) == 3, "the input must have three dimensions");
    c.require(heads > 0 && shapeOf(source)[2] % heads == 0,
              "the width must be a multiple of the number of heads");
  }

  Value build() {
    bool normFirst = c.flag("norm_first");
    Value x = source;
    Value attended = attention(normFirst ? norm(x, "1") : x);
    x = add(x, attended);
    if (!normFirst)
      x = norm(x, "1");
    Value fed = feedForward(normFirst ? norm(x, "2") : x);
    x = add(x, fed);
    return normFirst ? x : norm(x, "2");
  }

private:
  Value add(Value x, Value y) {
    return c.pointwise<AddOp>(typeOf(source), {x, y});
  }

  Value norm(Value x, const char *which) {
    return buildLayerNorm(c, x, c.tensor(std::string("norm_weight_") + which),
                          c.tensor(std::string("norm_bias_") + which), 1,
                          c.number("eps"), c.typeLike(x, elementOf(x)))
        .result;
  }

  Value linear(Value x, Value weight, Value bias) {
    SmallVector<int64_t> shape(shapeOf(x));
    shape.back() = shapeOf(weight)[0];
    return buildLinear(c, x, weight, bias,
                       RankedTensorType::get(shape, elementOf(x)));
  }

  /// A mask [..., time, time] as attention takes it, or null: true where a key
  /// is seen, or what is added to the scores.
  Value attentionMask() {
    Value mask = c.tensorOrNull("mask");
    if (!mask)
      return nullptr;
    // The fused operator's boolean mask is true where nothing is attended.
    mask = isBool(elementOf(mask)) ? c.pointwise<NotOp>(typeOf(mask), {mask})
                                   : c.cast(mask, elementOf(source));
    int64_t kind = c.integer("mask_type", 0);
    if (kind != 1)
      return mask;
    // Padding: [batch, time].
    c.require(rankOf(mask) == 2, "a padding mask must be a matrix");
    AffineMap map =
        AffineMap::get(4, 0, {c.b.getAffineDimExpr(0), c.b.getAffineDimExpr(3)},
                       c.b.getContext());
    return c.view(mask, map, {shapeOf(mask)[0], 1, 1, shapeOf(mask)[1]});
  }

  Value attention(Value x) {
    int64_t batch = shapeOf(x)[0], time = shapeOf(x)[1], width = shapeOf(x)[2];
    int64_t headSize = width / heads;
    Value qkv = linear(x, c.tensor("qkv_weight"), c.tensor("qkv_bias"));
    MLIRContext *context = c.b.getContext();
    AffineExpr d0 = c.b.getAffineDimExpr(0), d1 = c.b.getAffineDimExpr(1),
               d2 = c.b.getAffineDimExpr(2), d3 = c.b.getAffineDimExpr(3);
    auto part = [&](int64_t which) {
      AffineMap map = AffineMap::get(
          4, 0, {d0, d2, d1 * headSize + d3 + which * width}, context);
      return c.view(qkv, map, {batch, heads, time, headSize});
    };
    auto type =
        RankedTensorType::get({batch, heads, time, headSize}, elementOf(x));
    Value attended = buildAttention(c, part(0), part(1), part(2),
                                    attentionMask(), false, std::nullopt, type)
                         .result;
    AffineMap merge = AffineMap::get(
        3, 0, {d0, d2.floorDiv(headSize), d1, d2 % headSize}, context);
    Value merged = c.view(attended, merge, shapeOf(x));
    return linear(merged, c.tensor("proj_weight"), c.tensor("proj_bias"));
  }

  Value feedForward(Value x) {
    Value hidden = linear(x, c.tensor("ffn_weight_1"), c.tensor("ffn_bias_1"));
    hidden = c.flag("use_gelu") ? c.pointwise<GeluOp>(typeOf(hidden), {hidden})
                                : c.pointwise<ReluOp>(typeOf(hidden), {hidden});
    return linear(hidden, c.tensor("ffn_weight_2"), c.tensor("ffn_bias_2"));
  }

  ATenCall &c;
  Value source;
  int64_t heads;
};
} // namespace

void aten::addAttentionRows(ATenTable &table) {
  {
    ATenTable::ForAnySize rows(table);
    table.addMany({"aten._scaled_dot_product_fused_attention_overrideable."
                   "default"},
                  "query key value attn_bias dropout_p is_causal "
                  "return_debug_mask scale",
                  lowerFusedAttention);
    table.add({"aten.scaled_dot_product_attention.default"},
              "query key value attn_mask dropout_p is_causal scale enable_gqa",
              lowerAttention);
  }
  table.addMany({"aten._scaled_dot_product_fused_attention_overrideable_"
                 "backward.default"},
                "grad_out query key value attn_bias grad_input_mask out "
                "logsumexp cum_seq_q cum_seq_k max_q max_k dropout_p is_causal "
                "philox_seed philox_offset scale",
                lowerFusedAttentionBackward);
  table.add({"aten._transformer_encoder_layer_fwd.default"},
            "src embed_dim num_heads qkv_weight qkv_bias proj_weight proj_bias "
            "use_gelu norm_first eps norm_weight_1 norm_bias_1 norm_weight_2 "
            "norm_bias_2 ffn_weight_1 ffn_bias_1 ffn_weight_2 ffn_bias_2 mask "
            "mask_type",
            [](ATenCall &c) { return EncoderLayer(c).build(); });
}
