//! A validated voice and a stage's plan in, a serialised ONNX model out.
//!
//! Each stage of the pipeline has one file here that reads like the network it builds. Linear maps and
//! convolutions run in the plan's activation dtype with weights written in the plan's weight dtype; the
//! residual stream and the sensitive operations (softmax, layer norm, masks, speaker norm, stop logits)
//! stay f32. Input and output names are constants of the stage that binds them.
//!
//! Never runs a graph, and never decides a dtype: the plan does.

pub mod decoder;
pub mod encoder;
pub mod hifigan;
mod layers;
pub mod postnet;
pub mod vocos;

use std::collections::HashMap;

use prost::Message;

use crate::error::{Error, Result};
use crate::precision::{Dtype, StagePlan, cast};
use crate::voice::checkpoint::Checkpoint;

mod onnx {
    include!(concat!(env!("OUT_DIR"), "/onnx.rs"));
}

use onnx::attribute_proto::AttributeType;
use onnx::tensor_proto::DataType;

/// Operator set 21 is the newest that every ONNX Runtime from 1.20 on implements; IR 10 goes with it.
const ONNX_OPSET: i64 = 21;
const ONNX_IR: i64 = 10;

/// A dimension of a graph input or output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dim {
    Fixed(usize),
    Free(&'static str),
}

/// The name of a tensor inside the graph under construction.
#[derive(Debug, Clone)]
pub(crate) struct Value(String);

impl Value {
    /// An optional operator input that is left out.
    fn none() -> Self {
        Self(String::new())
    }
}

/// An operator attribute.
pub(crate) enum Attribute<'a> {
    Int(i64),
    Float(f32),
    Ints(&'a [i64]),
}

/// A graph under construction over the tensors of one checkpoint.
pub(crate) struct Builder<'a> {
    checkpoint: &'a Checkpoint,
    plan: StagePlan,
    graph: onnx::GraphProto,
    /// What the values that leave the graph are called outside.
    output_names: HashMap<String, String>,
}

impl<'a> Builder<'a> {
    pub fn new(name: &str, checkpoint: &'a Checkpoint, plan: StagePlan) -> Self {
        let graph = onnx::GraphProto { name: name.to_owned(), ..Default::default() };
        Self { checkpoint, plan, graph, output_names: HashMap::new() }
    }

    pub fn input(&mut self, name: &str, dtype: Dtype, dims: &[Dim]) -> Result<Value> {
        self.graph.input.push(value_info(name, dtype, dims)?);
        Ok(Value(name.to_owned()))
    }

    /// Makes `value` an output of the graph under the name `name`.
    pub fn output(&mut self, name: &str, value: &Value, dtype: Dtype, dims: &[Dim]) -> Result<()> {
        self.output_names.insert(value.0.clone(), name.to_owned());
        self.graph.output.push(value_info(name, dtype, dims)?);
        Ok(())
    }

    /// A node of the standard operator set with one output.
    pub fn op(&mut self, op_type: &str, inputs: &[&Value], attributes: &[(&str, Attribute)]) -> Value {
        self.node("", op_type, inputs, attributes, 1).remove(0)
    }

    /// A node of ONNX Runtime's own fused operators.
    pub fn fused(
        &mut self,
        op_type: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute)],
        outputs: usize,
    ) -> Vec<Value> {
        self.node("com.microsoft", op_type, inputs, attributes, outputs)
    }

    fn node(
        &mut self,
        domain: &str,
        op_type: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute)],
        outputs: usize,
    ) -> Vec<Value> {
        let name = format!("{op_type}_{}", self.graph.node.len());
        let outputs: Vec<Value> = (0..outputs).map(|i| Value(format!("{name}.{i}"))).collect();
        self.graph.node.push(onnx::NodeProto {
            input: inputs.iter().map(|value| value.0.clone()).collect(),
            output: outputs.iter().map(|value| value.0.clone()).collect(),
            name,
            op_type: op_type.to_owned(),
            attribute: attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
            domain: domain.to_owned(),
        });
        outputs
    }

    /// The values of a checkpoint tensor, widened to f32.
    pub fn values(&self, tensor: &str) -> Result<Vec<f32>> {
        self.checkpoint.f32(tensor)
    }

    /// A weight of a linear map or convolution: written in the dtype that was asked for, used in the one that
    /// the device multiplies in. Where the two differ the runtime widens it once, when it loads the graph.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when a weight is too large for the dtype that was asked for.
    pub fn weight(&mut self, values: &[f32], shape: &[usize]) -> Result<Value> {
        let (written, used) = (self.plan.requested.weights, self.plan.executed.activations);
        if written == Dtype::F16
            && let Some(value) = values.iter().find(|&&value| cast::f32_to_f16(value).is_infinite())
        {
            let reason = "of this voice is beyond f16's largest value, 65504; ask for bf16 or 32";
            return Err(Error::InvalidRequest(format!("a weight of {value} {reason}")));
        }
        let weight = self.initializer(cast::from_f32(values, written)?, written, shape)?;
        self.between(&weight, written, used)
    }

    /// A constant that stays f32 in every plan: norms, positions, speaker projection.
    pub fn constant(&mut self, values: &[f32], shape: &[usize]) -> Result<Value> {
        self.initializer(cast::from_f32(values, Dtype::F32)?, Dtype::F32, shape)
    }

    pub fn integers(&mut self, values: &[i64], shape: &[usize]) -> Result<Value> {
        self.initializer(values.iter().flat_map(|v| v.to_le_bytes()).collect(), Dtype::I64, shape)
    }

    fn initializer(&mut self, raw_data: Vec<u8>, dtype: Dtype, shape: &[usize]) -> Result<Value> {
        let name = format!("weight_{}", self.graph.initializer.len());
        self.graph.initializer.push(onnx::TensorProto {
            dims: shape.iter().map(|&d| d as i64).collect(),
            data_type: element_type(dtype)?,
            name: name.clone(),
            raw_data,
        });
        Ok(Value(name))
    }

    /// `value`, an f32 tensor, as an operand of a heavy operation.
    pub fn narrowed(&mut self, value: &Value) -> Result<Value> {
        self.between(value, Dtype::F32, self.plan.executed.activations)
    }

    /// `value`, the result of a heavy operation, as f32.
    pub fn widened(&mut self, value: &Value) -> Result<Value> {
        self.between(value, self.plan.executed.activations, Dtype::F32)
    }

    /// `value`, the result of a heavy operation, in the dtype of the KV cache.
    pub fn cached(&mut self, value: &Value) -> Result<Value> {
        self.between(value, self.plan.executed.activations, self.plan.executed.kv_cache)
    }

    /// `value`, what an attention over the cache gave, as the operand of a heavy operation.
    pub fn uncached(&mut self, value: &Value) -> Result<Value> {
        self.between(value, self.plan.executed.kv_cache, self.plan.executed.activations)
    }

    fn between(&mut self, value: &Value, from: Dtype, to: Dtype) -> Result<Value> {
        if from == to {
            return Ok(value.clone());
        }
        let to = i64::from(element_type(to)?);
        Ok(self.op("Cast", &[value], &[("to", Attribute::Int(to))]))
    }

    /// The dtype of the keys and values that cross this graph's border.
    pub fn kv_cache(&self) -> Dtype {
        self.plan.executed.kv_cache
    }

    /// The finished model, serialised.
    pub fn finish(mut self) -> Vec<u8> {
        for node in &mut self.graph.node {
            for used in node.input.iter_mut().chain(&mut node.output) {
                if let Some(name) = self.output_names.get(used) {
                    name.clone_into(used);
                }
            }
        }
        let opset = |domain: &str, version| onnx::OperatorSetIdProto { domain: domain.to_owned(), version };
        let model = onnx::ModelProto {
            ir_version: ONNX_IR,
            producer_name: "mezzavoce".to_owned(),
            graph: Some(self.graph),
            opset_import: vec![opset("", ONNX_OPSET), opset("com.microsoft", 1)],
        };
        model.encode_to_vec()
    }
}

fn value_info(name: &str, dtype: Dtype, dims: &[Dim]) -> Result<onnx::ValueInfoProto> {
    use onnx::tensor_shape_proto::{Dimension, dimension};
    let dim = |dim: &Dim| {
        let value = match dim {
            Dim::Fixed(size) => dimension::Value::DimValue(*size as i64),
            Dim::Free(name) => dimension::Value::DimParam((*name).to_owned()),
        };
        Dimension { value: Some(value) }
    };
    let shape = onnx::TensorShapeProto { dim: dims.iter().map(dim).collect() };
    let tensor = onnx::type_proto::Tensor { elem_type: element_type(dtype)?, shape: Some(shape) };
    let value = Some(onnx::type_proto::Value::TensorType(tensor));
    Ok(onnx::ValueInfoProto { name: name.to_owned(), r#type: Some(onnx::TypeProto { value }) })
}

fn attribute(name: &str, value: &Attribute) -> onnx::AttributeProto {
    let mut proto = onnx::AttributeProto { name: name.to_owned(), ..Default::default() };
    let kind = match value {
        Attribute::Int(i) => {
            proto.i = *i;
            AttributeType::Int
        }
        Attribute::Float(f) => {
            proto.f = *f;
            AttributeType::Float
        }
        Attribute::Ints(ints) => {
            proto.ints = ints.to_vec();
            AttributeType::Ints
        }
    };
    proto.set_type(kind);
    proto
}

fn element_type(dtype: Dtype) -> Result<i32> {
    let data_type = match dtype {
        Dtype::F64 => DataType::Double,
        Dtype::F32 => DataType::Float,
        Dtype::F16 => DataType::Float16,
        Dtype::BF16 => DataType::Bfloat16,
        Dtype::E4M3 => DataType::Float8e4m3fn,
        Dtype::E5M2 => DataType::Float8e5m2,
        Dtype::I64 => DataType::Int64,
        Dtype::I32 => DataType::Int32,
        Dtype::I16 => DataType::Int16,
        Dtype::I8 => DataType::Int8,
        Dtype::U8 => DataType::Uint8,
        Dtype::Bool => DataType::Bool,
        Dtype::C64 => return Err(Error::Internal("no graph takes complex tensors".to_owned())),
    };
    Ok(data_type as i32)
}
