//! The pickle of a torch state dict in, the place of every tensor in its storages out.
//!
//! A stack machine over the opcodes that `torch.save` writes for named tensors. What a pickle may ask for is
//! on a list of names; whatever is not on it is refused by its name, and nothing a pickle names is ever run.
//! Opcodes: `pickletools` of the Python library, protocols 2 to 5. Tensors: `torch/_utils.py`.
//!
//! Values are handles into tables, so memory grows with the length of the pickle alone, and a value that
//! contains itself is no trap. What the values mean for tensors is in `state_dict`.

mod state_dict;

use std::collections::{BTreeMap, HashMap};

use super::allow_list::{Global, opcode, opcode_name};
use super::bounds::Checked;
use crate::precision::Dtype;

/// SpeechT5's own has about 60 kB. A hostile one can grow to some fifty times its length in memory.
pub const MAX_PICKLE_BYTES: usize = 2 << 20;

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
}
