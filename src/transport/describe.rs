//! What the server knows of its voices and limits in, the messages that tell a client out.
//!
//! Never says more than is served, nor where a voice lies on the disk.

use std::time::Duration;

use super::feed::FeedLimits;
use super::pb;
use super::request::{ENCODINGS, MAX_CHUNK_FRAMES, MAX_SILENCE_MS, SAMPLE_RATES_HZ, SPEAKING_RATES};
use crate::engine::EngineOptions;
use crate::precision;
use crate::repertoire::ServedVoice;

pub fn voice(voice: &ServedVoice) -> pb::VoiceInfo {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
    pb::VoiceInfo {
        name: voice.name.clone(),
        language: voice.language.clone(),
        sample_rate_hz: voice.synthesizer.sample_rate_hz(),
        speakers: voice.speakers.embeddings.keys().cloned().collect(),
        default_speaker: voice.speakers.default.clone().unwrap_or_default(),
        speaker_embedding_dim: count(voice.speakers.dimensions),
        phonemes: voice.spells_ipa,
        licence: text(&voice.licence),
        description: text(&voice.description),
    }
}

pub fn limits(engine: &EngineOptions, feed: FeedLimits) -> pb::Limits {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    pb::Limits {
        max_streams: count(engine.max_streams),
        queue: count(engine.queue),
        max_text_bytes: feed.max_text_bytes as u64,
        min_sample_rate_hz: *SAMPLE_RATES_HZ.start(),
        max_sample_rate_hz: *SAMPLE_RATES_HZ.end(),
        min_speaking_rate: *SPEAKING_RATES.start(),
        max_speaking_rate: *SPEAKING_RATES.end(),
        max_silence_ms: MAX_SILENCE_MS,
        max_chunk_frames: MAX_CHUNK_FRAMES,
        slow_client_timeout_ms: ms(engine.slow_client_timeout),
        text_timeout_ms: ms(feed.text_timeout),
    }
}

pub fn encodings() -> Vec<i32> {
    ENCODINGS.iter().map(|(_, named)| i32::from(*named)).collect()
}

pub fn plan(voice: &ServedVoice) -> pb::VoicePlan {
    let plan = &voice.plan;
    pb::VoicePlan {
        voice: voice.name.clone(),
        precision: plan.precision.to_string(),
        device: plan.device.clone(),
        encoder: Some(stage(plan.encoder)),
        decoder: Some(stage(plan.decoder)),
        vocoder: Some(stage(plan.vocoder)),
        reasons: plan.reasons.clone(),
        streams: count(voice.synthesizer.engine().slots()),
    }
}

fn stage(stage: precision::StagePlan) -> pb::StagePlan {
    let dtypes = |dtypes: precision::Dtypes| pb::Dtypes {
        weights: dtypes.weights.to_string(),
        activations: dtypes.activations.to_string(),
        accumulation: dtypes.accumulation.to_string(),
        kv_cache: dtypes.kv_cache.to_string(),
        output: dtypes.output.to_string(),
    };
    pb::StagePlan {
        requested: Some(dtypes(stage.requested)),
        stored: stage.stored.to_string(),
        executed: Some(dtypes(stage.executed)),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
