//! Columns between `|` in, clips out: LJSpeech and Piper.
//!
//! Nothing is quoted: a `"` is part of the text. What the second of three columns is, a text or a speaker, is decided
//! once for the whole listing. Never guesses where both can be meant: such a listing is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::listing::is_audio;
use super::{Clip, Format, Listed, prevailing};

/// What the second of three columns holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Middle {
    /// LJSpeech: the text as it is printed; the third has it in words.
    Text,
    /// Piper.
    Speaker,
}

/// More characters than this are no speaker's name.
const NAME_CHARACTERS: usize = 64;
const NAME_WORDS: usize = 3;
/// Texts have these; of a name that has one it is not clear what it is.
const SENTENCE_MARKS: [char; 5] = ['.', '!', '?', ':', ';'];
/// Of the words of a printed text this part at least is in the same text written in words.
const SHARED_WORDS: f64 = 0.5;

/// Whether most lines of `text` have a `|`.
pub fn has_bars(text: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let (with, without): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.contains('|'));
    with.len() >= without.len()
}

pub fn read(text: &str, root: &Path) -> Listed {
    let rows = text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty());
    let rows: Vec<(usize, Vec<&str>)> =
        rows.map(|(index, row)| (index + 1, row.split('|').map(str::trim).collect())).collect();
    let middle = middle(&rows)?;
    let mut formats = vec![];
    let clips = rows.iter().map(|(line, columns)| {
        let clip = clip(columns, *line, root, middle).map(|(clip, format)| {
            formats.push(format);
            clip
        });
        (*line, clip)
    });
    let clips = clips.collect();
    Ok((prevailing(&formats).unwrap_or(Format::LjSpeech), clips))
}

/// Decides by the lines that have three columns: the same words twice are a text; short names are speakers where they
/// come again with other texts. A printed text that comes again has the same words each time.
fn middle(rows: &[(usize, Vec<&str>)]) -> Result<Middle, String> {
    let threes: Vec<[&str; 3]> = rows.iter().filter_map(|(_, row)| row.as_slice().try_into().ok()).collect();
    let alike = threes.iter().filter(|[_, second, third]| same_text(second, third)).count();
    if 2 * alike >= threes.len() {
        return Ok(Middle::Text);
    }
    let seconds: Vec<&str> = threes.iter().map(|row| row[1]).filter(|second| !second.is_empty()).collect();
    let names: BTreeSet<&str> = seconds.iter().copied().collect();
    if !names.iter().all(|name| is_name(name)) {
        return Ok(Middle::Text);
    }
    let named_files = threes.iter().filter(|row| is_audio(Path::new(row[0]))).count();
    if 2 * named_files > threes.len() || speak(&threes, &names) {
        return Ok(Middle::Speaker);
    }
    let line = rows.iter().find(|(_, row)| row.len() == 3).map_or(0, |(line, _)| *line);
    Err(format!(
        "the second column (`{}` in line {line}) may be a speaker or a text: write `file.wav|speaker|text`, or \
         `id|text` without a third column",
        names.first().unwrap_or(&"")
    ))
}

/// Whether `names` come again with other texts, as those who speak do and what is said does not.
fn speak(threes: &[[&str; 3]], names: &BTreeSet<&str>) -> bool {
    let mut said: BTreeMap<&str, (usize, BTreeSet<BTreeSet<String>>)> = BTreeMap::new();
    for [_, second, third] in threes.iter().filter(|row| !row[1].is_empty()) {
        let (times, texts) = said.entry(second).or_default();
        *times += 1;
        texts.insert(words_of(third));
    }
    let again = said.values().filter(|(times, _)| *times > 1);
    let (same, other): (Vec<_>, Vec<_>) = again.partition(|(_, texts)| texts.len() == 1);
    other.len() > same.len() && !names.iter().any(|name| name.contains(SENTENCE_MARKS))
}

fn is_name(text: &str) -> bool {
    text.chars().count() <= NAME_CHARACTERS && text.split_whitespace().count() <= NAME_WORDS
}

/// Whether `words` says in words what `printed` says, as far as can be seen; an empty column says the same.
fn same_text(printed: &str, words: &str) -> bool {
    let (printed, words) = (words_of(printed), words_of(words));
    let shared = printed.intersection(&words).count() as f64;
    words.is_empty() || shared >= SHARED_WORDS * printed.len().max(words.len()) as f64
}

fn words_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn clip(columns: &[&str], line: usize, root: &Path, middle: Middle) -> Result<(Clip, Format), String> {
    let (first, second, third) = match *columns {
        [first, second] => (first, second, None),
        [first, second, third] => (first, second, Some(third)),
        _ => return Err(format!("{} columns between `|`, 2 or 3 are needed", columns.len())),
    };
    if first.is_empty() {
        return Err("the first column, the recording, is empty".to_owned());
    }
    let (speaker, text) = match (middle, third) {
        (Middle::Speaker, Some(third)) => (Some(second).filter(|name| !name.is_empty()), third),
        (Middle::Text, Some(third)) if !third.is_empty() => (None, third),
        _ => (None, second),
    };
    let (audio, by_name) = recording(first, root);
    let format = match by_name || speaker.is_some() {
        true => Format::Piper,
        false => Format::LjSpeech,
    };
    let speaker = speaker.map(str::to_owned);
    Ok((Clip { line, audio, span: None, text: text.to_owned(), speaker }, format))
}

/// The file that `named` means, beside the listing, in `wav` (Piper's own) or in `wavs`, and whether it is written with
/// its extension. An id may have dots in it.
fn recording(named: &str, root: &Path) -> (PathBuf, bool) {
    let id = format!("{named}.wav");
    let by_name = is_audio(Path::new(named));
    let [wav, wavs] = ["wav", "wavs"].map(|folder| root.join(folder));
    let likely = match (by_name, wav.is_dir()) {
        (true, _) => root.join(named),
        (false, true) => wav.join(&id),
        (false, false) => wavs.join(&id),
    };
    let places =
        [root.join(named), wav.join(named), wav.join(&id), wavs.join(named), wavs.join(&id), root.join(&id)];
    (places.into_iter().find(|path| path.is_file()).unwrap_or(likely), by_name)
}
