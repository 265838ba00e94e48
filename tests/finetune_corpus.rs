//! Data sets as a network learns them, and what `check` says of them.
#![cfg(feature = "finetune")]

use std::path::Path;

use hound::{SampleFormat, WavSpec, WavWriter};
use mezzavoce::error::Error;
use mezzavoce::finetune::check::{Check, check};
use mezzavoce::finetune::corpus::{Corpus, CorpusOptions};
use mezzavoce::finetune::dataset::Format;
use mezzavoce::finetune::defect::Defect;
use mezzavoce::finetune::features::MelExtractor;
use mezzavoce::finetune::recording::Recording;
use mezzavoce::voice::Voice;
use support::root;
use tempfile::TempDir;

mod support;

const RATE_HZ: u32 = 16_000;

/// Spells in characters; features of SpeechT5.
fn stock() -> Voice {
    Voice::load(&root().join("tests/data/speecht5_tiny"), None).unwrap()
}

fn ipa() -> Voice {
    Voice::load(&root().join("models/tiny"), None).unwrap()
}

fn options() -> CorpusOptions {
    CorpusOptions::default()
}

/// `seconds` of a tone whose pitch is `hz`, so that tones differ, with `silence` seconds of nothing on each side.
fn tone(hz: f32, seconds: f32, silence: f32, peak: f32) -> Vec<f32> {
    let quiet = vec![0.0; (silence * RATE_HZ as f32) as usize];
    let length = (seconds * RATE_HZ as f32) as usize;
    let wave = |at: usize| peak * (std::f32::consts::TAU * hz * at as f32 / RATE_HZ as f32).sin();
    quiet.iter().copied().chain((0..length).map(wave)).chain(quiet.iter().copied()).collect()
}

fn write(path: &Path, samples: &[f32]) {
    let spec =
        WavSpec { channels: 1, sample_rate: RATE_HZ, bits_per_sample: 16, sample_format: SampleFormat::Int };
    let mut writer = WavWriter::create(path, spec).unwrap();
    let sample = |value: f32| (value * 32768.0).round().clamp(-32768.0, 32767.0) as i16;
    samples.iter().for_each(|&value| writer.write_sample(sample(value)).unwrap());
    writer.finalize().unwrap();
}

/// An LJSpeech of clips: id, samples, text.
fn data_set(clips: &[(&str, Vec<f32>, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    std::fs::create_dir(directory.path().join("wavs")).unwrap();
    let mut listing = String::new();
    for (id, samples, text) in clips {
        listing.push_str(&format!("{id}|{text}\n"));
        if !samples.is_empty() {
            write(&directory.path().join(format!("wavs/{id}.wav")), samples);
        }
    }
    std::fs::write(directory.path().join("metadata.csv"), listing).unwrap();
    directory
}

#[test]
fn an_utterance_is_the_mel_and_the_symbols_of_its_clip() {
    let data = data_set(&[
        ("a", tone(300.0, 0.8, 0.0, 0.3), "hello there. good day."),
        ("b", tone(500.0, 1.0, 0.0, 0.3), "no"),
    ]);
    let voice = stock();
    let corpus = Corpus::load(&voice, data.path(), &options()).unwrap();
    assert_eq!(corpus.left_out, vec![]);
    let [a, b] = corpus.utterances.as_slice() else { panic!("{corpus:?}") };
    let samples = Recording::load(&data.path().join("wavs/a.wav"), RATE_HZ, None, 60.0).unwrap().samples;
    let n_mels = voice.config.num_mel_bins;
    let expected = MelExtractor::new(voice.mel.as_ref().unwrap(), n_mels).unwrap().mel(&samples).unwrap();
    assert_eq!((a.line, a.frames, &a.mel), (1, expected.len() / n_mels, &expected));
    assert_eq!((b.line, b.text.as_str(), b.speaker.as_deref()), (2, "no", None));
    // Two sentences are one sequence: one end, and it is the last.
    let eos = voice.config.eos_token_id;
    assert_eq!(a.symbols.iter().filter(|id| **id == eos).count(), 1);
    assert_eq!(a.symbols.last(), Some(&eos));
    assert!(a.symbols.len() > "hello there. good day.".len());
}

#[test]
fn trimming_takes_the_silence_and_leaves_a_margin() {
    let data = data_set(&[("a", tone(300.0, 1.0, 0.5, 0.3), "hello")]);
    let voice = stock();
    let frames =
        |options: &CorpusOptions| Corpus::load(&voice, data.path(), options).unwrap().utterances[0].frames;
    let (whole, trimmed) = (frames(&options()), frames(&CorpusOptions { trim: true, ..options() }));
    // 62.5 frames a second: 2 s are 126, a second with 50 ms on each side, found to 20 ms, 69 to 72.
    assert_eq!(whole, 126);
    assert!((69..=72).contains(&trimmed), "{trimmed}");
}

#[test]
fn levelling_makes_loud_and_quiet_clips_alike() {
    let data = data_set(&[
        ("loud", tone(300.0, 1.0, 0.0, 0.8), "hello"),
        ("soft", tone(300.0, 1.0, 0.0, 0.05), "hello"),
        ("short", tone(300.0, 0.35, 0.0, 0.05), "hello"),
    ]);
    let levelled = CorpusOptions { level: Some(-23.0), ..options() };
    let corpus = Corpus::load(&stock(), data.path(), &levelled).unwrap();
    let middle = |at: usize| corpus.utterances[at].mel[30 * 80..31 * 80].to_vec();
    let peak = |mel: &[f32]| mel.iter().copied().fold(f32::MIN, f32::max);
    let (loud, soft) = (middle(0), middle(1));
    assert!((peak(&loud) - peak(&soft)).abs() < 0.01, "{} and {}", peak(&loud), peak(&soft));
    assert_eq!((corpus.left_out[0].line, corpus.left_out[0].defect), (3, Defect::Silent));
    // A sine of −20 dB peak is −23 LUFS at 1 kHz (EBU Tech 3341); at 300 Hz K-weighting takes less than a decibel.
    let plain = data_set(&[("a", tone(300.0, 1.0, 0.0, 0.1), "hello")]);
    let plain = Corpus::load(&stock(), plain.path(), &options()).unwrap();
    assert!((peak(&plain.utterances[0].mel[30 * 80..31 * 80]) - peak(&loud)).abs() < 0.06);
}

#[test]
fn a_cache_gives_the_same_mels_and_is_not_trusted_when_damaged() {
    let data =
        data_set(&[("a", tone(300.0, 0.8, 0.2, 0.3), "hello"), ("b", tone(500.0, 1.0, 0.0, 0.3), "no")]);
    let cache = TempDir::new().unwrap();
    let voice = stock();
    let cached = CorpusOptions { cache: Some(cache.path().join("mels")), ..options() };
    let load = |options: &CorpusOptions| Corpus::load(&voice, data.path(), options).unwrap().utterances;
    let files = || -> Vec<_> {
        let mut files: Vec<_> = std::fs::read_dir(cache.path().join("mels"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
    };
    let expected = load(&options());
    assert_eq!(load(&cached), expected);
    let written = files();
    assert_eq!(written.len(), 2);

    // That the files are read: another mel of the right make is taken for the clip's.
    let (first, second) = (std::fs::read(&written[0]).unwrap(), std::fs::read(&written[1]).unwrap());
    std::fs::write(&written[0], &second).unwrap();
    std::fs::write(&written[1], &first).unwrap();
    let swapped = load(&cached);
    assert_eq!((&swapped[0].mel, &swapped[1].mel), (&expected[1].mel, &expected[0].mel));

    let flipped = |at: usize| {
        let mut bytes = first.clone();
        bytes[at] ^= 1;
        bytes
    };
    for damaged in
        [vec![], first[..100].to_vec(), first[..first.len() - 4].to_vec(), flipped(40), flipped(10)]
    {
        std::fs::write(&written[0], damaged).unwrap();
        std::fs::write(&written[1], b"mels").unwrap();
        assert_eq!(load(&cached), expected);
    }
    assert_eq!(std::fs::read(&written[0]).unwrap(), first);

    // Other options, and other sound under the same name, are other features.
    assert_ne!(load(&CorpusOptions { trim: true, ..cached.clone() }), expected);
    assert_eq!(files().len(), 4);
    write(&data.path().join("wavs/a.wav"), &tone(700.0, 0.8, 0.2, 0.3));
    assert_ne!(load(&cached)[0].mel, expected[0].mel);
    assert_eq!(files().len(), 5);
}

/// Clips with every defect that can be written down, six good ones before them.
fn defective() -> TempDir {
    let mut clips: Vec<(&str, Vec<f32>, &str)> = vec![];
    for (index, id) in ["g1", "g2", "g3", "g4", "g5", "g6"].into_iter().enumerate() {
        clips.push((id, tone(300.0 + 20.0 * index as f32, 1.0, 0.0, 0.3), "hello there"));
    }
    clips.push(("silent", vec![0.0; 16_000], "hello there"));
    clips.push(("short", tone(300.0, 0.1, 0.0, 0.3), "hello there"));
    clips.push(("long", tone(300.0, 2.5, 0.0, 0.3), "hello there"));
    clips.push(("absent", vec![], "hello there"));
    clips.push(("clipped", tone(310.0, 1.0, 0.0, 1.5), "hello there"));
    clips.push(("slow", tone(310.0, 1.9, 0.0, 0.3), "no"));
    clips.push(("again", tone(300.0, 1.0, 0.0, 0.3), "good day there"));
    clips.push(("foreign", tone(450.0, 1.0, 0.0, 0.3), "\u{4f60}\u{597d}"));
    let wordy = "hello there ".repeat(20);
    clips.push(("wordy", tone(460.0, 1.0, 0.0, 0.3), wordy.trim()));
    data_set(&clips)
}

#[test]
fn a_clip_is_left_out_with_its_line_and_the_reason() {
    let data = defective();
    let limits = CorpusOptions { max_seconds: 2.0, ..options() };
    let corpus = Corpus::load(&stock(), data.path(), &limits).unwrap();
    let left: Vec<(usize, Defect)> = corpus.left_out.iter().map(|left| (left.line, left.defect)).collect();
    assert_eq!(
        left,
        [
            (7, Defect::Silent),
            (8, Defect::TooShort),
            (9, Defect::TooLong),
            (10, Defect::Unreadable),
            (14, Defect::Unspeakable),
            (15, Defect::Unspeakable),
        ]
    );
    let reason = |at: usize| corpus.left_out[at].reason.as_str();
    assert!(reason(1).contains("0.10 s") && reason(2).contains("longer than 2 s"));
    assert!(reason(3).contains("absent.wav: there is no such file"));
    assert!(reason(5).contains("the voice has 128 positions"), "{}", reason(5));
    let lines: Vec<usize> = corpus.utterances.iter().map(|utterance| utterance.line).collect();
    assert_eq!(lines, [1, 2, 3, 4, 5, 6, 11, 12, 13]);
}

#[test]
fn a_check_lists_what_is_wrong_and_what_there_is() {
    let data = defective();
    let limits = CorpusOptions { max_seconds: 2.0, ..options() };
    let found = check(&stock(), data.path(), &limits).unwrap();
    let problems: Vec<(usize, Defect, bool)> =
        found.problems.iter().map(|problem| (problem.line, problem.defect, problem.left_out)).collect();
    assert_eq!(
        problems,
        [
            (7, Defect::Silent, true),
            (8, Defect::TooShort, true),
            (9, Defect::TooLong, true),
            (10, Defect::Unreadable, true),
            (11, Defect::Clipped, false),
            (12, Defect::OddRate, false),
            (13, Defect::Duplicate, false),
            (14, Defect::Unspeakable, true),
            (15, Defect::Unspeakable, true),
        ]
    );
    assert!(found.problems[6].reason.contains("as line 1 does, with another text"));
    assert!(!found.is_clean());
    assert_eq!((found.lines, found.clips, found.counts.len()), (15, 9, 8));
    assert!((found.minutes - 9.9 / 60.0).abs() < 1e-3);
    let report = found.to_string();
    for said in ["15 lines, 9 clips", "(none)", "there is no such file", "6 of 15 lines are left out"] {
        assert!(report.contains(said), "{report}");
    }
    let json: serde_json::Value = serde_json::to_value(&found).unwrap();
    assert_eq!(json["problems"][0]["defect"], "silent");
    assert_eq!((&json["counts"]["odd-rate"], &json["format"]), (&1.into(), &"ljspeech".into()));
}

#[test]
fn characters_that_a_voice_lacks_are_listed_with_their_number_and_a_line() {
    let data = data_set(&[
        ("a", tone(300.0, 1.0, 0.0, 0.3), "hello there"),
        ("b", tone(400.0, 1.0, 0.0, 0.3), "Ångström says å and \u{4f60}"),
        ("c", tone(500.0, 1.0, 0.0, 0.3), "“well”, an ångström: 12!"),
    ]);
    let found = check(&stock(), data.path(), &options()).unwrap();
    let of = |c: char| found.lacking.iter().find(|lacking| lacking.character == c);
    let ring = of('å').unwrap();
    assert_eq!(
        (ring.count, ring.line, ring.example.as_str(), ring.said_as.as_deref()),
        (2, 2, "å", Some("a"))
    );
    let capital = of('Å').unwrap();
    assert_eq!((capital.count, capital.line, capital.example.as_str()), (1, 2, "Ångström"));
    assert_eq!(of('ö').unwrap().count, 2);
    let foreign = of('\u{4f60}').unwrap();
    assert_eq!((foreign.count, &foreign.said_as), (1, &None));
    assert_eq!(found.lacking.len(), 4, "{:?}", found.lacking);
    assert!(found.to_string().contains("Ångström"));
}

#[test]
fn speakers_have_their_minutes_and_a_clean_data_set_is_clean() {
    let directory = TempDir::new().unwrap();
    let mut listing = String::new();
    for (index, speaker) in ["ann", "joe", "ann"].into_iter().enumerate() {
        write(
            &directory.path().join(format!("{index}.wav")),
            &tone(300.0 + 50.0 * index as f32, 1.2, 0.0, 0.3),
        );
        listing.push_str(&format!("{index}.wav|{speaker}|Hello there.\n"));
    }
    std::fs::write(directory.path().join("metadata.csv"), listing).unwrap();
    let found = check(&ipa(), directory.path(), &options()).unwrap();
    assert!(found.is_clean(), "{found}");
    let totals: Vec<(Option<&str>, usize)> =
        found.speakers.iter().map(|total| (total.speaker.as_deref(), total.clips)).collect();
    assert_eq!(totals, [(Some("ann"), 2), (Some("joe"), 1)]);
    assert!((found.speakers[0].minutes - 0.04).abs() < 1e-6);
    assert!(found.to_string().ends_with("nothing is wrong\n"), "{found}");
}

#[test]
fn options_that_no_clip_meets_are_refused() {
    let data = data_set(&[("a", tone(300.0, 1.0, 0.0, 0.3), "hello")]);
    for broken in [
        CorpusOptions { min_seconds: 5.0, max_seconds: 2.0, ..options() },
        CorpusOptions { min_seconds: f32::NAN, ..options() },
        CorpusOptions { max_seconds: f32::INFINITY, ..options() },
        CorpusOptions { level: Some(3.0), ..options() },
    ] {
        let refused = Corpus::load(&stock(), data.path(), &broken).unwrap_err();
        assert!(matches!(refused, Error::InvalidRequest(_)), "{refused}");
    }
}

#[test]
fn what_is_known_to_be_good_is_found_good() {
    let data = root().join("../shared/data/ljspeech32");
    if !data.is_dir() {
        println!("skipped: {} is not there", data.display());
        return;
    }
    let voice = Voice::load(&root().join("models/default"), None).unwrap();
    let found: Check = check(&voice, &data, &options()).unwrap();
    println!("{found}");
    assert_eq!((found.lines, found.format), (32, Format::LjSpeech));
    assert!(found.is_clean(), "{found}");
}
