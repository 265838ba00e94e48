//! A document of the W3C Pronunciation Lexicon Specification 1.0 in, a lexicon out.
//!
//! Roles are not told apart. Never reads a document type declaration, an entity of its own or another file.

use roxmltree::{Document, Node, ParsingOptions};

use super::{Alphabet, Duplicate, Lexicon, at, pronunciation};
use crate::error::{Error, Result};

const NAMESPACE: &str = "http://www.w3.org/2005/01/pronunciation-lexicon";
/// A lexeme takes at least seven: itself, two elements, their text and the space between.
const MAX_NODES: u32 = 2_000_000;

pub fn parse(text: &str, name: &str) -> Result<Lexicon> {
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let (line, column) = match error {
            // The parser does not say where these are.
            roxmltree::Error::DtdDetected => end(text.split("<!DOCTYPE").next().unwrap_or_default()),
            roxmltree::Error::UnclosedRootNode | roxmltree::Error::UnexpectedEndOfStream => {
                end(text.trim_end())
            }
            _ => (error.pos().row as usize, error.pos().col as usize),
        };
        at(name, line, column, error)
    })?;
    let reader = Reader { document: &document, name };
    let root = document.root_element();
    if !is_named(root, "lexicon") {
        return Err(reader.refuse(root, format!("<{}> is not <lexicon> of PLS", root.tag_name().name())));
    }
    let Some(alphabet) = root.attribute("alphabet") else {
        return Err(reader.refuse(root, "<lexicon> has no alphabet"));
    };
    let alphabet = reader.alphabet(root, alphabet)?;
    let mut lexicon = Lexicon::default();
    let language = root.attribute(("http://www.w3.org/XML/1998/namespace", "lang"));
    if let Some(language) =
        language.filter(|language| !language.get(..2).is_some_and(|l| l.eq_ignore_ascii_case("en")))
    {
        lexicon.notice(|| format!("{name}: xml:lang {language:?} is not English, the entries are taken"));
    }
    for lexeme in reader.elements(root, &["lexeme"], &["meta", "metadata"])? {
        reader.lexeme(lexeme, alphabet, &mut lexicon)?;
    }
    Ok(lexicon)
}

/// The line and column behind `text`.
fn end(text: &str) -> (usize, usize) {
    let column = text.split('\n').next_back().unwrap_or_default().chars().count() + 1;
    (text.split('\n').count(), column)
}

fn is_named(node: Node<'_, '_>, name: &str) -> bool {
    node.tag_name().name() == name && matches!(node.tag_name().namespace(), None | Some(NAMESPACE))
}

struct Reader<'a, 'input> {
    document: &'a Document<'input>,
    name: &'a str,
}

impl<'a, 'input> Reader<'a, 'input> {
    fn refuse(&self, node: Node<'_, '_>, reason: impl std::fmt::Display) -> Error {
        let place = self.document.text_pos_at(node.range().start);
        at(self.name, place.row as usize, place.col as usize, reason)
    }

    fn alphabet(&self, node: Node<'_, '_>, alphabet: &str) -> Result<Alphabet> {
        match alphabet {
            "ipa" => Ok(Alphabet::Ipa),
            "x-arpabet" => Ok(Alphabet::Arpabet),
            _ => Err(self.refuse(node, format!("alphabet {alphabet:?} is not ipa or x-arpabet"))),
        }
    }

    /// The children of `parent` named in `wanted`; those in `skipped` and of other namespaces are passed over.
    fn elements(
        &self,
        parent: Node<'a, 'input>,
        wanted: &[&str],
        skipped: &[&str],
    ) -> Result<Vec<Node<'a, 'input>>> {
        let mut found = Vec::new();
        for child in parent.children() {
            let foreign = child.tag_name().namespace().is_some_and(|namespace| namespace != NAMESPACE);
            if child.is_element() && wanted.iter().any(|name| is_named(child, name)) {
                found.push(child);
            } else if child.is_element() && !foreign && !skipped.iter().any(|name| is_named(child, name)) {
                let (inner, outer) = (child.tag_name().name(), parent.tag_name().name());
                return Err(self.refuse(child, format!("<{inner}> cannot be in <{outer}>")));
            } else if let Some(text) =
                child.text().map(str::trim).filter(|t| child.is_text() && !t.is_empty())
            {
                let outer = parent.tag_name().name();
                return Err(self.refuse(child, format!("text {text:?} cannot be in <{outer}>")));
            }
        }
        Ok(found)
    }

    fn text(&self, node: Node<'a, 'input>) -> Result<String> {
        let mut text = String::new();
        for child in node.children() {
            if child.is_element() {
                let (inner, outer) = (child.tag_name().name(), node.tag_name().name());
                return Err(self.refuse(child, format!("<{inner}> cannot be in <{outer}>")));
            }
            if child.is_text() {
                text.push_str(child.text().unwrap_or_default());
            }
        }
        Ok(text.trim().to_owned())
    }

    fn lexeme(&self, lexeme: Node<'a, 'input>, alphabet: Alphabet, lexicon: &mut Lexicon) -> Result<()> {
        let elements = self.elements(lexeme, &["grapheme", "phoneme", "alias"], &["example"])?;
        let (graphemes, said): (Vec<_>, Vec<_>) =
            elements.into_iter().partition(|element| is_named(*element, "grapheme"));
        if graphemes.is_empty() {
            return Err(self.refuse(lexeme, "<lexeme> has no <grapheme>"));
        }
        let preferred = said.iter().find(|element| element.attribute("prefer") == Some("true"));
        let Some(&said) = preferred.or(said.first()) else {
            return Err(self.refuse(lexeme, "<lexeme> has neither <phoneme> nor <alias>"));
        };
        let alphabet = match said.attribute("alphabet") {
            _ if is_named(said, "alias") => Alphabet::Alias,
            Some(own) => self.alphabet(said, own)?,
            None => alphabet,
        };
        let pronunciation =
            pronunciation(&self.text(said)?, alphabet).map_err(|reason| self.refuse(said, reason))?;
        if let Some(role) = lexeme.attribute("role") {
            lexicon.notice(|| format!("{}: role {role:?} is not told apart", self.name));
        }
        for element in graphemes {
            let grapheme = self.text(element)?;
            let known = lexicon
                .insert(&grapheme, pronunciation.clone(), Duplicate::First)
                .map_err(|reason| self.refuse(element, reason))?;
            if known {
                lexicon.notice(|| {
                    let place = self.document.text_pos_at(element.range().start);
                    format!("{}:{}: {grapheme:?} again, the first entry is taken", self.name, place.row)
                });
            }
        }
        Ok(())
    }
}
