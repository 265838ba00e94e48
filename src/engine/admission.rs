//! A request in, a permit or a refusal with its reason out.
//!
//! Never queues without a bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::{Error, Result};

/// Counts the requests that are in the engine.
#[derive(Debug)]
pub(super) struct Admission {
    in_flight: AtomicUsize,
    slots: usize,
    queue: usize,
    draining: AtomicBool,
}

/// One request's place; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Permit(Arc<Admission>);

impl Admission {
    pub fn new(slots: usize, queue: usize) -> Arc<Self> {
        let (in_flight, draining) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { in_flight, slots, queue, draining })
    }

    /// Takes a place, or says why there is none and that one may be free after `retry_after`.
    pub fn admit(self: &Arc<Self>, retry_after: Duration) -> Result<Permit> {
        if self.draining.load(Ordering::Acquire) {
            return Err(Error::Unavailable("the server is shutting down".to_owned()));
        }
        let places = self.slots + self.queue;
        let more = |taken: usize| (taken < places).then_some(taken + 1);
        match self.in_flight.fetch_update(Ordering::AcqRel, Ordering::Acquire, more) {
            Ok(_) => Ok(Permit(Arc::clone(self))),
            Err(taken) => {
                let (slots, queue) = (self.slots, self.queue);
                let reason = format!(
                    "{taken} requests are in work, {slots} streams and a queue of {queue} are all taken"
                );
                Err(Error::Overloaded { reason, retry_after })
            }
        }
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Refuses whatever comes from now on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY_AFTER: Duration = Duration::from_millis(70);

    #[test]
    fn refuses_when_slots_and_queue_are_taken() {
        let admission = Admission::new(2, 1);
        let permits: Vec<Permit> = (0..3).map(|_| admission.admit(RETRY_AFTER).unwrap()).collect();
        let refusal = admission.admit(RETRY_AFTER).unwrap_err();
        assert!(matches!(&refusal, Error::Overloaded { reason, retry_after: RETRY_AFTER }
                if reason.contains("2 streams and a queue of 1")));
        drop(permits);
        assert_eq!(admission.in_flight(), 0);
        assert!(admission.admit(RETRY_AFTER).is_ok());
    }

    #[test]
    fn refuses_everything_while_draining() {
        let admission = Admission::new(2, 1);
        admission.drain();
        assert!(matches!(admission.admit(RETRY_AFTER), Err(Error::Unavailable(_))));
    }
}
