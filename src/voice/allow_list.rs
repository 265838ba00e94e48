//! What the pickle of a checkpoint may say: these opcodes, these globals.
//!
//! Names are those of `pickletools`; opcodes that are refused have one here too, to be refused by it.

use super::bounds::Checked;
use crate::precision::Dtype;

/// Every opcode that [`super::pickle`] executes.
pub mod opcode {
    pub const PROTO: u8 = 0x80;
    pub const FRAME: u8 = 0x95;
    pub const STOP: u8 = b'.';
    pub const MARK: u8 = b'(';
    pub const NONE: u8 = b'N';
    pub const NEWTRUE: u8 = 0x88;
    pub const NEWFALSE: u8 = 0x89;
    pub const BININT1: u8 = b'K';
    pub const BININT2: u8 = b'M';
    pub const BININT: u8 = b'J';
    pub const LONG1: u8 = 0x8a;
    pub const SHORT_BINUNICODE: u8 = 0x8c;
    pub const BINUNICODE: u8 = b'X';
    pub const EMPTY_TUPLE: u8 = b')';
    pub const TUPLE1: u8 = 0x85;
    pub const TUPLE3: u8 = 0x87;
    pub const TUPLE: u8 = b't';
    pub const EMPTY_DICT: u8 = b'}';
    pub const SETITEM: u8 = b's';
    pub const SETITEMS: u8 = b'u';
    pub const BINPUT: u8 = b'q';
    pub const LONG_BINPUT: u8 = b'r';
    pub const MEMOIZE: u8 = 0x94;
    pub const BINGET: u8 = b'h';
    pub const LONG_BINGET: u8 = b'j';
    pub const GLOBAL: u8 = b'c';
    pub const STACK_GLOBAL: u8 = 0x93;
    pub const BINPERSID: u8 = b'Q';
    pub const REDUCE: u8 = b'R';
    pub const BUILD: u8 = b'b';
}

/// What a pickle may refer to. Only the calls that rebuild a tensor are acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Global {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    StorageType(Dtype),
}

impl Global {
    /// The global of this name, or a refusal that says it.
    pub fn find(module: &str, name: &str) -> Checked<Self> {
        let storage = |dtype| Ok(Self::StorageType(dtype));
        match (module, name) {
            ("collections", "OrderedDict") => Ok(Self::OrderedDict),
            ("torch._utils", "_rebuild_tensor_v2") => Ok(Self::RebuildTensor),
            ("torch._utils", "_rebuild_parameter") => Ok(Self::RebuildParameter),
            ("torch", "DoubleStorage") => storage(Dtype::F64),
            ("torch", "FloatStorage") => storage(Dtype::F32),
            ("torch", "HalfStorage") => storage(Dtype::F16),
            ("torch", "BFloat16Storage") => storage(Dtype::BF16),
            ("torch", "LongStorage") => storage(Dtype::I64),
            ("torch", "IntStorage") => storage(Dtype::I32),
            ("torch", "ShortStorage") => storage(Dtype::I16),
            ("torch", "CharStorage") => storage(Dtype::I8),
            ("torch", "ByteStorage") => storage(Dtype::U8),
            ("torch", "BoolStorage") => storage(Dtype::Bool),
            _ => Err(format!("the pickle asks for `{module}.{name}`, which holds no weights: refused")),
        }
    }
}

/// The name of an opcode that is refused.
pub fn opcode_name(opcode: u8) -> String {
    let name = match opcode {
        b'i' => "INST",
        b'o' => "OBJ",
        0x81 => "NEWOBJ",
        0x92 => "NEWOBJ_EX",
        0x82 => "EXT1",
        0x83 => "EXT2",
        0x84 => "EXT4",
        b'P' => "PERSID",
        b'0' => "POP",
        b'1' => "POP_MARK",
        b'2' => "DUP",
        b'p' => "PUT",
        b'g' => "GET",
        b']' => "EMPTY_LIST",
        b'l' => "LIST",
        b'a' => "APPEND",
        b'e' => "APPENDS",
        b'd' => "DICT",
        b'I' => "INT",
        b'L' => "LONG",
        b'F' => "FLOAT",
        b'G' => "BINFLOAT",
        b'S' => "STRING",
        b'T' => "BINSTRING",
        b'U' => "SHORT_BINSTRING",
        b'V' => "UNICODE",
        b'B' => "BINBYTES",
        b'C' => "SHORT_BINBYTES",
        0x8b => "LONG4",
        0x8d => "BINUNICODE8",
        0x8e => "BINBYTES8",
        0x8f => "EMPTY_SET",
        0x90 => "ADDITEMS",
        0x91 => "FROZENSET",
        0x96 => "BYTEARRAY8",
        0x97 => "NEXT_BUFFER",
        0x98 => "READONLY_BUFFER",
        _ => return format!("the unknown opcode 0x{opcode:02x}"),
    };
    format!("the opcode {name}")
}
