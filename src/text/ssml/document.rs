//! SSML in, blocks of plain text out, each with its delivery and the pause behind it.
//!
//! The elements of SSML 1.1 that are served: speak, p, s, break, phoneme, sub, say-as, prosody and mark. Any other one
//! is read as if its text alone stood there. Never leaves out what changes the sound without a notice.

use std::collections::BTreeSet;

use super::blocks::{Blocks, MAX_MARKS};
use super::say_as::{self, SayAs};
use super::values;
use super::xml::{Node, Tag, Xml, quoted};
use crate::error::{Result, shortened};
use crate::text::{Pause, Prosody, Reading, arpabet};

const MAX_MARK_NAME_CHARACTERS: usize = 256;
/// Notices at most; the last one says that there were more.
const MAX_NOTICES: usize = 32;
const MAX_NOTICE_BYTES: usize = 400;
/// The namespace of SSML, to which the root may bind a prefix.
const NAMESPACE: &str = "http://www.w3.org/2001/10/synthesis";

/// The elements that are served, with their attributes.
const SERVED: [(&str, &[&str]); 9] = [
    ("speak", &[]),
    ("p", &[]),
    ("s", &[]),
    ("break", &["time", "strength"]),
    ("phoneme", &["ph", "alphabet"]),
    ("sub", &["alias"]),
    ("say-as", &["interpret-as", "format"]),
    ("prosody", &["rate", "volume"]),
    ("mark", &["name"]),
];
/// Elements that change nothing, and those whose text is about the speech, not in it.
const NEUTRAL: [&str; 4] = ["token", "w", "lookup", "meta"];
const HIDDEN: [&str; 2] = ["metadata", "desc"];
/// Attributes that change nothing here.
const NEUTRAL_ATTRIBUTES: [&str; 8] =
    ["version", "id", "class", "type", "detail", "startmark", "endmark", "onlangfailure"];

/// A document, read.
#[derive(Debug)]
pub struct Document {
    pub blocks: Blocks,
    pub notices: Vec<String>,
}

/// Reads `ssml` for a voice that takes `phonemes`, or for one that does not.
///
/// # Errors
/// `InvalidRequest` with line and column for XML that is malformed and for a value that is not served.
pub fn read(ssml: &str, reading: &Reading, phonemes: bool) -> Result<Document> {
    let mut reader = Reader {
        xml: Xml::new(ssml)?,
        reading,
        phonemes,
        prefix: None,
        scopes: Vec::new(),
        blocks: Blocks::default(),
        marks: 0,
        noticed: BTreeSet::new(),
        notices: Vec::new(),
    };
    while let Some(node) = reader.xml.next()? {
        match node {
            Node::Open(tag) => reader.open(&tag)?,
            Node::Close => reader.close(),
            Node::Text(text) => reader.text(&text),
        }
    }
    reader.blocks.end();
    Ok(Document { blocks: reader.blocks, notices: reader.notices })
}

/// An element that has not ended.
enum Scope {
    Plain,
    Sentence,
    Paragraph,
    /// The delivery around it.
    Prosody(Prosody),
    /// It holds text alone, which is not heard as it stands.
    Content(Content),
}

struct Content {
    name: String,
    at: usize,
    /// How its text is read; `None` where something else is heard.
    say_as: Option<SayAs>,
    text: String,
}

struct Reader<'a> {
    xml: Xml<'a>,
    reading: &'a Reading,
    phonemes: bool,
    /// What comes before the names of SSML, where the root says so.
    prefix: Option<String>,
    scopes: Vec<Scope>,
    blocks: Blocks,
    marks: usize,
    noticed: BTreeSet<String>,
    notices: Vec<String>,
}

impl Reader<'_> {
    fn open(&mut self, tag: &Tag) -> Result<()> {
        if self.scopes.is_empty() {
            self.root(tag)?;
        }
        let prefix = self.prefix.as_deref().unwrap_or_default();
        let name = tag.name.strip_prefix(prefix).unwrap_or(&tag.name).to_owned();
        let served = SERVED.iter().find(|(served, _)| *served == name);
        if let Some(language) = tag.attribute("xml:lang").filter(|language| !is_english(language)) {
            let what = format!("xml:lang {} is not served: its text is read as English", quoted(language));
            self.notice(tag.at, &what);
        }
        let scope = match (self.content(), served) {
            (Some(outer), Some(_)) if !HIDDEN.contains(&outer.name.as_str()) => {
                let reason = format!("<{name}> inside <{}>, which holds text alone", outer.name);
                return Err(self.xml.refuse(tag.at, &reason));
            }
            (Some(_), _) => Scope::Plain,
            (None, Some((_, attributes))) => {
                for (attribute, _) in &tag.attributes {
                    if !attributes.contains(&attribute.as_str()) && !is_neutral(attribute) {
                        self.notice(tag.at, &format!("the attribute {attribute} of <{name}> is not served"));
                    }
                }
                self.served(tag, &name)
                    .map_err(|reason| self.xml.refuse(tag.at, &format!("<{name}>: {reason}")))?
            }
            (None, None) if HIDDEN.contains(&name.as_str()) => {
                self.notice(tag.at, &format!("the text of <{name}> is about the speech: it is not heard"));
                self.content_of(tag, &name, None)
            }
            (None, None) => {
                if !NEUTRAL.contains(&name.as_str()) {
                    self.notice(tag.at, &format!("<{name}> is not served: its text is read"));
                }
                Scope::Plain
            }
        };
        self.scopes.push(scope);
        Ok(())
    }

    fn root(&mut self, tag: &Tag) -> Result<()> {
        let bound = tag.attributes.iter().find_map(|(name, uri)| {
            let prefix = name.strip_prefix("xmlns:").filter(|_| uri.trim() == NAMESPACE)?;
            Some(format!("{prefix}:"))
        });
        self.prefix = bound.filter(|prefix| tag.name.starts_with(prefix.as_str()));
        if tag.name.strip_prefix(self.prefix.as_deref().unwrap_or_default()) == Some("speak") {
            return Ok(());
        }
        Err(self.xml.refuse(tag.at, &format!("the root is <{}>, it must be <speak>", tag.name)))
    }

    /// Does what the element `name` asks for, or says which rule it breaks.
    fn served(&mut self, tag: &Tag, name: &str) -> Result<Scope, String> {
        let needed = |attribute: &str| {
            tag.attribute(attribute).ok_or_else(|| format!("the attribute {attribute} is missing"))
        };
        match name {
            "s" => {
                self.blocks.boundary(Pause::Sentence);
                return Ok(Scope::Sentence);
            }
            "p" => {
                self.blocks.boundary(Pause::Paragraph);
                return Ok(Scope::Paragraph);
            }
            "break" => self.blocks.pause(values::pause(tag.attribute("time"), tag.attribute("strength"))?),
            "mark" => self.mark(needed("name")?)?,
            "prosody" => {
                let outer = self.blocks.prosody();
                let rate = tag.attribute("rate").map_or(Ok(outer), |rate| values::with_rate(outer, rate))?;
                let both =
                    tag.attribute("volume").map_or(Ok(rate), |volume| values::with_volume(rate, volume))?;
                self.blocks.turn(both);
                return Ok(Scope::Prosody(outer));
            }
            "sub" => {
                let alias = needed("alias")?;
                if alias.trim().is_empty() {
                    return Err("the alias is empty: nothing would be heard in place of the text".to_owned());
                }
                self.blocks.word(alias);
                return Ok(self.content_of(tag, name, None));
            }
            "phoneme" => {
                let ipa = ipa(needed("ph")?, tag.attribute("alphabet"))?;
                if self.phonemes {
                    self.blocks.word(&format!("[[{ipa}]]"));
                    return Ok(self.content_of(tag, name, None));
                }
                self.notice(
                    tag.at,
                    "<phoneme> is not served by a voice that spells in characters: its text is read",
                );
            }
            "say-as" => {
                let (kind, format) = (needed("interpret-as")?, tag.attribute("format"));
                if let Some(say_as) = say_as::kind(kind, format, self.reading)? {
                    return Ok(self.content_of(tag, name, Some(say_as)));
                }
                self.notice(tag.at, &format!("<say-as> as {} is not served: its text is read", quoted(kind)));
            }
            _ => {}
        }
        Ok(Scope::Plain)
    }

    fn close(&mut self) {
        match self.scopes.pop() {
            Some(Scope::Sentence) => self.blocks.boundary(Pause::Sentence),
            Some(Scope::Paragraph) => self.blocks.boundary(Pause::Paragraph),
            Some(Scope::Prosody(outer)) => self.blocks.turn(outer),
            Some(Scope::Content(Content { say_as: Some(say_as), text, at, .. })) => {
                match say_as.words(&text, self.phonemes) {
                    Some(words) => self.blocks.word(&words),
                    None => {
                        self.notice(
                            at,
                            &format!("{} is no {}: it is read as text", quoted(text.trim()), say_as.name()),
                        );
                        self.blocks.text(&text);
                    }
                }
            }
            Some(Scope::Content(_) | Scope::Plain) | None => {}
        }
    }

    fn text(&mut self, text: &str) {
        match self.scopes.iter_mut().rev().find_map(Scope::content_mut) {
            Some(content) if content.say_as.is_some() => content.text.push_str(text),
            Some(_) => {}
            None => self.blocks.text(text),
        }
    }

    fn mark(&mut self, name: &str) -> Result<(), String> {
        let characters = name.chars().count();
        if !(1..=MAX_MARK_NAME_CHARACTERS).contains(&characters) {
            return Err(format!(
                "a name of {characters} characters: it must have 1 to {MAX_MARK_NAME_CHARACTERS}"
            ));
        }
        if self.marks == MAX_MARKS {
            return Err(format!("more than {MAX_MARKS} marks"));
        }
        self.marks += 1;
        self.blocks.marks.push(name.to_owned());
        Ok(())
    }

    fn content(&self) -> Option<&Content> {
        self.scopes.iter().rev().find_map(|scope| match scope {
            Scope::Content(content) => Some(content),
            _ => None,
        })
    }

    fn content_of(&self, tag: &Tag, name: &str, say_as: Option<SayAs>) -> Scope {
        Scope::Content(Content { name: name.to_owned(), at: tag.at, say_as, text: String::new() })
    }

    /// Notes `what`, with the place at which it was first seen.
    fn notice(&mut self, at: usize, what: &str) {
        if self.notices.len() > MAX_NOTICES || !self.noticed.insert(what.to_owned()) {
            return;
        }
        let what = shortened(what.to_owned(), MAX_NOTICE_BYTES);
        self.notices.push(if self.notices.len() == MAX_NOTICES {
            "more is not served, which is not listed".to_owned()
        } else {
            let (line, column) = self.xml.place(at);
            format!("line {line}, column {column}: {what}")
        });
    }
}

impl Scope {
    fn content_mut(&mut self) -> Option<&mut Content> {
        match self {
            Self::Content(content) => Some(content),
            _ => None,
        }
    }
}

fn is_english(language: &str) -> bool {
    language.trim().get(..2).is_some_and(|start| start.eq_ignore_ascii_case("en"))
}

fn is_neutral(attribute: &str) -> bool {
    NEUTRAL_ATTRIBUTES.contains(&attribute) || attribute.starts_with("xml") || attribute.contains(':')
}

/// The IPA of a phoneme element.
fn ipa(ph: &str, alphabet: Option<&str>) -> Result<String, String> {
    let ipa = match alphabet.unwrap_or("ipa") {
        "ipa" => ph.to_owned(),
        "x-arpabet" | "arpabet" => arpabet::to_ipa(ph).map_err(|error| format!("ph, {error}"))?,
        other => return Err(format!("the alphabet {} is none of ipa, x-arpabet", quoted(other))),
    };
    if !ipa.chars().any(char::is_alphabetic) || ipa.contains(['[', ']']) {
        return Err(format!("ph {} holds no phonemes", quoted(ph)));
    }
    Ok(ipa)
}
