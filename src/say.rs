//! One text in, one WAV file or one run of raw samples out.
//!
//! Never leaves half a file under its final name.

use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::assembly::Silences;
use crate::cli::{Say, threads};
use crate::codec::Encoding;
use crate::decoder::End;
use crate::engine::{AudioStream, EngineOptions, SpokenSentence, StreamRequest};
use crate::error::{Error, Excerpt, Result};
use crate::pcm::{RawWriter, WavFile};
use crate::repertoire::plan;
use crate::runtime::{Runtime, library};
use crate::signals::interruption;
use crate::synthesizer::{Script, Synthesizer};
use crate::text::{MAX_TEXT_BYTES, Mark, Passage, Reading};
use crate::transport::client::{RemoteRequest, RemoteSpeaker, RemoteSpeech, ServerAddress};
use crate::voice::{embedding_of_file, is_embedding_file};

/// Speaks as `args` say; what a person should know goes to stderr.
pub fn say(args: &Say) -> Result<()> {
    if let Some(server) = &args.server {
        return say_through(server, args);
    }
    let voice = args.voice.load()?;
    let plan = plan(&voice, args.precision, args.runtime.device)?;
    tracing::info!("{}", plan.summary());
    if args.explain {
        return print(&plan.to_string());
    }
    let script = script(args)?;
    let lexicon = args.lexicon.load()?;
    let speaker = voice.speaker(args.speaker.as_deref())?;
    let library = library::locate(&args.runtime.lookup()?)?;
    tracing::info!("ONNX Runtime from {}", library.display());
    let runtime = Runtime::load(&library, args.runtime.device)?;
    let synthesizer =
        Synthesizer::load(&runtime, &voice, &plan, &EngineOptions::solo(threads(args.threads)?))?;
    let synthesizer = synthesizer.with_lexicon(lexicon);
    drop(voice);

    let began = Instant::now();
    let reading = Reading { markup: args.markup, date_order: args.date_order, lexicon: None };
    let Passage { segments, lead_ms, end_marks, notices } = synthesizer.passage(&script, &reading)?;
    notices.iter().for_each(|notice| tracing::warn!("{notice}"));
    for segment in &segments {
        tracing::debug!("reads `{}` as `{}`", segment.text, segment.spoken);
    }
    let sentences = segments.len();
    let lead = lead_ms as usize * synthesizer.sample_rate_hz() as usize / 1000;
    let request = StreamRequest { seed: args.seed, speaking_rate: args.rate, ..StreamRequest::new(speaker) };
    let lead = Some(vec![0.0; lead]).filter(|lead| !lead.is_empty());
    let source = Source::Engine { stream: synthesizer.speak(segments, request)?, lead, end_marks };
    write(Watched::new(source, sentences, began), args, synthesizer.sample_rate_hz())
}

/// Speaks through the server at `address`.
fn say_through(address: &ServerAddress, args: &Say) -> Result<()> {
    let began = Instant::now();
    let speaker = match args.speaker.as_deref() {
        Some(path) if is_embedding_file(path) => {
            Some(RemoteSpeaker::Embedding(embedding_of_file(Path::new(path))?))
        }
        named => named.map(|name| RemoteSpeaker::Name(name.to_owned())),
    };
    let request = RemoteRequest {
        script: script(args)?,
        voice: args.voice.voice.as_deref().map(Path::to_string_lossy).unwrap_or_default().into_owned(),
        speaker,
        seed: args.seed,
        speaking_rate: args.rate,
        markup: args.markup,
        date_order: args.date_order,
        custom_dictionary: String::new(),
        encoding: Encoding::PcmF32Le,
        sample_rate_hz: None,
        silences: Silences::default(),
    };
    let speech = RemoteSpeech::open(address, request, args.server_timeout)?;
    speech.notices().iter().for_each(|notice| tracing::warn!("{notice}"));
    let rate = speech.sample_rate_hz();
    write(Watched::new(Source::Server(Box::new(speech)), 0, began), args, rate)
}

fn write(stream: Watched, args: &Say, sample_rate_hz: u32) -> Result<()> {
    match &args.output {
        Some(path) => write_wav(stream, path, sample_rate_hz, args.quiet),
        None => write_raw(stream, sample_rate_hz),
    }
}

fn script(args: &Say) -> Result<Script> {
    let text = match args.text.as_deref() {
        None if std::io::stdin().is_terminal() => {
            let reason = "the text is missing: give it, or - and write it on stdin";
            return Err(Error::InvalidRequest(reason.to_owned()));
        }
        None | Some("-") => text_from(std::io::stdin().lock())?,
        Some(text) => {
            if is_file_name(text) {
                tracing::warn!(
                    "`{}` is spoken as a text; `say - < FILE` speaks what is in a file",
                    Excerpt(text)
                );
            }
            text.to_owned()
        }
    };
    Ok(match (args.phonemes, args.ssml) {
        (true, _) => Script::Phonemes(text),
        (_, true) => Script::Ssml(text),
        _ => Script::Text(text),
    })
}

/// Whether `text` rather names a file that is there.
fn is_file_name(text: &str) -> bool {
    !text.contains(char::is_whitespace) && Path::new(text).extension().is_some() && Path::new(text).is_file()
}

/// The whole of `input`, which must be UTF-8 and no longer than a request may be.
fn text_from(input: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    let limit = MAX_TEXT_BYTES as u64 + 1;
    input.take(limit).read_to_end(&mut bytes).map_err(|e| Error::io("stdin", e))?;
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(Error::InvalidRequest(format!(
            "the text on stdin is longer than {MAX_TEXT_BYTES} bytes"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        let position = e.utf8_error().valid_up_to();
        Error::InvalidRequest(format!("the text on stdin is not UTF-8 from byte {position} on"))
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned))
}

/// Who speaks.
enum Source {
    Engine {
        stream: AudioStream,
        /// Silence that comes first.
        lead: Option<Vec<f32>>,
        end_marks: Vec<String>,
    },
    Server(Box<RemoteSpeech>),
}

/// A stream with its progress bar and what it has told so far.
struct Watched {
    source: Source,
    bar: ProgressBar,
    began: Instant,
    first_audio: Option<Duration>,
    samples: usize,
}

/// Texts of fewer sentences are spoken before a bar could be read.
const SENTENCES_WORTH_A_BAR: usize = 8;

impl Watched {
    fn new(source: Source, sentences: usize, began: Instant) -> Self {
        let bar = if sentences >= SENTENCES_WORTH_A_BAR && std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{bar:32} {pos}/{len} sentences, {eta} left");
            ProgressBar::new(sentences as u64)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        } else {
            ProgressBar::hidden()
        };
        Self { source, bar, began, first_audio: None, samples: 0 }
    }

    /// The next samples.
    fn next(&mut self) -> Result<Option<Vec<f32>>> {
        let samples = match &mut self.source {
            Source::Engine { lead: lead @ Some(_), .. } => lead.take().unwrap_or_default(),
            Source::Engine { stream, end_marks, .. } => {
                let Some(chunk) = stream.next().transpose()? else {
                    end_marks.iter().for_each(|name| report_mark(name, self.samples as u64));
                    return Ok(None);
                };
                if let Some(sentence) = &chunk.completes {
                    self.bar.inc(1);
                    let end = self.samples as u64;
                    self.bar.suspend(|| report(sentence, end));
                }
                chunk.samples
            }
            Source::Server(speech) => {
                let Some(samples) = speech.next_samples()? else {
                    report_remote(speech);
                    return Ok(None);
                };
                samples
            }
        };
        self.first_audio.get_or_insert_with(|| self.began.elapsed());
        self.samples += samples.len();
        Ok(Some(samples))
    }

    /// Says what has become of it. -> seconds of audio
    fn finish(self, clipped: u64, sample_rate_hz: u32) -> f32 {
        self.bar.finish_and_clear();
        if clipped > 0 {
            tracing::warn!("{clipped} samples lay outside -1..1 and were clipped");
        }
        let audio_s = self.samples as f32 / sample_rate_hz as f32;
        let wall_s = self.began.elapsed().as_secs_f32();
        tracing::info!(
            first_audio_ms = self.first_audio.unwrap_or_default().as_millis() as u64,
            real_time_factor = wall_s / audio_s.max(f32::MIN_POSITIVE),
            "spoke {audio_s:.2} s of audio in {wall_s:.2} s"
        );
        audio_s
    }
}

/// Says what a person would not expect of a sentence, and where its marks lie: it ends at sample `end`.
fn report(sentence: &SpokenSentence, end: u64) {
    let symbols = sentence.segment.ids.len().max(1) as u64;
    for Mark { name, symbol } in &sentence.segment.marks {
        report_mark(name, end - sentence.samples + sentence.samples * *symbol as u64 / symbols);
    }
    let text = Excerpt(&sentence.segment.text);
    if sentence.ending.end == End::Cap {
        let frames = sentence.ending.frames;
        tracing::warn!("cut at its cap of {frames} frames, before the voice ended it: `{text}`");
    }
    if !sentence.segment.unmapped.is_empty() {
        let lacking: String = sentence.segment.unmapped.iter().collect();
        tracing::warn!("this voice has no sound for `{}`, left out of `{text}`", Excerpt(&lacking));
    }
}

fn report_mark(name: &str, sample: u64) {
    tracing::info!("mark `{}` at sample {sample}", Excerpt(name));
}

fn report_remote(speech: &RemoteSpeech) {
    speech.marks().for_each(|(name, sample)| report_mark(name, sample));
    for text in speech.capped() {
        tracing::warn!("cut at its cap, before the voice ended it: `{}`", Excerpt(text));
    }
    if !speech.unmapped().is_empty() {
        tracing::warn!("this voice has no sound for `{}`, left out", Excerpt(speech.unmapped()));
    }
}

fn write_wav(mut stream: Watched, path: &Path, sample_rate_hz: u32, quiet: bool) -> Result<()> {
    let mut file = WavFile::create(path, sample_rate_hz)?;
    let interrupted = interruption()?;
    while let Some(samples) = stream.next()? {
        if interrupted.load(Ordering::Relaxed) {
            // Returning drops the unfinished file, which a signal of its own would leave behind.
            return Err(Error::io("the WAV file", std::io::ErrorKind::Interrupted.into()));
        }
        file.write(&samples)?;
    }
    let audio_s = stream.finish(file.finish()?, sample_rate_hz);
    if !quiet {
        // Nobody to tell must not change the status.
        let _ = writeln!(std::io::stderr(), "wrote {} ({audio_s:.2} s of audio)", path.display());
    }
    Ok(())
}

fn write_raw(mut stream: Watched, sample_rate_hz: u32) -> Result<()> {
    let mut output = RawWriter::new(std::io::stdout().lock());
    while let Some(samples) = stream.next()? {
        output.write(&samples).map_err(|e| Error::io("stdout", e))?;
    }
    stream.finish(output.clipped(), sample_rate_hz);
    Ok(())
}

/// Prints to stdout, where a reader may have gone.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    write!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(|e| Error::io("stdout", e))
}
