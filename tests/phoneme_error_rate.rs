//! The front-end's phonemes against espeak-ng's, which the default voice was trained on.
//!
//! The error rate is the Levenshtein distance over IPA characters divided by the reference's length. The bounds are
//! what was measured on the sample and at most an eighth more. Spaces and punctuation are not counted; stress marks
//! are counted in one of two figures.
//!
//! The ten largest confusions of the words without stress (espeak's>ours) and why they remain:
//!
//! - `ɪ>ə`, `ə>ɪ`: unstressed `i` and `e` (`char-a-cter-ize`, `tempest`). Our dictionary writes both as a schwa;
//!   espeak chooses by rules of spelling of which only the frequent ones are in `espeak`.
//! - `ɐ>ə`: unstressed `a` inside a word (`caravan`); espeak reduces it by its distance from the stress, and
//!   not alike in similar words (`armadillos`, `Arizona`).
//! - `ᵻ>ɪ`, `ɪ>ᵻ`: espeak's third reduced vowel, written for the same sounds now so, now so (`negotiate`, `precise`).
//! - `ɪ>i`: `y` and `i` before a vowel or `-es`: espeak has both after the same sounds (`crannies`, `parties`).
//! - `>ɑ`, `ɑ>`: `o` and `a` of names and learned words (`pashas`, `Monsanto`, `Congress`): `æ`, `ɔ` or `ɑː` by the
//!   word, and other speakers would agree with the dictionary.
//! - `s>z`: words that are said both ways, mostly alone as a noun or verb (`excuse`), and names in `-us`.
//! - `i>`: espeak keeps a syllable that the dictionary merges (`sociable`) and writes `iə` before `ɹ` where we
//!   write `ɪ` (`criterion`).
//!
//! Sentences have fewer of these, for frequent words are alike in both.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use mezzavoce::text::{Frontend, Reading, Source};

mod voices;

fn frontend() -> &'static Frontend {
    static FRONTEND: OnceLock<Frontend> = OnceLock::new();
    FRONTEND.get_or_init(|| voices::ipa(400))
}

#[derive(Default)]
struct Tally {
    errors: usize,
    symbols: usize,
    confusions: HashMap<(String, String), usize>,
}

impl Tally {
    fn rate(&self) -> f64 {
        100.0 * self.errors as f64 / self.symbols as f64
    }

    fn add(&mut self, reference: &[char], hypothesis: &[char]) {
        let width = hypothesis.len() + 1;
        let mut cost = vec![0usize; (reference.len() + 1) * width];
        for i in 0..=reference.len() {
            for j in 0..=hypothesis.len() {
                cost[i * width + j] = match (i, j) {
                    (0, _) => j,
                    (_, 0) => i,
                    _ => {
                        let same = usize::from(reference[i - 1] != hypothesis[j - 1]);
                        (cost[(i - 1) * width + j - 1] + same)
                            .min(cost[(i - 1) * width + j] + 1)
                            .min(cost[i * width + j - 1] + 1)
                    }
                };
            }
        }
        self.errors += cost[cost.len() - 1];
        self.symbols += reference.len();
        let (mut i, mut j) = (reference.len(), hypothesis.len());
        while i > 0 || j > 0 {
            let here = cost[i * width + j];
            let differs = i > 0 && j > 0 && reference[i - 1] != hypothesis[j - 1];
            if i > 0 && j > 0 && cost[(i - 1) * width + j - 1] + usize::from(differs) == here {
                if differs {
                    self.confuse(reference[i - 1].into(), hypothesis[j - 1].into());
                }
                (i, j) = (i - 1, j - 1);
            } else if i > 0 && cost[(i - 1) * width + j] + 1 == here {
                self.confuse(reference[i - 1].into(), "".into());
                i -= 1;
            } else {
                self.confuse("".into(), hypothesis[j - 1].into());
                j -= 1;
            }
        }
    }

    fn confuse(&mut self, reference: String, hypothesis: String) {
        *self.confusions.entry((reference, hypothesis)).or_default() += 1;
    }

    fn largest(&self) -> String {
        let mut all: Vec<_> = self.confusions.iter().collect();
        all.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        all.iter().take(10).map(|((r, h), n)| format!(" {r}>{h}:{n}")).collect()
    }
}

fn counted(ipa: &str, stress: bool) -> Vec<char> {
    ipa.chars().filter(|c| !" .,;:!?'-\"".contains(*c) && (stress || !matches!(c, 'ˈ' | 'ˌ'))).collect()
}

fn rows(path: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter_map(|line| line.split_once('\t')).map(|(a, b)| (a.into(), b.into())).collect()
}

fn spoken(text: &str) -> String {
    let segments = frontend().segments(text, &Reading::default()).unwrap_or_default();
    segments.iter().map(|segment| segment.spoken.as_str()).collect::<Vec<_>>().join(" ")
}

/// (with stress, without stress), in percent.
fn measure(title: &str, rows: &[(String, String)]) -> (f64, f64) {
    let (mut with, mut without) = (Tally::default(), Tally::default());
    let started = Instant::now();
    let hypotheses: Vec<String> = rows.iter().map(|(text, _)| spoken(text)).collect();
    let elapsed = started.elapsed();
    for ((_, reference), hypothesis) in rows.iter().zip(&hypotheses) {
        with.add(&counted(reference, true), &counted(hypothesis, true));
        without.add(&counted(reference, false), &counted(hypothesis, false));
    }
    let words = rows.iter().flat_map(|(text, _)| text.split([' ', '-']));
    let mut sources: BTreeMap<String, usize> = BTreeMap::new();
    for word in words.map(|w| w.trim_matches(|c: char| !c.is_alphabetic())).filter(|w| !w.is_empty()) {
        let (_, source) = frontend().pronounce(word).unwrap();
        *sources.entry(format!("{source:?}")).or_default() += 1;
    }
    let total: usize = sources.values().sum();
    let rules = sources.get(&format!("{:?}", Source::Rules)).copied().unwrap_or(0);
    println!(
        "{title}: {} rows, {:.2} % with stress, {:.2} % without; out of vocabulary {:.2} % of {total} words; {:?} a row",
        rows.len(),
        with.rate(),
        without.rate(),
        100.0 * rules as f64 / total as f64,
        elapsed / rows.len() as u32,
    );
    println!("  largest confusions (reference>ours):{}", without.largest());
    (with.rate(), without.rate())
}

fn check(kind: &str, limit_with: f64, limit_without: f64) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let name = format!("phonemes_en_us_{kind}");
    let full = root.join(format!("../shared/reference/{name}.tsv"));
    if full.exists() {
        measure(&format!("all {kind}"), &rows(&full));
    } else {
        println!("skipped: {} is not there", full.display());
    }
    let (with, without) = measure(kind, &rows(&root.join(format!("tests/data/{name}_sample.tsv"))));
    assert!(with <= limit_with, "{kind}: {with:.2} % with stress, at most {limit_with} %");
    assert!(without <= limit_without, "{kind}: {without:.2} % without stress, at most {limit_without} %");
}

#[test]
fn words_sound_as_the_voice_was_trained() {
    check("words", 9.2, 6.7);
}

#[test]
fn sentences_sound_as_the_voice_was_trained() {
    check("sentences", 2.9, 2.2);
}
