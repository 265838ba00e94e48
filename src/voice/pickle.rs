//! The pickle of a torch state dict in, the place of every tensor in its storages out.
//!
//! A stack machine over the opcodes that `torch.save` writes for named tensors. What a pickle may ask for is
//! on a list of names; whatever is not on it is refused by its name, and nothing a pickle names is ever run.
//! Opcodes: `pickletools` of the Python library, protocols 2 to 5. Tensors: `torch/_utils.py`.
//!
//! Values are handles into tables, so memory grows with the length of the pickle alone, and a value that
//! contains itself is no trap.

use std::collections::{BTreeMap, HashMap};

use super::allow_list::{Global, opcode, opcode_name};
use super::bounds::Checked;
use crate::precision::Dtype;

/// SpeechT5's own has about 60 kB. A hostile one can grow to some fifty times its length in memory.
pub const MAX_PICKLE_BYTES: usize = 2 << 20;
const MAX_NAME_BYTES: usize = 1024;
const MAX_KEY_BYTES: usize = 32;
const MAX_RANK: usize = 8;

/// A tensor as a window on a storage; counts are in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub storage: Storage,
    pub offset: usize,
    pub shape: Vec<usize>,
    pub strides: Vec<usize>,
}

/// `data/<key>` of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    pub key: String,
    pub dtype: Dtype,
    pub elements: usize,
}

/// Reads `data.pkl`.
///
/// # Errors
/// The opcode or global that is not on the list, or what about the tensors does not hold.
pub fn state_dict(pickle: &[u8]) -> Checked<BTreeMap<String, Placed>> {
    if pickle.len() > MAX_PICKLE_BYTES {
        return Err(format!("pickle of {} bytes is above the limit of {MAX_PICKLE_BYTES}", pickle.len()));
    }
    let mut machine = Machine { input: pickle, ..Machine::default() };
    let root = machine.run()?;
    machine.named_tensors(root)
}

/// Handles index the tables of [`Machine`].
#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    None,
    Bool,
    Int(i64),
    Text(&'a str),
    Tuple(usize),
    Dict(usize),
    OrderedDict(usize),
    Global(Global),
    Storage(usize),
    Tensor(usize),
}

#[derive(Default)]
struct Machine<'a> {
    input: &'a [u8],
    at: usize,
    stack: Vec<Value<'a>>,
    marks: Vec<usize>,
    memo: HashMap<u32, Value<'a>>,
    tuples: Vec<Vec<Value<'a>>>,
    dicts: Vec<Vec<(Value<'a>, Value<'a>)>>,
    storages: Vec<Storage>,
    tensors: Vec<Placed>,
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Checked<Value<'a>> {
        loop {
            let start = self.at;
            let [code] = self.bytes()?;
            match code {
                opcode::STOP => return self.pop(),
                _ => self.step(code).map_err(|reason| format!("{reason} (at byte {start} of data.pkl)"))?,
            }
        }
    }

    fn step(&mut self, code: u8) -> Checked {
        match code {
            opcode::PROTO => match self.bytes()? {
                [2..=5] => {}
                [version] => return Err(format!("pickle protocol {version} is not 2 to 5")),
            },
            opcode::FRAME => drop(self.bytes::<8>()?),
            opcode::MARK => self.marks.push(self.stack.len()),
            opcode::NONE => self.stack.push(Value::None),
            opcode::NEWTRUE | opcode::NEWFALSE => self.stack.push(Value::Bool),
            opcode::BININT1 => {
                let [byte] = self.bytes()?;
                self.stack.push(Value::Int(byte.into()));
            }
            opcode::BININT2 => {
                let bytes = self.bytes()?;
                self.stack.push(Value::Int(u16::from_le_bytes(bytes).into()));
            }
            opcode::BININT => {
                let bytes = self.bytes()?;
                self.stack.push(Value::Int(i32::from_le_bytes(bytes).into()));
            }
            opcode::LONG1 => self.long()?,
            opcode::SHORT_BINUNICODE => {
                let [length] = self.bytes()?;
                self.text(length.into())?;
            }
            opcode::BINUNICODE => {
                let length = u32::from_le_bytes(self.bytes()?);
                self.text(usize::try_from(length).unwrap_or(usize::MAX))?;
            }
            opcode::EMPTY_TUPLE => self.push_tuple(Vec::new()),
            opcode::TUPLE1..=opcode::TUPLE3 => {
                let mut items = Vec::new();
                for _ in opcode::TUPLE1..=code {
                    items.push(self.pop()?);
                }
                items.reverse();
                self.push_tuple(items);
            }
            opcode::TUPLE => {
                let items = self.pop_to_mark()?;
                self.push_tuple(items);
            }
            opcode::EMPTY_DICT => {
                let dict = Value::Dict(self.new_dict());
                self.stack.push(dict);
            }
            opcode::SETITEM => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.insert(&[key, value])?;
            }
            opcode::SETITEMS => {
                let items = self.pop_to_mark()?;
                self.insert(&items)?;
            }
            opcode::BINPUT => {
                let [index] = self.bytes()?;
                self.memoize(index.into())?;
            }
            opcode::LONG_BINPUT => {
                let index = u32::from_le_bytes(self.bytes()?);
                self.memoize(index)?;
            }
            opcode::MEMOIZE => {
                let index = u32::try_from(self.memo.len()).map_err(|_| "the memo overflows".to_string())?;
                self.memoize(index)?;
            }
            opcode::BINGET => {
                let [index] = self.bytes()?;
                self.recall(index.into())?;
            }
            opcode::LONG_BINGET => {
                let index = u32::from_le_bytes(self.bytes()?);
                self.recall(index)?;
            }
            opcode::GLOBAL => {
                let (module, name) = (self.line()?, self.line()?);
                self.stack.push(Value::Global(Global::find(module, name)?));
            }
            opcode::STACK_GLOBAL => {
                let (Value::Text(name), Value::Text(module)) = (self.pop()?, self.pop()?) else {
                    return Err("STACK_GLOBAL without two names".into());
                };
                self.stack.push(Value::Global(Global::find(module, name)?));
            }
            opcode::BINPERSID => self.persistent_id()?,
            opcode::REDUCE => self.reduce()?,
            opcode::BUILD => self.build()?,
            _ => {
                return Err(format!(
                    "the pickle uses {}, which weights do not need: refused",
                    opcode_name(code)
                ));
            }
        }
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Checked<[u8; N]> {
        let bytes = self.input.get(self.at..).and_then(|rest| rest.first_chunk());
        self.at += N;
        bytes.copied().ok_or_else(|| "the pickle is cut short".to_string())
    }

    fn slice(&mut self, length: usize) -> Checked<&'a [u8]> {
        let slice = self.input.get(self.at..).and_then(|rest| rest.get(..length));
        self.at = self.at.saturating_add(length);
        slice.ok_or_else(|| "the pickle is cut short".to_string())
    }

    fn line(&mut self) -> Checked<&'a str> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|&byte| byte == b'\n').ok_or("the pickle is cut short")?;
        let line = self.slice(length)?;
        self.at += 1;
        std::str::from_utf8(line).map_err(|_| "a global's name is not UTF-8".into())
    }

    fn text(&mut self, length: usize) -> Checked {
        let text = std::str::from_utf8(self.slice(length)?).map_err(|_| "a string is not UTF-8")?;
        self.stack.push(Value::Text(text));
        Ok(())
    }

    /// LONG1: two's complement of up to 8 bytes, little-endian.
    fn long(&mut self) -> Checked {
        let [length] = self.bytes()?;
        let bytes = self.slice(length.into())?;
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide.get_mut(..bytes.len()).ok_or("an integer has more than 64 bits")?.copy_from_slice(bytes);
        self.stack.push(Value::Int(i64::from_le_bytes(wide)));
        Ok(())
    }

    fn pop(&mut self) -> Checked<Value<'a>> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err("the pickle takes a value from an empty stack".into());
        }
        self.stack.pop().ok_or_else(|| "the pickle takes a value from an empty stack".into())
    }

    fn pop_to_mark(&mut self) -> Checked<Vec<Value<'a>>> {
        let mark = self.marks.pop().ok_or("the pickle closes a group that it did not open")?;
        Ok(self.stack.split_off(mark))
    }

    fn push_tuple(&mut self, items: Vec<Value<'a>>) {
        self.tuples.push(items);
        self.stack.push(Value::Tuple(self.tuples.len() - 1));
    }

    fn new_dict(&mut self) -> usize {
        self.dicts.push(Vec::new());
        self.dicts.len() - 1
    }

    fn memoize(&mut self, index: u32) -> Checked {
        let value = *self.stack.last().ok_or("the pickle memoizes a value of an empty stack")?;
        self.memo.insert(index, value);
        Ok(())
    }

    fn recall(&mut self, index: u32) -> Checked {
        let value = self.memo.get(&index).ok_or_else(|| format!("memo entry {index} does not exist"))?;
        self.stack.push(*value);
        Ok(())
    }

    /// Keys and values in turn, into the dict that lies on top.
    fn insert(&mut self, items: &[Value<'a>]) -> Checked {
        let Some(&(Value::Dict(dict) | Value::OrderedDict(dict))) = self.stack.last() else {
            return Err("the pickle sets an item of something that is not a dict".into());
        };
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err("the pickle sets a key without a value".into());
        }
        let dict = self.dicts.get_mut(dict).ok_or("a dict is missing")?;
        dict.extend(pairs.iter().map(|&[key, value]| (key, value)));
        Ok(())
    }

    fn tuple(&self, value: Value) -> Option<&[Value<'a>]> {
        let Value::Tuple(index) = value else { return None };
        self.tuples.get(index).map(Vec::as_slice)
    }

    /// `("storage", type, key, device, elements)`: the device is of no concern here.
    fn persistent_id(&mut self) -> Checked {
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

    fn reduce(&mut self) -> Checked {
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
    fn build(&mut self) -> Checked {
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

    fn named_tensors(&self, root: Value) -> Checked<BTreeMap<String, Placed>> {
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
