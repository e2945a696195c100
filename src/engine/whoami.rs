//! Asks the API server for the name of the user and for the time of its clock.
//!
//! Claims, holds and gc use the server's clock, because the clocks of two machines may differ by more than
//! the age limit of a claim.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Client;
use kube::api::{Api, PostParams};

use super::repeat::repeat;

/// A function that returns the current time by the server's clock. A plan may be applied long after it was
/// made.
pub type Clock<'a> = &'a (dyn Fn() -> Timestamp + Send + Sync);

/// The smallest clock difference that bowline corrects. A smaller difference comes from network delay and
/// from the whole seconds in the server's answer.
const NOTICED: SignedDuration = SignedDuration::from_secs(5);

/// The answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whoami {
    /// The name under which the server knows the user.
    pub user: String,
    /// How far the server's clock is ahead of this machine's clock; zero if the difference is below five
    /// seconds.
    pub ahead: SignedDuration,
}

/// Asks the server for the name of the user and the time of its clock. `clock` returns the time of this
/// machine.
pub async fn ask(client: &Client, clock: Clock<'_>) -> Result<Whoami, kube::Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let (params, question) = (PostParams::default(), SelfSubjectReview::default());
    // A slow login may delay the first attempts. So `clock` runs directly after the attempt that the server
    // answered.
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
