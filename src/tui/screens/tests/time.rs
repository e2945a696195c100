//! What changed around the start of an incident.

use super::data::record;
use super::still;
use crate::tui::effect::Answer;
use crate::tui::still::Still;

fn since(line: &str) -> Still {
    let line = format!("\"since {line}\"");
    still().keys(":").keys(&line).keys("enter")
}

#[test]
fn what_may_have_caused_an_incident_is_ranked_and_looked_into() {
    let ranked = || {
        since("13:40")
            .shows("what is on record is being read")
            .answer(|_| Answer::Record(Ok(record(false))))
            .shows("an incident that began at 13:40:00: the likeliest cause first")
            .shows("INC-42 hotfix")
    };
    ranked().golden("since");
    ranked().keys("enter").shows("revisions in production");
}

#[test]
fn a_record_that_cannot_be_read_says_why() {
    since("13:40")
        .answer(|_| Answer::Record(Err("nobody may list auditentries".to_owned())))
        .shows("what is on record cannot be read: nobody may list auditentries");
}
