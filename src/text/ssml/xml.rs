//! XML in, its tags and its text out, each tag with its place.
//!
//! `quick-xml` takes the text apart; what it lets pass though the standard does not (names, text beside the root, an
//! element without its end) is refused here. Never reads a DTD, and never grows deeper than [`MAX_DEPTH`].

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use crate::error::{Error, Excerpt, Result, shortened};

/// Elements within each other at most.
pub const MAX_DEPTH: usize = 32;
/// Attributes of one tag at most.
pub const MAX_ATTRIBUTES: usize = 32;
/// A reason that names what was sent is cut to this.
const MAX_REASON_BYTES: usize = 1000;

/// An element's start.
#[derive(Debug)]
pub struct Tag {
    /// As it is written, with its prefix.
    pub name: String,
    /// Names and values, in order; references are resolved.
    pub attributes: Vec<(String, String)>,
    /// The byte of the source at which it begins.
    pub at: usize,
}

impl Tag {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// One piece of a document. Tags come in pairs.
#[derive(Debug)]
pub enum Node {
    Open(Tag),
    Close,
    Text(String),
}

/// A document that is read from its beginning to its end.
pub struct Xml<'a> {
    source: &'a str,
    reader: Reader<&'a [u8]>,
    /// Names and places of the elements that have not ended.
    open: Vec<(String, usize)>,
    rooted: bool,
}

impl<'a> Xml<'a> {
    /// # Errors
    /// `InvalidRequest` for a character that XML does not have.
    pub fn new(source: &'a str) -> Result<Self> {
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        if let Some((at, c)) = source.char_indices().find(|(_, c)| !is_xml(*c)) {
            return Err(refusal(source, at, &format!("the character {c:?} is not allowed in XML")));
        }
        let mut reader = Reader::from_str(source);
        let config = reader.config_mut();
        config.enable_all_checks(true);
        config.expand_empty_elements = true;
        Ok(Self { source, reader, open: Vec::new(), rooted: false })
    }

    /// The next piece; `None` behind the root.
    ///
    /// # Errors
    /// `InvalidRequest` with line and column where the source is malformed, holds a DTD or goes too deep.
    pub fn next(&mut self) -> Result<Option<Node>> {
        loop {
            let at = offset(self.reader.buffer_position());
            let event = match self.reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    return Err(self.refuse(offset(self.reader.error_position()), &error.to_string()));
                }
            };
            let text = match event {
                Event::Start(start) => return self.open(&start, at).map(|tag| Some(Node::Open(tag))),
                Event::End(_) => {
                    self.open.pop();
                    return Ok(Some(Node::Close));
                }
                Event::Empty(_) | Event::Comment(_) | Event::PI(_) => continue,
                Event::Decl(_) if at == 0 => continue,
                Event::Decl(_) => {
                    return Err(self.refuse(at, "an XML declaration belongs at the very beginning"));
                }
                Event::DocType(_) => return Err(self.refuse(at, "a DTD is not accepted")),
                Event::Text(text) if text.contains("]]>") => {
                    return Err(self.refuse(at, "`]]>` in the text: write `]]&gt;`"));
                }
                Event::Text(text) => text.into_inner().into_owned(),
                Event::CData(text) => text.into_inner().into_owned(),
                Event::GeneralRef(reference) => self.character(&reference, at)?.to_string(),
                Event::Eof => match self.open.last() {
                    Some((name, at)) => return Err(self.refuse(*at, &format!("<{name}> is not closed"))),
                    None if self.rooted => return Ok(None),
                    None => return Err(self.refuse(self.source.len(), "there is no element")),
                },
            };
            if !self.open.is_empty() {
                return Ok(Some(Node::Text(text)));
            }
            if let Some(first) = text.find(|c| !is_space(c)) {
                return Err(self.refuse(at + first, "text outside of the root element"));
            }
        }
    }

    /// An error at byte `at`.
    pub fn refuse(&self, at: usize, reason: &str) -> Error {
        refusal(self.source, at, reason)
    }

    /// The line and column of byte `at`, both from 1, the column in characters.
    pub fn place(&self, at: usize) -> (usize, usize) {
        place(self.source, at)
    }

    fn open(&mut self, start: &BytesStart<'_>, at: usize) -> Result<Tag> {
        let name = start.name().as_ref().to_owned();
        if !is_name(&name) {
            return Err(self.refuse(at, &format!("{} is no name of an element", quoted(&name))));
        }
        if self.open.is_empty() && std::mem::replace(&mut self.rooted, true) {
            return Err(self.refuse(at, &format!("<{name}> is a second root element")));
        }
        if self.open.len() == MAX_DEPTH {
            let reason = format!("<{name}> lies {} elements deep, the limit is {MAX_DEPTH}", MAX_DEPTH + 1);
            return Err(self.refuse(at, &reason));
        }
        let tag = Tag { attributes: self.attributes(start, at, &name)?, name, at };
        self.open.push((tag.name.clone(), at));
        Ok(tag)
    }

    fn attributes(&self, start: &BytesStart<'_>, at: usize, name: &str) -> Result<Vec<(String, String)>> {
        let refuse = |reason: &str| self.refuse(at, &format!("<{name}>: {reason}"));
        check_attributes(start.attributes_raw()).map_err(&refuse)?;
        let mut found: Vec<(String, String)> = Vec::new();
        for attribute in start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| refuse(&error.to_string()))?;
            let key = attribute.key.as_ref();
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| refuse(&format!("{key}: {error}")))?;
            if found.len() == MAX_ATTRIBUTES {
                return Err(refuse(&format!("more than {MAX_ATTRIBUTES} attributes")));
            }
            if !is_name(key) || !value.chars().all(is_xml) {
                return Err(refuse(&format!("the attribute {} is malformed", quoted(key))));
            }
            if found.iter().any(|(other, _)| other == key) {
                return Err(refuse(&format!("the attribute {key} is given twice")));
            }
            found.push((key.to_owned(), value.into_owned()));
        }
        Ok(found)
    }

    /// The character that `&reference;` stands for.
    fn character(&self, reference: &BytesRef<'_>, at: usize) -> Result<char> {
        let name: &str = reference;
        let character = match reference.resolve_char_ref() {
            Ok(None) => resolve_predefined_entity(name).and_then(|text| text.chars().next()),
            Ok(character) => character.filter(|c| is_xml(*c)),
            Err(_) => None,
        };
        let unknown = || {
            let reason = format!(
                "&{}; is neither a character's number nor &lt; &gt; &amp; &apos; &quot;",
                Excerpt(name)
            );
            self.refuse(at, &reason)
        };
        character.ok_or_else(unknown)
    }
}

/// What the standard asks of a tag's attributes and `quick-xml` does not: space between them, no `<` in a value.
fn check_attributes(raw: &str) -> Result<(), &'static str> {
    let mut quote = None;
    let mut closed = false;
    for c in raw.chars() {
        match quote {
            Some(_) if c == '<' => return Err("`<` in a value: write `&lt;`"),
            Some(open) if c == open => (quote, closed) = (None, true),
            Some(_) => {}
            None if closed && !is_space(c) => return Err("no space between two attributes"),
            None => (quote, closed) = (matches!(c, '"' | '\'').then_some(c), false),
        }
    }
    Ok(())
}

/// A value as a message repeats it.
pub fn quoted(value: &str) -> String {
    format!("`{}`", Excerpt(value))
}

fn refusal(source: &str, at: usize, reason: &str) -> Error {
    let (line, column) = place(source, at);
    let reason = shortened(reason.to_owned(), MAX_REASON_BYTES);
    Error::InvalidRequest(format!("SSML, line {line}, column {column}: {reason}"))
}

fn place(source: &str, at: usize) -> (usize, usize) {
    let at = (0..=at.min(source.len())).rev().find(|at| source.is_char_boundary(*at)).unwrap_or(0);
    let before = source.get(..at).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count();
    (before.matches('\n').count() + 1, column + 1)
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

/// XML 1.0 (fifth edition), production 2.
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// XML 1.0, production 3.
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// XML 1.0, production 5, a little wider: every letter may begin a name.
fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    let begins = |c: char| c.is_alphabetic() || matches!(c, '_' | ':');
    chars.next().is_some_and(begins)
        && chars
            .all(|c| begins(c) || c.is_alphanumeric() || matches!(c, '-' | '.' | '·' | '\u{300}'..='\u{36f}'))
}
