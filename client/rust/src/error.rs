//! What went wrong, with the fields that are wrong.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::v1;

/// Why a call failed, or could not be made.
#[derive(Debug, Clone)]
pub struct Error {
    /// The status code.
    pub code: Code,
    /// Text that names the field and both numbers.
    pub message: String,
    /// The fields of the request that are wrong, such as "scale".
    pub fields: Vec<v1::FieldViolation>,
    /// A word for programs; empty if the error is not the server's.
    pub reason: String,
    /// When to try again, if the server says so.
    pub retry_after: Option<Duration>,
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), fields: Vec::new(), reason: String::new(), retry_after: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error::new(Code::InvalidArgument, message)
    }

    /// An error about a field of a message, such as a tensor's "shape".
    pub(crate) fn invalid_field(field: &str, message: impl Into<String>) -> Error {
        let mut error = Error::invalid(message);
        error.fields = vec![v1::FieldViolation { field: field.into(), description: error.message.clone() }];
        error
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "quantd: {:?}: {}", self.code, self.message)
    }
}

impl std::error::Error for Error {}

impl From<Status> for Error {
    fn from(status: Status) -> Error {
        let details = status.get_error_details();
        let mut error = Error::new(status.code(), status.message());
        // A broken connection is UNAVAILABLE in gRPC; tonic reports some of its ends with other codes, and without a text.
        if let Some(cause) = status.source() {
            if matches!(error.code, Code::Unknown | Code::Internal | Code::Cancelled) {
                error.code = Code::Unavailable;
            }
            let mut last = cause;
            while let Some(next) = last.source() {
                last = next;
            }
            error.message = format!("{}: {last}", error.message);
        }
        if let Some(bad) = details.bad_request() {
            error.fields = bad
                .field_violations
                .iter()
                .map(|v| v1::FieldViolation { field: v.field.clone(), description: v.description.clone() })
                .collect();
        }
        if let Some(info) = details.error_info() {
            error.reason = info.reason.clone();
        }
        error.retry_after = details.retry_info().and_then(|retry| retry.retry_delay);
        error
    }
}

/// The error of an item of a stream that failed.
impl From<v1::ItemError> for Error {
    fn from(item: v1::ItemError) -> Error {
        Error { fields: item.field_violations, ..Error::new(Code::from(item.code), item.message) }
    }
}
