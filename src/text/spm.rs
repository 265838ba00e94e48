//! The bytes of a SentencePiece character model in, a tokenizer that agrees with the library out.
//!
//! The stored normaliser is followed exactly: its precompiled character map is a double-array trie
//! over UTF-8 bytes whose leaves point at replacement strings. Numbers, capitals and whatever else
//! a vocabulary lacks become the unknown token here; making text speakable is `normalize`'s work.
//!
//! Never guesses a normalisation that the file does not hold.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use prost::Message;

use crate::error::{Error, Result};

const SPACE_MARK: char = '\u{2581}';
const MODEL_TYPE_CHAR: i32 = 4;
const TYPE_NORMAL: i32 = 1;
const TYPE_UNKNOWN: i32 = 2;
const TYPE_USER_DEFINED: i32 = 4;

#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(message, repeated, tag = "1")]
    pieces: Vec<Piece>,
    #[prost(message, optional, tag = "2")]
    trainer: Option<TrainerSpec>,
    #[prost(message, optional, tag = "3")]
    normalizer: Option<NormalizerSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct Piece {
    #[prost(string, optional, tag = "1")]
    piece: Option<String>,
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct TrainerSpec {
    #[prost(int32, optional, tag = "3")]
    model_type: Option<i32>,
    #[prost(bool, optional, tag = "24")]
    treat_whitespace_as_suffix: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct NormalizerSpec {
    #[prost(bytes = "vec", optional, tag = "2")]
    precompiled_charsmap: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "3")]
    add_dummy_prefix: Option<bool>,
    #[prost(bool, optional, tag = "4")]
    remove_extra_whitespaces: Option<bool>,
    #[prost(bool, optional, tag = "5")]
    escape_whitespaces: Option<bool>,
}

/// A character vocabulary with its normaliser.
#[derive(Debug)]
pub struct CharModel {
    ids: HashMap<String, i64>,
    /// Pieces that are matched whole and never normalised, longest first.
    user_defined: Vec<String>,
    unknown_id: i64,
    pieces: usize,
    charsmap: Option<Charsmap>,
    add_dummy_prefix: bool,
    space_as_suffix: bool,
    remove_extra_whitespaces: bool,
    escape_whitespaces: bool,
}

impl CharModel {
    /// Reads `spm_char.model`. `name` is the voice that an error names.
    ///
    /// # Errors
    /// `InvalidVoice` when the bytes are not a SentencePiece model, the model is not of the CHAR
    /// type, it has no unknown piece, or its character map is malformed.
    pub fn parse(bytes: &[u8], name: &str) -> Result<Self> {
        let fail = |reason: String| Error::voice(name, format!("spm_char.model: {reason}"));
        let proto = ModelProto::decode(bytes).map_err(|e| fail(format!("not a SentencePiece model: {e}")))?;
        let trainer = proto.trainer.unwrap_or_default();
        if trainer.model_type != Some(MODEL_TYPE_CHAR) {
            return Err(fail(format!(
                "model type is {}, only CHAR ({MODEL_TYPE_CHAR}) is read",
                trainer.model_type.unwrap_or(1)
            )));
        }
        let spec = proto.normalizer.unwrap_or_default();
        let charsmap = match spec.precompiled_charsmap {
            Some(blob) if !blob.is_empty() => Some(Charsmap::parse(&blob).map_err(fail)?),
            _ => None,
        };
        let (mut ids, mut user_defined, mut unknown_id) = (HashMap::new(), Vec::new(), None);
        let mut seen = HashSet::new();
        let pieces = proto.pieces.len();
        for (id, piece) in (0i64..).zip(proto.pieces) {
            let text = piece.piece.unwrap_or_default();
            if text.is_empty() || !seen.insert(text.clone()) {
                return Err(fail(format!("piece {id} is empty or given twice: {text:?}")));
            }
            match piece.kind.unwrap_or(TYPE_NORMAL) {
                TYPE_UNKNOWN => unknown_id = Some(id),
                TYPE_NORMAL => _ = ids.insert(text, id),
                TYPE_USER_DEFINED => {
                    user_defined.push(text.clone());
                    ids.insert(text, id);
                }
                _ => {}
            }
        }
        user_defined.sort_by_key(|piece| std::cmp::Reverse(piece.len()));
        Ok(Self {
            ids,
            user_defined,
            unknown_id: unknown_id.ok_or_else(|| fail("no unknown piece".into()))?,
            pieces,
            charsmap,
            add_dummy_prefix: spec.add_dummy_prefix.unwrap_or(true),
            space_as_suffix: trainer.treat_whitespace_as_suffix.unwrap_or(false),
            remove_extra_whitespaces: spec.remove_extra_whitespaces.unwrap_or(true),
            escape_whitespaces: spec.escape_whitespaces.unwrap_or(true),
        })
    }

    /// How many pieces the model holds; the largest id is one less.
    pub fn len(&self) -> usize {
        self.pieces
    }

    pub fn is_empty(&self) -> bool {
        self.pieces == 0
    }

    /// Whether `c`, as the normaliser leaves it, is made of known pieces alone.
    pub fn knows(&self, c: char) -> bool {
        let mut buffer = [0; 4];
        let (text, _) = self.normalize_prefix(c.encode_utf8(&mut buffer));
        text.chars().all(|c| c == ' ' || self.ids.contains_key(c.encode_utf8(&mut [0; 4]) as &str))
    }

    /// The ids of `text`, without an end token. A run of unknown characters is one unknown id.
    pub fn encode(&self, text: &str) -> Vec<i64> {
        let normalized = self.normalize(text);
        let mut ids = Vec::with_capacity(normalized.len());
        let mut rest = normalized.as_str();
        let mut after_unknown = false;
        while let Some(c) = rest.chars().next() {
            let piece = self.user_defined_prefix(rest).unwrap_or(c.len_utf8());
            let (head, tail) = rest.split_at(piece);
            match self.ids.get(head) {
                Some(&id) => ids.push(id),
                None if !after_unknown => ids.push(self.unknown_id),
                None => {}
            }
            after_unknown = !self.ids.contains_key(head);
            rest = tail;
        }
        ids
    }

    /// `Normalizer::Normalize` of the SentencePiece library.
    fn normalize(&self, text: &str) -> String {
        let space = if self.escape_whitespaces { SPACE_MARK } else { ' ' };
        let mut rest = text;
        if self.remove_extra_whitespaces {
            while !rest.is_empty() {
                let (piece, used) = self.normalize_prefix(rest);
                if piece != " " {
                    break;
                }
                rest = rest.get(used..).unwrap_or_default();
            }
        }
        if rest.is_empty() {
            return String::new();
        }
        let mut out = String::with_capacity(rest.len() + 3);
        if self.add_dummy_prefix && !self.space_as_suffix {
            out.push(space);
        }
        let mut after_space = self.remove_extra_whitespaces;
        while !rest.is_empty() {
            let (piece, used) = self.normalize_prefix(rest);
            let kept = if after_space { piece.trim_start_matches(' ') } else { &piece };
            if !kept.is_empty() {
                out.extend(kept.chars().map(|c| if c == ' ' { space } else { c }));
                after_space = kept.ends_with(' ');
            }
            rest = rest.get(used..).unwrap_or_default();
            after_space &= self.remove_extra_whitespaces;
        }
        if self.remove_extra_whitespaces {
            out.truncate(out.trim_end_matches(space).len());
        }
        if self.add_dummy_prefix && self.space_as_suffix {
            out.push(space);
        }
        out
    }

    /// The replacement of the longest known prefix of `text`, and how many bytes it stands for.
    fn normalize_prefix<'a>(&'a self, text: &'a str) -> (Cow<'a, str>, usize) {
        if let Some(length) = self.user_defined_prefix(text) {
            return (Cow::Borrowed(text.get(..length).unwrap_or_default()), length);
        }
        if let Some(map) = &self.charsmap
            && let Some((replacement, length)) = map.longest_prefix(text.as_bytes())
            && text.is_char_boundary(length)
        {
            return (replacement, length);
        }
        let length = text.chars().next().map_or(0, char::len_utf8);
        (Cow::Borrowed(text.get(..length).unwrap_or_default()), length)
    }

    fn user_defined_prefix(&self, text: &str) -> Option<usize> {
        self.user_defined.iter().find(|piece| text.starts_with(*piece)).map(String::len)
    }
}

/// A Darts double array with the strings that its leaves point at.
#[derive(Debug)]
struct Charsmap {
    units: Vec<u32>,
    strings: Vec<u8>,
}

impl Charsmap {
    /// Layout: `u32` trie size in bytes, the trie's `u32` units, NUL-terminated strings; all
    /// little-endian.
    fn parse(blob: &[u8]) -> Result<Self, String> {
        let (size, rest) = blob
            .split_first_chunk::<4>()
            .ok_or_else(|| format!("character map of {} bytes has no header", blob.len()))?;
        let size = usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX);
        if size % 4 != 0 || size == 0 || size > rest.len() {
            return Err(format!("character map's trie of {size} bytes does not fit in {}", rest.len()));
        }
        let (trie, strings) = rest.split_at(size);
        let units = trie.as_chunks::<4>().0.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        Ok(Self { units, strings: strings.to_vec() })
    }

    fn unit(&self, position: u32) -> Option<u32> {
        self.units.get(usize::try_from(position).ok()?).copied()
    }

    /// `commonPrefixSearch` of Darts-clone, longest match only.
    fn longest_prefix(&self, key: &[u8]) -> Option<(Cow<'_, str>, usize)> {
        let offset = |unit: u32| (unit >> 10) << ((unit & (1 << 9)) >> 6);
        let mut position = offset(self.unit(0)?);
        let mut longest = None;
        for (length, &byte) in (1..).zip(key) {
            position ^= u32::from(byte);
            let Some(unit) = self.unit(position) else { break };
            if unit & ((1 << 31) | 0xff) != u32::from(byte) {
                break;
            }
            position ^= offset(unit);
            if (unit >> 8) & 1 == 1 {
                longest = self.unit(position).map(|leaf| (leaf & 0x7fff_ffff, length));
            }
        }
        let (start, length) = longest?;
        let tail = self.strings.get(usize::try_from(start).ok()?..)?;
        let end = tail.iter().position(|&b| b == 0)?;
        Some((String::from_utf8_lossy(tail.get(..end)?), length))
    }
}
