//! Many streams at once: equal to themselves alone, out of each other's way, refused when they are too many.

mod support;

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use mezzavoce::engine::{AudioStream, ChunkSizes, EngineOptions, Stats, StreamRequest};
use mezzavoce::error::Error;
use mezzavoce::precision::Precision;
use mezzavoce::synthesizer::{Script, Synthesizer};
use mezzavoce::text::{Reading, Segment};
use mezzavoce::voice::Voice;
use support::{plan, root, runtime};

const SLOW_CLIENT_TIMEOUT: Duration = Duration::from_millis(600);
/// What no wait of a test should come near to.
const PATIENCE: Duration = Duration::from_secs(60);

/// A synthesizer and the speaker that it speaks with.
struct Fixture {
    synthesizer: Synthesizer,
    speaker: Vec<f32>,
}

/// An engine for the default voice.
fn default_voice(max_streams: usize, queue: usize) -> Fixture {
    Fixture::load(&Voice::embedded().unwrap(), max_streams, queue)
}

/// An engine for a voice of one step a symbol, where the sound does not matter.
fn tiny_voice(max_streams: usize, queue: usize) -> Fixture {
    Fixture::load(&Voice::load(&root().join("models/tiny"), None).unwrap(), max_streams, queue)
}

impl Fixture {
    fn load(voice: &Voice, max_streams: usize, queue: usize) -> Self {
        let options = EngineOptions {
            threads: 2,
            max_streams,
            queue,
            kv_cache_bytes: 1 << 30,
            slow_client_timeout: SLOW_CLIENT_TIMEOUT,
        };
        let plan = plan(voice, Precision::F32);
        let synthesizer = Synthesizer::load(runtime(), voice, &plan, &options).unwrap();
        Self { synthesizer, speaker: vec![1.0; voice.config.speaker_embedding_dim] }
    }

    fn request(&self, seed: u64) -> StreamRequest {
        StreamRequest { seed, ..StreamRequest::new(self.speaker.clone()) }
    }

    fn segments(&self, text: &str) -> Vec<Segment> {
        self.synthesizer.passage(&Script::Text(text.to_owned()), &Reading::default()).unwrap().segments
    }

    fn try_speak(&self, text: &str, request: StreamRequest) -> Result<AudioStream, Error> {
        self.synthesizer.speak(self.segments(text), request)
    }

    fn speak(&self, text: &str, seed: u64) -> AudioStream {
        self.try_speak(text, self.request(seed)).unwrap()
    }

    fn stats(&self) -> &Stats {
        self.synthesizer.engine().stats()
    }

    fn steps(&self) -> u64 {
        self.stats().steps.load(Ordering::Relaxed)
    }

    fn active(&self) -> usize {
        self.stats().active.load(Ordering::Relaxed)
    }

    fn in_flight(&self) -> usize {
        self.synthesizer.engine().in_flight()
    }
}

fn samples(stream: AudioStream) -> Vec<f32> {
    stream.flat_map(|chunk| chunk.unwrap().samples).collect()
}

/// Steps that the sentences of a stream took.
fn steps(stream: AudioStream) -> u64 {
    stream.filter_map(|chunk| chunk.unwrap().completes).map(|sentence| sentence.ending.steps as u64).sum()
}

/// The error that ends a stream.
fn failure(mut stream: AudioStream) -> Error {
    let error = stream.find_map(Result::err).expect("the stream came to its own end");
    assert!(stream.next().is_none(), "something follows the error");
    error
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

const TEXTS: [&str; 8] = [
    "The kettle was on.",
    "I took two steps forward and looked back, and there was nothing on the road but dust.",
    "No.",
    "She counted the steps: one, two, three. Then she stopped.",
    "A long letter came from the north on Tuesday, and nobody in the house could read the hand it was written in, \
     nor say who had sent it.",
    "Rain again.",
    "What would you have done?",
    "They sold the boat, the nets, and the small red house above the harbour.",
];

/// Some forty chunks, far more than a channel holds.
const LONG: &str = "They sold the boat, the nets, and the small red house above the harbour. A long letter came \
                    from the north on Tuesday, and nobody could read it. What would you have done? I took two \
                    steps forward and looked back, and there was nothing on the road but dust. She counted the \
                    steps, one by one, and then she stopped. Rain again fell on the road and on the river.";

/// The bound is equality, not a tolerance: a row's numbers meet those of no other row. Its dropout masks come from
/// its own seed; every product and sum of the graph runs over one row, in an order that neither the number of rows
/// nor the padding behind its symbols changes; and the windows behind the decoder follow from the frames alone.
#[test]
fn eight_streams_at_once_equal_their_solo_runs() {
    let fixture = default_voice(8, 0);
    let solo: Vec<Vec<f32>> = TEXTS.iter().map(|text| samples(fixture.speak(text, 7))).collect();
    let together: Vec<AudioStream> = TEXTS.iter().map(|text| fixture.speak(text, 7)).collect();
    for ((text, solo), stream) in TEXTS.iter().zip(&solo).zip(together) {
        assert!(*solo == samples(stream), "{text:?} differs in company");
    }
    assert!((2..=8).any(|rows| fixture.stats().steps_of(rows).0 > 0), "they never stepped together");
}

#[test]
fn requests_that_join_and_leave_at_random_equal_their_solo_runs() {
    const REQUESTS: u64 = 200;
    let fixture = tiny_voice(6, 200);
    let solo: Vec<Vec<f32>> =
        (0..16).map(|case| samples(fixture.speak(TEXTS[case % 8], case as u64))).collect();
    let (fixture, solo) = (&fixture, &solo);
    let compared: usize = thread::scope(|scope| {
        let client = |client: u64| {
            let mut random = 12 + client;
            let mut next = move |below: u64| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % below
            };
            let mut compared = 0;
            for _ in 0..REQUESTS / 10 {
                thread::sleep(Duration::from_millis(next(6)));
                let case = next(16) as usize;
                let mut stream = fixture.speak(TEXTS[case % 8], case as u64);
                if next(4) == 0 {
                    let _ = stream.by_ref().take(next(3) as usize).count();
                } else {
                    assert!(samples(stream) == solo[case], "case {case} differs in company");
                    compared += 1;
                }
            }
            compared
        };
        let clients: Vec<_> = (0..10).map(|number| scope.spawn(move || client(number))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert!(compared > 100, "{compared} of {REQUESTS} were compared");
    wait_until("all places are free", || fixture.in_flight() == 0);
    let stats = fixture.stats();
    println!("{compared} of {REQUESTS} compared, {} left early", stats.cancelled.load(Ordering::Relaxed));
    assert!((2..=6).any(|rows| stats.steps_of(rows).0 > 0), "they never stepped together");
}

#[test]
fn a_reader_that_leaves_frees_its_row_within_one_step() {
    let fixture = default_voice(1, 0);
    let mut stream = fixture.speak(LONG, 7);
    stream.next().unwrap().unwrap();
    assert_eq!(fixture.active(), 1);
    drop(stream);
    let before = fixture.steps();
    wait_until("the row is free", || fixture.active() == 0);
    assert!(fixture.steps() - before <= 1, "{} steps after the reader left", fixture.steps() - before);
    wait_until("the place is free", || fixture.in_flight() == 0);
    assert_eq!(fixture.stats().cancelled.load(Ordering::Relaxed), 1);
}

#[test]
fn readers_that_leave_while_their_sentence_is_encoded_leave_nothing_behind() {
    let fixture = default_voice(2, 0);
    let solo = samples(fixture.speak(TEXTS[0], 7));
    for _ in 0..40 {
        wait_until("a place is free", || fixture.in_flight() < 2);
        drop(fixture.speak(TEXTS[4], 7));
    }
    wait_until("all places are free", || fixture.in_flight() == 0);
    assert!(solo == samples(fixture.speak(TEXTS[0], 7)));
}

#[test]
fn a_stalled_reader_is_paused_and_then_dropped_and_its_neighbour_goes_on() {
    let fixture = default_voice(2, 0);
    let text = TEXTS[4];
    let alone = Instant::now();
    let steps_alone = steps(fixture.speak(text, 7));
    let alone = alone.elapsed();

    let stalled = fixture.speak(LONG, 7);
    wait_until("the stalled stream steps", || fixture.active() == 1);
    wait_until("the stalled stream is paused", || fixture.active() == 0);
    let (before, together_before) = (fixture.steps(), fixture.stats().steps_of(2).0);
    let beside = Instant::now();
    assert_eq!(steps(fixture.speak(text, 7)), steps_alone);
    let beside = beside.elapsed();
    println!("{alone:.0?} alone, {beside:.0?} beside a stalled reader");
    assert_eq!(fixture.steps() - before, steps_alone, "the stalled stream made steps");
    assert_eq!(fixture.stats().steps_of(2).0, together_before);
    assert!(beside < alone * 4 + Duration::from_millis(200), "{alone:?} alone, {beside:?} beside it");

    // Nobody has read: the place is free all the same.
    wait_until("the stalled reader is dropped", || fixture.in_flight() == 0);
    let error = failure(stalled);
    assert!(
        matches!(&error, Error::TooSlow(reason) if reason.contains("nothing was taken for 600 ms")),
        "{error}"
    );
    assert_eq!(fixture.stats().slow_readers.load(Ordering::Relaxed), 1);
    assert_eq!(fixture.stats().cancelled.load(Ordering::Relaxed), 0);
}

/// The decoder has long let go of this stream when its reader's time is up.
#[test]
fn a_reader_that_stalls_at_the_very_end_does_not_keep_its_place() {
    let fixture = tiny_voice(1, 0);
    let request = StreamRequest { chunk_sizes: ChunkSizes::fixed(4), ..fixture.request(7) };
    let stream = fixture.try_speak(TEXTS[0], request).unwrap();
    wait_until("every frame is decoded", || fixture.steps() > 0 && fixture.active() == 0);
    assert_eq!(fixture.in_flight(), 1);
    wait_until("the place is free", || fixture.in_flight() == 0);
    assert!(matches!(failure(stream), Error::TooSlow(_)));
}

#[test]
fn a_reader_as_slow_as_playback_is_not_dropped() {
    let fixture = tiny_voice(1, 0);
    let request = || StreamRequest { chunk_sizes: ChunkSizes::fixed(4), ..fixture.request(7) };
    let text = TEXTS[0];
    let solo = samples(fixture.try_speak(text, request()).unwrap());
    let began = Instant::now();
    let slowly = fixture.try_speak(text, request()).unwrap();
    let heard: Vec<f32> = slowly
        .inspect(|_| thread::sleep(SLOW_CLIENT_TIMEOUT / 5))
        .flat_map(|chunk| chunk.unwrap().samples)
        .collect();
    assert!(began.elapsed() > SLOW_CLIENT_TIMEOUT * 2, "it was read in {:?}", began.elapsed());
    assert!(solo == heard);
}

#[test]
fn what_has_been_made_is_read_whenever_its_reader_likes() {
    let fixture = tiny_voice(1, 0);
    let stream = fixture.speak(TEXTS[2], 7);
    wait_until("the place is free", || fixture.in_flight() == 0);
    assert!(!samples(stream).is_empty());
}

#[test]
fn more_than_streams_and_queue_are_refused_and_the_queue_is_served_in_order() {
    let fixture = default_voice(1, 2);
    let first = fixture.speak(TEXTS[1], 7);
    let queued: Vec<AudioStream> = (0..2).map(|_| fixture.speak(TEXTS[0], 7)).collect();
    wait_until("two are queued", || fixture.stats().queued.load(Ordering::Relaxed) == 2);
    let refusal = fixture.try_speak(TEXTS[0], fixture.request(7)).unwrap_err();
    let numbers = "3 requests are in work, 1 streams and a queue of 2 are all taken";
    assert!(matches!(&refusal, Error::Overloaded { reason, .. } if reason.contains(numbers)), "{refusal}");

    let heard_at: Vec<(Instant, Instant)> = thread::scope(|scope| {
        let read = |mut stream: AudioStream| {
            stream.next().unwrap().unwrap();
            let first = Instant::now();
            samples(stream);
            (first, Instant::now())
        };
        let readers: Vec<_> =
            [first].into_iter().chain(queued).map(|stream| scope.spawn(move || read(stream))).collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    assert!(heard_at.is_sorted(), "they were not served in order");
    wait_until("all places are free", || fixture.in_flight() == 0);
    assert_eq!(fixture.stats().queue_wait.count(), 3);
}

#[test]
fn a_deadline_that_passes_in_the_queue_ends_the_request_and_frees_its_place() {
    let fixture = default_voice(1, 1);
    let mut first = fixture.speak(LONG, 7);
    first.next().unwrap().unwrap();
    let deadline = Some(Instant::now() + Duration::from_millis(20));
    let late = fixture.try_speak(TEXTS[0], StreamRequest { deadline, ..fixture.request(7) }).unwrap();
    assert!(matches!(failure(late), Error::DeadlineExceeded(_)));
    assert_eq!(fixture.in_flight(), 1);
    assert!(fixture.try_speak(TEXTS[0], fixture.request(7)).is_ok());
    assert!(!samples(first).is_empty());
}

#[test]
fn draining_refuses_what_is_new_and_finishes_what_is_in_work() {
    let fixture = default_voice(1, 1);
    let solo = samples(fixture.speak(TEXTS[1], 7));
    let streams = [fixture.speak(TEXTS[1], 7), fixture.speak(TEXTS[1], 7)];
    fixture.synthesizer.engine().drain();
    let refusal = fixture.try_speak(TEXTS[0], fixture.request(7)).unwrap_err();
    assert!(matches!(refusal, Error::Unavailable(_)), "{refusal}");
    for stream in streams {
        assert!(solo == samples(stream));
    }
    assert_eq!(fixture.in_flight(), 0);
}

#[test]
fn cancelling_all_ends_those_that_step_that_wait_and_that_are_unread() {
    let fixture = tiny_voice(1, 3);
    let request = StreamRequest { chunk_sizes: ChunkSizes::fixed(4), ..fixture.request(7) };
    let unread = fixture.try_speak(TEXTS[0], request).unwrap();
    wait_until("it is decoded", || fixture.steps() > 0 && fixture.active() == 0);
    let (inlet, waits_for_text) = fixture.synthesizer.open(fixture.request(7)).unwrap();
    let speaks = fixture.speak(LONG, 7);
    let queued = fixture.speak(LONG, 7);
    fixture.synthesizer.engine().cancel_all("the model is being replaced");
    // Before anybody reads: a reader could still be given what is made.
    wait_until("all places are free", || fixture.in_flight() == 0);
    for stream in [unread, waits_for_text, speaks, queued] {
        let error = failure(stream);
        assert!(matches!(&error, Error::Unavailable(reason) if reason.contains("replaced")), "{error}");
    }
    drop(inlet);
    assert!(!samples(fixture.speak(TEXTS[0], 7)).is_empty());
}

#[test]
fn a_stream_whose_engine_is_dropped_says_so() {
    let fixture = default_voice(1, 1);
    let mut stream = fixture.speak(LONG, 7);
    let queued = fixture.speak(LONG, 7);
    stream.next().unwrap().unwrap();
    drop(fixture);
    assert!(matches!(failure(stream), Error::Unavailable(_)));
    assert!(matches!(failure(queued), Error::Unavailable(_)));
}

#[test]
fn a_text_without_a_segment_ends_without_audio() {
    let fixture = tiny_voice(1, 0);
    let (inlet, stream) = fixture.synthesizer.open(fixture.request(7)).unwrap();
    drop(inlet);
    assert_eq!(stream.count(), 0);
    wait_until("the place is free", || fixture.in_flight() == 0);
}

#[test]
fn a_stream_that_has_no_text_yet_lets_others_pass() {
    let fixture = tiny_voice(1, 1);
    let (inlet, silent) = fixture.synthesizer.open(fixture.request(7)).unwrap();
    let heard = samples(fixture.speak(TEXTS[0], 7));
    assert!(!heard.is_empty());
    for segment in fixture.segments(TEXTS[0]) {
        inlet.push(segment).unwrap();
    }
    drop(inlet);
    assert!(heard == samples(silent));
}

#[test]
fn a_request_that_the_encoder_refuses_ends_with_its_reason() {
    let fixture = tiny_voice(1, 0);
    let request = StreamRequest { speaker: vec![1.0; 3], ..fixture.request(7) };
    let error = failure(fixture.try_speak(TEXTS[0], request).unwrap());
    assert!(matches!(&error, Error::InvalidRequest(reason) if reason.contains("3 values")), "{error}");
    wait_until("the place is free", || fixture.in_flight() == 0);
    assert!(!samples(fixture.speak(TEXTS[0], 7)).is_empty());
}

#[test]
fn the_next_sentence_is_encoded_while_the_present_one_is_decoded() {
    let fixture = default_voice(1, 0);
    let text =
        "They sold the boat, the nets, and the small red house. Rain again fell on the river. Nobody came.";
    let sentences = fixture.segments(text).len() as u64;
    assert_eq!(sentences, 3);
    assert!(!samples(fixture.speak(text, 7)).is_empty());
    assert_eq!(fixture.stats().encoded_ahead.load(Ordering::Relaxed), sentences - 1);
}

#[test]
fn a_long_sentence_at_the_encoder_does_not_hold_up_the_steps() {
    let fixture = default_voice(2, 0);
    let words = "the river runs past the old mill under the grey stone bridge and ".repeat(7);
    let sentence = format!("{}.", words[..399].trim_end());
    let long = fixture.segments(&sentence).into_iter().max_by_key(|segment| segment.ids.len()).unwrap();
    let encoded = || fixture.stats().encode_time.count();

    let mut running = fixture.speak(TEXTS[4], 7);
    running.next().unwrap().unwrap();
    let reader = thread::spawn(move || samples(running));
    let (encoded_before, steps_before) = (encoded(), fixture.steps());
    let other = fixture.synthesizer.speak(vec![long.clone()], fixture.request(7)).unwrap();
    wait_until("the long sentence is encoded", || encoded() > encoded_before);
    let steps = fixture.steps() - steps_before;
    drop(other);
    reader.join().unwrap();
    let stats = fixture.stats();
    println!(
        "{} symbols encoded in {:.1?}, {steps} steps meanwhile; longest gap between steps {:.1?}",
        long.ids.len(),
        stats.encode_time.max(),
        stats.step_gap.max()
    );
    assert!(steps > 0, "no step while {} symbols were encoded", long.ids.len());
}

#[test]
fn a_sentence_tells_its_length_at_any_speaking_rate() {
    let fixture = default_voice(1, 0);
    let synthesizer = &fixture.synthesizer;
    for speaking_rate in [1.0, 1.6] {
        let segments = synthesizer
            .passage(&Script::Text("Rain again. And more.".to_owned()), &Reading::default())
            .unwrap()
            .segments;
        let stream =
            synthesizer.speak(segments, StreamRequest { speaking_rate, ..fixture.request(7) }).unwrap();
        let (mut sentences, mut since_the_last) = (0, 0);
        for chunk in stream.map(Result::unwrap) {
            match chunk.completes {
                None => since_the_last += chunk.samples.len() as u64,
                Some(sentence) => {
                    let frames = (sentence.ending.frames as f64 / f64::from(speaking_rate)).ceil() as u64;
                    assert_eq!((sentence.samples, sentence.samples % frames), (since_the_last, 0));
                    (sentences, since_the_last) = (sentences + 1, 0);
                }
            }
        }
        assert_eq!(sentences, 2);
    }
}

#[test]
fn a_speaking_rate_out_of_range_is_refused() {
    let fixture = default_voice(1, 0);
    let synthesizer = &fixture.synthesizer;
    for speaking_rate in [0.49, 2.01, 0.0, -1.0, f32::NAN, f32::INFINITY] {
        let refused = synthesizer.speak(Vec::new(), StreamRequest { speaking_rate, ..fixture.request(7) });
        match refused {
            Err(Error::InvalidRequest(message)) => {
                assert!(message.contains(&format!("{speaking_rate}: it must be 0.5 to 2")), "{message}");
            }
            other => panic!("{speaking_rate}: {other:?}"),
        }
    }
}

#[test]
fn a_text_of_too_many_symbols_is_refused_with_the_limit() {
    let fixture = tiny_voice(1, 0);
    let (inlet, stream) = fixture.synthesizer.open(fixture.request(7)).unwrap();
    let mut segment = fixture.segments(TEXTS[0]).remove(0);
    segment.ids = vec![0; (8 << 20) + 1];
    let error = inlet.push(segment).unwrap_err();
    let limit = (8 << 20).to_string();
    assert!(matches!(&error, Error::InvalidRequest(reason) if reason.contains(&limit)), "{error}");
    drop(inlet);
    assert_eq!(stream.count(), 0);
}

#[test]
fn what_waits_is_expected_to_take_as_long_as_what_has_been() {
    let fixture = default_voice(1, 8);
    assert_eq!(fixture.stats().expected_wait(), Duration::ZERO);
    let refused = |fixture: &Fixture| match fixture.try_speak(TEXTS[0], fixture.request(7)) {
        Err(Error::Overloaded { retry_after, .. }) => retry_after,
        other => panic!("{other:?}"),
    };
    let began = Instant::now();
    assert!(!samples(fixture.speak(LONG, 7)).is_empty());
    let alone = began.elapsed();
    wait_until("its row is free", || fixture.stats().turnover() > Duration::ZERO);
    let turnover = fixture.stats().turnover();
    assert!(turnover <= alone && turnover > alone / 4, "{turnover:?} in a row, {alone:?} in all");

    let streams: Vec<AudioStream> = (0..9).map(|_| fixture.speak(LONG, 7)).collect();
    wait_until("eight wait", || fixture.stats().queued.load(Ordering::Relaxed) == 8);
    wait_until("one is seated", || fixture.stats().seated.load(Ordering::Relaxed) == 1);
    assert_eq!(fixture.stats().expected_wait(), turnover * 9 - turnover / 2);
    assert_eq!(refused(&fixture), turnover.max(Duration::from_millis(10)));
    drop(streams);
    wait_until("nobody waits", || fixture.stats().queued.load(Ordering::Relaxed) == 0);
    wait_until("all places are free", || fixture.in_flight() == 0);
    // The permit goes with the stream, the row between two steps.
    wait_until("the row is free", || fixture.stats().seated.load(Ordering::Relaxed) == 0);
    assert_eq!(fixture.stats().expected_wait(), Duration::ZERO);
}

/// The samples of each sentence, without the silences behind them.
fn sentences(stream: AudioStream) -> Vec<Vec<f32>> {
    let mut found = vec![Vec::new()];
    for chunk in stream.map(Result::unwrap) {
        match chunk.completes {
            Some(_) => found.push(Vec::new()),
            None => found.last_mut().unwrap().extend(chunk.samples),
        }
    }
    found.pop();
    found
}

#[test]
fn rate_and_volume_change_their_sentence_alone() {
    let fixture = tiny_voice(1, 0);
    let spoken = |inner: &str| {
        let ssml = Script::Ssml(format!("<speak>The kettle was on. {inner} No.</speak>"));
        let segments = fixture.synthesizer.passage(&ssml, &Reading::default()).unwrap().segments;
        sentences(fixture.synthesizer.speak(segments, fixture.request(7)).unwrap())
    };
    let rms_db = |samples: &[f32]| {
        let power: f64 = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
        10.0 * (power / samples.len() as f64).log10()
    };
    let plain = spoken("Rain again.");
    let [before, middle, after] = &plain[..] else { panic!("{} sentences", plain.len()) };
    for volume_db in [-12.0, -6.0, 6.0] {
        let changed = spoken(&format!("<prosody volume='{volume_db:+}dB'>Rain again.</prosody>"));
        assert_eq!((&changed[0], &changed[2]), (before, after), "{volume_db} dB");
        let change = rms_db(&changed[1]) - rms_db(middle);
        assert!((change - volume_db).abs() < 1e-3, "{change} dB, not {volume_db}");
    }
    let silent = spoken("<prosody volume='silent'>Rain again.</prosody>");
    assert_eq!(silent[1], vec![0.0; middle.len()]);
    for (rate, share) in [("200%", 2.0), ("x-slow", 0.5), ("125%", 1.25)] {
        let changed = spoken(&format!("<prosody rate='{rate}'>Rain again.</prosody>"));
        assert_eq!((&changed[0], &changed[2]), (before, after), "{rate}");
        let ratio = middle.len() as f64 / changed[1].len() as f64;
        // Rounded up to a frame.
        let rounding = share * share / (middle.len() as f64 / 64.0);
        assert!((ratio - share).abs() <= rounding, "{ratio}, not {share} within {rounding}");
    }
}

#[test]
fn a_rate_is_held_against_that_of_its_request() {
    let fixture = tiny_voice(1, 8);
    let speak = |speaking_rate: f32, rate: &str| {
        let ssml = Script::Ssml(format!("<speak>No. <prosody rate='{rate}'>Rain again.</prosody></speak>"));
        let segments = fixture.synthesizer.passage(&ssml, &Reading::default()).unwrap().segments;
        let request = StreamRequest { speaking_rate, ..fixture.request(7) };
        fixture.synthesizer.speak(segments, request).map(|stream| sentences(stream).len())
    };
    assert_eq!(speak(0.5, "400%").unwrap(), 2);
    assert_eq!(speak(2.0, "25%").unwrap(), 2);
    for (speaking_rate, rate, made) in
        [(2.0, "150%", "makes 3"), (1.0, "250%", "makes 2.5"), (0.5, "0.5", "makes 0.25")]
    {
        match speak(speaking_rate, rate) {
            Err(Error::InvalidRequest(reason)) => {
                assert!(reason.contains(made) && reason.contains("0.5 to 2"), "{reason}");
                assert!(reason.contains("Rain again."), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
    wait_until("the refused streams have left", || fixture.in_flight() == 0);
}
