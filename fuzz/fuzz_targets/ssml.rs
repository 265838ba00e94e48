//! Bytes in, as SSML through the front-end of the embedded voice; nothing may panic or take long.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mezzavoce::text::{DateOrder, Frontend, Markup, Reading};
use mezzavoce::voice::Voice;

static FRONTEND: LazyLock<Frontend> = LazyLock::new(|| Frontend::load(&Voice::embedded().unwrap()).unwrap());

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let keeps = Reading { markup: Markup::Keep, date_order: DateOrder::DayFirst, ..Reading::default() };
    for reading in [Reading::default(), keeps] {
        if let Ok(passage) = FRONTEND.ssml(&text, &reading) {
            assert!(!passage.segments.is_empty());
            for segment in &passage.segments {
                assert!(segment.marks.iter().all(|mark| mark.symbol <= segment.ids.len()));
            }
        }
    }
});
