//! Asks the API server for the name of the user and for the server's current time.
//!
//! Claims, holds and gc use the server's clock, because the clocks of two machines may differ by more than the age
//! limit of a claim.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Client;
use kube::api::{Api, PostParams};

use super::repeat::repeat;

/// A function that returns the current time by the server's clock. It is a function because a plan may be applied
/// long after it was made.
pub type Clock<'a> = &'a (dyn Fn() -> Timestamp + Send + Sync);

/// The smallest clock difference that bowline corrects. A smaller difference may come from network delay, or from the
/// whole seconds in the server's answer.
const NOTICED: SignedDuration = SignedDuration::from_secs(5);

/// The server's answer about the user and the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whoami {
    /// The name under which the server knows the user.
    pub user: String,
    /// How far the server's clock is ahead of this machine's clock. A difference below five seconds counts as zero.
    pub ahead: SignedDuration,
}

/// Asks the server for the name of the user and the current time. `clock` returns the time of this machine.
pub async fn ask(client: &Client, clock: Clock<'_>) -> Result<Whoami, kube::Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let (params, question) = (PostParams::default(), SelfSubjectReview::default());
    // A slow login may delay the first attempts. So the local time is read directly after the attempt that succeeded.
    let (review, asked) = repeat(|| async {
        let review = reviews.create(&params, &question).await?;
        Ok((review, clock()))
    })
    .await?;
    let user = review.status.and_then(|status| status.user_info);
    let there = review.metadata.creation_timestamp;
    Ok(Whoami {
        user: user.and_then(|user| user.username).unwrap_or_default(),
        ahead: there.map_or(SignedDuration::ZERO, |there| ahead(there.0, asked)),
    })
}

fn ahead(there: Timestamp, here: Timestamp) -> SignedDuration {
    let ahead = there.duration_since(here);
    match ahead.abs() < NOTICED {
        true => SignedDuration::ZERO,
        false => ahead,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_are_none() {
        for (there, expected) in [
            ("2026-01-06T12:00:00Z", 0),
            ("2026-01-06T12:00:04Z", 0),
            ("2026-01-06T11:59:57Z", 0),
            ("2026-01-06T12:00:05Z", 5),
            ("2026-01-06T11:00:00Z", -3_600),
        ] {
            let here = "2026-01-06T12:00:00Z".parse().unwrap();
            let found = ahead(there.parse().unwrap(), here);
            assert_eq!(found.as_secs(), expected, "{there}");
        }
    }
}
