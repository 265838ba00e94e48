//! A YAML, TOML or JSON file in, what it asks of a fine-tune out.
//!
//! Keys are those that people's configurations have (`trainer.precision`, `optimizer.lr`, …) and for what these do not
//! say the names of our flags. Nesting and dots are the same. Never passes over a key that it does not know, and never
//! resolves an interpolation.

use std::path::Path;
use std::str::FromStr;

use serde_json::Value;

use super::given::Given;
use crate::error::{Error, Excerpt, Result};

/// Every key there is.
const KEYS: [&str; 35] = [
    "trainer.precision",
    "trainer.max_steps",
    "trainer.accumulate_grad_batches",
    "trainer.gradient_clip_val",
    "trainer.seed",
    "optimizer._target_",
    "optimizer.lr",
    "optimizer.betas",
    "optimizer.eps",
    "optimizer.weight_decay",
    "optimizer.master_weight_bits",
    "voice",
    "vocoder",
    "data",
    "out",
    "batch_size",
    "warmup_steps",
    "freeze",
    "lora",
    "ema",
    "validation_share",
    "patience",
    "save_every",
    "validate_every",
    "speak_every",
    "init",
    "speaker",
    "threads",
    "device",
    "seed",
    "trim",
    "level",
    "min_seconds",
    "max_seconds",
    "cache",
];

/// A configuration above this is none.
const MAX_BYTES: u64 = 1 << 20;

type Parsed<T> = std::result::Result<T, String>;

/// Reads the file at `path`, whose name says what it is.
///
/// # Errors
/// [`Error::InvalidRequest`] for what is no such file, an unknown key or a value that does not fit; [`Error::Io`] when it
/// cannot be read.
pub fn load(path: &Path) -> Result<Given> {
    let refuse = |reason: String| Error::InvalidRequest(format!("{}: {reason}", path.display()));
    let facts = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    if facts.len() > MAX_BYTES {
        return Err(refuse(format!("it has {} bytes, the limit is {MAX_BYTES}", facts.len())));
    }
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let tree = match extension {
        "yaml" | "yml" => serde_saphyr::from_str::<Value>(&text).map_err(|e| e.to_string()),
        "toml" => toml::from_str::<Value>(&text).map_err(|e| e.to_string()),
        "json" => serde_json::from_str::<Value>(&text).map_err(|e| e.to_string()),
        _ => Err("its name ends with none of .yaml, .yml, .toml and .json".to_owned()),
    };
    tree.and_then(|tree| read(&tree)).map_err(refuse)
}

fn read(tree: &Value) -> Parsed<Given> {
    let mut given = Given::default();
    match tree {
        Value::Null => {}
        Value::Object(_) => visit(tree, "", &mut given)?,
        _ => return Err("it is no table of keys and values".to_owned()),
    }
    Ok(given)
}

/// Puts every value below `key` into `given`.
fn visit(value: &Value, key: &str, given: &mut Given) -> Parsed<()> {
    if let Value::Object(entries) = value {
        return entries.iter().try_for_each(|(name, value)| {
            let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            visit(value, &key, given)
        });
    }
    put(value, key, given).map_err(|reason| format!("{key}: {reason}"))
}

fn put(value: &Value, key: &str, given: &mut Given) -> Parsed<()> {
    if !KEYS.contains(&key) {
        return Err(unknown(key));
    }
    // `optimizer.master_weight_bits: null` is a choice; elsewhere null is none.
    if value.is_null() && key != "optimizer.master_weight_bits" {
        return Ok(());
    }
    match key {
        "trainer.precision" => given.precision = Some(parsed(value)?),
        "trainer.max_steps" => given.max_steps = Some(parsed(value)?),
        "trainer.accumulate_grad_batches" => given.accumulate_grad_batches = Some(parsed(value)?),
        "trainer.gradient_clip_val" => given.gradient_clip_val = Some(parsed(value)?),
        "trainer.seed" | "seed" => given.seed = Some(parsed(value)?),
        "optimizer._target_" => given.optimizer = Some(parsed(value)?),
        "optimizer.lr" => given.learning_rate = Some(parsed(value)?),
        "optimizer.betas" => given.betas = Some(pair(value)?),
        "optimizer.eps" => given.eps = Some(parsed(value)?),
        "optimizer.weight_decay" => given.weight_decay = Some(parsed(value)?),
        "optimizer.master_weight_bits" => given.master_weight_bits = Some(parsed(value)?),
        "voice" => given.voice = Some(parsed(value)?),
        "vocoder" => given.vocoder = Some(parsed(value)?),
        "data" => given.data = Some(parsed(value)?),
        "out" => given.out = Some(parsed(value)?),
        "batch_size" => given.batch_size = Some(parsed(value)?),
        "warmup_steps" => given.warmup_steps = Some(parsed(value)?),
        "freeze" => given.freeze = Some(words(value)?),
        "lora" => given.lora = Some(parsed(value)?),
        "ema" => given.ema = Some(parsed(value)?),
        "validation_share" => given.validation = Some(parsed(value)?),
        "patience" => given.patience = Some(parsed(value)?),
        "save_every" => given.save_every = Some(parsed(value)?),
        "validate_every" => given.validate_every = Some(parsed(value)?),
        "speak_every" => given.speak_every = Some(parsed(value)?),
        "init" => given.init = Some(parsed(value)?),
        "speaker" => given.speaker = Some(parsed(value)?),
        "threads" => given.threads = Some(parsed(value)?),
        "device" => given.device = Some(parsed(value)?),
        "trim" => given.trim = Some(parsed(value)?),
        "level" => given.level = Some(parsed(value)?),
        "min_seconds" => given.min_seconds = Some(parsed(value)?),
        "max_seconds" => given.max_seconds = Some(parsed(value)?),
        "cache" => given.cache = Some(parsed(value)?),
        other => return Err(unknown(other)),
    }
    Ok(())
}

fn unknown(key: &str) -> String {
    let near = |known: &&str| {
        // A key that only lies elsewhere is nearer than one that is spelled alike.
        let (own, last) = (key.rsplit('.').next().unwrap_or(key), known.rsplit('.').next().unwrap_or(known));
        strsim::damerau_levenshtein(key, known).min(strsim::damerau_levenshtein(own, last) + 1)
    };
    let nearest = KEYS.iter().min_by_key(|known| near(known)).unwrap_or(&KEYS[0]);
    format!("the key `{}` is not known; the nearest that is: `{nearest}`", Excerpt(key))
}

/// A value as its text: YAML 1.1 takes `1e-4` for a string, and a precision may be a number.
fn text(value: &Value) -> Parsed<String> {
    match value {
        Value::String(text) if text.contains("${") => {
            Err(format!("`{}` is an interpolation: write the value", Excerpt(text)))
        }
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Null => Ok("none".to_owned()),
        other => Err(format!("`{}` is neither text nor a number", Excerpt(&other.to_string()))),
    }
}

fn parsed<T: FromStr>(value: &Value) -> Parsed<T>
where
    T::Err: std::fmt::Display,
{
    let text = text(value)?;
    text.parse().map_err(|e: T::Err| format!("`{}`: {e}", Excerpt(&text)))
}

fn pair(value: &Value) -> Parsed<[f32; 2]> {
    match value.as_array().map(Vec::as_slice) {
        Some([first, second]) => Ok([parsed(first)?, parsed(second)?]),
        _ => Err("two numbers are needed".to_owned()),
    }
}

/// A list of words, or one text with commas.
fn words(value: &Value) -> Parsed<Vec<String>> {
    match value {
        Value::Array(words) => words.iter().map(text).collect(),
        other => Ok(text(other)?.split(',').map(|word| word.trim().to_owned()).collect()),
    }
}
