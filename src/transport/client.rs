//! A server's address and a text in, that server's audio out, for a caller that may block.
//!
//! Never converts: what comes is what the server has sent.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Status, Streaming};

use super::pb::{self, speech_client::SpeechClient, synthesize_response::Event};
use super::refusal::RETRY_AFTER;
use super::request::named;
use crate::assembly::{Account, Silences, Span};
use crate::codec::Encoding;
use crate::error::{Error, Excerpt, Result};
use crate::precision::{Dtype, cast};
use crate::synthesizer::Script;
use crate::text::{DateOrder, Markup};

/// After how long a silent connection is asked for a sign of life, and how long that may take.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// When to ask again, where a server does not say.
const RETRY_UNKNOWN: Duration = Duration::from_secs(1);

/// Where a server listens: `HOST:PORT`, with or without `http://` before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress(Uri);

impl FromStr for ServerAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |why: &str| Error::InvalidRequest(format!("server `{}` {why}", Excerpt(text)));
        let malformed = || refuse("is not HOST:PORT or http://HOST:PORT");
        let authority = match text.split_once("://") {
            None => text,
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
                rest.strip_suffix('/').unwrap_or(rest)
            }
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
                return Err(refuse(
                    "asks for TLS, which is not spoken here: put a proxy that does between, or use http",
                ));
            }
            Some(_) => return Err(malformed()),
        };
        let uri: Uri = format!("http://{authority}").parse().map_err(|_| malformed())?;
        let port = uri.port_u16().filter(|port| *port > 0);
        let bare =
            uri.authority().is_some_and(|found| found.as_str() == authority && !authority.contains('@'));
        if port.is_none() || !bare || uri.host().is_none_or(str::is_empty) {
            return Err(malformed());
        }
        Ok(Self(uri))
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.authority().map_or("", |authority| authority.as_str()))
    }
}

/// Who is to speak.
#[derive(Debug, Clone)]
pub enum RemoteSpeaker {
    Name(String),
    /// [speaker_embedding_dim] of the server's voice
    Embedding(Vec<f32>),
}

/// What to ask a server for.
#[derive(Debug, Clone)]
pub struct RemoteRequest {
    pub script: Script,
    /// Empty is the server's first voice.
    pub voice: String,
    /// `None` is the voice's default speaker.
    pub speaker: Option<RemoteSpeaker>,
    pub seed: u64,
    pub speaking_rate: f32,
    pub markup: Markup,
    pub date_order: DateOrder,
    /// As Riva writes one; empty is none.
    pub custom_dictionary: String,
    pub encoding: Encoding,
    /// `None` is the voice's own rate.
    pub sample_rate_hz: Option<u32>,
    pub silences: Silences,
}

/// Audio on its way from a server.
pub struct RemoteSpeech {
    tokio: Runtime,
    responses: Streaming<pb::SynthesizeResponse>,
    sample_rate_hz: u32,
    voice: String,
    notices: Vec<String>,
    completed: Option<pb::Completed>,
}

impl RemoteSpeech {
    /// Asks the server at `address`, which may take `timeout` to accept the request.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when nobody answers there, and what the server refuses.
    pub fn open(address: &ServerAddress, request: RemoteRequest, timeout: Duration) -> Result<Self> {
        let tokio = Builder::new_current_thread().enable_all().build();
        let tokio = tokio.map_err(|error| Error::Internal(format!("no thread for the network: {error}")))?;
        let (responses, started) = tokio.block_on(async {
            let silent = |_| silent(address, timeout);
            tokio::time::timeout(timeout, ask(address, request)).await.map_err(silent)?
        })?;
        let pb::Started { format, voice, notices, .. } = started;
        let sample_rate_hz = format.map_or(0, |format| format.sample_rate_hz);
        Ok(Self { tokio, responses, sample_rate_hz, voice, notices, completed: None })
    }

    pub fn sample_rate_hz(&self) -> u32 {
        self.sample_rate_hz
    }

    /// The voice that speaks.
    pub fn voice(&self) -> &str {
        &self.voice
    }

    /// The next samples of audio that was asked for as [`Encoding::PcmF32Le`]; `None` at the end.
    pub fn next_samples(&mut self) -> Result<Option<Vec<f32>>> {
        let bytes = self.next_bytes()?;
        bytes.map(|bytes| cast::to_f32(&bytes, Dtype::F32)).transpose()
    }

    /// The next bytes; `None` at the end.
    pub fn next_bytes(&mut self) -> Result<Option<Vec<u8>>> {
        while let Some(event) = self.tokio.block_on(next(&mut self.responses))? {
            match event {
                Event::Audio(bytes) => return Ok(Some(bytes)),
                Event::Completed(completed) => self.completed = Some(completed),
                Event::Started(_) => {}
            }
        }
        let cut = || Error::Unavailable("the server ended the audio before its end".to_owned());
        self.completed.as_ref().map(|_| None).ok_or_else(cut)
    }

    /// What became of the text; nothing before its end.
    pub fn account(&self) -> Account {
        let completed = self.completed.clone().unwrap_or_default();
        let span = |pb::SentenceSpan { text, first_sample, samples, capped }| Span {
            text,
            first_sample,
            samples,
            capped,
        };
        Account {
            samples: completed.samples,
            frames: completed.frames,
            steps: completed.steps,
            capped: completed.capped,
            unmapped: completed.unmapped,
            clipped_samples: completed.clipped_samples,
            sentences: completed.sentences.into_iter().map(span).collect(),
            marks: completed.marks.into_iter().map(|mark| (mark.name, mark.sample)).collect(),
        }
    }

    /// Sentences that were cut at their cap.
    pub fn capped(&self) -> impl Iterator<Item = &str> {
        let sentences = self.completed.iter().flat_map(|completed| &completed.sentences);
        sentences.filter(|sentence| sentence.capped).map(|sentence| sentence.text.as_str())
    }

    /// What was asked for and is not served.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Marks and the samples at which they lie.
    pub fn marks(&self) -> impl Iterator<Item = (&str, u64)> {
        let marks = self.completed.iter().flat_map(|completed| &completed.marks);
        marks.map(|mark| (mark.name.as_str(), mark.sample))
    }

    /// Characters for which the voice has no sound.
    pub fn unmapped(&self) -> &str {
        self.completed.as_ref().map_or("", |completed| &completed.unmapped)
    }
}

/// What a server tells of one of its voices.
#[derive(Debug, Clone)]
pub struct RemoteVoice {
    pub name: String,
    pub speakers: Vec<String>,
    pub has_default_speaker: bool,
    /// All that may change how it sounds, the server's version and plan included. Not what the voice's files hold.
    pub identity: String,
}

/// The voices of the server at `address`, its first voice first.
///
/// # Errors
/// [`Error::Unavailable`] when nobody answers there within `timeout`.
pub fn voices(address: &ServerAddress, timeout: Duration) -> Result<Vec<RemoteVoice>> {
    let tokio = Builder::new_current_thread().enable_all().build();
    let tokio = tokio.map_err(|error| Error::Internal(format!("no thread for the network: {error}")))?;
    let asked = async {
        let mut client = connect(address).await?;
        let listed = client.list_voices(pb::ListVoicesRequest {}).await.map_err(|status| error(&status))?;
        let server = client.describe(pb::DescribeRequest {}).await.map_err(|status| error(&status))?;
        Ok((listed.into_inner().voices, server.into_inner()))
    };
    let silent = |_| silent(address, timeout);
    let (listed, server) =
        tokio.block_on(async { tokio::time::timeout(timeout, asked).await.map_err(silent)? })?;
    let told = |mut voice: pb::VoiceInfo| {
        let name = std::mem::take(&mut voice.name);
        let (speakers, has_default_speaker) = (voice.speakers.clone(), !voice.default_speaker.is_empty());
        (voice.licence, voice.description) = Default::default();
        let plan = server.plans.iter().find(|plan| plan.voice == name);
        // How many speak together changes no sound, nor does the reason for it.
        let plan =
            plan.map(|plan| (&plan.precision, &plan.device, &plan.encoder, &plan.decoder, &plan.vocoder));
        let identity = format!("{:?}", (&server.version, &server.onnx_runtime, voice, plan));
        RemoteVoice { name, speakers, has_default_speaker, identity }
    };
    Ok(listed.into_iter().map(told).collect())
}

fn silent(address: &ServerAddress, timeout: Duration) -> Error {
    let timeout_ms = timeout.as_millis();
    Error::Unavailable(format!("the server at {address} has said nothing for {timeout_ms} ms"))
}

async fn connect(address: &ServerAddress) -> Result<SpeechClient<Channel>> {
    let nobody = |error: tonic::transport::Error| {
        // The innermost cause is what a person can mend: a refusal, or a host that nobody knows.
        let mut cause: &dyn std::error::Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Error::Unavailable(format!("no server at {address}: {cause}"))
    };
    // A server that dies later than it accepts is noticed by its silence.
    let endpoint = Endpoint::from(address.0.clone())
        .http2_keep_alive_interval(SIGN_OF_LIFE)
        .keep_alive_timeout(SIGN_OF_LIFE);
    Ok(SpeechClient::new(endpoint.connect().await.map_err(nobody)?))
}

async fn ask(
    address: &ServerAddress,
    request: RemoteRequest,
) -> Result<(Streaming<pb::SynthesizeResponse>, pb::Started)> {
    use pb::synthesis_config::Speaker;
    use pb::synthesize_request::Content;
    let mut client = connect(address).await?;
    // What is not asked for is not sent: phonemes are not read.
    let markup = match request.markup {
        Markup::Strip => pb::Markup::Unspecified,
        Markup::Speak => pb::Markup::Speak,
        Markup::Keep => pb::Markup::Keep,
    };
    let date_order = match request.date_order {
        DateOrder::MonthFirst => pb::DateOrder::Unspecified,
        DateOrder::DayFirst => pb::DateOrder::DayFirst,
    };
    let config = pb::SynthesisConfig {
        voice: request.voice,
        speaker: request.speaker.map(|speaker| match speaker {
            RemoteSpeaker::Name(name) => Speaker::SpeakerName(name),
            RemoteSpeaker::Embedding(values) => Speaker::SpeakerEmbedding(pb::SpeakerEmbedding { values }),
        }),
        seed: Some(request.seed),
        speaking_rate: request.speaking_rate,
        encoding: named(request.encoding).into(),
        sample_rate_hz: request.sample_rate_hz.unwrap_or_default(),
        lead_silence_ms: request.silences.lead_ms,
        tail_silence_ms: request.silences.tail_ms,
        sentence_silence_ms: request.silences.sentence_ms,
        custom_dictionary: request.custom_dictionary,
        markup: markup.into(),
        date_order: date_order.into(),
        ..Default::default()
    };
    let content = match request.script {
        Script::Text(text) => Content::Text(text),
        Script::Phonemes(phonemes) => Content::Phonemes(phonemes),
        Script::Ssml(ssml) => Content::Ssml(ssml),
    };
    let request = pb::SynthesizeRequest { content: Some(content), config: Some(config) };
    let mut responses = client.synthesize(request).await.map_err(|status| error(&status))?.into_inner();
    match next(&mut responses).await? {
        Some(Event::Started(started)) if started.format.is_some() => Ok((responses, started)),
        _ => Err(Error::Unavailable(format!("the server at {address} does not tell its format"))),
    }
}

async fn next(responses: &mut Streaming<pb::SynthesizeResponse>) -> Result<Option<Event>> {
    let response = responses.message().await.map_err(|status| error(&status))?;
    Ok(response.and_then(|response| response.event))
}

/// What a caller can do about `status`.
fn error(status: &Status) -> Error {
    let message = format!("the server says: {}", status.message());
    match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::OutOfRange | Code::FailedPrecondition => {
            Error::InvalidRequest(message)
        }
        Code::ResourceExhausted => Error::Overloaded { reason: message, retry_after: retry_after(status) },
        Code::Aborted => Error::TooSlow(message),
        Code::DeadlineExceeded => Error::DeadlineExceeded(message),
        _ => Error::Unavailable(message),
    }
}

fn retry_after(status: &Status) -> Duration {
    let told = status.metadata().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    told.and_then(|ms| ms.parse().ok()).map_or(RETRY_UNKNOWN, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_and_ports() {
        for text in ["a:1", "http://a:1", "HTTP://a:1", "http://a:1/"] {
            assert_eq!(text.parse::<ServerAddress>().unwrap().to_string(), "a:1", "{text}");
        }
        for text in ["127.0.0.1:50051", "[::1]:50051", "tts.example:80"] {
            assert_eq!(text.parse::<ServerAddress>().unwrap().to_string(), text);
        }
        for text in [
            "",
            ":",
            "a",
            "a:",
            ":1",
            "a:0",
            "a:65536",
            "a:x",
            "a b:1",
            "::1:1",
            "u@a:1",
            "a:1/x",
            "a:1?x",
            "http://",
            "ftp://a:1",
            "http://http://a:1",
        ] {
            let refusal =
                text.parse::<ServerAddress>().map(|address| address.to_string()).unwrap_err().to_string();
            assert!(refusal.contains("HOST:PORT"), "{text}: {refusal}");
        }
        let refusal = "https://a:1".parse::<ServerAddress>().unwrap_err().to_string();
        assert!(refusal.contains("TLS"), "{refusal}");
    }
}
