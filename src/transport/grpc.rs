//! gRPC calls in, streams of messages or a status with its reason out.
//!
//! Never runs the text front-end or loads a voice on the thread that serves connections.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status, Streaming};
use tracing::Instrument;

use super::delivery::{Accepted, Delivery};
use super::feed::{Feed, FeedLimits};
use super::pb::speech_server::{Speech, SpeechServer};
use super::pb::synthesize_incremental_request::Content as IncrementalContent;
use super::refusal::{Door, status};
use super::request::{Wanted, check_deadline, check_phonemes, deadline, request_id, script};
use super::responses::{InFlight, Responses};
use super::{describe, pb};
use crate::error::{Error, Excerpt, Result, listed};
use crate::repertoire::{Repertoire, ServedVoice, VoiceSource};
use crate::synthesizer::Script;
use crate::text::lexicon::MAX_CUSTOM_DICTIONARY_BYTES;

/// Room for what a message holds beside its text.
const MESSAGE_SLACK_BYTES: usize = (64 << 10) + MAX_CUSTOM_DICTIONARY_BYTES;
const MAX_NAME_CHARACTERS: usize = 64;

/// The service of `proto/mezzavoce/v1/mezzavoce.proto`.
pub struct SpeechService {
    pub repertoire: Arc<Repertoire>,
    pub feed: FeedLimits,
    /// Clients may load and unload voices.
    pub admin: bool,
    /// ONNX Runtime's version and its own words about its build.
    pub onnx_runtime: String,
    /// Becomes true when the server waits for no response any longer.
    pub halted: watch::Receiver<bool>,
    /// How many responses have not ended.
    pub in_flight: Arc<watch::Sender<usize>>,
}

impl SpeechService {
    /// The service, with limits on what it decodes and every refusal counted.
    pub fn into_server(self) -> Door<SpeechServer<Self>> {
        let (metrics, max_text_bytes) = (self.repertoire.metrics().clone(), self.feed.max_text_bytes);
        let limit = max_text_bytes.saturating_add(MESSAGE_SLACK_BYTES);
        Door { inner: SpeechServer::new(self).max_decoding_message_size(limit), metrics, max_text_bytes }
    }

    fn voice(&self, name: &str) -> Result<Arc<ServedVoice>, Status> {
        self.repertoire.find(name).ok_or_else(|| match (self.repertoire.voices().as_slice(), name) {
            ([], _) if self.repertoire.is_loading() => {
                Status::unavailable("the voices are still being loaded")
            }
            ([], "") => Status::unavailable("no voice is loaded: LoadVoice or a restart brings one"),
            (voices, _) => no_voice(name, voices),
        })
    }

    fn accept(
        &self,
        config: &pb::SynthesisConfig,
        id: &str,
        metadata: &MetadataMap,
        arrived: Instant,
    ) -> Result<Accepted, Status> {
        let refuse = |error: Error| status(&error, id);
        let deadline = deadline(metadata, arrived).map_err(refuse)?;
        let voice = self.voice(&config.voice)?;
        let wanted = Wanted::new(config, &voice, deadline).map_err(refuse)?;
        check_deadline(deadline, &voice).map_err(refuse)?;
        Ok(Accepted {
            id: id.to_owned(),
            arrived,
            voice,
            wanted,
            metrics: self.repertoire.metrics().clone(),
            halted: self.halted.clone(),
        })
    }

    async fn speak(&self, request: Request<pb::SynthesizeRequest>, id: &str) -> Result<Responses, Status> {
        let arrived = Instant::now();
        let (metadata, _, pb::SynthesizeRequest { content, config }) = request.into_parts();
        let config = config.unwrap_or_default();
        let refuse = |error: Error| status(&error, id);
        if config.whole_sentences {
            let reason = "whole_sentences is for SynthesizeIncremental: here the whole text is known";
            return Err(Status::invalid_argument(reason));
        }
        let accepted = self.accept(&config, id, &metadata, arrived)?;
        let script = script(content, &accepted.voice, self.feed.max_text_bytes).map_err(refuse)?;
        if matches!(script, Script::Phonemes(_)) {
            check_phonemes(&config).map_err(refuse)?;
        }
        let (voice, seed) = (&accepted.voice.name, accepted.wanted.stream.seed);
        let span = tracing::info_span!("synthesize", id, voice, bytes = script.text().len(), seed);

        // A place first: what is refused must not cost the work of reading it.
        let (voice, reading) = (Arc::clone(&accepted.voice), accepted.wanted.reading.clone());
        let (mut delivery, responses) =
            Delivery::open(accepted, InFlight::new(&self.in_flight)).map_err(refuse)?;
        let stage = span.clone();
        let segment = move || stage.in_scope(|| voice.synthesizer.passage(&script, &reading));
        let read = blocking(segment).await.and_then(|passage| {
            let lines: Vec<&str> = passage.segments.iter().map(|segment| segment.text.as_str()).collect();
            let processed_text = lines.join("\n");
            delivery.speak_passage(passage)?;
            Ok(processed_text)
        });
        let processed_text = match read {
            Ok(processed_text) => processed_text,
            Err(error) => {
                delivery.refuse();
                return Err(refuse(error));
            }
        };
        delivery.end_text();
        tokio::spawn(delivery.run(None, processed_text).instrument(span));
        Ok(responses)
    }

    async fn speak_incrementally(
        &self,
        metadata: &MetadataMap,
        config: &pb::SynthesisConfig,
        messages: Streaming<pb::SynthesizeIncrementalRequest>,
        id: &str,
    ) -> Result<Responses, Status> {
        let accepted = self.accept(config, id, metadata, Instant::now())?;
        let (voice, seed) = (&accepted.voice.name, accepted.wanted.stream.seed);
        let span = tracing::info_span!("synthesize incrementally", id, voice, seed);
        let (voice, reading) = (Arc::clone(&accepted.voice), accepted.wanted.reading.clone());
        let (delivery, responses) =
            Delivery::open(accepted, InFlight::new(&self.in_flight)).map_err(|error| status(&error, id))?;
        let feed = Feed::start(messages, voice, reading, config.whole_sentences, self.feed);
        tokio::spawn(delivery.run(Some(feed), String::new()).instrument(span));
        Ok(responses)
    }

    /// Logs a refusal and gives either outcome its request's id.
    fn answer<T>(&self, id: &str, outcome: Result<T, Status>) -> Result<Response<T>, Status> {
        let value = MetadataValue::try_from(id).ok().filter(|_| !id.is_empty());
        match outcome {
            Ok(body) => {
                let mut response = Response::new(body);
                value.map(|value| response.metadata_mut().insert("x-request-id", value));
                Ok(response)
            }
            Err(mut status) => {
                tracing::info!(id, code = ?status.code(), "refused: {}", status.message());
                value.map(|value| status.metadata_mut().insert("x-request-id", value));
                Err(status)
            }
        }
    }

    fn check_admin(&self) -> Result<(), Status> {
        let refusal = "voices are loaded and unloaded by clients only where the server listens on a loopback \
                       address or was started with --allow-admin";
        if self.admin { Ok(()) } else { Err(Status::permission_denied(refusal)) }
    }
}

#[tonic::async_trait]
impl Speech for SpeechService {
    type SynthesizeStream = Responses;
    type SynthesizeIncrementalStream = Responses;

    async fn synthesize(
        &self,
        request: Request<pb::SynthesizeRequest>,
    ) -> Result<Response<Responses>, Status> {
        let own = request.get_ref().config.as_ref().map_or("", |config| config.request_id.as_str());
        let id = match request_id(own, request.metadata()) {
            Ok(id) => id,
            Err(error) => return self.answer("", Err(status(&error, ""))),
        };
        let outcome = self.speak(request, &id).await;
        self.answer(&id, outcome)
    }

    async fn synthesize_incremental(
        &self,
        request: Request<Streaming<pb::SynthesizeIncrementalRequest>>,
    ) -> Result<Response<Responses>, Status> {
        let (metadata, _, mut messages) = request.into_parts();
        let first = match self.feed.message(&mut messages, "config").await {
            Ok(first) => first.and_then(|message| message.content),
            Err(error) => return self.answer("", Err(status(&error, ""))),
        };
        let Some(IncrementalContent::Config(config)) = first else {
            return self.answer("", Err(Status::invalid_argument("the first message is not a config")));
        };
        let id = match request_id(&config.request_id, &metadata) {
            Ok(id) => id,
            Err(error) => return self.answer("", Err(status(&error, ""))),
        };
        let outcome = self.speak_incrementally(&metadata, &config, messages, &id).await;
        self.answer(&id, outcome)
    }

    async fn list_voices(
        &self,
        _: Request<pb::ListVoicesRequest>,
    ) -> Result<Response<pb::ListVoicesResponse>, Status> {
        let voices = self.repertoire.by_name().iter().map(|voice| describe::voice(voice)).collect();
        Ok(Response::new(pb::ListVoicesResponse { voices }))
    }

    async fn describe(
        &self,
        _: Request<pb::DescribeRequest>,
    ) -> Result<Response<pb::DescribeResponse>, Status> {
        Ok(Response::new(pb::DescribeResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            onnx_runtime: self.onnx_runtime.clone(),
            limits: Some(describe::limits(&self.repertoire.options().engine, self.feed)),
            encodings: describe::encodings(),
            plans: self.repertoire.by_name().iter().map(|voice| describe::plan(voice)).collect(),
        }))
    }

    async fn load_voice(
        &self,
        request: Request<pb::LoadVoiceRequest>,
    ) -> Result<Response<pb::LoadVoiceResponse>, Status> {
        self.check_admin()?;
        let pb::LoadVoiceRequest { name, directory } = request.into_inner();
        let characters = name.chars().count();
        if !(1..=MAX_NAME_CHARACTERS).contains(&characters) || name.chars().any(char::is_control) {
            let rule = format!("a voice is called by 1 to {MAX_NAME_CHARACTERS} printable characters");
            return Err(Status::invalid_argument(format!(
                "{rule}, not by the {characters} of `{}`",
                Excerpt(&name)
            )));
        }
        if directory.is_empty() {
            return Err(Status::invalid_argument("directory is empty: name the voice's directory"));
        }
        let source = VoiceSource { name: Some(name.clone()), directory: Some(PathBuf::from(directory)) };
        let repertoire = Arc::clone(&self.repertoire);
        let voice = blocking(move || repertoire.add(&source)).await.map_err(|error| status(&error, ""))?;
        Ok(Response::new(pb::LoadVoiceResponse { voice: Some(describe::voice(&voice)) }))
    }

    async fn unload_voice(
        &self,
        request: Request<pb::UnloadVoiceRequest>,
    ) -> Result<Response<pb::UnloadVoiceResponse>, Status> {
        self.check_admin()?;
        let pb::UnloadVoiceRequest { name } = request.into_inner();
        if name.is_empty() {
            return Err(Status::invalid_argument("name is empty: name the voice to unload"));
        }
        let (repertoire, unloaded) = (Arc::clone(&self.repertoire), name.clone());
        let was_there = blocking(move || repertoire.unload(&unloaded)).await;
        match was_there.map_err(|error| status(&error, ""))? {
            true => Ok(Response::new(pb::UnloadVoiceResponse {})),
            false => Err(no_voice(&name, &self.repertoire.voices())),
        }
    }
}

fn no_voice(name: &str, voices: &[Arc<ServedVoice>]) -> Status {
    let there_are = match listed(voices.iter().map(|voice| voice.name.as_str())) {
        names if names.is_empty() => "none is loaded".to_owned(),
        names => format!("there are {names}"),
    };
    Status::not_found(format!("no voice is called `{}`: {there_are}", Excerpt(name)))
}

/// Runs `work` where it holds up no connection.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let died = |error: tokio::task::JoinError| Err(Error::Internal(error.to_string()));
    tokio::task::spawn_blocking(work).await.unwrap_or_else(died)
}
