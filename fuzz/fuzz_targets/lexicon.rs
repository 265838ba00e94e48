//! Bytes in, through every reader of lexicons and over text; nothing may panic or take long.
//!
//! `cargo +nightly fuzz run lexicon fuzz/corpus/lexicon fuzz/seeds/lexicon -- -max_total_time=300`
#![no_main]

use libfuzzer_sys::fuzz_target;
use mezzavoce::text::lexicon::apply;
use mezzavoce::text::{Lexicon, MAX_LEXICON_SPEECH_BYTES};

const TEXT: &str = "Is Qorvex's K8s, C++ or AT&T's SQL in New Pellon? 3.2M of US, can't.";

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let read = [
        Lexicon::parse_tsv(bytes, "tsv"),
        Lexicon::parse_pls(bytes, "pls"),
        Lexicon::parse_custom_dictionary(&text),
    ];
    for lexicon in read.into_iter().flatten() {
        let _ = (lexicon.notices(), lexicon.phonemic());
        for takes_phonemes in [true, false] {
            for sentence in [TEXT, &text] {
                let mut inline = vec!["ə".to_owned()].into_iter();
                let mut room = MAX_LEXICON_SPEECH_BYTES;
                let _ = apply(sentence, &[&lexicon], takes_phonemes, &mut inline, &mut room);
            }
        }
    }
});
