//! The import table of the house, held against the source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What each module of the library may name. `adapt`, `cli`, `batch`, `say`, `serve`, `inspect` and `telemetry` are doors and may name
/// anything.
const TABLE: [(&str, &[&str]); 22] = [
    ("error", &[]),
    ("precision", &["error"]),
    ("voice", &["error", "precision"]),
    ("graph", &["error", "precision", "voice"]),
    ("runtime", &["error", "precision", "graph"]),
    ("text", &["error", "voice"]),
    ("window", &[]),
    ("split_mix", &[]),
    ("encoder", &["error", "voice", "precision", "runtime", "graph"]),
    ("decoder", &["error", "voice", "precision", "runtime", "graph", "encoder", "split_mix"]),
    ("postnet", &["error", "voice", "precision", "runtime", "graph", "window"]),
    ("vocoder", &["error", "voice", "precision", "runtime", "graph", "window"]),
    ("pcm", &["error"]),
    ("tempo", &[]),
    ("resample", &["error"]),
    ("codec", &["error", "pcm", "resample"]),
    (
        "engine",
        &[
            "error",
            "voice",
            "precision",
            "runtime",
            "text",
            "encoder",
            "decoder",
            "postnet",
            "vocoder",
            "window",
            "tempo",
            "pcm",
        ],
    ),
    ("assembly", &["error", "text", "decoder", "engine", "codec"]),
    ("synthesizer", &["error", "voice", "precision", "runtime", "text", "engine"]),
    (
        "repertoire",
        &["error", "voice", "precision", "runtime", "text", "decoder", "engine", "synthesizer", "telemetry"],
    ),
    (
        "transport",
        &[
            "error",
            "precision",
            "decoder",
            "text",
            "engine",
            "synthesizer",
            "repertoire",
            "pcm",
            "codec",
            "assembly",
            "telemetry",
        ],
    ),
    ("finetune", &["error", "voice", "text", "precision", "decoder", "pcm", "resample", "split_mix"]),
];
const DOORS: [&str; 10] =
    ["adapt", "cli", "batch", "say", "serve", "signals", "inspect", "telemetry", "main", "lib"];

/// Crates and the modules that may name them.
const OWNED: [(&str, &[&str]); 14] = [
    ("ort", &["runtime"]),
    ("realfft", &["vocoder", "finetune"]),
    ("hound", &["pcm"]),
    ("rubato", &["resample"]),
    ("audio_codec_algorithms", &["codec"]),
    ("clap", &["cli"]),
    ("prometheus_client", &["telemetry"]),
    ("burn", &["finetune"]),
    ("ebur128", &["finetune"]),
    ("rayon", &["finetune"]),
    ("symphonia", &["finetune"]),
    ("png", &["finetune"]),
    ("serde_saphyr", &["finetune"]),
    ("crc32c", &["finetune"]),
];

fn sources() -> Vec<PathBuf> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), &mut found);
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The module that a file belongs to: the first part of its path.
fn module(path: &Path) -> String {
    let first = path.strip_prefix(root()).unwrap().components().next().unwrap();
    Path::new(first.as_os_str()).file_stem().unwrap().to_str().unwrap().to_owned()
}

/// Code without comments and without what follows `#[cfg(test)]`.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The names that follow `prefix` in `code`, those in braces included.
fn named_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        let boundary = code[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let rest = &code[at + prefix.len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap(),
            None => rest,
        };
        let word = |text: &str| {
            text.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned()
        };
        match rest.starts_with('{') {
            _ if !boundary => {}
            true => found.extend(names.split(',').map(word)),
            false => _ = found.insert(word(names)),
        }
    }
    found.remove("");
    found
}

#[test]
fn modules_import_what_the_table_allows() {
    let table: BTreeMap<&str, &[&str]> = TABLE.into_iter().collect();
    let mut wrong = Vec::new();
    for path in sources() {
        let module = module(&path);
        if DOORS.contains(&module.as_str()) {
            continue;
        }
        let Some(allowed) = table.get(module.as_str()) else {
            wrong.push(format!("{module} is not in the table"));
            continue;
        };
        for named in named_after(&code(&path), "crate::") {
            if named != module && !allowed.contains(&named.as_str()) {
                wrong.push(format!("{} names {named}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_library_is_named_in_one_place() {
    let mut wrong = Vec::new();
    for path in sources() {
        let (module, code) = (module(&path), code(&path));
        for (library, owners) in OWNED {
            let named = !named_after(&code, &format!("{library}::")).is_empty();
            if named && !owners.contains(&module.as_str()) && module != "main" {
                wrong.push(format!("{} names {library}, which is for {owners:?}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_environment_is_read_at_the_door() {
    let readers: Vec<PathBuf> =
        sources().into_iter().filter(|path| code(path).contains("env::var")).collect();
    let modules: BTreeSet<String> = readers.iter().map(|path| module(path)).collect();
    assert_eq!(modules.into_iter().collect::<Vec<_>>(), ["cli"]);
}

#[test]
fn the_reader_of_imports_sees_every_form() {
    let code =
        "use crate::{voice::Voice, graph};\nuse crate::text::Frontend; let x = crate::pcm::y; mycrate::no";
    let expected = ["graph", "pcm", "text", "voice"].map(str::to_owned);
    assert_eq!(named_after(code, "crate::"), BTreeSet::from(expected));
}
