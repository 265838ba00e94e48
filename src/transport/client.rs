//! A server's address and a text in, that server's audio out, for a caller that may block.
//!
//! Never converts: samples come as the floats that the voice made.

use tokio::runtime::{Builder, Runtime};
use tonic::{Code, Status, Streaming};

use super::pb::{self, speech_client::SpeechClient, synthesize_response::Event};
use crate::error::{Error, Result};
use crate::precision::{Dtype, cast};
use crate::synthesizer::Script;

/// What to ask a server for.
#[derive(Debug, Clone)]
pub struct RemoteRequest {
    pub script: Script,
    /// Empty is the server's first voice.
    pub voice: String,
    pub speaker: Option<String>,
    pub seed: u64,
    pub speaking_rate: f32,
}

/// Audio on its way from a server.
pub struct RemoteSpeech {
    tokio: Runtime,
    responses: Streaming<pb::SynthesizeResponse>,
    sample_rate_hz: u32,
    completed: Option<pb::Completed>,
}

impl RemoteSpeech {
    /// Asks the server at `address`, a host and a port.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when nobody answers there, and what the server refuses.
    pub fn open(address: &str, request: RemoteRequest) -> Result<Self> {
        let tokio = Builder::new_current_thread().enable_all().build();
        let tokio = tokio.map_err(|error| Error::Internal(format!("no thread for the network: {error}")))?;
        let (responses, sample_rate_hz) = tokio.block_on(ask(address, request))?;
        Ok(Self { tokio, responses, sample_rate_hz, completed: None })
    }

    pub fn sample_rate_hz(&self) -> u32 {
        self.sample_rate_hz
    }

    /// The next samples; `None` at the end.
    pub fn next_samples(&mut self) -> Result<Option<Vec<f32>>> {
        while let Some(event) = self.tokio.block_on(next(&mut self.responses))? {
            match event {
                Event::Audio(bytes) => return cast::to_f32(&bytes, Dtype::F32).map(Some),
                Event::Completed(completed) => self.completed = Some(completed),
                Event::Started(_) => {}
            }
        }
        let cut = || Error::Unavailable("the server ended the audio before its end".to_owned());
        self.completed.as_ref().map(|_| None).ok_or_else(cut)
    }

    /// Sentences that were cut at their cap.
    pub fn capped(&self) -> impl Iterator<Item = &str> {
        let sentences = self.completed.iter().flat_map(|completed| &completed.sentences);
        sentences.filter(|sentence| sentence.capped).map(|sentence| sentence.text.as_str())
    }

    /// Characters for which the voice has no sound.
    pub fn unmapped(&self) -> &str {
        self.completed.as_ref().map_or("", |completed| &completed.unmapped)
    }
}

async fn ask(address: &str, request: RemoteRequest) -> Result<(Streaming<pb::SynthesizeResponse>, u32)> {
    use pb::synthesis_config::Speaker;
    use pb::synthesize_request::Content;
    let nobody = |error: tonic::transport::Error| {
        let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        Error::Unavailable(format!("no server at {address}: {cause}"))
    };
    let mut client = SpeechClient::connect(format!("http://{address}")).await.map_err(nobody)?;
    let config = pb::SynthesisConfig {
        voice: request.voice,
        speaker: request.speaker.map(Speaker::SpeakerName),
        seed: Some(request.seed),
        speaking_rate: request.speaking_rate,
        encoding: pb::AudioEncoding::PcmF32le.into(),
        ..Default::default()
    };
    let content = match request.script {
        Script::Text(text) => Content::Text(text),
        Script::Phonemes(phonemes) => Content::Phonemes(phonemes),
    };
    let request = pb::SynthesizeRequest { content: Some(content), config: Some(config) };
    let mut responses = client.synthesize(request).await.map_err(|status| error(&status))?.into_inner();
    match next(&mut responses).await? {
        Some(Event::Started(pb::Started { format: Some(format), .. })) => {
            Ok((responses, format.sample_rate_hz))
        }
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
        Code::ResourceExhausted => Error::Overloaded(message),
        Code::DeadlineExceeded => Error::DeadlineExceeded(message),
        _ => Error::Unavailable(message),
    }
}
