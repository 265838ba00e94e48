//! Errors in, what a client is told of them out; every refusal at the door is counted here.
//!
//! Never tells a client what it cannot act on, and never more than a header has room for.

use std::convert::Infallible;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::metadata::MetadataValue;
use tonic::server::NamedService;
use tonic::{Code, Status};

use crate::error::{Error, shortened};
use crate::telemetry::Metrics;

/// Clients take 8 kB of headers by default, and a byte may take three in one.
const MAX_MESSAGE_BYTES: usize = 2_000;
/// How the message of a fault of ours begins; whatever else is INTERNAL at the door is a message that the library could
/// not read.
const FAULT: &str = "internal fault";
/// The header that tells a client when to try again.
pub const RETRY_AFTER: &str = "retry-after-ms";

/// What a client is told of `error`; what it cannot act on goes to the log alone.
pub fn status(error: &Error, id: &str) -> Status {
    let message = || shortened(error.to_string(), MAX_MESSAGE_BYTES);
    match error {
        Error::InvalidRequest(_) => Status::invalid_argument(message()),
        Error::Overloaded { retry_after, .. } => {
            let retry_after_ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX).max(1);
            let mut status =
                Status::resource_exhausted(format!("{}; try again in {retry_after_ms} ms", message()));
            status.metadata_mut().insert(RETRY_AFTER, MetadataValue::from(retry_after_ms));
            status
        }
        Error::TooSlow(_) => Status::aborted(message()),
        Error::Unavailable(_) => Status::unavailable(message()),
        Error::DeadlineExceeded(_) => Status::deadline_exceeded(message()),
        Error::InvalidVoice { .. } => Status::failed_precondition(message()),
        Error::Runtime(_) | Error::Io { .. } | Error::Internal(_) => {
            tracing::error!(id, "{error}");
            Status::internal(format!("{FAULT} in request `{id}`: the server's log has the reason"))
        }
    }
}

/// A service whose refusals are counted, those of the library before it too.
#[derive(Debug, Clone)]
pub struct Door<S> {
    pub inner: S,
    pub metrics: Metrics,
    pub max_text_bytes: usize,
}

impl<S> Service<http::Request<Body>> for Door<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (metrics, max_text_bytes) = (self.metrics.clone(), self.max_text_bytes);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            // A response that has begun tells its status behind its messages.
            match Status::from_header_map(response.headers()) {
                Some(refusal) if refusal.code() != Code::Ok => {
                    let told = in_our_words(&refusal, max_text_bytes);
                    metrics.request_refused(reason(told.as_ref().unwrap_or(&refusal).code()));
                    Ok(told.map_or(response, Status::into_http))
                }
                _ => Ok(response),
            }
        })
    }
}

impl<S: NamedService> NamedService for Door<S> {
    const NAME: &'static str = S::NAME;
}

/// What a client should be told instead of `refusal`, where the library has refused.
fn in_our_words(refusal: &Status, max_text_bytes: usize) -> Option<Status> {
    let library = shortened(refusal.message().to_owned(), MAX_MESSAGE_BYTES / 2);
    match refusal.code() {
        Code::OutOfRange => Some(Status::invalid_argument(format!(
            "the message is too long for a text of {max_text_bytes} bytes, the limit: send it in parts ({library})"
        ))),
        Code::Internal if !refusal.message().starts_with(FAULT) => {
            Some(Status::invalid_argument(format!("the message cannot be read: {library}")))
        }
        _ => None,
    }
}

/// The label of a refusal in the metrics.
fn reason(code: Code) -> &'static str {
    match code {
        Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition | Code::Unimplemented => "invalid",
        Code::PermissionDenied => "denied",
        Code::ResourceExhausted => "overloaded",
        Code::Unavailable => "unavailable",
        Code::DeadlineExceeded => "deadline",
        Code::Internal => "fault",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_message_outgrows_a_header() {
        let long = || "語".repeat(9_000);
        let retry_after = Duration::from_millis(70);
        for error in [
            Error::InvalidRequest(long()),
            Error::Overloaded { reason: long(), retry_after },
            Error::TooSlow(long()),
            Error::Unavailable(long()),
            Error::DeadlineExceeded(long()),
            Error::voice(long(), long()),
            Error::Internal(long()),
        ] {
            let message = status(&error, "id").message().to_owned();
            assert!(message.len() < MAX_MESSAGE_BYTES + 100, "{} bytes", message.len());
        }
    }

    #[test]
    fn what_the_library_cannot_read_is_the_clients_fault_and_a_fault_of_ours_is_not() {
        let told = in_our_words(&Status::internal("failed to decode Protobuf message"), 10).unwrap();
        assert_eq!(told.code(), Code::InvalidArgument);
        assert!(told.message().contains("Protobuf"), "{told}");
        assert!(in_our_words(&status(&Error::Internal("x".to_owned()), "id"), 10).is_none());
        let told = in_our_words(&Status::out_of_range("found 99 bytes, the limit is: 20 bytes"), 10).unwrap();
        assert!(told.message().contains("10 bytes, the limit"), "{told}");
    }
}
