//! Mezzavoce: text in, speech out, while the text is still being spoken.
//!
//! ```text
//! text -> text/ -> encoder -> decoder -> postnet -> vocoder -> pcm        (say)
//!                     \          |          |         /
//!                      runtime (ort) <- graph/ <- voice (checkpoint)
//!                               \          |
//!                           precision (modes, plan, cast, convert)
//! ```
//!
//! # Where to look
//!
//! - [`voice`]: a Hugging Face SpeechT5 directory, validated. The one source of model facts.
//! - [`precision`]: a requested mode becomes a plan of five dtypes a stage; the only casts.
//! - [`graph`]: ONNX graphs, built in memory from the checkpoint as the plan says.
//! - [`runtime`]: the one place that names ONNX Runtime's binding; finds or fetches its library.
//! - [`text`]: text becomes sentences of symbol ids.
//! - [`encoder`], [`decoder`], [`postnet`], [`vocoder`]: the stages. A stage knows its input's type and nothing
//!   downstream. [`window`] gives the convolutional ones the context that makes their frames exact; [`tempo`] sets
//!   the pace between postnet and vocoder.
//! - [`engine`]: admission, the synthesis loop over many streams, and the threads it runs on.
//! - [`synthesizer`]: a text front-end before an engine.
//! - [`repertoire`]: the voices of a server. [`transport`]: requests from the network to them, and back.
//! - [`pcm`], [`resample`], [`codec`]: what becomes of the samples. [`assembly`]: one passage's chunks, joined and accounted
//!   for.
//! - `finetune`, a default feature: a voice and recordings become an adapted voice.
//! - [`telemetry`]: log lines and metrics of all of this.
//! - [`say`], [`serve`], [`batch`], [`inspect`], [`cli`], and `adapt`, which is `finetune`: the doors. [`signals`]: how they are told to end.
//!
//! # Invariants
//!
//! - One synthesis loop: a whole utterance is a collected stream, and its joined chunks equal the whole.
//! - Below [`transport`] everything is synchronous. Three threads own the sessions: one encodes, one steps every stream, one
//!   vocodes. Bounded channels join them; a slow reader pauses its own stream and a dropped stream cancels it.
//! - The plan is resolved once and logged once, with what the device really executes.
//! - Audio is f32 from the vocoder to [`pcm`].
//! - No file outside a voice decides a model fact.
//! - What is refused is refused at the door with a reason; what is accepted is finished, or its end is reported.
//!
//! # Out of scope
//!
//! Python at run time, code from a checkpoint, downloads other than the pinned library.

#[cfg(feature = "finetune")]
pub mod adapt;
pub mod assembly;
pub mod batch;
pub mod cli;
pub mod codec;
pub mod decoder;
pub mod encoder;
pub mod engine;
pub mod error;
#[cfg(feature = "finetune")]
pub mod finetune;
pub mod graph;
pub mod inspect;
pub mod pcm;
pub mod postnet;
pub mod precision;
pub mod repertoire;
pub mod resample;
pub mod runtime;
pub mod say;
pub mod serve;
pub mod signals;
mod split_mix;
pub mod synthesizer;
pub mod telemetry;
pub mod tempo;
pub mod text;
pub mod transport;
pub mod vocoder;
pub mod voice;
pub mod window;
