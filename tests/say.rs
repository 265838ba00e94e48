//! The program as a person meets it: exit statuses, messages, files.

mod support;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use support::root;

fn mezzavoce(arguments: &[&str]) -> Output {
    mezzavoce_with_stdin(arguments, b"")
}

fn mezzavoce_with_stdin(arguments: &[&str], stdin: &[u8]) -> Output {
    use std::io::Write;
    let mut child = Command::new(env!("CARGO_BIN_EXE_mezzavoce"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments need not read its input.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs `say` with `arguments`, which must be refused with `status` and a message that holds `words`.
fn check_refused(arguments: &[&str], status: i32, words: &[&str]) {
    let mut all = vec!["say"];
    all.extend(arguments);
    let output = mezzavoce(&all);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {message}");
    for word in words {
        assert!(message.contains(word), "{arguments:?} does not say {word:?}: {message}");
    }
    assert!(!message.contains("panicked"), "{message}");
}

fn samples(path: &Path) -> (u32, Vec<i16>) {
    let mut reader = hound::WavReader::open(path).unwrap();
    (reader.spec().sample_rate, reader.samples().map(Result::unwrap).collect())
}

#[test]
fn speaks_into_a_wav_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.wav");
    let output = mezzavoce(&["say", "Good morning.", "-o", path.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let (sample_rate_hz, samples) = samples(&path);
    assert_eq!(sample_rate_hz, 22_050);
    assert!((11_025..66_150).contains(&samples.len()), "{} samples", samples.len());
    assert!(samples.iter().any(|&sample| sample.unsigned_abs() > 3_000), "silence");
    assert!(output.stdout.is_empty());
    let audio_s = samples.len() as f32 / 22_050.0;
    assert_eq!(stderr(&output), format!("wrote {} ({audio_s:.2} s of audio)\n", path.display()));
    let quiet = mezzavoce(&["say", "Good morning.", "--quiet", "-o", path.to_str().unwrap()]);
    assert!(quiet.status.success() && quiet.stderr.is_empty(), "{}", stderr(&quiet));
}

#[test]
fn raw_samples_and_the_file_are_the_same_audio() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.wav");
    let text = "One voice. Two doors.";
    assert!(mezzavoce(&["say", text, "-o", path.to_str().unwrap()]).status.success());
    let raw = mezzavoce_with_stdin(&["say", "-", "--raw"], text.as_bytes());
    assert!(raw.status.success(), "{}", stderr(&raw));
    let bytes: Vec<u8> = samples(&path).1.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    assert_eq!(raw.stdout, bytes);
}

#[test]
fn a_text_comes_on_stdin_and_a_file_name_is_told_from_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.wav");
    let text = directory.path().join("letter.txt");
    std::fs::write(&text, "Hello.").unwrap();
    let piped = mezzavoce_with_stdin(&["say", "-o", path.to_str().unwrap(), "--log", "debug"], b"It is 5.");
    assert!(piped.status.success(), "{}", stderr(&piped));
    assert!(stderr(&piped).contains("reads `It is five.` as `"), "{}", stderr(&piped));
    let named = mezzavoce(&["say", text.to_str().unwrap(), "-o", path.to_str().unwrap()]);
    assert!(stderr(&named).contains("say - < FILE"), "{}", stderr(&named));
    let nothing = mezzavoce(&["say", "-o", path.to_str().unwrap()]);
    assert_eq!(nothing.status.code(), Some(2), "{}", stderr(&nothing));
}

#[test]
fn every_sentence_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let length = |text: &str| {
        let path = directory.path().join("a.wav");
        assert!(mezzavoce(&["say", text, "-o", path.to_str().unwrap()]).status.success());
        samples(&path).1.len() as f32
    };
    let one = length("The ship came in.");
    let twelve = length(&"The ship came in. ".repeat(12));
    // Masks differ from sentence to sentence, so lengths do a little.
    assert!(twelve > 10.0 * one, "one sentence has {one} samples, twelve have {twelve}");
}

#[test]
fn short_words_come_to_an_end() {
    for text in ["Hi.", "No", "A", "42"] {
        let output = mezzavoce(&["say", text, "--raw"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(!stderr(&output).contains("cap"), "{text}: {}", stderr(&output));
        let seconds = output.stdout.len() as f32 / 2.0 / 22_050.0;
        assert!((0.2..3.0).contains(&seconds), "{text} takes {seconds} s");
    }
}

#[test]
fn a_sentence_that_is_cut_is_reported() {
    // The randomly initialised voice of the tests never learnt to stop.
    let voice = root().join("models/tiny");
    let output = mezzavoce(&["say", "On and on.", "--raw", "--voice", voice.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("cut at its cap"), "{}", stderr(&output));
}

#[test]
fn what_a_person_asked_wrongly_is_status_2() {
    check_refused(&["", "--raw"], 2, &["nothing"]);
    check_refused(&["...!?", "--raw"], 2, &["nothing"]);
    check_refused(&["Hello."], 2, &["--output", "--raw"]);
    check_refused(&["Hello.", "--raw", "--precision", "fp8"], 2, &["fp8", "bf16-mixed"]);
    check_refused(&["Hello.", "--raw", "--speaker", "nobody"], 2, &["nobody", "joe"]);
    check_refused(&["Hello.", "--raw", "--seed", "-1"], 2, &["-1"]);
    check_refused(&["Hello.", "--raw", "--ssml"], 2, &["line 1, column 1", "root"]);
    check_refused(&["<speak>\n<p>Hi</speak>", "--raw", "--ssml"], 2, &["line 2, column 6"]);
    check_refused(&["<speak/>", "--raw", "--ssml", "--phonemes"], 2, &["--phonemes"]);
    check_refused(&["Hello.", "--raw", "--markup", "bold"], 2, &["bold", "strip, speak or keep"]);
    check_refused(&["Hello.", "--raw", "--date-order", "ymd"], 2, &["ymd", "day-first"]);
    check_refused(&["Hello.", "--raw", "--threads", "0"], 2, &["0"]);
    check_refused(&["Hello.", "--raw", "--threads", "65000"], 2, &["65000", "at most"]);
    check_refused(&["Hello.", "--raw", "--device", "tpu"], 2, &["tpu"]);
    check_refused(&["Hello.", "--raw", "--log", "=x="], 2, &["=x="]);
}

#[test]
fn a_voice_that_needs_a_speaker_says_so() {
    check_refused(&["Hello.", "--raw", "--voice", &stock()], 2, &["speaker", "16"]);
}

/// A stock SpeechT5 directory: characters, and no speaker of its own.
fn stock() -> String {
    root().join("tests/data/speecht5_tiny").to_str().unwrap().to_owned()
}

#[test]
fn a_stock_voice_speaks_with_an_embedding_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let speaker = directory.path().join("speaker.json");
    std::fs::write(&speaker, serde_json::to_string(&vec![0.25f32; 16]).unwrap()).unwrap();
    let speaker = speaker.to_str().unwrap();
    let output = mezzavoce(&["say", "hello there", "--raw", "--voice", &stock(), "--speaker", speaker]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(output.stdout.len() % 512, 0, "whole frames of 256 samples");
    check_refused(&["a", "--raw", "--phonemes", "--voice", &stock(), "--speaker", speaker], 2, &["phonemes"]);
}

#[test]
fn a_broken_voice_is_status_3() {
    let empty = tempfile::tempdir().unwrap();
    check_refused(&["Hello.", "--raw", "--voice", empty.path().to_str().unwrap()], 3, &["config.json"]);
    check_refused(&["Hello.", "--raw", "--voice", "/no/such/voice"], 3, &["/no/such/voice"]);
}

#[test]
fn a_missing_runtime_is_status_4() {
    check_refused(&["Hello.", "--raw", "--onnxruntime", "/no/such/library.so"], 4, &["/no/such/library.so"]);
    let text = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(text.path(), "no library").unwrap();
    check_refused(
        &["Hello.", "--raw", "--onnxruntime", text.path().to_str().unwrap()],
        4,
        &["cannot be used"],
    );
}

#[test]
fn a_disk_that_refuses_is_status_5_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing").join("a.wav");
    check_refused(&["Hello.", "-o", path.to_str().unwrap()], 5, &["missing"]);
    check_refused(&["Hello.", "-o", directory.path().to_str().unwrap()], 5, &["directory"]);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn stdin_that_is_no_text_is_refused() {
    let output = mezzavoce_with_stdin(&["say", "-", "--raw"], b"ab\xff");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("byte 2"), "{}", stderr(&output));
    let output = mezzavoce_with_stdin(&["say", "-", "--raw"], &vec![b'a'; (1 << 20) + 1]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("1048576"), "{}", stderr(&output));
}

#[test]
fn explains_the_plan_and_stops() {
    let output = mezzavoce(&["say", "--explain", "--precision", "bf16-true"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["bf16-true", "encoder", "decoder", "vocoder", "requested", "stored", "executed"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn inspects_a_voice() {
    let output = mezzavoce(&["inspect"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for fact in ["joe", "22050 Hz", "3 frames", "33 frames, 383 ms", "7255605 parameters"] {
        assert!(text.contains(fact), "{fact:?} is not in {text}");
    }
}

/// Long enough to be interrupted on any machine.
#[cfg(unix)]
fn a_long_text() -> String {
    "The ship came in. ".repeat(400)
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_no_file_behind() {
    for signal in ["INT", "TERM", "HUP"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.wav");
        let mut child = Command::new(env!("CARGO_BIN_EXE_mezzavoce"))
            .args(["say", &a_long_text(), "-o", path.to_str().unwrap()])
            .spawn()
            .unwrap();
        let begun = || std::fs::read_dir(directory.path()).unwrap().count() > 0;
        while !begun() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        // The file is opened just before the handler is there.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let kill =
            Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        assert!(!begun(), "{signal} left {:?}", std::fs::read_dir(directory.path()).unwrap().next());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_stderr_that_refuses_changes_no_status() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mezzavoce"));
        command.args(arguments).stdout(Stdio::null()).stderr(full()).status().unwrap().code()
    };
    assert_eq!(run(&["say", "", "--raw"]), Some(2));
    assert_eq!(run(&["say", "hi \u{6f22} you", "--raw"]), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_on_stdout_has_true_sizes() {
    let output = mezzavoce(&["say", "Oh.", "-o", "-"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let data_bytes = u32::from_le_bytes(output.stdout[40..44].try_into().unwrap()) as usize;
    assert_eq!(data_bytes + 44, output.stdout.len());
    let direct = mezzavoce(&["say", "Oh.", "--raw"]);
    assert_eq!(direct.stdout, output.stdout[44..]);
}

#[test]
fn a_library_that_is_cut_short_is_refused_before_it_is_loaded() {
    let library = support::library();
    let bytes = std::fs::read(&library).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let cut = directory.path().join(library.file_name().unwrap());
    std::fs::write(&cut, &bytes[..bytes.len() / 7]).unwrap();
    check_refused(&["Hello.", "--raw", "--onnxruntime", cut.to_str().unwrap()], 4, &["cut short"]);
    check_refused(
        &["Hello.", "--raw", "--onnxruntime", directory.path().to_str().unwrap()],
        4,
        &["cut short"],
    );
}

#[test]
fn an_empty_variable_counts_as_unset_and_a_named_library_needs_no_home() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mezzavoce"));
    let output = command.args(["say", "Oh.", "--raw"]).env("ORT_DYLIB_PATH", "").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let mut command = Command::new(env!("CARGO_BIN_EXE_mezzavoce"));
    command.args(["say", "Oh.", "--raw", "--onnxruntime"]).arg(support::library());
    let output = command.env_remove("HOME").env_remove("XDG_CACHE_HOME").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_misspelt_log_level_does_not_silence_the_log() {
    check_refused(&["Hello.", "--raw", "--log", "wran"], 2, &["wran", "warn"]);
}
#[test]
fn speaks_at_the_rate_that_is_asked_for() {
    /// Samples of 16 bits in a mel frame of the default voice.
    const BYTES_PER_FRAME: usize = 256 * 2;
    let spoken = |rate| {
        let output = mezzavoce(&["say", "--raw", "--rate", rate, "Good morning."]);
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout.len() / BYTES_PER_FRAME
    };
    let (slow, own, fast) = (spoken("0.5"), spoken("1"), spoken("2"));
    assert_eq!((slow, fast), (2 * own, own.div_ceil(2)), "frames, where the voice's own pace has {own}");
    for rate in ["0.49", "2.1", "NaN", "-1", "fast"] {
        check_refused(&["--raw", &format!("--rate={rate}"), "Good morning."], 2, &["0.5 to 2", rate]);
    }
}

#[test]
fn ssml_comes_from_stdin_too() {
    let ssml = "<speak><break time='500ms'/>Good <break time='1s'/>morning.</speak>";
    let output = mezzavoce_with_stdin(&["say", "-", "--ssml", "--raw"], ssml.as_bytes());
    assert!(output.status.success(), "{}", stderr(&output));
    let samples: Vec<&[u8]> = output.stdout.chunks(2).collect();
    assert!(samples.iter().take(11_025).all(|sample| *sample == [0, 0]), "no break before the speech");
    let silent = samples[11_025..].split(|sample| *sample != [0, 0]).map(<[_]>::len).max().unwrap();
    assert!((22_050..23_000).contains(&silent), "a break of {silent} samples");
}
