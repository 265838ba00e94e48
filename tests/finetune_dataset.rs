//! Listings as people write them, and the clips that they mean.
#![cfg(feature = "finetune")]

use std::path::Path;

use mezzavoce::error::Error;
use mezzavoce::finetune::dataset::{DataSet, Format, Span};
use mezzavoce::finetune::defect::Defect;
use tempfile::TempDir;

/// A directory with `listing` under `name` and empty files at `files`.
fn data_set(name: &str, listing: &str, files: &[&str]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for file in files.iter().chain([&name]) {
        let path = directory.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    std::fs::write(directory.path().join(name), listing).unwrap();
    directory
}

/// A clip as [line, path in the data set, speaker, text].
type Said<'a> = (usize, &'a str, Option<&'a str>, &'a str);

fn check_files(name: &str, listing: &str, files: &[&str], format: Format, expected: &[Said]) {
    let directory = data_set(name, listing, files);
    let found = DataSet::load(directory.path()).unwrap();
    let clips: Vec<Said> = found
        .clips
        .iter()
        .map(|clip| {
            let audio = clip.audio.strip_prefix(directory.path()).unwrap_or(&clip.audio);
            (clip.line, audio.to_str().unwrap(), clip.speaker.as_deref(), clip.text.as_str())
        })
        .collect();
    assert_eq!(clips, expected, "{listing}");
    assert_eq!((found.format, found.left_out), (format, vec![]), "{listing}");
}

fn check(listing: &str, format: Format, expected: &[Said]) {
    check_files("metadata.csv", listing, &[], format, expected);
}

fn refusal(name: &str, listing: &str) -> String {
    let directory = data_set(name, listing, &[]);
    DataSet::load(directory.path()).unwrap_err().to_string()
}

/// The lines that `listing` loses, with why.
fn left_out(name: &str, listing: &str) -> Vec<(usize, Defect, String)> {
    let directory = data_set(name, listing, &[]);
    let found = DataSet::load(directory.path()).unwrap();
    found.left_out.into_iter().map(|left| (left.line, left.defect, left.reason)).collect()
}

#[test]
fn ljspeech_has_the_text_twice() {
    check(
        "LJ-1|It cost $5 in 1999, they said.|It cost five dollars in nineteen ninety-nine, they said.\nLJ-2|Yes.|Yes.\n",
        Format::LjSpeech,
        &[
            (1, "wavs/LJ-1.wav", None, "It cost five dollars in nineteen ninety-nine, they said."),
            (2, "wavs/LJ-2.wav", None, "Yes."),
        ],
    );
    check("a|Hello there.|\n", Format::LjSpeech, &[(1, "wavs/a.wav", None, "Hello there.")]);
    check("a|Hello there.\n", Format::LjSpeech, &[(1, "wavs/a.wav", None, "Hello there.")]);
}

#[test]
fn a_speaker_is_kept_whether_or_not_the_recording_has_its_extension() {
    let expected = |extension: &str| {
        let path = |id: &str| format!("wavs/{id}{extension}");
        [path("a"), path("b"), path("c")]
    };
    for (written, found) in [(".wav", ".wav"), ("", ".wav")] {
        let files = expected(".wav");
        let listing = format!(
            "a{written}|joe|Hello there.\nb{written}|ann|Good day.\nc{written}|joe|\"No,\" he said.\n"
        );
        let paths = expected(found);
        check_files(
            "metadata.csv",
            &listing,
            &files.each_ref().map(String::as_str),
            Format::Piper,
            &[
                (1, &paths[0], Some("joe"), "Hello there."),
                (2, &paths[1], Some("ann"), "Good day."),
                (3, &paths[2], Some("joe"), "\"No,\" he said."),
            ],
        );
    }
}

#[test]
fn columns_that_can_be_read_in_two_ways_are_refused() {
    for listing in ["a|joe|Hello there.\n", "a|42|forty two\nb|43|forty three\n"] {
        let reason = refusal("metadata.csv", listing);
        assert!(reason.contains("may be a speaker or a text") && reason.contains("line 1"), "{reason}");
    }
    check("a.wav|joe|Hello there.\n", Format::Piper, &[(1, "a.wav", Some("joe"), "Hello there.")]);
}

#[test]
fn an_id_with_a_dot_is_an_id() {
    check(
        "a.1|Hello.|Hello.\nb.22|Good day.|Good day.\n",
        Format::LjSpeech,
        &[(1, "wavs/a.1.wav", None, "Hello."), (2, "wavs/b.22.wav", None, "Good day.")],
    );
}

#[test]
fn the_format_is_that_of_most_lines() {
    check(
        "a|Hello.\nb|Good day.\nc.wav|Bye.\n",
        Format::LjSpeech,
        &[
            (1, "wavs/a.wav", None, "Hello."),
            (2, "wavs/b.wav", None, "Good day."),
            (3, "c.wav", None, "Bye."),
        ],
    );
}

#[test]
fn quotes_byte_order_marks_and_line_ends_do_no_harm() {
    let expected = [(2, "wavs/a.wav", None, "\"Yes,\" he said"), (5, "wavs/b.wav", None, "a \"b\" c")];
    check("\u{feff}\n a |\"Yes,\" he said\n\n  \nb|a \"b\" c", Format::LjSpeech, &expected);
    check("\u{feff}\r\na|\"Yes,\" he said\r\n\r\n\r\nb|a \"b\" c\r\n", Format::LjSpeech, &expected);
    check_files(
        "metadata.csv",
        "\u{feff}\r\nfile_name,transcription\r\na.wav,\"Yes, \"\"you\"\"\"\r\n",
        &[],
        Format::AudioFolder,
        &[(3, "a.wav", None, "Yes, \"you\"")],
    );
    check_files(
        "metadata.jsonl",
        "\u{feff}\r\n{\"file_name\": \"a.wav\", \"text\": \"Yes\"}\r\n\r\n",
        &[],
        Format::AudioFolder,
        &[(2, "a.wav", None, "Yes")],
    );
}

#[test]
fn an_audiofolder_names_its_columns() {
    check_files(
        "train/metadata.csv",
        "speaker,file_name,text\njoe,x/a.flac,Hello.\n,b.wav,Good day.\n",
        &[],
        Format::AudioFolder,
        &[(2, "train/x/a.flac", Some("joe"), "Hello."), (3, "train/b.wav", None, "Good day.")],
    );
}

#[test]
fn a_nemo_manifest_cuts_parts_out_of_recordings() {
    let listing = r#"{"audio_filepath": "/data/long.wav", "offset": 1.5, "duration": 2, "text": "One.", "speaker": 3}
{"audio_filepath": "/data/long.wav", "offset": 3.5, "duration": 1.25, "text": "Two."}
{"audio_filepath": "../b.wav", "duration": 1.0, "text": "Three."}
{"audio_filepath": "c.wav", "text": "Four."}
"#;
    let directory = data_set("manifest.json", listing, &[]);
    let found = DataSet::load(&directory.path().join("manifest.json")).unwrap();
    let span = |offset_seconds, duration| Some(Span { offset_seconds, duration_seconds: Some(duration) });
    let spans: Vec<Option<Span>> = found.clips.iter().map(|clip| clip.span).collect();
    assert_eq!(spans, [span(1.5, 2.0), span(3.5, 1.25), span(0.0, 1.0), None]);
    assert_eq!(found.clips[0].audio, Path::new("/data/long.wav"));
    assert_eq!(found.clips[0].speaker.as_deref(), Some("3"));
    assert_eq!(found.clips[2].audio, directory.path().join("../b.wav"));
    assert_eq!((found.format, found.left_out), (Format::NeMo, vec![]));
}

#[test]
fn every_line_that_is_no_clip_is_there_with_its_reason() {
    let table = left_out("metadata.csv", "a|Hello.\nb\nc|x|y|z\n|No id.\nd|\n");
    let said = ["1 columns", "4 columns", "recording, is empty", "text is empty"];
    assert_eq!(table.iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [2, 3, 4, 5]);
    assert!(
        table
            .iter()
            .zip(said)
            .all(|((_, defect, reason), said)| { *defect == Defect::BadLine && reason.contains(said) }),
        "{table:?}"
    );

    let lines = left_out(
        "metadata.jsonl",
        "5\n{}\n{\"file_name\": \"a.wav\"}\n{\"audio_filepath\": \"a.wav\", \"text\": \"x\", \"offset\": -1}\n\
         {\"audio_filepath\": \"a.wav\", \"text\": \"x\", \"duration\": \"2\"}\n{\"file_name\": \"a.wav\", \"text\": \" \"}\n",
    );
    let said =
        ["no JSON object", "neither", "none of text", "`offset` is -1", "`duration` is", "text is empty"];
    assert_eq!(lines.len(), said.len());
    assert!(lines.iter().zip(said).all(|((.., reason), said)| reason.contains(said)), "{lines:?}");

    let header = left_out("metadata.csv", "file_name,text\na.wav\n,Hello.\nb.wav,\"Open\nc.wav,Lost.\n");
    let said = ["1 fields, the header has 2", "`file_name` is empty", "not closed"];
    assert_eq!(header.len(), said.len());
    assert!(header.iter().zip(said).all(|((.., reason), said)| reason.contains(said)), "{header:?}");
}

#[test]
fn a_recording_that_is_listed_again_is_left_out_and_said_so() {
    let found = left_out("metadata.csv", "a|Hello.\nb|Good day.\na|Hello.\n./a|Bye.\na|Bye.\n");
    let said = ["line 1 lists this recording already, with the same text", "another text", "another text"];
    assert_eq!(
        found.iter().map(|(line, defect, _)| (*line, *defect)).collect::<Vec<_>>(),
        [(3, Defect::Duplicate), (4, Defect::Duplicate), (5, Defect::Duplicate)]
    );
    assert!(found.iter().zip(said).all(|((.., reason), said)| reason.contains(said)), "{found:?}");
}

#[test]
fn a_directory_without_a_listing_is_refused_with_what_is_in_it() {
    let directory = data_set("a.wav", "", &["b.FLAC", "c.txt"]);
    let reason = DataSet::load(directory.path()).unwrap_err().to_string();
    assert!(reason.contains("holds 2 recordings") && reason.contains("metadata.csv"), "{reason}");
    for (name, listing, said) in [
        ("metadata.csv", "", "lists no clip"),
        ("metadata.csv", " \r\n\n", "lists no clip"),
        ("manifest.json", "[{\"audio_filepath\": \"a\"}]", "JSON array"),
        ("metadata.csv", "file_name,words\na.wav,x\n", "no column holds the text"),
    ] {
        let reason = refusal(name, listing);
        assert!(reason.contains(said), "{reason}");
    }
}

/// That `listing` keeps the lines `kept` and says of each other line what `said` does.
fn check_bad(name: &str, listing: &str, kept: &[usize], said: &[(usize, &str)]) {
    let directory = data_set(name, listing, &[]);
    let found = DataSet::load(directory.path()).unwrap();
    let lines: Vec<usize> = found.clips.iter().map(|clip| clip.line).collect();
    let bad: Vec<usize> = found.left_out.iter().map(|left| left.line).collect();
    assert_eq!((lines.as_slice(), bad), (kept, said.iter().map(|(line, _)| *line).collect()), "{listing}");
    for (left, (_, said)) in found.left_out.iter().zip(said) {
        assert!(left.defect == Defect::BadLine && left.reason.contains(said), "{listing}: {left:?}");
    }
}

#[test]
fn a_row_that_is_not_as_its_header_costs_itself_alone() {
    let check = |rows: &str, kept: &[usize], said: &[(usize, &str)]| {
        check_bad("metadata.csv", &format!("file_name,text,speaker\n{rows}"), kept, said);
    };
    check("a,Hello, world,amy\nb,Yes,amy\n", &[3], &[(2, "4 fields, the header has 3")]);
    check("a,Hello\nb,Yes,amy\n", &[3], &[(2, "2 fields, the header has 3")]);
    check("a,\"He said \"hi\" to us,\",amy\nb,Yes,amy\n", &[3], &[(2, "after a closing quote")]);
    check("a,\"Open,amy\nb,Yes,amy\nc,No,amy\n", &[3, 4], &[(2, "not closed")]);
    check("a,\"Two\nx,lines\",amy\nc,No,amy\n", &[4], &[(2, "not closed"), (3, "that line 2 opens")]);
    check("\"a\nb\",Yes,amy\nc,No,amy\n", &[4], &[(2, "not closed"), (3, "that line 2 opens")]);
    check("a, \"Yes, you\" ,amy\nb,a \"b\" c,amy\n", &[2, 3], &[]);
}

#[test]
fn a_json_line_that_says_two_things_or_no_text_is_bad() {
    let check = |row: &str, said: &str| {
        let listing = format!("{row}\n{{\"file_name\": \"b\", \"text\": \"Yes\"}}\n");
        check_bad("metadata.jsonl", &listing, &[2], &[(1, said)]);
    };
    check(r#"{"file_name": "a", "text": "Yes", "text": "No"}"#, "the key `text` is there twice");
    check(r#"{"file_name": "a", "text": 5}"#, "`text` is 5: a text in quotes");
    check(r#"{"file_name": 5, "text": "Yes"}"#, "`file_name` is 5");
    check(r#"{"file_name": "a", "text": "Yes", "speaker": true}"#, "`speaker` is true");
    check(r#"{"file_name": "a\nb", "text": "Yes"}"#, "control character");
    check(r#"{"file_name": "a", "text": "Yes", "speaker": "amy\nbob"}"#, "the speaker `amy\\nbob`");
}

#[test]
fn a_header_is_found_by_its_column_whatever_stands_between() {
    for by in [',', ';', '\t', '|'] {
        let listing = format!("speaker{by}file_name{by}text\njoe{by}a.wav{by}Hello.\n");
        check(&listing, Format::AudioFolder, &[(2, "a.wav", Some("joe"), "Hello.")]);
    }
    for header in ["path,text", "path;text", "path\ttext", "path"] {
        let reason = refusal("metadata.csv", &format!("{header}\na.wav,Hello.\n"));
        assert!(reason.contains("no column `file_name`"), "{reason}");
    }
    let reason = refusal("metadata.csv", "file_name,text,text\na.wav,Hello.,Bye.\n");
    assert!(reason.contains("two columns are called `text`"), "{reason}");
}

#[test]
fn recordings_lie_in_wav_before_wavs() {
    let clip = |path| [(1, path, None, "Hello.")];
    let in_both = ["wav/a.wav", "wavs/a.wav"];
    check_files("metadata.csv", "a|Hello.\n", &in_both, Format::LjSpeech, &clip("wav/a.wav"));
    check_files("metadata.csv", "a.wav|Hello.\n", &in_both, Format::Piper, &clip("wav/a.wav"));
    check_files("metadata.csv", "a|Hello.\n", &in_both[1..], Format::LjSpeech, &clip("wavs/a.wav"));
}

#[test]
fn short_texts_that_come_again_are_no_speakers() {
    for listing in [
        "g0|No. 1|Number one\ng1|No. 2|Number two\ng2|No. 1|Number one\n",
        "g0|42|forty two\ng1|7|seven\ng2|42|Forty two!\n",
        "g0|Ch. 1|Chapter one\ng1|Ch. 1|The first chapter\n",
    ] {
        let reason = refusal("metadata.csv", listing);
        assert!(reason.contains("may be a speaker or a text"), "{reason}");
    }
}

#[test]
fn a_data_set_that_is_not_there_is_a_mistake_of_the_request() {
    let directory = TempDir::new().unwrap();
    let reason = DataSet::load(&directory.path().join("absent")).unwrap_err();
    assert!(matches!(reason, Error::InvalidRequest(_)), "{reason}");
    assert!(reason.to_string().contains("--data ") && reason.to_string().contains("absent"), "{reason}");
}
