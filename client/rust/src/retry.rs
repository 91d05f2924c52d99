//! When a call is retried: as in deploy/service_config.json, which other languages pass to gRPC.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use tonic::Code;

use crate::Error;

/// All attempts of a call that fails with UNAVAILABLE.
pub const MAX_ATTEMPTS: u32 = 5;
/// The longest first wait, if the server does not give one.
pub const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
/// The longest wait, if the server does not give one.
pub const MAX_BACKOFF: Duration = Duration::from_secs(1);
/// The factor from one wait to the next.
pub const BACKOFF_MULTIPLIER: u32 = 2;

/// If a server asks for a longer wait than this, the call fails.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// How long to wait before attempt number `attempt` + 1; None if there is none.
pub(crate) fn wait_after(error: &Error, attempt: u32) -> Option<Duration> {
    if error.code != Code::Unavailable || attempt >= MAX_ATTEMPTS {
        return None;
    }
    if let Some(asked) = error.retry_after {
        return (asked <= LONGEST_WAIT).then_some(asked);
    }
    let longest = (INITIAL_BACKOFF * BACKOFF_MULTIPLIER.pow(attempt - 1)).min(MAX_BACKOFF);
    // A number that differs from call to call, so that clients do not retry all at once.
    let random = RandomState::new().build_hasher().finish();
    Some(longest.mul_f64(random as f64 / u64::MAX as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_unavailable_is_tried_again_and_not_for_ever() {
        let unavailable = Error::new(Code::Unavailable, "");
        for attempt in 1..MAX_ATTEMPTS {
            assert!(wait_after(&unavailable, attempt).unwrap() <= MAX_BACKOFF);
        }
        assert_eq!(wait_after(&unavailable, MAX_ATTEMPTS), None);
        assert_eq!(wait_after(&Error::new(Code::Internal, ""), 1), None);
        let asks = |seconds| Error { retry_after: Some(Duration::from_secs(seconds)), ..unavailable.clone() };
        assert_eq!(wait_after(&asks(7), 1), Some(Duration::from_secs(7)));
        assert_eq!(wait_after(&asks(31), 1), None);
    }
}
