//! What the pickle of a state dict says through its globals: storages, tensors on them, and their names.
//!
//! Never looks at a byte of the pickle itself.

use std::collections::BTreeMap;

use super::{Machine, Placed, Storage, Value};
use crate::voice::allow_list::Global;
use crate::voice::bounds::Checked;

const MAX_NAME_BYTES: usize = 1024;
const MAX_KEY_BYTES: usize = 32;
const MAX_RANK: usize = 8;

impl<'a> Machine<'a> {
    fn tuple(&self, value: Value) -> Option<&[Value<'a>]> {
        let Value::Tuple(index) = value else { return None };
        self.tuples.get(index).map(Vec::as_slice)
    }

    /// `("storage", type, key, device, elements)`: the device is of no concern here.
    pub(super) fn persistent_id(&mut self) -> Checked {
        let id = self.pop()?;
        let Some(
            &[
                Value::Text("storage"),
                Value::Global(Global::StorageType(dtype)),
                Value::Text(key),
                Value::Text(_),
                Value::Int(elements),
            ],
        ) = self.tuple(id)
        else {
            return Err("a persistent id is not that of a storage".into());
        };
        if key.len() > MAX_KEY_BYTES {
            return Err(format!("a storage's key has {} bytes", key.len()));
        }
        let elements = usize::try_from(elements).map_err(|_| format!("a storage of {elements} elements"))?;
        self.storages.push(Storage { key: key.into(), dtype, elements });
        self.stack.push(Value::Storage(self.storages.len() - 1));
        Ok(())
    }

    pub(super) fn reduce(&mut self) -> Checked {
        let (arguments, callee) = (self.pop()?, self.pop()?);
        let Value::Global(callee) = callee else {
            return Err("REDUCE calls something that is not a global: refused".into());
        };
        let arguments = self.tuple(arguments).ok_or("REDUCE without a tuple of arguments")?;
        let value = match (callee, arguments) {
            (Global::OrderedDict, []) => Value::OrderedDict(self.new_dict()),
            (
                Global::RebuildTensor,
                &[Value::Storage(storage), Value::Int(offset), shape, strides, Value::Bool, _hooks, ..],
            ) => {
                let storage = self.storages.get(storage).ok_or("a storage is missing")?.clone();
                let offset = usize::try_from(offset).map_err(|_| format!("a storage offset of {offset}"))?;
                let (shape, strides) = (self.sizes(shape)?, self.sizes(strides)?);
                if shape.len() != strides.len() {
                    return Err(format!("shape {shape:?} and strides {strides:?} differ in rank"));
                }
                self.tensors.push(Placed { storage, offset, shape, strides });
                Value::Tensor(self.tensors.len() - 1)
            }
            (Global::RebuildParameter, &[tensor @ Value::Tensor(_), Value::Bool, _hooks]) => tensor,
            _ => return Err(format!("REDUCE of {callee:?} with arguments that it does not take: refused")),
        };
        self.stack.push(value);
        Ok(())
    }

    fn sizes(&self, value: Value) -> Checked<Vec<usize>> {
        let sizes = self.tuple(value).ok_or("a shape is not a tuple")?;
        if sizes.len() > MAX_RANK {
            return Err(format!("a tensor of {} dimensions is above the limit of {MAX_RANK}", sizes.len()));
        }
        let size = |value: &Value| match *value {
            Value::Int(size) => usize::try_from(size).map_err(|_| format!("a size or stride of {size}")),
            _ => Err("a size is not an integer".into()),
        };
        sizes.iter().map(size).collect()
    }

    /// Only a state dict's `_metadata` is set this way; it holds versions, which nobody needs here.
    pub(super) fn build(&mut self) -> Checked {
        let (state, object) = (self.pop()?, self.pop()?);
        let (Value::Dict(state), Value::OrderedDict(_)) = (state, object) else {
            return Err("BUILD on something other than an OrderedDict: refused".into());
        };
        let state = self.dicts.get(state).ok_or("a dict is missing")?;
        if !state.iter().all(|(key, _)| matches!(key, Value::Text("_metadata"))) {
            return Err("BUILD sets something other than `_metadata`: refused".into());
        }
        self.stack.push(object);
        Ok(())
    }

    pub(super) fn named_tensors(&self, root: Value) -> Checked<BTreeMap<String, Placed>> {
        let (Value::Dict(root) | Value::OrderedDict(root)) = root else {
            return Err("the pickle is not a dict of tensors".into());
        };
        let mut tensors = BTreeMap::new();
        for (key, value) in self.dicts.get(root).ok_or("a dict is missing")? {
            let Value::Text(name) = key else { return Err("a tensor's name is not a string".into()) };
            if name.len() > MAX_NAME_BYTES {
                return Err(format!("a tensor's name has {} bytes", name.len()));
            }
            let Value::Tensor(tensor) = *value else {
                return Err(format!("`{name}` is not a tensor: the file is not a plain state dict"));
            };
            let tensor = self.tensors.get(tensor).ok_or("a tensor is missing")?.clone();
            if tensors.insert(name.to_string(), tensor).is_some() {
                return Err(format!("`{name}` occurs twice"));
            }
        }
        Ok(tensors)
    }
}
